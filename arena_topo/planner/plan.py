"""Where the pods of a gang go: ``plan`` answers with a place for every pod, or with why there is none.

The phases in their order, each shown on four nodes of 8 GPUs in two racks; another job holds four of a's:

====  ====  =========
rack  node  free GPUs
====  ====  =========
r1    a     4
r1    b     8
r2    c     8
r2    d     8
====  ====  =========

Pods that are all alike:

1.  Lay out (``fleet.make_fleet``). Nodes are sorted by their domains and then by name, so that a domain is a
    range: r1 is nodes 0 and 1. Nodes that nothing tells apart share a state and are looked at once: b, c, d.
2.  Count (``fleet.capacity_for``) how many workers each node has room for, by all that kube-scheduler would
    check. For workers of 4 GPUs that is 1, 2, 2 and 2.
3.  Level (``fleet.closest_level``): the closest one with a domain that has room for all. Two workers fit in
    one node, three fit in a rack, six need the cluster. Policies and flags name the levels that will do; with
    ``restricted`` the level must be the one that the idle cluster would give.
4.  Domain and nodes (``choice.choose_domain``), in the order of choice: the fewest nodes, the fewest domains
    of each closer level, the highest busbw, the least damage to what stays free, the tightest domain, the
    first by name. Three workers fit on two nodes of either rack: a and b, where no GPU is left over, win over
    c and d, where four would be. With an idle node e in a third rack, three workers of 8 GPUs take b, c and
    d: two racks, where b, c and e would touch three.
5.  Groups of ranks (``groups.place_groups``) take the place of 4 where the demand has ``parallel``. With tp=8
    and dp=3, two of six workers are a unit that must be in one node: c, d and b take a unit each, and those
    of rack r2 are consecutive. Workers that are spread evenly (``even.place_evenly``) come here, too: of five
    over racks, which hold three and four, three go to one and two to the other.
6.  Assign (``answer.placement``): ranks follow the nodes in fabric order, and the GPUs of a node in ring
    order. Of three workers the first gets a's GPUs 4 to 7, the others b's 0 to 3 and 4 to 7.
7.  Launcher. Where the workers took its room, that is kept free on one node after the other, those with the
    fewest free GPUs first, and the workers are placed again: the closest level wins, then the fewest nodes,
    then the first such node. A launcher of 120 of a node's 128 cpu has room
    on a, where no worker of 8 GPUs goes.

With ``coalesce``, 1 to 7 are done for each shape that has as many GPUs: 4 workers of 2 GPUs as 1 of 8, 2 of 4
and 4 of 2. The closest level wins, then the fewest nodes, then the fewest pods: one pod of 8 on b.

Roles that differ choose in turn (``roles.answer.place_roles``), those with the most GPUs first, each by the
order of choice given what earlier ones took, and of the choices that leave the rest room. The first one
decides the domain. Two workers of 8 GPUs take c and d; an evaluator of one GPU, which exchanges no data, then
goes anywhere, and does the least damage on a. Parameter servers have an order of choice of their own
(``roles.servers``).

A gang that fits nowhere is refused (``answer.infeasible``), with what keeps workers off the nodes, how far
each level gets, and what would help. Each remedy was tried on the fleet. Eight workers of 4 GPUs: 7 of 8 fit;
``--workers=7`` would, and all eight once the other job ends. Of several roles, each that does not fit by
itself says why; else all of them together do not.

A plan is a function of the demand and the fleet: the same question on the same fleet has the same answer,
whatever was asked before. What is kept between questions (``memo``) only saves time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arena_topo.errors import UsageError
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.kind import RankOrder
from arena_topo.model.placement_options import Objective, TopologyPolicy
from arena_topo.model.plan import (
    Demand,
    GangDemand,
    Infeasible,
    Placement,
    RolePlacement,
    Spread,
    Step,
    Steps,
    UnplacedRole,
    Verdict,
)
from arena_topo.model.plan_record import Slot
from arena_topo.model.text.quantity import Resources
from arena_topo.model.text.words import plural
from arena_topo.planner.answer import gang_words, infeasible, no_launcher, placement, too_wide
from arena_topo.planner.choice import Problem, choose_domain
from arena_topo.planner.even import place_evenly
from arena_topo.planner.fleet import (
    Capacity,
    Domain,
    Fleet,
    aligned,
    capacity_for,
    capacity_of,
    closest_level,
    domains_at,
    emptied,
    launcher_fits,
    launcher_hosts,
    level_names,
    level_words,
    make_fleet,
    policy_limits,
    reshaped,
)
from arena_topo.planner.groups import place_groups
from arena_topo.planner.roles.answer import place_roles


def plan(demand: Demand | GangDemand, snapshot: Snapshot) -> Verdict:
    """Return the place of every pod of *demand* on the cluster in *snapshot*, or why the gang has none.

    The answer does not depend on the order of anything in *snapshot*. Raises ``UsageError`` for a level that
    the fabric does not have, and for roles that contradict each other.
    """
    return plan_on(demand, make_fleet(snapshot))


def plan_on(
    demand: Demand | GangDemand, fleet: Fleet, *, advises: bool = True, explains: bool = True
) -> Verdict:
    """Return what ``plan`` does, on a fleet that is laid out already.

    For pods that are all alike, remedies are omitted without *advises*: to try them takes a hundred times as
    long as to find that there is no room. The steps of a placement are omitted without *explains*.
    """
    if isinstance(demand, GangDemand):
        answer = _plan_named(demand, fleet) if _is_one_plain_role(demand) else place_roles(demand, fleet)
        return _ranked(answer, demand.ranks) if isinstance(answer, Placement) else answer
    if demand.coalesce and demand.gpus:
        return _coalesced(demand, fleet, advises=advises)
    return _plan_alike(demand, fleet, advises=advises, explains=explains)


def _plan_alike(demand: Demand, fleet: Fleet, *, advises: bool = True, explains: bool = True) -> Verdict:
    """Return the plan of workers of exactly the shape that *demand* has."""
    fleet = aligned(fleet, demand)
    held = _Held()
    if demand.spares:
        found = _held_for(demand, fleet, advises=advises)
        if isinstance(found, Infeasible):
            return found
        held = found
    answer = _place_all(demand, fleet, held, advises=advises, explains=explains)
    if isinstance(answer, Placement) and _is_crowded(demand, answer):
        answer = _less_crowded(demand, fleet, held, answer, explains=explains) or answer
    if isinstance(answer, Infeasible):
        return answer
    return _ranked(_with_spares(answer, fleet, held), demand.ranks)


# Spare nodes: room that is held for a gang, so that workers whose nodes are lost continue in the same domain.
#
# A gang of six workers, each with a node of its own, is to have one spare node, all in one rack. Of racks of
# six, seven and eight idle nodes the last two will do. Each holds one back, and the gang takes the one of the
# two that it would take anyway: that of seven, whose spare goes with it. A spare has room for as many workers
# as the gang may have on one node. It is taken from the closest domains with the least room, so that the gang
# stays in as few of them as it can.


@dataclass(frozen=True, slots=True)
class _Held:
    """The nodes that the gang may not use, and the spares among them, by the domain in which the gang is.

    All by position, a spare as often as it has room for a worker; ``closed`` is None where nothing is held.
    """

    closed: frozenset[int] | None = None
    spares: Mapping[Domain, Sequence[int]] = field(default_factory=dict)

    def capacity(
        self, demand: Demand, fleet: Fleet, reserved: tuple[int, Resources] | None = None
    ) -> Capacity:
        """Return what the nodes that are not held take of *demand*."""
        capacity = capacity_for(demand, fleet, reserved)
        if self.closed is None:
            return capacity
        return capacity_of([0 if at in self.closed else n for at, n in enumerate(capacity.places)])


def _held_for(demand: Demand, fleet: Fleet, *, advises: bool) -> _Held | Infeasible:
    """Return what is held so that *demand* and its spares fit in the closest domains that have room for both.

    Raises ``UsageError`` for more spares than the gang has nodes.
    """
    limits, capacity = policy_limits(demand, fleet), capacity_for(demand, fleet)
    # Anybody may ask for them, and others wait meanwhile.
    nodes = -(-demand.workers // max(min(capacity.most, demand.workers), 1))
    if demand.spares > nodes:
        raise UsageError(
            f"--spares={demand.spares}: the job needs {plural(nodes, 'node')}, and has at most as many spare ones",
            hint=f"use --spares={nodes} or fewer",
        )
    # By node, the room of the closest domain around it.
    room = [
        capacity.within(closest)
        for closest in domains_at(fleet, 1)
        for _ in range(closest.start, closest.end)
    ]
    # A node is no domain of another one.
    for level in range(max(limits.closest, 1), limits.widest + 1):
        spares = {
            domain: chosen
            for domain in domains_at(fleet, level)
            if capacity.within(domain) > demand.workers
            and (chosen := _spares_of(demand, capacity, domain, room))
        }
        if spares:
            held = {at for chosen in spares.values() for at in chosen}
            usable = {at for domain in spares for at in range(domain.start, domain.end)} - held
            return _Held(frozenset(range(len(fleet.nodes))) - usable, spares)
    alone = _plan_alike(replace(demand, spares=0), fleet, advises=advises, explains=False)
    if isinstance(alone, Infeasible):
        return alone
    is_widest = limits.widest > len(fleet.tiers)
    within = "the cluster" if is_widest else f"one {level_words(fleet)[limits.widest]}"
    fewer = next(
        (
            f"--spares={spares} would fit"
            for spares in range(demand.spares - 1, 0, -1)
            if advises and isinstance(_held_for(replace(demand, spares=spares), fleet, advises=False), _Held)
        ),
        "leave out --spares",
    )
    return Infeasible(
        f"there is no room for {gang_words(demand)} and {plural(demand.spares, 'spare node')} in {within}",
        remedies=(fewer,),
    )


def _spares_of(demand: Demand, capacity: Capacity, domain: Domain, room: Sequence[int]) -> Sequence[int]:
    """Return the nodes that *domain* holds back for *demand*, none where the rest has no room for it.

    Those in the closest domains with the least *room* come first.
    """
    places = capacity.places
    most = min(demand.workers, max(places[domain.start : domain.end], default=0))
    whole = [at for at in range(domain.start, domain.end) if places[at] >= most > 0]
    whole.sort(key=lambda at: (room[at], places[at], -at))
    chosen = whole[: demand.spares]
    left = capacity.within(domain) - sum(places[at] for at in chosen)
    if len(chosen) < demand.spares or left < demand.workers:
        return ()
    return [at for at in chosen for _ in range(most)]


def _with_spares(answer: Placement, fleet: Fleet, held: _Held) -> Placement:
    """Return *answer* with the spares of the domain that it is in."""
    if held.closed is None:
        return answer
    position = next(at for at, node in enumerate(fleet.nodes) if node.name == answer.slots[0].node)
    domain = next(each for each in held.spares if each.has(position))
    nodes = [fleet.nodes[at].name for at in held.spares[domain]]
    return replace(
        answer, spares=tuple(Slot(number, node) for number, node in enumerate(nodes, answer.workers))
    )


# Ranks: places are handed out to neighbours in rank order, whatever the numbers of the pods are.
#
# Of twelve pods that torch sorts by the text of their index, on three nodes of four, the first node has 0, 1,
# 10 and 11. By number it would have 0 to 3, and the ring would leave it twice: after 1, and after 3.


def _ranked(answer: Placement, ranks: RankOrder) -> Placement:
    """Return *answer*, in which pods are numbered by rank, with the numbers that they have by *ranks*."""
    if ranks.named_from is None:
        return answer
    order, first, roles = ranks.of(range(answer.workers)), 0, []
    if order == sorted(order):
        return answer
    for role in answer.roles:
        past = first + len(role.slots)
        roles.append(_numbered(role, [number - first for number in order if first <= number < past]))
        first = past
    shown = ", ".join(map(str, order[:_SHOWN_RANKS]))
    bound = "an elastic PyTorchJob meets by torch's c10d, which sorts pods by the text of their names"
    step = Step("ranks", f"pods {shown} ...", bound=bound)
    why = Steps(lambda: (*answer.why, step) if answer.why else ())
    return replace(answer, roles=tuple(roles), ranks=tuple(order), why=why)


_SHOWN_RANKS = 5


def _numbered(role: RolePlacement, order: Sequence[int]) -> RolePlacement:
    """Return *role*, whose pods are numbered by rank, with the numbers of *order*."""
    slots = sorted(slot._replace(worker=order[slot.worker]) for slot in role.slots)
    shares = []
    for share in role.shares:
        by_number = sorted(range(len(share.workers)), key=lambda rank: order[share.workers[rank]])
        workers = tuple(order[share.workers[rank]] for rank in by_number)
        alignment = share.alignment
        if alignment:
            alignment = replace(alignment, workers=tuple(alignment.workers[rank] for rank in by_number))
        shares.append(share._replace(workers=workers, alignment=alignment))
    return replace(role, slots=tuple(slots), shares=tuple(shares))


def _place_all(demand: Demand, fleet: Fleet, held: _Held, *, advises: bool, explains: bool) -> Verdict:
    """Return a place for all workers of *demand*, and one for its launcher as well."""
    answer = _place(demand, fleet, held.capacity(demand, fleet), advises=advises, explains=explains)
    if isinstance(answer, Infeasible) or demand.launcher is None:
        return answer
    if launcher_fits(demand, fleet, answer):
        return answer
    # The workers took the launcher's room: keep it free on one node after the other, and place them again.
    best, least = None, _score(fleet, answer)
    for host in launcher_hosts(demand, fleet):
        capacity = held.capacity(demand, fleet, (host, demand.launcher))
        found = _place(demand, fleet, capacity, advises=False, explains=explains)
        if isinstance(found, Placement) and launcher_fits(demand, fleet, found):
            if best is None or _score(fleet, found) < _score(fleet, best):
                best = found
            # With less room no workers are closer together, or on fewer nodes.
            if _score(fleet, best) == least:
                break
    return best or no_launcher(demand)


def _score(fleet: Fleet, answer: Placement) -> tuple[int, int]:
    """Return the level of *answer* and its number of nodes, by which places for different shapes compare."""
    return level_names(fleet).index(answer.level), len(answer.shares)


def _place(demand: Demand, fleet: Fleet, capacity: Capacity, *, advises: bool, explains: bool) -> Verdict:
    limits = policy_limits(demand, fleet)
    level = closest_level(fleet, capacity, demand.workers, limits)
    if level is None:
        return infeasible(demand, fleet, capacity, limits, advises=advises)
    if demand.policy is TopologyPolicy.RESTRICTED:
        # An empty cluster of the same nodes: taints, cordons and unhealthy GPUs stay, only pods go.
        empty = emptied(fleet)
        ideal = closest_level(empty, capacity_for(demand, empty), demand.workers, limits)
        if ideal is not None and ideal < level:
            answer = too_wide(gang_words(demand), fleet, level, ideal)
            wait = f"wait until a {level_words(fleet)[ideal]} has room for {plural(demand.workers, 'worker')}"
            return replace(answer, remedies=(*answer.remedies, wait))
    if demand.spread_evenly:
        return place_evenly(demand, fleet, capacity, limits)
    if demand.parallel:
        return place_groups(demand, demand.parallel, fleet, capacity, limits)
    problem = Problem(
        fleet,
        capacity,
        demand.workers,
        demand.gpus,
        objective=demand.objective,
        closest=limits.closest,
    )
    return placement(demand, fleet, capacity, choose_domain(problem, level), explains=explains)


# Isolated pods, which exchange over the RDMA cards of their node as if each were a node by itself.
#
# One node is then no closer than two, and n pods of a node have an n-th of its cards each. So the rate goes
# before the level: the highest one is looked for at which all pods still fit, with on each node no more pods
# than have that rate there, and the order of choice decides among the nodes that remain. Eight pods of one
# GPU share the four cards of 25 GB/s of a machine at 11.5 GB/s each; four on each of two machines have 23.


def _is_crowded(demand: Demand, answer: Placement) -> bool:
    """Whether pods share cards that they may not have to share."""
    # Groups of ranks, and GPUs left over where these go first, decide otherwise.
    is_free = demand.objective is Objective.BANDWIDTH and not demand.parallel
    return demand.isolated and is_free and any(len(share.workers) > 1 for share in answer.shares)


def _less_crowded(
    demand: Demand, fleet: Fleet, held: _Held, answer: Placement, *, explains: bool
) -> Placement | None:
    """Return the plan at the highest rate that all pods can have, None where *answer* has it."""
    workers = {share.node: len(share.workers) for share in answer.shares}
    rates = [
        _card_rate(demand, fleet, position, workers[node.name])
        for position, node in enumerate(fleet.nodes)
        if node.name in workers
    ]
    capacity, limits = held.capacity(demand, fleet), policy_limits(demand, fleet)
    by_state = _card_rates(demand, fleet, capacity)
    higher = sorted({rate for row in by_state.values() for rate in row if rate > min(rates)})

    def limited(rate: float) -> Capacity:
        most = [
            sum(each >= rate for each in by_state.get(state_id, ())) for state_id in range(len(fleet.states))
        ]
        places = map(most.__getitem__, fleet.state_ids)
        if capacity.by_state is None:
            return capacity_of(list(map(min, capacity.places, places)))
        return capacity_of(list(places), most)

    # Where the pods have room at some rate, they have at every lower one.
    fits, too_high = 0, len(higher) + 1
    while too_high - fits > 1:
        middle = (fits + too_high) // 2
        level = closest_level(fleet, limited(higher[middle - 1]), demand.workers, limits)
        fits, too_high = (fits, middle) if level is None else (middle, too_high)
    for rate in reversed(higher[:fits]):
        found = _place(demand, fleet, limited(rate), advises=False, explains=explains)
        if isinstance(found, Placement) and (demand.launcher is None or launcher_fits(demand, fleet, found)):
            most = max(len(share.workers) for share in found.shares)
            step = Step(
                criterion="cards",
                chosen=f"{rate:.3g} GB/s for each pod, with at most {most} on a node",
                runner_up=f"{min(rates):.3g} GB/s on {plural(len(answer.shares), 'node')}",
                bound="no pods of this gang can have more",
            )
            return _with_step(found, step) if explains else found
    return None


def _with_step(answer: Placement, step: Step) -> Placement:
    return replace(answer, why=Steps(lambda: (*answer.why, step)))


def _card_rates(demand: Demand, fleet: Fleet, capacity: Capacity) -> dict[int, list[float]]:
    """Return, for each state with room, the rate of each of so many pods on a node, one pod first."""
    most = dict(zip(fleet.state_ids, capacity.places, strict=True))
    if capacity.by_state is None:
        for state_id, places in zip(fleet.state_ids, capacity.places, strict=True):
            most[state_id] = max(most[state_id], places)
    positions = dict(zip(fleet.state_ids, range(len(fleet.nodes)), strict=True))
    rates = {}
    for state_id, places in most.items():
        row = [_card_rate(demand, fleet, positions[state_id], pods) for pods in range(1, places + 1)]
        # More pods never have more each, though the search for their GPUs may find it so.
        rates[state_id] = [max(row[pods:]) for pods in range(places)]
    return rates


def _card_rate(demand: Demand, fleet: Fleet, position: int, pods: int) -> float:
    """Return the rate in GB/s of each of *pods* on the node at *position*, 0 where it has no RDMA card."""
    return fleet.card_rates[demand.gpus, fleet.state_ids[position], pods]


def _coalesced_shapes(demand: Demand) -> Iterator[Demand]:
    """Yield *demand* in every shape of as many GPUs in all, the largest pods first; none smaller than asked.

    A pod that takes the ranks of several workers asks for as much cpu, memory and devices as they did
    together.

    >>> [(shape.workers, shape.gpus) for shape in _coalesced_shapes(Demand(workers=4, gpus=2))]
    [(1, 8), (2, 4), (4, 2)]
    """
    ranks = demand.workers * demand.gpus
    for workers in range(1, demand.workers + 1):
        if ranks % workers == 0:
            yield reshaped(demand, ranks // workers)


def _coalesced(demand: Demand, fleet: Fleet, *, advises: bool) -> Verdict:
    """Return the best placement of *demand* as fewer, larger pods that are all alike.

    The closest level first, then the fewest nodes, then the fewest pods; the shape that was asked for is
    among them.
    """
    best: tuple[tuple[int, int, int], Placement] | None = None
    # Its pods are to have nodes of their own.
    demand = replace(demand, isolated=False)
    for shape in _coalesced_shapes(demand):
        answer = _plan_alike(shape, fleet, advises=False)
        if isinstance(answer, Placement):
            score = (*_score(fleet, answer), answer.workers)
            if best is None or score < best[0]:
                best = score, answer
    if best is None:
        # No shape fits: the reasons and remedies are those of the shape that was asked for.
        return _plan_alike(demand, fleet, advises=advises)
    return replace(best[1], coalesced=best[1].workers != demand.workers)


def _is_one_plain_role(demand: GangDemand) -> bool:
    """Whether *demand* is one role that asks only for room: it is planned as pods that are all alike."""
    if len(demand.roles) != 1 or demand.roles[0].pods < 1:
        return False
    role = demand.roles[0]
    is_spread = role.spread is not Spread.NONE and not role.demand.one_per_node
    return not (role.slices or role.tie or role.serves or role.preferences or role.anywhere or is_spread)


def _plan_named(demand: GangDemand, fleet: Fleet) -> Verdict:
    """Return the plan of the only role of *demand*, by its name."""
    role = demand.roles[0]
    alike = replace(
        role.demand,
        policy=demand.policy,
        required_level=demand.required_level,
        preferred_level=demand.preferred_level,
        objective=demand.objective,
    )
    answer = _plan_alike(alike, fleet)
    if isinstance(answer, Infeasible):
        return Infeasible(answer.summary, remedies=answer.remedies, roles=(UnplacedRole(role.name, answer),))
    placed = replace(answer.roles[0], role=role.name, why=answer.why)
    # Of the steps, that of the level is about the gang.
    return replace(answer, roles=(placed,), why=Steps(lambda: answer.why[1:2]))


# Gangs that could never fit, however long they wait: those that the idle cluster could not hold either.

_OF_KUBERNETES = "node.kubernetes.io/"
"""The prefix of the taints that come and go with a node's state: not ready, cordoned, under pressure."""


def never_fits(demand: Demand | GangDemand, snapshot: Snapshot) -> Infeasible | None:
    """Return why *demand* could never fit on the nodes of *snapshot*, None where it could once they are free.

    All nodes count as idle and in service: a drained one comes back, a broken GPU is replaced, and other pods
    end. For example, 20 workers of 1 GPU could never fit on two nodes of 8, but 16 could.
    """
    nodes = tuple(map(_in_service, snapshot.nodes))
    fleet = emptied(make_fleet(replace(snapshot, nodes=nodes)))
    # Groups of ranks decide where workers go, and never whether they fit.
    question = demand if isinstance(demand, GangDemand) else replace(demand, parallel=None)
    answer = plan_on(question, fleet)
    # A search that was cut short proves nothing.
    if isinstance(answer, Placement) or not answer.proven:
        return None
    return replace(answer, summary=f"{_size(demand, nodes)}; {answer.summary}, even when it is idle")


def _in_service(node: GpuNode) -> GpuNode:
    resource = node.gpu_resource
    return replace(
        node,
        ready=True,
        unschedulable=False,
        taints=tuple(taint for taint in node.taints if not taint.key.startswith(_OF_KUBERNETES)),
        allocatable={**node.allocatable, resource: node.gpu_total + node.unhealthy},
        unhealthy=0,
    )


def _size(demand: Demand | GangDemand, nodes: tuple[GpuNode, ...]) -> str:
    has_gpus = any(role.gpus for role in demand.roles) if isinstance(demand, GangDemand) else demand.gpus > 0
    if not has_gpus:
        return f"the cluster has {plural(len(nodes), 'node')}"
    return f"the cluster has {plural(sum(node.gpu_total for node in nodes), 'GPU')}"
