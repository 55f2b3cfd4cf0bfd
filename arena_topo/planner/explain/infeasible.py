"""The answer for a gang that has no place: why, how far each level gets, and what would help."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from arena_topo.model.cluster.scheduling import untolerated
from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.notation.words import natural_sort_key, plural, written_amount
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Infeasible, NodeRoom, Reason
from arena_topo.planner.explain.remedies import best_of_level, remedies
from arena_topo.planner.nodes.alignment import containers_of
from arena_topo.planner.nodes.fit import CORDON, open_to, requests, selected, serves_resource
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import Capacity, LevelLimits, level_words
from arena_topo.planner.nodes.node_state import NodeState

_NOTHING = Reason("no node has GPUs, or there are no nodes", 0)


def infeasible(
    demand: Demand, fleet: Fleet, capacity: Capacity, limits: LevelLimits, *, advises: bool = True
) -> Infeasible:
    """Return why *demand* has no place within *limits*; where it *advises*, also how far levels get, what nodes take, what helps."""
    level = level_words(fleet)[limits.widest]
    most, _ = best_of_level(fleet, capacity, limits.widest)
    where = "the cluster" if limits.widest > len(fleet.tiers) else f"one {level}"
    return Infeasible(
        summary=f"{_gang_words(demand)} do not fit in {where}: {most} of {demand.workers} do"
        if demand.workers > 1
        else f"{_gang_words(demand)} does not fit on any node",
        reasons=(*exclusions(demand, fleet), *_partly(demand, capacity)) or (_NOTHING,),
        levels=tuple(_levels(demand, fleet, capacity)) if advises else (),
        remedies=remedies(demand, fleet, capacity, limits) if advises else (),
        nodes=tuple(_rooms(demand, fleet, capacity)) if advises else (),
    )


def no_launcher(demand: Demand) -> Infeasible:
    """Return the answer for a gang whose workers fit, and whose launcher then has no place."""
    asked = demand.launcher or {}
    amounts = ", ".join(written_amount(name, amount) for name, amount in asked.items())
    labels = ", ".join(f"label {key}={value}" for key, value in demand.launcher_selector.items())
    # A launcher that asks for nothing still is one of the pods that a node takes.
    requirements = ", ".join(filter(None, (amounts, labels))) or "one more pod"
    return Infeasible(
        summary=f"the workers fit, but then no node has room for the launcher ({requirements})",
        remedies=("ask less with --launcher-cpu and --launcher-memory, or use fewer workers",),
    )


def too_wide(demand: Demand, fleet: Fleet, level: int, ideal: int) -> Infeasible:
    """Return the answer for a gang that would get a wider level now than on the empty cluster."""
    words = level_words(fleet)
    now = "the whole cluster" if level > len(fleet.tiers) else f"one {words[level]}"
    return Infeasible(
        summary=f"{_gang_words(demand)} would need {now} now; one idle {words[ideal]} would hold them",
        remedies=(
            f"--topology-policy=best-effort takes the {words[level]}",
            f"wait until a {words[ideal]} has {plural(demand.workers, 'place')}",
        ),
    )


def _gang_words(demand: Demand) -> str:
    shape = f" of {plural(demand.gpus, 'GPU')}" if demand.gpus else ""
    return f"{plural(demand.workers, 'worker')}{shape}"


def _partly(demand: Demand, capacity: Capacity) -> Iterator[Reason]:
    taking = len(capacity.places) - capacity.places.count(0)
    if not taking:
        return
    verb = "takes" if taking == 1 else "take"
    if capacity.total < demand.workers:
        alone = ", one each because a worker takes a port of its node" if demand.one_per_node else ""
        yield Reason(
            f"{plural(taking, 'node')} {verb} {capacity.total} of {demand.workers} workers together{alone}",
            taking,
        )
    else:
        yield Reason(f"{plural(taking, 'node')} {verb} workers, but not close enough together", taking)


def _levels(demand: Demand, fleet: Fleet, capacity: Capacity) -> Iterator[str]:
    for level, name in enumerate(level_words(fleet)):
        most, domain = best_of_level(fleet, capacity, level)
        # The whole cluster is among the reasons already.
        if most and level <= len(fleet.tiers):
            yield f"the best {name} fits {min(most, demand.workers)} of {demand.workers} workers ({domain})"


def exclusions(demand: Demand, fleet: Fleet) -> tuple[Reason, ...]:
    """Return why the nodes of *fleet* that take no worker of *demand* take none, the most frequent reason first.

    Each node counts for the first reason that keeps workers off it; nodes without GPUs count only for gangs without.
    """
    candidates = [_is_candidate(demand, state) for state in fleet.states]
    counted: Counter[str] = Counter()
    for state_id, positions in enumerate(fleet.nodes_by_state):
        if candidates[state_id]:
            counted.update(_first_obstacles(demand, fleet, fleet.states[state_id], positions))
    del counted[""]
    ordered = sorted(counted.items(), key=lambda entry: (-entry[1], natural_sort_key(entry[0])))
    return tuple(
        Reason(f"{plural(count, 'node')} {_agreeing(text, count)}", count) for text, count in ordered
    )


def _first_obstacles(
    demand: Demand, fleet: Fleet, state: NodeState, positions: Sequence[int]
) -> Mapping[str, int]:
    """Return of how many of the nodes at *positions*, which are in *state*, each text keeps a worker off first, empty for none."""

    def first(position: int) -> str:
        return next(_obstacles(demand, fleet, position, fleet.nodes[position]), "")

    chooses = demand.node_selector or demand.affinity or (demand.needs_hostname and fleet.without_hostname)
    serves = not demand.gpus or serves_resource(demand, state)
    # Without a choice by labels, nodes of one state that cannot serve a worker are all refused for the same.
    if not chooses and not (serves and open_to(demand, state) and state.free >= demand.gpus):
        return {first(positions[0]): len(positions)}
    # Most gangs without a place are refused by too few nodes, not by what a node lacks beside GPUs.
    if not (chooses or state.alignment) and all(
        fleet.least_free[resource] >= amount for resource, amount in requests(demand).items()
    ):
        return {}
    return Counter(map(first, positions))


def _rooms(demand: Demand, fleet: Fleet, capacity: Capacity) -> Iterator[NodeRoom]:
    """Yield what each node that counts takes of the gang."""
    for position, node in enumerate(fleet.nodes):
        if _is_candidate(demand, fleet.state(position)):
            places = capacity.places[position]
            obstacle = "" if places else next(_obstacles(demand, fleet, position, node), "")
            yield NodeRoom(node.name, places, _agreeing(obstacle, 1) if obstacle else "")


def _is_candidate(demand: Demand, state: NodeState) -> bool:
    return not demand.gpus or state.total > 0


def _agreeing(text: str, count: int) -> str:
    verb, _, rest = text.partition(" ")
    singular = {"have": "has", "are": "is", "lack": "lacks", "offer": "offers", "do": "does"}
    return f"{singular.get(verb, verb)} {rest}" if count == 1 else text


def _obstacles(demand: Demand, fleet: Fleet, position: int, node: GpuNode) -> Iterator[str]:
    """Yield everything that keeps workers off the node at *position*, what is hardest to change first."""
    # The texts agree with several nodes; ``_agreeing`` turns them around for a single one.
    state = fleet.state(position)
    if demand.gpus and not serves_resource(demand, state):
        yield f"offer their GPUs as {state.resource}, not as {demand.gpu_resource}"
    yield from (
        f"lack the label {key}={value}"
        for key, value in demand.node_selector.items()
        if node.labels.get(key) != value
    )
    if demand.needs_hostname and HOSTNAME not in node.labels:
        yield f"lack the label {HOSTNAME}, by which the plan would be enforced"
    if demand.affinity and not selected(demand, node):
        yield "do not match the node affinity"
    yield from _closed(demand, node)
    if state.free < demand.gpus:
        yield f"have fewer than {demand.gpus} free GPUs" if demand.gpus > 1 else "have no free GPU"
    yield from (
        f"have less than {written_amount(resource, amount)} free"
        for resource, amount in requests(demand).items()
        if fleet.free[resource][position] < amount
    )
    if state.alignment and (refusal := state.alignment.refusal(containers_of(demand, state.resource))):
        yield f"would refuse a worker with TopologyAffinityError ({state.alignment.policy.value}): {refusal}"


def _closed(demand: Demand, node: GpuNode) -> Iterator[str]:
    if not node.ready:
        yield "are not ready"
    if node.unschedulable and untolerated((CORDON,), demand.tolerations):
        yield "are cordoned"
    if taint := untolerated(node.taints, demand.tolerations):
        yield f"have the taint {taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
