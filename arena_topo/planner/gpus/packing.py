"""The packings of every set of GPUs of an island, a group of GPUs that direct links connect.

How many channels fit at once into links of limited capacity: an integer packing by depth-first search.

With one unit of capacity on each of the arcs 01, 12 and 23, a channel over 01 and 12 excludes one over 12 and
23, and leaves no arc for it; the single arcs 01 and 23 fit next to each other. The shortest channels are
tried first:

>>> _fill([((0, 1), (1, 2)), ((0, 1),), ((2, 3),)], {(0, 1): 1, (1, 2): 1, (2, 3): 1}, bound=3)
(2, True)

How many rings and chains a set of GPUs can hold at once over the links among themselves.

NCCL builds its collectives from *rings* (each GPU sends to the next, the last to the first) and, inside a
node, from *chains* (its trees have one GPU per level there). Each channel takes, at every hop, one link: in
one direction in a ring, in both in a chain. How many channels fit side by side is an integer packing:

- closed rings: directed Hamiltonian cycles over direct links;
- relayed rings: a hop between two GPUs without a link may pass through one other *member*, and then takes a
  link on both legs (NCCL's path type NVB, ``src/graph/paths.cc``, since 2.8);
- chains: undirected Hamiltonian paths over direct links.

Meant for sets of at most eight GPUs.

Three GPUs with one link from 0 to 1 and one from 1 to 2 hold no closed ring, because nothing joins 2 to 0.
One ring is relayed: 2 reaches 0 through 1, and the ring then uses both directions of both links. One chain
fits, 0-1-2.

>>> pack([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
Packing(closed=0, relayed=1, chains=1, exact=True)

Four GPUs with one link between any two have six links, twelve directions. Two directed rings of four hops fit
(0 1 2 3 and back), and no third, although four directions are left; two chains of three links use up all six
links.

>>> pack([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])
Packing(closed=2, relayed=2, chains=2, exact=True)
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import combinations, islice, pairwise, permutations
from math import gcd
from pathlib import Path
from typing import Any, TypeVar

from arena_topo import files

# Canonical forms: two machines that differ only in how their GPUs are numbered get the same one.
#
# Positions are coloured, and colours refined until they are stable: positions that see different links get
# different colours. While several positions share a colour, one position of the first such colour is singled
# out, each of them in turn, until all colours differ; the least matrix that results is the form. Two ways
# that give the same matrix show a symmetry, and what it maps to something tried is not tried again (McKay,
# "Practical graph isomorphism", 1981); neither is a position whose exchange with one that was tried changes
# nothing.

Matrix = Sequence[Sequence[int]]

_MOST_LEAVES = 500
"""The search ends after so many relabelled matrices. Equal forms then still mean equal machines, but one
machine may have several forms: tables are computed once for each of them."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """A relabelled matrix and the relabelling: ``order[i]`` is the old position of the GPU at place i."""

    rows: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]


def canonical(matrix: Matrix) -> Canonical:
    """Return the canonical form of a symmetric *matrix* of small integers.

    The path 0-1-2 has one link from 0 to 1 and one from 1 to 2. Refinement tells 1, which sees two links,
    from 0 and 2, which see one; 0 and 2 are twins, so it is enough to single out 0. The ends come first,
    because their colour is lower:

    >>> canonical([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    Canonical(rows=((0, 0, 1), (0, 0, 1), (1, 1, 0)), order=(0, 2, 1))

    Numbered 1-0-2, the same path has the same rows:

    >>> canonical([[0, 1, 1], [1, 0, 0], [1, 0, 0]]).rows
    ((0, 0, 1), (0, 0, 1), (1, 1, 0))
    """
    search = _FormSearch(matrix, twins(matrix))
    search.explore([0] * len(matrix), ())
    return Canonical(search.rows, search.order)


def twins(matrix: Matrix) -> list[int]:
    """Return the class of each position: those of one class may be exchanged and the matrix stays the same.

    A class is named by its lowest position. The ends of a path are twins:

    >>> twins([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    [0, 1, 0]
    """
    size = range(len(matrix))

    def alike(a: int, b: int) -> bool:
        return matrix[a][a] == matrix[b][b] and all(
            matrix[a][c] == matrix[b][c] for c in size if c not in (a, b)
        )

    # Two twins have equal rows once each has their own link in place of its diagonal: sums of hashes find who
    # may be one, where comparing each with each takes a minute for a thousand GPUs. Squared, since hashes of
    # small numbers are nearly linear, and the sums of many rows would be equal.
    alike_by_sum: dict[tuple[int, int, int], list[int]] = {}
    classes: list[int] = []
    for b, row in enumerate(matrix):
        others = sum(hash((c, link)) ** 2 for c, link in enumerate(row) if c != b)
        keys = [(row[b], link, others + hash((b, link)) ** 2) for link in {*row}]
        possible = {a for key in keys for a in alike_by_sum.get(key, ())}
        classes.append(next((a for a in sorted(possible) if alike(a, b)), b))
        # The first of a class stands for all of it.
        if classes[b] == b:
            for key in keys:
                alike_by_sum.setdefault(key, []).append(b)
    return classes


@dataclass(slots=True)
class _FormSearch:
    """The depth-first search, and the best leaf so far: its ``rows``, their ``order``, and its ``path``."""

    matrix: Matrix
    twins: Sequence[int]
    rows: tuple[tuple[int, ...], ...] = ()
    order: tuple[int, ...] = ()
    path: tuple[int, ...] = ()
    symmetries: list[dict[int, int]] = field(default_factory=list)
    leaves: int = 0

    def explore(self, colours: Sequence[int], path: tuple[int, ...]) -> int:
        """Search below the positions of *path*, singled out so far; return the depth at which to continue."""
        refined = _refine(self.matrix, colours)
        shared = _first_shared_colour(refined)
        if not shared:
            return self._leaf(sorted(range(len(refined)), key=refined.__getitem__), path)
        tried: set[int] = set()
        # In reverse, so that the lowest position of each class is the one that remains.
        one_of_each_class = {self.twins[position]: position for position in reversed(shared)}.values()
        for position in one_of_each_class:
            if tried & self._orbit(position, path):
                continue
            # Doubled colours leave a free one below each, which the position gets.
            singled_out = [2 * colour - (other == position) for other, colour in enumerate(refined)]
            depth = self.explore(singled_out, (*path, position))
            # A symmetry was found further up: everything below this path repeats what was tried there.
            if depth < len(path) or self.leaves >= _MOST_LEAVES:
                return depth
            tried.add(position)
        return len(path)

    def _leaf(self, order: Sequence[int], path: tuple[int, ...]) -> int:
        self.leaves += 1
        rows = tuple(tuple(self.matrix[a][b] for b in order) for a in order)
        if self.path and rows == self.rows:
            self.symmetries.append(dict(zip(self.order, order, strict=True)))
            # Below the first difference of the two paths everything would come again: continue with what
            # follows there.
            return next(depth for depth, (a, b) in enumerate(zip(self.path, path, strict=True)) if a != b)
        if not self.order or rows < self.rows:
            self.rows, self.order, self.path = rows, tuple(order), path
        return len(path)

    def _orbit(self, position: int, path: tuple[int, ...]) -> set[int]:
        """Return where the known symmetries that keep all of *path* can take *position*."""
        keeping = [
            symmetry for symmetry in self.symmetries if all(symmetry[fixed] == fixed for fixed in path)
        ]
        orbit, frontier = {position}, [position]
        while frontier:
            source = frontier.pop()
            images = {
                image
                for symmetry in keeping
                for image in (symmetry[source], *(a for a, b in symmetry.items() if b == source))
            } - orbit
            orbit |= images
            frontier += images
        return orbit


def _first_shared_colour(colours: Sequence[int]) -> list[int]:
    """Return the positions of the first colour that several have."""
    ordered = sorted(colours)
    first = next((a for a, b in pairwise(ordered) if a == b), None)
    return [position for position, colour in enumerate(colours) if colour == first]


def _refine(matrix: Matrix, colours: Sequence[int]) -> list[int]:
    """Return the coarsest colours, 0 upwards, that are at least as fine as *colours* and stable.

    >>> _refine([[0, 1, 0], [1, 0, 1], [0, 1, 0]], [0, 0, 0])
    [0, 1, 0]
    """
    size = range(len(matrix))
    current = _ranked(colours)
    while True:
        finer = _ranked(
            [
                (current[a], matrix[a][a], tuple(sorted((matrix[a][b], current[b]) for b in size if b != a)))
                for a in size
            ]
        )
        # Refining only splits colours, so none was split where their number is the same.
        if len(set(finer)) == len(set(current)):
            return finer
        current = finer


def _ranked(values: Sequence[Any]) -> list[int]:
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return [ranks[value] for value in values]


# Tables that are expensive to compute: shipped for common machines, stored in the user's cache for others.
#
# The cache is only a hint: a table that cannot be read is computed again, and one that cannot be written is
# used anyway.

Table = TypeVar("Table")

_VERSION = 1
SHIPPED = Path(__file__).with_name("packings.json")
"""The tables of common machines by name, which ``tools/packings.py`` writes."""


def load_table(name: str, read: Callable[[dict[str, Any]], Table]) -> Table | None:
    """Return what *read* makes of the table called *name*, or None if there is none that it can read.

    *read* raises ``ValueError`` for a table that it does not accept.
    """
    for table_of in (_shipped, _stored):
        # A file that is missing, is not JSON or is nested too deeply counts as no table.
        with suppress(OSError, ValueError, RecursionError):
            table = table_of(name)
            if isinstance(table, dict):
                return read(table)
    return None


def store_table(name: str, table: dict[str, Any]) -> None:
    """Store *table* in the user's cache; readers see the old file or the new one, never half of one."""
    # Rarely needed: most machines have a table that is shipped or stored already.
    import tempfile

    with suppress(OSError):
        folder = _tables_folder()
        files.make_private(folder)
        # In the same folder, because a file replaces another in one step only within a file system.
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}-")
        try:
            with os.fdopen(handle, "w") as file:
                # ``dumps`` encodes in C, ``dump`` does not.
                file.write(json.dumps(table, separators=(",", ":")))
            Path(temporary).replace(folder / file_name(name))
        except OSError:
            Path(temporary).unlink(missing_ok=True)


def _tables_folder() -> Path:
    return files.cache_folder() / "gpusets"


def file_name(name: str) -> str:
    """Return the name of the file of a table; a new version of the format uses other names."""
    return f"{name}.v{_VERSION}.json"


def _shipped(name: str) -> Any:
    return json.loads(SHIPPED.read_text()).get(name)


def _stored(name: str) -> Any:
    return json.loads((_tables_folder() / file_name(name)).read_text())


_Arc = tuple[int, int]
Channel = tuple[_Arc, ...]
"""The arcs that a channel takes, one unit of each; an arc may come twice."""

# Steps and not seconds, so that a faster machine does not get another answer.
_MOST_STEPS = 10_000
# Every pair of channels is compared: above this number that costs more than the search saves by it.
_MOST_COMPARED = 2_000


def _fill(channels: Iterable[Channel], capacities: Mapping[_Arc, int], bound: int) -> tuple[int, bool]:
    """Return how many of *channels*, with repeats, fit into *capacities*, and whether that is proven.

    *bound* is a number that cannot be exceeded. Not proven means that the search ended early, with a packing
    that may not be the largest.
    """
    fields = _Fields.of(capacities)
    lengths = {fields.taken(channel): len(channel) for channel in channels}
    shortest_first = sorted(lengths, key=lambda taken: (lengths[taken], taken))
    search = _PackingSearch(_minimal(shortest_first, fields.guards), lengths, fields.guards, bound)
    search.extend(search.channels, fields.full, sum(capacities.values()), 0)
    return search.most, search.steps < _MOST_STEPS or search.most >= bound


@dataclass(frozen=True, slots=True)
class _Fields:
    """Capacities packed into one integer: a field for each arc, with a guard bit above it.

    Taking a channel is one subtraction for all arcs, and an overdrawn arc clears its guard. Two arcs of
    capacity 1 have fields of two bits: full is 0b1111 (guard, 1, guard, 1). Taking the lower arc once leaves
    0b1110; taking it again leaves 0b1101, in which its guard, bit 1, is clear.
    """

    shift: Mapping[_Arc, int]
    guards: int
    full: int

    @classmethod
    def of(cls, capacities: Mapping[_Arc, int]) -> "_Fields":
        # A channel takes no arc more often than its capacity, so one guard bit never borrows further.
        width = max(capacities.values(), default=1).bit_length() + 1
        shift = {arc: number * width for number, arc in enumerate(capacities)}
        guards = sum(1 << (lowest + width - 1) for lowest in shift.values())
        return cls(shift, guards, guards + sum(capacities[arc] << lowest for arc, lowest in shift.items()))

    def taken(self, channel: Channel) -> int:
        return sum(1 << self.shift[arc] for arc in channel)


@dataclass(slots=True)
class _PackingSearch:
    channels: Sequence[int]
    lengths: Mapping[int, int]
    guards: int
    bound: int
    most: int = 0
    steps: int = 0

    def extend(self, channels: Sequence[int], left: int, units: int, depth: int) -> None:
        """Add channels to the *depth* chosen ones, in order; *units* of capacity are *left*."""
        self.steps += 1
        self.most = max(self.most, depth)
        fitting = [taken for taken in channels if (left - taken) & self.guards == self.guards]
        for index, taken in enumerate(fitting):
            if self.most >= self.bound or self.steps >= _MOST_STEPS:
                return
            # All that follow are at least as long, so no more than this many of them fit.
            if depth + units // self.lengths[taken] <= self.most:
                return
            # The same channel may come again, but none before it: each selection is tried in one order only.
            self.extend(fitting[index:], left - taken, units - self.lengths[taken], depth + 1)


def _minimal(channels: Sequence[int], guards: int) -> Sequence[int]:
    """Return *channels*, shortest first, without those that take all that another takes, and more."""
    if len(channels) > _MOST_COMPARED:
        return channels
    minimal: list[int] = []
    for taken in channels:
        # No guard is borrowed from where *taken* has at least what *other* takes of every arc.
        if not any(((taken | guards) - other) & guards == guards for other in minimal):
            minimal.append(taken)
    return minimal


Counts = Sequence[Sequence[int]]
"""The direct links of every pair of GPUs: symmetric, zero on the diagonal."""

# Eight GPUs with links between all have 5,040 directed rings; relays multiply them.
_MOST_CHANNELS = 20_000


@dataclass(frozen=True, slots=True)
class Packing:
    """The numbers of channels that fit into one set of GPUs.

    ``exact`` says that each is proven to be the largest; where a search ended early they are lower bounds.
    """

    closed: int
    relayed: int
    chains: int
    exact: bool = True


NOTHING = Packing(0, 0, 0)


def pack(counts: Counts) -> Packing:
    """Return the packing of all the GPUs of *counts*."""
    cut = narrowest_cut(counts)
    # A set that falls apart holds no channel at all.
    if not cut:
        return NOTHING
    divisor = gcd(*(count for row in counts for count in row))
    fewest_links = min(sum(row) for row in counts)
    links = sum(map(sum, counts)) // 2
    # Twice the links hold at least twice the channels, so the packing of the links divided is a start.
    once = pack([[count // divisor for count in row] for row in counts]) if divisor > 1 else NOTHING
    closed, closed_proven = _most(counts, _rings(counts, relay=False), fewest_links, once.closed * divisor)
    # A closed ring is a relayed ring that needs no relay.
    relayed, relayed_proven = max(once.relayed * divisor, closed), True
    if relayed < cut:
        relayed, relayed_proven = _most(counts, _rings(counts, relay=True), cut, relayed)
    most_chains = min(cut, links // (len(counts) - 1))
    chains, chains_proven = _most(counts, _chains(counts), most_chains, once.chains * divisor)
    return Packing(closed, relayed, chains, closed_proven and relayed_proven and chains_proven)


def _most(counts: Counts, channels: Iterator[Channel], bound: int, lower: int) -> tuple[int, bool]:
    """Return how many of *channels* fit at once, and whether that is proven.

    At least *lower* are known to fit, and never more than *bound*.
    """
    if lower >= bound:
        return lower, True
    candidates = list(islice(channels, _MOST_CHANNELS))
    arcs = {arc for channel in candidates for arc in channel}
    most, proven = _fill(candidates, {(a, b): counts[a][b] for a, b in sorted(arcs)}, bound)
    return max(most, lower), most >= bound or (proven and len(candidates) < _MOST_CHANNELS)


def _rings(counts: Counts, *, relay: bool) -> Iterator[Channel]:
    """Yield every directed ring by the arcs that it takes."""
    size = range(len(counts))
    routes = {(a, b): _routes(counts, a, b, relay=relay) for a, b in permutations(size, 2)}

    def walk(here: int, left: frozenset[int], taken: Channel) -> Iterator[Channel]:
        # After the last GPU the ring returns to its first.
        for b in sorted(left) or [0]:
            for route in routes[here, b]:
                # A relay may lead over a link that the ring has used, but not more often than there are
                # links.
                if any(taken.count((a, c)) >= counts[a][c] for a, c in route):
                    continue
                if left:
                    yield from walk(b, left - {b}, taken + route)
                else:
                    yield taken + route

    return walk(0, frozenset(size) - {0}, ())


def _routes(counts: Counts, a: int, b: int, *, relay: bool) -> list[Channel]:
    """Return the routes from *a* to *b*: the direct link if there is one, else over each possible relay."""
    if counts[a][b]:
        return [((a, b),)]
    return [((a, r), (r, b)) for r in range(len(counts)) if counts[a][r] and counts[r][b]] if relay else []


def _chains(counts: Counts) -> Iterator[Channel]:
    """Yield every chain once, by the links that it takes."""
    size = len(counts)

    def walk(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(path) == size:
            yield path
        for b in range(size):
            if counts[path[-1]][b] and b not in path:
                yield from walk((*path, b))

    for start in range(size):
        # A chain is walked from both of its ends: the walk from the lower one is kept.
        yield from (tuple(_links(path)) for path in walk((start,)) if path[0] < path[-1])


def _links(path: Sequence[int]) -> Iterator[_Arc]:
    return ((min(hop), max(hop)) for hop in pairwise(path))


def narrowest_cut(counts: Counts) -> int:
    """Return the fewest links whose removal parts the set in two, 0 for fewer than two GPUs.

    Every ring crosses each cut at least once in either direction, and every chain at least once, so neither
    are there more of them. The narrowest cut of two pairs with four links each and one link between the pairs
    is that one link.

    >>> narrowest_cut([[0, 4, 1, 0], [4, 0, 0, 0], [1, 0, 0, 4], [0, 0, 4, 0]])
    1
    """
    size = range(len(counts))
    sides = (frozenset(side) for k in range(1, len(counts) // 2 + 1) for side in combinations(size, k))
    return min((sum(counts[a][b] for a in side for b in size if b not in side) for side in sides), default=0)


MOST_PACKED = 8
"""The largest island whose sets are packed one by one."""

_INSTANT = 3
"""Islands of so few GPUs are packed faster than a table is read."""
_FIELDS = ("closed", "relayed", "chains")


@lru_cache(maxsize=64)
def packings(counts: tuple[tuple[int, ...], ...]) -> Sequence[Packing]:
    """Return the packing of every set of an island: by mask, bit i being the GPU at position i of *counts*.

    Read from the tables that are shipped or cached; computed, and stored, otherwise.
    """
    form = canonical(counts)
    by_canonical_mask = _table(form)
    place = {old: new for new, old in enumerate(form.order)}
    canonical_masks = [0]
    for position in range(len(counts)):
        # The masks so far have only lower positions: the same masks with this position follow them in order.
        canonical_masks += [mask | 1 << place[position] for mask in canonical_masks]
    return [by_canonical_mask[mask] for mask in canonical_masks]


def table_name(form: Canonical) -> str:
    """Return the name under which the table of a canonical form is stored."""
    return f"packing-{len(form.rows)}-{sha256(repr(form.rows).encode()).hexdigest()[:16]}"


def compute(counts: Counts) -> dict[str, Any]:
    """Return the table of all sets of *counts*, as it is written to a file."""
    size = range(len(counts))
    packed = []
    for mask in range(1 << len(counts)):
        members = [position for position in size if mask >> position & 1]
        packed.append(pack([[counts[a][b] for b in members] for a in members]))
    return {
        "links": [list(row) for row in counts],
        "closed": [packing.closed for packing in packed],
        "relayed": [packing.relayed for packing in packed],
        "chains": [packing.chains for packing in packed],
        "unproven": [mask for mask, packing in enumerate(packed) if not packing.exact],
    }


def _table(form: Canonical) -> Sequence[Packing]:
    if len(form.rows) <= _INSTANT:
        return _read(compute(form.rows), form)
    name = table_name(form)
    table = load_table(name, lambda document: _read(document, form))
    if table is None:
        document = compute(form.rows)
        store_table(name, document)
        table = _read(document, form)
    return table


def _read(document: Mapping[str, Any], form: Canonical) -> list[Packing]:
    """Return the packings of a written table; raises ``ValueError`` when it is not the table of *form*."""
    # The name is only a digest of the links, and a file in the cache may have been put there by anything.
    if document.get("links") != [list(row) for row in form.rows]:
        raise ValueError("the table belongs to another machine")
    closed, relayed, chains = (_column(document.get(field), 1 << len(form.rows)) for field in _FIELDS)
    unproven = document.get("unproven")
    if not isinstance(unproven, list):
        raise ValueError("the table is incomplete")  # noqa: TRY004  # the fault lies in the file
    return [
        Packing(*counts, exact=mask not in unproven)
        for mask, counts in enumerate(zip(closed, relayed, chains, strict=True))
    ]


def _column(column: object, length: int) -> list[int]:
    if not isinstance(column, list) or len(column) != length:
        raise ValueError("the table is incomplete")
    if not all(type(count) is int and count >= 0 for count in column):
        raise ValueError("the table holds something other than counts")
    return column
