"""The domain of a gang, and the nodes of its roles one after the other.

The roles choose in turn (``roles.gang`` says in which order), each the best nodes given those before it, of
the choices that leave the rest a place. The first of them, the role with the most GPUs, decides between the
domains of the closest level that holds the gang: by its own score, then by the room that it leaves, at every
level.

Whether a domain holds the gang is decided by sums for each role alone, and for all together by placing them.
If the best nodes of one role leave no place for another, every choice is tried where that is short
(``every_choice``); where it is not, the tightest roles are placed first, and the result says that it may not
be the best.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby, islice
from math import inf
from operator import itemgetter

from arena_topo.model.plan import Spread
from arena_topo.planner.choice import (
    EFFORT,
    NODES_PER_STEP,
    Chosen,
    DomainBounds,
    Effort,
    Goal,
    NodeGroup,
    search,
    tightest_first,
)
from arena_topo.planner.fleet import (
    Domain,
    Room,
    capacity_by_domain,
    domain_at,
    domains_at,
    rooms,
)
from arena_topo.planner.offers import Alignment, Offer, Use
from arena_topo.planner.roles.gang import (
    CandidateNodes,
    Gang,
    PartialPlacement,
    PodSet,
    RoleChoice,
    RoleScore,
    Taken,
    evened,
    fewest_nodes,
    sliceable_by_domain,
    sliced,
)
from arena_topo.planner.roles.servers import choose_servers, server_score

# The nodes of one role, given those before it: as a gang of one role gets them, within ties and slices.
#
# A choice is compared by, in this order: the most pods on one node, where the role is spread; the number of
# nodes, fewest or, where it is spread, most; the bandwidth with NICs counted, and inside the nodes; the
# preferences missed; the damage to what stays free.

_MANY = 512
"""In a domain of more nodes, groups of equal ones are compared before any node is looked at."""


def choose_nodes(partial: PartialPlacement, span: Domain, effort: Effort) -> RoleChoice | None:
    """Return the best choice of *partial* in *span*, None if there is none."""
    pod_set, size = partial.pod_set, partial.pod_set.whole
    plain = not (pod_set.slices or pod_set.apart or size > 1 or pod_set.penalties)
    if plain and span.end - span.start > _MANY:
        return _in_groups(partial, partial.candidates(span), effort)
    places = partial.places(span)
    if size > 1:
        places = [width // size * size for width in places]
    if sum(places) < pod_set.role.pods:
        return None
    parts, exact = [(span, pod_set.role.pods)], True
    if pod_set.slices or pod_set.apart:
        # The choice between domains minds the number of nodes alone.
        exact = False
        parts = (
            sliced(partial.gang, pod_set, span, places)
            if pod_set.slices
            else _one_each(partial, span, places)
        )
    if not parts:
        return None
    chosen: Chosen = []
    for part, pods in parts:
        own = _Part(partial, part, places[part.start - span.start : part.end - span.start], len(parts) > 1)
        nodes, complete = own.best(pods, effort)
        if not nodes:
            return None
        chosen += nodes
        exact = exact and complete
    return partial.chosen(chosen, span, exact=exact)


_TakenGpus = tuple[int, int, Alignment | None]
"""How many GPUs earlier pod sets took of a node, which, and what they left of its NUMA nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A domain that takes pods, with its places; ``others``: other domains take pods of the role as well."""

    partial: PartialPlacement
    domain: Domain
    places: Sequence[int]
    others: bool

    def best(self, pods: int, effort: Effort) -> tuple[Chosen, bool]:
        """Return the best nodes for *pods*, none if they do not fit, and whether they are proven best."""
        spread = self.partial.pod_set.role.spread is Spread.PREFERRED
        # What must stay on one node is searched for as one.
        size = self.partial.pod_set.whole
        places, pods = self.places, pods // size
        if size > 1:
            places = [width // size for width in places]
        if spread:
            places = evened(places, pods)
            count = min(pods, len(places) - list(places).count(0))
        else:
            count = fewest_nodes(places, pods)
        if not count:
            return [], False
        widest = sorted(places, reverse=True)[:count] if count > 1 else [max(places)]
        slack = sum(widest) - pods
        # A node narrower than the narrowest of the widest by more than the slack is never chosen.
        least = max(widest[-1] - slack, 1)
        goal = replace(self.partial.gang.problem(self.partial.pod_set).goal(count, self.domain), workers=pods)
        alike = self._alike(places, least, self.domain.end if goal.closer else count)
        groups, sets_exact = _groups(self.partial, alike, slack, several=self.others or count > 1)
        chosen, complete = search(groups, goal, effort)
        if spread and not complete:
            chosen = _even(groups, goal.workers)
        if size > 1:
            chosen = [(at, replace(offer, workers=offer.workers * size)) for at, offer in chosen]
        return chosen, sets_exact and complete

    def _alike(self, places: Sequence[int], least: int, count: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the nodes that take *least* pods or more, alike ones together, *count* at most."""
        fleet, penalties, start = self.partial.gang.fleet, self.partial.pod_set.penalties, self.domain.start
        touched = _gpus_taken(self.partial)
        alike: dict[tuple[int, int, int, _TakenGpus], list[int]] = {}
        for index in compress(range(len(places)), map(least.__le__, places)):
            position = start + index
            misses = 0 if penalties is None else penalties[position]
            # Nodes of which others have taken the same GPUs are alike as well.
            taken = touched.get(position, (0, 0, None))
            nodes = alike.setdefault((places[index], fleet.state_ids[position], misses, taken), [])
            if len(nodes) < count:
                nodes.append(position)
        for (width, *_), nodes in alike.items():
            yield width, nodes


def _in_groups(partial: PartialPlacement, candidates: CandidateNodes, effort: Effort) -> RoleChoice | None:
    """Return the best choice of *partial* among the nodes of a large span, which are in few groups."""
    pods = partial.pod_set.role.pods
    numbers: Counter[int] = Counter(width for width in candidates.touched.values() if width)
    for _, width, nodes in candidates.groups:
        numbers[width] += len(nodes)
    widths = sorted(numbers, reverse=True)
    if sum(width * numbers[width] for width in widths) < pods:
        return None
    # The fewest nodes are the widest ones, and the last of these are the narrowest.
    spread = partial.pod_set.role.spread is Spread.PREFERRED
    count = held = narrowest = 0
    for width in widths:
        needed = pods - count if spread else -(-(pods - held) // width)
        narrowest, taken = width, min(numbers[width], needed)
        count, held = count + taken, held + taken * width
        if (count if spread else held) >= pods:
            break
    slack = held - pods
    least = max(narrowest - slack, 1)
    span = candidates.span
    goal = partial.gang.problem(partial.pod_set).goal(count, span)
    alike = _alike_in_groups(partial, candidates, least, span.end if goal.closer else count)
    groups, sets_exact = _groups(partial, alike, slack, several=count > 1)
    chosen, complete = search(groups, goal, effort)
    if spread and not complete:
        chosen = _even(groups, goal.workers)
    return partial.chosen(chosen, span, exact=sets_exact and complete) if chosen else None


def _alike_in_groups(
    partial: PartialPlacement, candidates: CandidateNodes, least: int, count: int
) -> Iterator[tuple[int, list[int]]]:
    """Yield the nodes that take *least* pods or more, alike ones together, *count* at most."""
    states, state_ids, taken_of = (
        partial.gang.fleet.states,
        partial.gang.fleet.state_ids,
        _gpus_taken(partial),
    )
    # To pods without GPUs, nodes with as many free GPUs are equally good.
    kinds = range(len(states)) if partial.pod_set.role.gpus else [state.free for state in states]
    less: dict[tuple[int, int, _TakenGpus], list[int]] = {}
    alike: dict[tuple[int, int], list[int]] = {}
    for state_id, width, nodes in candidates.groups:
        if width >= least:
            alike.setdefault((width, kinds[state_id]), []).extend(nodes[:count])
    for position, width in candidates.touched.items():
        if width >= least:
            state_id = state_ids[position]
            if position in taken_of:
                less.setdefault((width, state_id, taken_of[position]), []).append(position)
            else:
                alike.setdefault((width, kinds[state_id]), []).append(position)
    for (width, *_), nodes in less.items():
        yield width, sorted(nodes)[:count]
    # In fabric order, as if each node had been looked at.
    merged = [(sorted(nodes)[:count], width) for (width, _), nodes in alike.items()]
    yield from ((width, nodes) for nodes, width in sorted(merged))


def _groups(
    partial: PartialPlacement, alike: Iterable[tuple[int, Sequence[int]]], slack: int, *, several: bool
) -> tuple[list[NodeGroup], bool]:
    """Return the groups of nodes with what each may take, and whether all offers are exact.

    Of the places on the nodes chosen, *slack* stay unused. *several*: the role has pods on other nodes too.
    """
    groups, exact = [], True
    for width, nodes in alike:
        offers = tuple(
            _offer(partial, nodes[0], taken, width, several=several)
            for taken in range(width, max(width - slack, 1) - 1, -1)
        )
        groups.append(NodeGroup(tuple(nodes), offers))
        exact = exact and all(offer.exact for offer in offers)
    return groups, exact


def _gpus_taken(partial: PartialPlacement) -> dict[int, _TakenGpus]:
    """Return which GPUs, and how many, earlier pod sets took of each node of which they took any."""
    return {
        position: (taken.gpus, taken.mask, taken.alignment)
        for position, taken in partial.taken.nodes.items()
        if partial.touches(position)
    }


def _offer(partial: PartialPlacement, position: int, taken: int, width: int, *, several: bool) -> Offer:
    """Return what a node gives so many slices of those that stay on one node, counted as one pod each."""
    size = partial.pod_set.whole
    offer = partial.offer(position, taken * size, width * size, several=several)
    return replace(offer, workers=taken) if size > 1 else offer


def _even(groups: Sequence[NodeGroup], pods: int) -> Chosen:
    """Return a spread over all nodes of *groups*: one pod each, then the rest where the offers allow more."""
    nodes = [(position, group) for group in groups for position in group.nodes]
    nodes.sort(key=lambda entry: (-entry[1].most, entry[0]))
    spare, chosen = pods - len(nodes), []
    for position, group in nodes:
        added = min(spare, group.most - 1)
        spare -= added
        chosen.append((position, next(o for o in group.offers if o.workers == added + 1)))
    return chosen


def _one_each(partial: PartialPlacement, span: Domain, places: Sequence[int]) -> list[tuple[Domain, int]]:
    """Return the best node of as many domains as there are pods, one each; none if too few have room."""
    pods = partial.pod_set.role.pods
    goal = Goal(1, 1, partial.gang.objective)
    rated = []
    for part in partial.gang.parts(partial.pod_set.apart or 0, span):
        nodes = [position for position in range(part.start, part.end) if places[position - span.start]]
        if nodes:
            offers = [
                partial.offer(position, 1, places[position - span.start], several=pods > 1)
                for position in nodes
            ]
            ranks = [
                (goal.score(offer.busbw, offer.inside, offer.damage), position)
                for offer, position in zip(offers, nodes, strict=True)
            ]
            rated.append(min(ranks))
    if len(rated) < pods:
        return []
    return [(Domain((), position, position + 1), 1) for _, position in sorted(rated)[:pods]]


# Every choice of nodes for a role, on clusters small enough: for roles whose best nodes leave the next ones
# no place.
#
# The roles choose in turn, so a choice that the others cannot follow is no choice. The rest is tried pod
# count by pod count, whichever GPUs they get: a node that has enough GPUs free gives any of them.

Spans = Mapping[int, Domain]
"""Where each pod set, by its number, may choose."""
Counts = dict[int, int]
"""Pods by the position of their node."""


class _OutOfEffort(Exception):
    """There were more choices than may be tried."""


def _best_that_leaves_room(partial: PartialPlacement, spans: Spans, effort: Effort) -> RoleChoice | None:
    """Return the best choice of *partial* after which all later pod sets fit; None if there is none.

    Raises ``_OutOfEffort`` where *effort* does not suffice.
    """
    span = spans[partial.number]
    places = partial.places(span)

    def rank(choice: RoleChoice) -> tuple[object, ...]:
        # Parameter servers are compared by their own rule, once they are spread as far as asked.
        score = (
            choice.score
            if partial.pod_set.serves is None
            else (choice.crowd, *server_score(partial, choice.counts))
        )
        return score, choice.nodes

    choices = [
        partial.choice(counts, lambda position: places[position - span.start], span)
        for counts in _every_count(partial, span, places, effort)
    ]
    return next(
        (choice for choice in sorted(choices, key=rank) if _rest_fits(partial, choice, spans, effort)), None
    )


def _rest_fits(partial: PartialPlacement, choice: RoleChoice, spans: Spans, effort: Effort) -> bool:
    """Whether all pod sets after *partial* have a place once it made *choice*."""
    taken = partial.taken.with_counts(partial.pod_set.demand, partial.gang.fleet, choice.counts)
    after = PartialPlacement(
        partial.gang, partial.number + 1, {**partial.placed, partial.number: choice}, taken
    )
    if after.number == len(partial.gang.pod_sets):
        return True
    span = spans[after.number]
    places = after.places(span)
    if sum(places) < after.pod_set.role.pods:
        return False
    return any(
        _rest_fits(after, _bare(counts), spans, effort)
        for counts in _every_count(after, span, places, effort)
    )


def _bare(counts: Counts) -> RoleChoice:
    """Return a choice that is nothing but so many pods on each node."""
    offers = (Offer(count, 0.0, 0.0, 0, 0.0, 0, None) for count in counts.values())
    return RoleChoice(tuple(counts), tuple(offers), (), exact=False)


def _every_count(
    partial: PartialPlacement, span: Domain, places: Sequence[int], effort: Effort
) -> Iterator[Counts]:
    """Yield every way to put the pods of *partial* onto nodes of *span* that keeps its slices and its spread.

    Raises ``_OutOfEffort``.
    """
    able = [(span.start + index, width) for index, width in enumerate(places) if width]
    left = [0] * (len(able) + 1)
    for index in range(len(able) - 1, -1, -1):
        left[index] = left[index + 1] + able[index][1]

    def extended(index: int, pods: int, counts: Counts) -> Iterator[Counts]:
        if not effort.spend(1):
            raise _OutOfEffort
        if pods == 0:
            yield counts
            return
        if left[index] < pods:
            return
        position, width = able[index]
        for count in range(min(width, pods), -1, -1):
            yield from extended(index + 1, pods - count, {**counts, position: count} if count else counts)

    for counts in extended(0, partial.pod_set.role.pods, {}):
        if _is_allowed(partial.gang, partial.pod_set, counts):
            yield counts


def _is_allowed(gang: Gang, pod_set: PodSet, counts: Counts) -> bool:
    if any(count % pod_set.whole for count in counts.values()):
        return False
    for pods, level in pod_set.slices:
        if any(count % pods for count in _by_domain(gang, level, counts).values()):
            return False
    if pod_set.role.spread is Spread.REQUIRED and pod_set.apart:
        return max(_by_domain(gang, pod_set.apart, counts).values()) == 1
    return True


def _by_domain(gang: Gang, level: int, counts: Counts) -> Counter[int]:
    numbers, by_domain = gang.numbers(level), Counter[int]()
    for position, count in counts.items():
        by_domain[numbers[position]] += count
    return by_domain


_MOST_DOMAINS = 6
"""Domains that are planned in full; the bounds rule out the others, or the result says that they do not."""
_LOOKED_AT = 2
"""Domains that are remembered, so that there is one next to the best."""
_MOST_TRIED = 48
"""Domains that are tried until one of them holds all roles."""
_SMALL = 64
_NO_BOUND = (-inf,)
_MOST_CHOICES = 20_000
"""On fleets of up to so many nodes, so many choices are tried where the roles get into each other's way."""


@dataclass(frozen=True, slots=True, eq=False)
class GangChoice:
    """The choices of all pod sets, by number, in one domain of ``level``; each pod set chose in its span.

    ``rival`` is the domain that was to be tried next to this one, None where there is no other.
    ``level_exact`` is False where a closer level cannot be ruled out, ``exact`` where another domain cannot.
    """

    domain: Domain
    level: int
    choices: Mapping[int, RoleChoice]
    spans: Spans
    rivals: int
    rival: Domain | None
    exact: bool = True
    level_exact: bool = True


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No level has a place for the gang; ``proven`` is False where one may have been overlooked."""

    proven: bool


def choose_gang(gang: Gang, closest: int, widest: int) -> GangChoice | Unplaced:
    """Return the choice for the gang at the closest level from *closest* to *widest* that holds it."""
    # On one node there is nothing to spread over.
    closest = max(closest, min(1, widest)) if gang.is_spread else closest
    # One budget for all domains and levels, so that a fleet that is nearly full takes no longer.
    proven, every = True, Effort(_MOST_CHOICES)
    for level in range(closest, widest + 1):
        search = _LevelSearch(gang, level, widest, every)
        found = search.best()
        if found is not None:
            return GangChoice(
                domain=found.domain,
                level=level,
                choices=found.choices,
                spans=search.spans(found.domain),
                rivals=search.rivals,
                rival=next((domain for domain in search.looked_at if domain != found.domain), None),
                exact=search.exact,
                level_exact=proven,
            )
        proven = proven and search.exact
    return Unplaced(proven)


def _holding_nodes(gang: Gang) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the nodes that have room for each deciding pod set by itself, by the id of their state."""
    needed = sum(pod_set.role.gpus * pod_set.role.pods for pod_set in gang.deciding)
    pod_sets = [
        (pod_set.capacity.places, pod_set.capacity.by_state, pod_set.role.pods) for pod_set in gang.deciding
    ]
    for state_id, state in enumerate(gang.fleet.states):
        if state.free < needed or any(
            by_state and by_state[state_id] < pods for _, by_state, pods in pod_sets
        ):
            continue
        able: Sequence[int] = gang.fleet.nodes_by_state[state_id]
        for places, by_state, pods in pod_sets:
            if by_state is None:
                able = [position for position in able if places[position] >= pods]
        if able:
            yield state_id, able


def _holding(gang: Gang, domains: Sequence[Domain], level: int) -> list[int]:
    """Return the numbers of *domains* of *level* that have room for each deciding pod set by itself."""
    numbers = list(range(len(domains)))
    for pod_set in gang.deciding:
        within = capacity_by_domain(pod_set.capacity, domains)
        numbers = [number for number in numbers if within[number] >= pod_set.role.pods]
        # Within one domain of its level a slice is kept by any pods.
        if pod_set.apart or pod_set.whole > 1 or any(at < level for _, at in pod_set.slices):
            kept = _kept(gang, pod_set, [domains[number] for number in numbers], level)
            numbers = [
                number for number, pods in zip(numbers, kept, strict=True) if pods >= pod_set.role.pods
            ]
    pod_sets = [pod_set for pod_set in gang.deciding if pod_set.role.gpus]
    # One pod set alone was counted already.
    if len(pod_sets) < 2:
        return numbers
    needed, before = (
        sum(pod_set.role.gpus * pod_set.role.pods for pod_set in pod_sets),
        gang.fleet.free_gpus_before,
    )
    return [
        number for number in numbers if before[domains[number].end] - before[domains[number].start] >= needed
    ]


def _kept(gang: Gang, pod_set: PodSet, domains: Sequence[Domain], level: int) -> list[int]:
    """Return how many pods of *pod_set* fit into each of *domains* by its slices, or apart."""
    if pod_set.slices or pod_set.whole > 1:
        return sliceable_by_domain(gang, pod_set, level, domains)
    places, apart = pod_set.capacity.places, pod_set.apart or 0
    return [
        sum(any(places[part.start : part.end]) for part in gang.parts(apart, domain)) for domain in domains
    ]


Left = tuple[int, Room]
"""Cpu and memory that a single node has free, of a domain 0, and the room: the least is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    domain: Domain
    choices: Mapping[int, RoleChoice]
    rank: tuple[RoleScore, Left, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A domain that may hold the gang; ``best_case`` is a prefix of a bound on the first pod set's score.

    ``left`` decides between alike ones.

    ``bounds`` know the rest by the ``number`` of the domain; without them the best case is all there is,
    ``sets_exact`` or not.
    """

    domain: Domain
    left: Left
    best_case: RoleScore
    sets_exact: bool = True
    bounds: DomainBounds | None = None
    number: int = 0

    def bound(self) -> RoleScore:
        """Return a score that the first pod set's choice in this domain is no better than."""
        if self.bounds is None:
            return self.best_case
        return (*self.best_case[:2], *self.bounds.bound(self.number))

    def is_exact(self) -> bool:
        """Whether the bound rests on sets of GPUs that are proven to be the best."""
        return self.sets_exact if self.bounds is None else self.bounds.is_exact([self.number])


class _LevelSearch:
    """The search of one level; ``exact`` is False once something better cannot be ruled out."""

    def __init__(self, gang: Gang, level: int, widest: int, every: Effort) -> None:
        self._begin()
        self._gang = gang
        self._level = level
        self._widest = widest
        # The roles that decide the domain choose before all others.
        self._first = gang.pod_sets[0]
        self._every = every
        self._firsts: dict[Domain, RoleChoice | None] = {}
        self._effort = Effort(EFFORT + len(gang.fleet.nodes) // NODES_PER_STEP)

    def _begin(self) -> None:
        self.exact = True
        self.rivals = 0
        self.looked_at: list[Domain] = []

    def best(self) -> _Placed | None:
        """Return the best placement at this level, None where none was found."""
        if len(self._gang.fleet.nodes) > _SMALL:
            # The first pod set decides between domains, and mostly the others have a place in the one that it
            # likes best.
            best = self._best_of_domains(self._first_placed)
            placed = best and self._placed(_Candidate(best.domain, best.rank[1], _NO_BOUND), None)
            if best is None or (placed and placed.rank == best.rank):
                return placed
            self._begin()
        return self._best_of_domains(self._placed)

    def _best_of_domains(
        self, placed_in: Callable[[_Candidate, _Placed | None], _Placed | None]
    ) -> _Placed | None:
        """Return the best of what *placed_in* gives for a domain and the best so far, or None."""
        best: _Placed | None = None
        tried = 0
        for candidate in self._candidates():
            if len(self.looked_at) < _LOOKED_AT:
                self.looked_at.append(candidate.domain)
            if best is not None:
                # Candidates come in the order of their best cases: where this one cannot win, none of those
                # after it can.
                if candidate.best_case > best.rank[0][: len(candidate.best_case)]:
                    self.exact = self.exact and candidate.is_exact()
                    break
                if (candidate.bound(), candidate.left, candidate.domain.start) > best.rank:
                    self.exact = self.exact and candidate.is_exact()
                    continue
            if tried >= (_MOST_TRIED if best is None else _MOST_DOMAINS):
                self.exact = False
                break
            tried += 1
            placed = placed_in(candidate, best)
            if placed is not None and (best is None or placed.rank < best.rank):
                best = placed
        return best

    def _first_placed(self, candidate: _Candidate, _best: _Placed | None) -> _Placed | None:
        """Return the placement of the first pod set in the domain of *candidate*, None where it has none."""
        domain = candidate.domain
        first = self._choice_of_first(domain)
        if first is None:
            return None
        self.exact = self.exact and first.exact
        return _Placed(domain, {0: first}, (first.score, candidate.left, domain.start))

    def _choice_of_first(self, domain: Domain) -> RoleChoice | None:
        if domain not in self._firsts:
            self._firsts[domain] = choose_nodes(
                PartialPlacement(self._gang, 0, {}, Taken()), domain, self._effort
            )
        return self._firsts[domain]

    def _candidates(self) -> Iterator[_Candidate]:
        """Yield the domains that may hold the gang, the best case first, then the tightest, then by name."""
        if self._level == 0:
            yield from islice(self._nodes(), _MOST_TRIED + 1)
            return
        pod_set, fleet = self._first, self._gang.fleet
        domains = domains_at(fleet, self._level)
        numbers = _holding(self._gang, domains, self._level)
        self.rivals = len(numbers)
        if not numbers:
            return
        room_of = rooms(fleet, pod_set.capacity, len(domains[0].path))
        # A role that is spread takes more nodes and not fewer, which these bounds do not know.
        if len(numbers) == 1 or pod_set.role.spread is Spread.PREFERRED:
            for number in sorted(numbers, key=lambda number: (room_of[number], number)):
                yield _Candidate(domains[number], (0, room_of[number]), _NO_BOUND)
            return
        role, places, problem = pod_set.role, pod_set.capacity.places, self._gang.problem(pod_set)
        # Slices and ties can only cost nodes, so the fewest without them are a bound.
        counted = sorted(
            (fewest_nodes(places[domains[number].start : domains[number].end], role.pods), number)
            for number in numbers
        )
        for count, alike in groupby(counted, key=itemgetter(0)):
            bounds = DomainBounds(problem, domains, [number for _, number in alike], count)
            for best_case, room, number in bounds.best_first(room_of):
                best_of = (0, count, *best_case)
                yield _Candidate(domains[number], (0, room), best_of, bounds=bounds, number=number)

    def _nodes(self) -> Iterator[_Candidate]:
        """Yield the nodes that hold all deciding pod sets, the best first."""
        pod_set, fleet = self._first, self._gang.fleet
        role, goal = pod_set.role, Goal(1, pod_set.role.pods, self._gang.objective)
        alike: dict[RoleScore, list[int]] = {}
        inexact: set[RoleScore] = set()
        for state_id, able in _holding_nodes(self._gang):
            self.rivals += len(able)
            for width, nodes in _by_places(able, pod_set):
                offer = pod_set.fleet.tables.offer(role.gpus, Use.ONE_NODE, state_id, role.pods, width)
                score = (0, 1, *goal.score(offer.inside, offer.inside, offer.damage))
                alike.setdefault(score, []).extend(nodes)
                if not offer.exact:
                    inexact.add(score)
        for score in sorted(alike):
            by_unused = sorted(alike[score], key=fleet.unused.__getitem__)
            for unused, equals in groupby(by_unused, key=fleet.unused.__getitem__):
                for room, position in tightest_first(fleet, pod_set.capacity, sorted(equals)):
                    node, exact = Domain((), position, position + 1), score not in inexact
                    yield _Candidate(node, (unused, room), score, sets_exact=exact)

    def _placed(self, candidate: _Candidate, best: _Placed | None) -> _Placed | None:
        """Return the placement in the domain of *candidate*, None if there is none better than *best*."""
        domain = candidate.domain
        spans, first = self.spans(domain), self._choice_of_first(domain)
        if best is not None and first is not None and first.exact:
            # Whatever the others get, the first pod set gets nothing better here than by itself.
            limit = first.score, candidate.left, domain.start
            if limit > best.rank:
                return None
        choices = self._in_turn(spans, first)
        if choices is None:
            return None
        return _Placed(domain, choices, (choices[0].score, candidate.left, domain.start))

    def spans(self, domain: Domain) -> Spans:
        """Return where each pod set may choose once the gang has *domain*."""
        gang = self._gang
        return {
            number: self._span(pod_set, domain, decides=pod_set in gang.deciding)
            for number, pod_set in enumerate(gang.pod_sets)
        }

    def _in_turn(self, spans: Spans, first: RoleChoice | None) -> Mapping[int, RoleChoice] | None:
        """Return the choices of all pod sets in turn, after the *first* if known; None if none was found."""
        gang = self._gang
        choices, failed = ({}, 0) if first is None else self._greedy(spans, {}, first)
        if failed is None and all(choice.exact for choice in choices.values()):
            return choices
        if len(gang.fleet.nodes) <= _SMALL:
            try:
                return self._exhaustive(spans)
            except _OutOfEffort:
                pass
        self.exact = False
        return choices if failed is None else self._with_reservations(spans, failed)

    def _span(self, pod_set: PodSet, domain: Domain, *, decides: bool) -> Domain:
        fleet = self._gang.fleet
        if decides:
            return domain
        # Parameter servers exchange data, so they keep to a level that is required; launchers do not.
        if pod_set.serves is None or self._widest == 0 or self._widest > len(fleet.tiers):
            return domain if pod_set.serves is not None and self._widest == 0 else fleet.cluster
        return domain_at(fleet.domains[len(fleet.tiers) - self._widest], domain.start) or domain

    def _greedy(
        self, spans: Spans, reserved: Mapping[int, Counts], first: RoleChoice | None = None
    ) -> tuple[Mapping[int, RoleChoice], int | None]:
        """Return the choices in turn, and the number of the pod set that found no place, None where all did.

        *reserved* are the pods of later pod sets for which room is kept, by the position of their node;
        *first* is the choice of the first pod set where it is known.
        """
        partial = PartialPlacement(self._gang, 0, {}, Taken())
        if first is not None:
            partial = partial.after(first)
        while partial.number < len(self._gang.pod_sets):
            kept = partial.taken
            for later, counts in reserved.items():
                if later > partial.number:
                    kept = kept.with_counts(self._gang.pod_sets[later].demand, self._gang.fleet, counts)
            limited = replace(partial, taken=kept)
            span = spans[partial.number]
            choice = (
                choose_nodes(limited, span, self._effort)
                if partial.pod_set.serves is None
                else choose_servers(limited, span)
            )
            if choice is None:
                return partial.placed, partial.number
            partial = partial.after(choice)
        return partial.placed, None

    def _exhaustive(self, spans: Spans) -> Mapping[int, RoleChoice] | None:
        """Return the choices in turn, each the best that leaves the rest room. Raises ``_OutOfEffort``."""
        partial = PartialPlacement(self._gang, 0, {}, Taken())
        while partial.number < len(self._gang.pod_sets):
            choice = _best_that_leaves_room(partial, spans, self._every)
            if choice is None:
                return None
            partial = partial.after(choice)
        return partial.placed

    def _with_reservations(self, spans: Spans, failed: int | None) -> Mapping[int, RoleChoice] | None:
        """Return choices next to room kept for the pod sets that found none; None if that does not help."""
        reserved: dict[int, Counts] = {}
        while failed is not None and failed not in reserved:
            kept = self._reservation(failed, spans[failed])
            if kept is None:
                return None
            reserved[failed] = kept
            choices, failed = self._greedy(spans, reserved)
            if failed is None:
                return {number: replace(choice, exact=False) for number, choice in choices.items()}
        return None

    def _reservation(self, number: int, span: Domain) -> Counts | None:
        """Return where the pod set would stand by itself; if tied to a node, any node of the span."""
        gang, pod_set = self._gang, self._gang.pod_sets[number]
        if pod_set.tie and pod_set.tie[1] == 0:
            other = gang.pod_sets[pod_set.tie[0]].capacity.places
            places = pod_set.capacity.places
            return {
                position: 1
                for position in range(span.start, span.end)
                if places[position] and other[position]
            }
        freed = replace(gang, pod_sets=(replace(pod_set, tie=None),))
        alone = choose_nodes(PartialPlacement(freed, 0, {}, Taken()), span, self._effort)
        return None if alone is None else alone.counts


def _by_places(nodes: Sequence[int], pod_set: PodSet) -> Iterable[tuple[int, Sequence[int]]]:
    """Return *nodes* of one state by the room that counts for their offers: with GPUs, none does."""
    if pod_set.role.gpus:
        return [(0, nodes)]
    by_places: dict[int, list[int]] = {}
    for position in nodes:
        by_places.setdefault(pod_set.capacity.places[position], []).append(position)
    return by_places.items()
