"""A gang's roles on a fleet: in the order in which they choose, each with the places that the nodes have for it.

Roles whose pods are alike choose as one *seat*, so that a master and its workers are one communicator. Seats with more
GPUs choose first, then those with more pods; one that is tied to another, or serves it, chooses after it. Those that go
anywhere, and parameter servers, choose last: the others decide the domain of the gang.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

from arena_topo.errors import UsageError
from arena_topo.model.plan.demand import Demand, Objective
from arena_topo.model.plan.roles import GangDemand, Role, Spread
from arena_topo.planner.memo import Memo
from arena_topo.planner.nodes.fit import capacity_for
from arena_topo.planner.nodes.fleet import Domain, Fleet, aligned
from arena_topo.planner.nodes.levels import Capacity, level_of

_MOST_ROLES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """Roles that choose as one, on a fleet; levels are indices into ``level_names``.

    ``roles`` name the roles and their pods in rank order; ``slices`` are pods and levels of tiers, the coarsest first, and
    ``whole`` is how many pods make a slice that stays on one node. ``apart`` is
    the level of which a domain takes one pod, None for any number. ``beside`` is a seat's number and the level that its
    pods share with this one's, ``serves`` the number of the seat whose parameters it keeps. ``penalties`` gives the
    preferences that a node misses, by position, None where there are none. ``fleet`` is the one whose kubelets know what a
    pod asks for: where they refuse pods that do not fit their NUMA nodes, it offers what they admit.
    """

    fleet: Fleet
    role: Role
    roles: tuple[tuple[str, int], ...]
    demand: Demand
    capacity: Capacity
    slices: tuple[tuple[int, int], ...]
    whole: int
    apart: int | None
    beside: tuple[int, int] | None
    serves: int | None
    penalties: Memo[int, int] | None

    @property
    def decides_domain(self) -> bool:
        """Whether it must be in the domain of the gang."""
        return self.serves is None and not self.role.anywhere


@dataclass(frozen=True, eq=False)
class Board:
    """The seats of a gang in the order in which they choose, the fleet, and by what nodes are compared."""

    fleet: Fleet
    seats: tuple[Seat, ...]
    objective: Objective = Objective.BANDWIDTH

    @cached_property
    def deciding(self) -> tuple[Seat, ...]:
        """The seats that share the domain of the gang; all, where none has to."""
        return tuple(seat for seat in self.seats if seat.decides_domain) or self.seats

    @property
    def is_spread(self) -> bool:
        """Whether the pods of a seat that shares the domain of the gang are to keep apart as far as they can."""
        return any(
            seat.role.spread is Spread.PREFERRED and seat.role.pods > 1
            for seat in self.seats
            if seat.decides_domain
        )

    def numbers(self, level: int) -> Sequence[int]:
        """Return a number for the domain of each node at *level*; a node without one has a number of its own."""
        fleet = self.fleet
        if level == 0:
            return range(len(fleet.nodes))
        # The cluster is the level above the coarsest tier.
        return fleet.domain_numbers[len(fleet.tiers) + 1 - level]

    def parts(self, level: int, span: Domain) -> list[Domain]:
        """Return the domains of *level* in *span*, in fabric order; *span* itself where it is in one of them.

        A node that is in no domain of the level is a part of its own.
        """
        if level == 0:
            return [Domain((), at, at + 1) for at in range(span.start, span.end)]
        # The cluster is the level above the coarsest tier.
        parts = self.fleet.parts[len(self.fleet.tiers) + 1 - level]
        first = bisect_right(parts, span.start, key=_START) - 1
        return [
            part
            if span.start <= part.start and part.end <= span.end
            else Domain((), max(part.start, span.start), min(part.end, span.end))
            for part in parts[first : bisect_left(parts, span.end, first, key=_START)]
        ]


_START: Callable[[Domain], int] = attrgetter("start")


def make_board(gang: GangDemand, fleet: Fleet) -> Board:
    """Return the seats of *gang* on *fleet*; raises ``UsageError`` for roles that contradict each other."""
    roles = _merged(gang.roles)
    ordered = _in_order(gang, roles)
    number_of = {name: number for number, (_, names) in enumerate(ordered) for name, _ in names}
    seats = tuple(_seat(role, names, number_of, fleet) for role, names in ordered)
    return Board(fleet, seats, gang.objective)


_Merged = tuple[Role, tuple[tuple[str, int], ...]]
"""A role with the pods of all that are like it, and their names with the pods of each."""


def _merged(roles: Sequence[Role]) -> list[_Merged]:
    """Return the roles, those together whose pods are alike and that nothing sets apart."""
    # Whoever is tied to a role stands beside one of its own pods.
    referred = {role.beside.role for role in roles if role.beside}
    merged: list[_Merged] = []
    for role in roles:
        names = ((role.name, role.pods),)
        index = next(
            (
                index
                for index, (other, others) in enumerate(merged)
                if replace(role, name=other.name, pods=other.pods) == other
                and _is_mergeable(role)
                and referred.isdisjoint((role.name, *(name for name, _ in others)))
            ),
            None,
        )
        if index is None:
            merged.append((role, names))
        else:
            other, others = merged[index]
            merged[index] = replace(other, pods=other.pods + role.pods), others + names
    return merged


def _is_mergeable(role: Role) -> bool:
    # A slice, a tie or a spread is about the pods of one role.
    return not (role.slices or role.beside or role.serves or role.anywhere or role.spread is not Spread.NONE)


def _in_order(gang: GangDemand, roles: Sequence[_Merged]) -> list[_Merged]:
    _check(gang)
    waiting = sorted(
        roles,
        key=lambda entry: (
            bool(entry[0].serves) or entry[0].anywhere,
            entry[0].anywhere,
            -entry[0].gpus * entry[0].pods,
            -entry[0].pods,
        ),
    )
    ordered: list[_Merged] = []
    seated: set[str] = set()
    while waiting:
        ready = next((entry for entry in waiting if _after(entry[0]) <= seated), None)
        if ready is None:
            raise UsageError(
                f"the roles {', '.join(entry[0].name for entry in waiting)} each wait for another's place",
                hint="tie roles to one that is tied to none",
            )
        waiting.remove(ready)
        ordered.append(ready)
        seated |= {name for name, _ in ready[1]}
    return ordered


def _after(role: Role) -> set[str]:
    return {name for name in (role.serves, role.beside.role if role.beside else "") if name}


def _check(gang: GangDemand) -> None:
    """Raise ``UsageError`` where the roles of *gang* cannot be meant."""
    names = Counter(role.name for role in gang.roles)
    if not names or len(gang.roles) > _MOST_ROLES:
        raise UsageError(f"a gang has 1 to {_MOST_ROLES} roles, and this one {len(gang.roles)}")
    if twice := [name for name, count in names.items() if count > 1]:
        raise UsageError(f"the role {twice[0]} is given twice")
    follows_anywhere = {role.name for role in gang.roles if role.anywhere}
    for role in gang.roles:
        if role.pods < 1 or role.gpus < 0:
            raise UsageError(
                f"the role {role.name} has {role.pods} pods of {role.gpus} GPUs: expected one pod or more"
            )
        for other in _after(role):
            if other not in names or other == role.name:
                raise UsageError(f"the role {role.name} is tied to {other!r}, which is no other role")
            if other in follows_anywhere and not (role.anywhere or role.serves):
                raise UsageError(
                    f"the role {role.name} is tied to {other}, which goes anywhere",
                    hint=f"let {role.name} go anywhere too, or tie {other} to {role.name}",
                )
        _check_slices(role)


def _check_slices(role: Role) -> None:
    # Their rule decides how far parameter servers spread; so many to a node is a limit that it keeps to.
    if role.serves and (role.slices or (role.spread is not Spread.NONE and role.spread_level != "node")):
        raise UsageError(
            f"the role {role.name} has parameter servers, which go where NIC rate is free",
            hint="leave out its slices and its spread, or spread it over nodes",
        )
    if role.slices and role.spread is not Spread.NONE:
        raise UsageError(f"the role {role.name} has slices, which keep pods together, and a spread")
    whole = role.pods
    for part in role.slices:
        if part.pods < 1 or whole % part.pods:
            raise UsageError(
                f"the role {role.name}: {whole} pods are no whole number of slices of {part.pods}",
                hint="each slice divides the one before it, and the first divides the pods",
            )
        whole = part.pods


def _seat(role: Role, names: tuple[tuple[str, int], ...], number_of: Mapping[str, int], fleet: Fleet) -> Seat:
    def level(name: str) -> int:
        return level_of(fleet, name, f"role {role.name}")

    slices = tuple((part.pods, level(part.level)) for part in role.slices)
    if any(finer >= coarser for (_, coarser), (_, finer) in pairwise(slices)):
        raise UsageError(f"the role {role.name}: give the slices of the coarser level first")
    # One pod to a node is what the places of a node count already.
    apart = level(role.spread_level) if role.spread is Spread.REQUIRED else 0
    return Seat(
        fleet=aligned(fleet, role.demand),
        role=role,
        roles=names,
        demand=role.demand,
        capacity=capacity_for(role.demand, fleet),
        slices=tuple(part for part in slices if part[1] > 0),
        whole=next((pods for pods, at in slices if at == 0), 1),
        apart=apart or None,
        beside=(number_of[role.beside.role], level(role.beside.level)) if role.beside else None,
        serves=number_of[role.serves] if role.serves else None,
        penalties=Memo(_penalty_of(role, fleet), limit=1 << 20) if role.preferences else None,
    )


def _penalty_of(role: Role, fleet: Fleet) -> Callable[[int], int]:
    def penalty(position: int) -> int:
        node = fleet.nodes[position]
        return sum(
            preference.weight
            for preference in role.preferences
            if not preference.term.selects(node.name, node.labels)
        )

    return penalty
