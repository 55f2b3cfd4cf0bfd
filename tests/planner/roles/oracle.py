"""All placements of a gang of roles on a small cluster: what is allowed, and what each role's nodes are
worth.

It knows kube-scheduler's rules and docs/explanation/planner.md, and nothing of how the planner searches.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.model.cluster import GpuNode, Nic
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import GangDemand, Placement, Role, Spread
from arena_topo.planner.fleet import Fleet, capacity_for, domains_at, level_names, level_of
from arena_topo.planner.offers import Offer, PlanningTables, Use

Counts = dict[int, int]
"""Pods by the position of their node."""
Placed = Mapping[str, Counts]


@dataclass(frozen=True)
class Oracle:
    """A gang of roles that are all unlike, and a fleet."""

    gang: GangDemand
    fleet: Fleet

    def domain_of(self, level: str, position: int) -> object:
        """Return what names the domain of *level* around a
        node; a node without one is a domain of its own.
        """
        depth = level_of(self.fleet, level, "test")
        if depth == 0:
            return position
        if depth > len(self.fleet.tiers):
            return "cluster"
        path = self.fleet.paths[position][: len(self.fleet.tiers) - depth + 1]
        return path if path[-1] else position

    def fits(self, placed: Placed) -> bool:
        """Whether every node has what all pods on it ask for, and takes each of them."""
        for position, node in enumerate(self.fleet.nodes):
            asked: Counter[str] = Counter()
            for role in self.gang.roles:
                count = placed.get(role.name, {}).get(position, 0)
                if count > capacity_for(role.demand, self.fleet).places[position]:
                    return False
                asked.update({name: amount * count for name, amount in role.requests.items()})
                asked[node.gpu_resource] += role.gpus * count
                asked["pods"] += count
            free = {name: node.allocatable.get(name, 0) - node.requested.get(name, 0) for name in asked}
            free[node.gpu_resource] = self.fleet.state(position).free
            if any(amount > free[name] for name, amount in asked.items()):
                return False
        return True

    def allowed(self, role: Role, counts: Counts, placed: Placed) -> bool:
        """Whether the slices, the spread and the tie of *role*
        hold; *placed* has the role that it is tied to.
        """
        # Pods are indexed in fabric order, so slices are runs of them.
        pods = [position for position in sorted(counts) for _ in range(counts[position])]
        for part in role.slices:
            for first in range(0, len(pods), part.pods):
                if len({self.domain_of(part.level, at) for at in pods[first : first + part.pods]}) > 1:
                    return False
        if role.spread is Spread.REQUIRED:
            domains = [self.domain_of(role.spread_level, at) for at in pods]
            if len(set(domains)) < len(domains):
                return False
        if role.tie:
            level = role.tie.level
            others = {self.domain_of(level, at) for at in placed[role.tie.role]}
            return all(self.domain_of(level, at) in others for at in pods)
        return True

    def ways(self, role: Role, span: Sequence[int]) -> Iterator[Counts]:
        """Yield every way to put the pods of *role* onto the nodes of *span*."""
        if not span:
            if not role.pods:
                yield {}
            return
        first, *rest = span
        most = capacity_for(replace(role, pods=max(role.pods, 1)).demand, self.fleet).places[first]
        for count in range(min(most, role.pods) + 1):
            for others in self.ways(replace(role, pods=role.pods - count), rest):
                yield {first: count, **others} if count else others

    def extensions(self, roles: Sequence[Role], span: Sequence[int], placed: Placed) -> Iterator[Counts]:
        """Yield what the first of *roles* may take, next to *placed*, so that all of them have a place.

        Roles that exchange data keep to *span*, others go anywhere.
        """
        role, *rest = roles
        everywhere = range(len(self.fleet.nodes))
        decides = any(not other.anywhere and not other.serves for other in self.gang.roles)
        anywhere = decides and (role.anywhere or role.serves)
        for counts in self.ways(role, everywhere if anywhere else span):
            after = {**placed, role.name: counts}
            if (
                self.allowed(role, counts, placed)
                and self.fits(after)
                and (not rest or any(True for _ in self.extensions(rest, span, after)))
            ):
                yield counts

    def spans(self) -> Iterator[tuple[int, range]]:
        """Yield every domain, the closest levels first."""
        for level in range(len(level_names(self.fleet))):
            for domain in domains_at(self.fleet, level):
                yield level, range(domain.start, domain.end)

    @property
    def is_spread(self) -> bool:
        """Whether a role that exchanges data is to keep apart, for which one node is too close."""
        return any(
            role.spread is Spread.PREFERRED and role.pods > 1 and not role.serves and not role.anywhere
            for role in self.gang.roles
        )

    def level(self, roles: Sequence[Role]) -> int | None:
        """Return the closest level with a domain that holds all *roles*, None where the cluster does not."""
        return next(
            (
                level
                for level, span in self.spans()
                if level >= int(self.is_spread) and any(True for _ in self.extensions(roles, span, {}))
            ),
            None,
        )

    def score(self, role: Role, counts: Counts, taken: Mapping[int, Sequence[int]]) -> tuple[object, ...]:
        """Return what the nodes of *role* are compared by, where earlier roles *taken* these GPUs of each."""
        offers = [self._offer(role, at, count, taken, len(counts) > 1) for at, count in counts.items()]
        crowd, nodes = 0, len(offers)
        if role.spread is Spread.PREFERRED:
            crowd, nodes = max(counts.values()), -len(counts)
        misses = sum(
            preference.weight * count
            for at, count in counts.items()
            for preference in role.preferences
            if not preference.term.selects(self.fleet.nodes[at].name, self.fleet.nodes[at].labels)
        )
        touched: tuple[int, ...] = ()
        if len(counts) > 1 and not (
            role.slices or role.serves or role.anywhere or role.spread is not Spread.NONE
        ):
            touched = self.touched(counts)
        busbw = min(offer.busbw if len(offers) > 1 else offer.inside for offer in offers)
        inside = min(offer.inside for offer in offers)
        stranded = sum(offer.stranded for offer in offers)
        left = (stranded, sum(round(offer.loss * 1000) for offer in offers)) if role.gpus else ()
        match self.gang.objective:
            case Objective.BANDWIDTH:
                return (crowd, nodes, touched, -busbw, -inside, misses, *left)
            case Objective.PACK:
                return (crowd, nodes, touched, *left[:1], -busbw, -inside, *left[1:])

    def touched(self, nodes: Iterable[int]) -> tuple[int, ...]:
        """Return how many domains of each tier *nodes* touch;
        what is in none counts by the next finer one.
        """
        paths = self.fleet.paths
        return tuple(
            len(
                {
                    next(
                        (paths[at][:end] for end in range(depth, len(paths[at]) + 1) if paths[at][end - 1]),
                        (at,),
                    )
                    for at in nodes
                }
            )
            for depth in range(1, len(self.fleet.tiers) + 1)
        )

    def _offer(
        self, role: Role, at: int, count: int, taken: Mapping[int, Sequence[int]], several: bool
    ) -> Offer:
        state, places = self.fleet.state(at), capacity_for(role.demand, self.fleet).places[at]
        lost = taken.get(at, ())
        if lost and state.mask is not None:
            mask = state.mask & ~sum(1 << gpu for gpu in lost)
            state = replace(state, mask=mask, free=state.free - len(lost))
        if not role.gpus:
            # How many places stay unused is no part of the comparison here: it depends on the roles before.
            places = count
        use = Use.SEVERAL_NODES if several else Use.ONE_NODE
        return PlanningTables((state,)).offer(role.gpus, use, 0, count, places)


def without_gpus(
    name: str, *, cpu: int, rate: float = 0.0, labels: Mapping[str, str] | None = None
) -> GpuNode:
    """Return a node without GPUs, with so many millicores, whose NIC has *rate* GB/s."""
    return GpuNode(
        name=name,
        hostname=name,
        labels={"kubernetes.io/hostname": name, **(labels or {})},
        allocatable={"cpu": cpu, "memory": 2**38, "pods": 110},
        nics=(Nic("mlx5_0", None, rate),) if rate else (),
    )


def counts_of(answer: Placement, role: str, fleet: Fleet) -> Counts:
    """Return the pods of *role* on each node that it has in *answer*."""
    position_of = {node.name: position for position, node in enumerate(fleet.nodes)}
    return dict(Counter(position_of[slot.node] for slot in answer.role(role).slots))


def gpus_of(answer: Placement, roles: Sequence[str], fleet: Fleet) -> dict[int, list[int]]:
    """Return the GPUs that *roles* have of each node in *answer*."""
    position_of = {node.name: position for position, node in enumerate(fleet.nodes)}
    taken: dict[int, list[int]] = {}
    for role in roles:
        for slot in answer.role(role).slots:
            taken.setdefault(position_of[slot.node], []).extend(slot.gpus or ())
    return taken
