"""What of a plan on somebody's job counts as a reservation: no more than the job itself asks for, where it could run.

Whoever may write a job may write a plan onto it, also a false one. So the job's own spec decides, which the API server and
the namespace's quotas have admitted. Take a plan of four workers with eight GPUs each, on a job of two workers with
``nvidia.com/gpu: 8`` and the node selector ``pool: a``, in a namespace with a quota of eight GPUs::

    worker 0 on a1, in pool a                counts
    worker 1 on b1, in pool b                could not run there
    worker 2 on a2, worker 3 on a3           the job has two workers
    worker 1 on a2, were it planned there    beyond the quota of eight GPUs (``quotas``)

A plan that gives a worker more GPUs than it asks for is another job's, and counts nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat

from arena_topo.model.cluster.scheduling import untolerated
from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import MOST_WORKERS, PlannedRole, PlanRecord
from arena_topo.planner.nodes.fit import selected

Asked = tuple[str, Demand]
"""A role of a job by its name, with what its pods ask for."""


def credible(record: PlanRecord, roles: Sequence[Asked], nodes: Mapping[str, GpuNode]) -> PlanRecord:
    """Return what of *record* counts for a job that asks for *roles*, on *nodes* by their names.

    Raises ``ValueError`` where the plan is of another job than that, so that nothing of it counts.
    """
    places = list(zip(record.slots, _by_number(roles), strict=False))
    for slot, demand in places:
        if len(slot.gpus or ()) > demand.gpus:
            raise ValueError(
                f"its plan gives worker {slot.worker} {len(slot.gpus or ())} GPUs, and the job asks for {demand.gpus}"
            )
    counted = tuple(_counted_roles(record, roles))
    return replace(
        record,
        slots=tuple(_possible(places, nodes)),
        worker_requests=counted[0].requests,
        # Pods that are all alike need no roles to be told apart.
        roles=counted if len(counted) > 1 else (),
    )


def _by_number(roles: Sequence[Asked]) -> Iterator[Demand]:
    """Yield what each pod of *roles* asks for; a job may ask for more of them than any plan has."""
    return chain.from_iterable(repeat(demand, min(demand.workers, MOST_WORKERS)) for _, demand in roles)


def _counted_roles(record: PlanRecord, roles: Sequence[Asked]) -> Iterator[PlannedRole]:
    """Yield the roles of the job, each with the requests of *record* that do not exceed its own."""
    first = 0
    for name, demand in roles:
        asked = _requests(demand)
        recorded = record.requests_of(first)
        requests = {
            resource: max(min(amount, asked[resource]), 0)
            for resource, amount in recorded.items()
            if resource in asked
        }
        yield PlannedRole(name, demand.workers, requests)
        first += demand.workers


def _requests(demand: Demand) -> Resources:
    return {**demand.requests, **({demand.gpu_resource: demand.gpus} if demand.gpus else {})}


def _possible(places: Iterable[tuple[Slot, Demand]], nodes: Mapping[str, GpuNode]) -> Iterator[Slot]:
    """Yield those slots on whose nodes a pod with the demand beside it could run, as many as a node holds when empty."""
    taken: dict[str, Counter[str]] = {}
    open_nodes: dict[tuple[str, int], bool] = {}
    for slot, demand in places:
        node = nodes.get(slot.node)
        if node is None:
            continue
        # The pods of a role share one demand.
        key = slot.node, id(demand)
        if key not in open_nodes:
            open_nodes[key] = _could_run(demand, node)
        total = taken.get(slot.node, Counter()) + Counter({"pods": 1, **_requests(demand)})
        if open_nodes[key] and _holds(node, total) and _has_gpus(node, slot):
            taken[slot.node] = total
            # Without GPUs of its own a worker leaves all of a node's known ones to others.
            yield slot if demand.gpus else slot._replace(gpus=())


def _could_run(demand: Demand, node: GpuNode) -> bool:
    # A node that is cordoned or does not report now stays reserved: nobody else gets it meanwhile.
    serves = not demand.gpus or node.gpu_resource == demand.gpu_resource
    return serves and selected(demand, node) and untolerated(node.taints, demand.tolerations) is None


def _holds(node: GpuNode, total: Resources) -> bool:
    return all(
        node.allocatable.get(name, 0) >= amount for name, amount in total.items() if node.reports(name)
    )


def _has_gpus(node: GpuNode, slot: Slot) -> bool:
    count = len(node.gpus) or node.gpu_total + node.unhealthy
    return all(0 <= index < count for index in slot.gpus or ())
