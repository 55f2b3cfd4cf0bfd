"""The links that jobs use where they are, and the bandwidth that their ranks will probably see there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

from arena_topo.errors import ArenaTopoError
from arena_topo.jobs.placement.demand import Question, asked_roles, question_of
from arena_topo.jobs.placement.options import PlanOptions, options_from_annotation
from arena_topo.jobs.placement.plan import predicted_rates, requests_rdma
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.job.job_view import JobView, PlannedWorker
from arena_topo.model.plan.overview import LinkUse
from arena_topo.model.plan.placement import NodeShare, Prediction
from arena_topo.model.plan.plan_record import decode, plan_text
from arena_topo.planner.gpus.machine import MachineCatalog


def link_uses(jobs: Iterable[JobView], snapshot: Snapshot, catalog: MachineCatalog) -> Iterator[LinkUse]:
    """Yield what each of *jobs* that has places, and has not ended, uses of the links in *snapshot*.

    Planned places come before those of the pods: they are known sooner, and with their GPUs. *catalog* keeps what was
    computed of the machines from one call to the next.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    for job in jobs:
        if job.status.is_final:
            continue
        planned = job.plan.workers if job.plan and job.plan.stage in ("proposed", "confirmed") else ()
        # An elastic job may have grown since, and a pod may run elsewhere than planned.
        moved = job.plan.moved if job.plan else ()
        places = planned if planned and not moved else _seen(job)
        if places:
            yield LinkUse(
                job=(job.namespace, job.name),
                workers=dict(Counter(place.node for place in places)),
                is_planned=places is planned,
                prediction=_prediction(job, places, nodes, snapshot, catalog),
            )


def _seen(job: JobView) -> tuple[PlannedWorker, ...]:
    """Return where the workers of *job* run, whose GPUs are not known."""
    return tuple(
        PlannedWorker(instance.name, instance.node, None)
        for instance in job.instances
        if instance.node and instance.gpus
    )


def _prediction(
    job: JobView,
    places: Sequence[PlannedWorker],
    nodes: Mapping[str, GpuNode],
    snapshot: Snapshot,
    catalog: MachineCatalog,
) -> Prediction | None:
    """Return what the ranks of *job* will probably see, None where that cannot be known."""
    if not all(place.node in nodes for place in places):
        return None
    # Whoever may edit a job may write anything into it, and must not hide the others.
    try:
        options = _options(job)
        question = question_of(job.manifest, snapshot, options)
        # Those with the most GPUs train; parameter servers exchange nothing by NCCL.
        demand = max((demand for _, demand in asked_roles(question)), key=lambda demand: demand.gpus)
    except (ArenaTopoError, ValueError, IndexError):
        return None
    places = _of_gpus(places, question, demand.gpus)
    if demand.gpus * len(places) < 2:
        return None
    shares = list(_shares(places, demand.gpus, nodes, catalog))
    return predicted_rates(shares, demand.gpus, nodes, demand, options, rdma=requests_rdma(demand))


def _of_gpus(places: Sequence[PlannedWorker], question: Question, gpus: int) -> Sequence[PlannedWorker]:
    """Return those of *places*, in the order of their numbers, whose pods have *gpus* GPUs."""
    asked = [
        demand.gpus for _, demand in asked_roles(question) for _ in range(min(demand.workers, len(places)))
    ]
    # An elastic job may have grown since, and places that were seen are of pods with GPUs alone.
    if len(asked) != len(places):
        return places
    return [place for place, of_pod in zip(places, asked, strict=True) if of_pod == gpus]


def _options(job: JobView) -> PlanOptions:
    text = plan_text(job.manifest)
    return PlanOptions() if text is None else options_from_annotation(decode(text).requested_options)


def _shares(
    places: Sequence[PlannedWorker], gpus: int, nodes: Mapping[str, GpuNode], catalog: MachineCatalog
) -> Iterator[NodeShare]:
    by_node: dict[str, list[int]] = {}
    for worker, place in enumerate(places):
        by_node.setdefault(place.node, []).append(worker)
    for name, workers in by_node.items():
        node, machine = nodes[name], catalog.machine_of(nodes[name])
        mask = _mask(node, [places[worker].gpus for worker in workers], gpus)
        yield NodeShare(
            node=name,
            workers=tuple(workers),
            gpus=None
            if mask is None
            else tuple(gpu.index for i, gpu in enumerate(node.gpus) if mask >> i & 1),
            busbw=None if mask is None or machine is None else machine.busbw(mask),
        )


def _mask(node: GpuNode, sets: Sequence[tuple[int, ...] | None], gpus: int) -> int | None:
    """Return the positions of the GPUs in *sets*, each of *gpus* GPUs, None where they are not known."""
    # Whoever has all GPUs of a node has these.
    if len(sets) * gpus == len(node.gpus):
        return (1 << len(node.gpus)) - 1
    place_of = {gpu.index: 1 << place for place, gpu in enumerate(node.gpus)}
    if any(indices is None or not place_of.keys() >= set(indices) for indices in sets):
        return None
    return reduce(or_, (place_of[index] for indices in sets for index in indices or ()), 0)
