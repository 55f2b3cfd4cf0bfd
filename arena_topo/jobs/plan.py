"""The planner's answer for a job, with the bandwidth that its ranks will probably see."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import or_

from arena_topo.errors import ArenaTopoError, DocumentError, DoesNotFit, UsageError
from arena_topo.jobs.options import PlanOptions
from arena_topo.kinds.elastic import pods_of_job, rank_order, worker_range
from arena_topo.kinds.table import kind_of, newest_kind
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model import keys
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.job import Compute, JobSpec
from arena_topo.model.job_view import PlannedWorker
from arena_topo.model.kind import Replicas, is_planned, planned_replicas
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import Pin, check_ranks
from arena_topo.model.plan import (
    Demand,
    GangDemand,
    Infeasible,
    NodeShare,
    Placement,
    Prediction,
    Range,
    Role,
    Slice,
    Spread,
    Verdict,
)
from arena_topo.model.plan_record import MOST_WORKERS, Enforcement, PlannedRole, PlanRecord, Slot, Stage
from arena_topo.model.pods import Requirement, SelectorTerm, Toleration, aligned_requests, pod_spec_requests
from arena_topo.model.reports import Comparison
from arena_topo.model.text.json import cut, optional_number
from arena_topo.model.text.quantity import Resources, times
from arena_topo.model.text.words import plural
from arena_topo.planner.change import plan_elastic
from arena_topo.planner.compare import compare
from arena_topo.planner.fleet import emptied, make_fleet
from arena_topo.planner.gpus.machine import MachineCatalog
from arena_topo.planner.groups import shared_clique_notes
from arena_topo.planner.plan import never_fits, plan, plan_on
from arena_topo.prediction.forecast import Workload, gang_prediction, predict, shipped_calibration
from arena_topo.prediction.training import MODELS, Benchmark, benchmark_of

# What the planner is asked: the demand of a job of any kind, read from its pod templates.

Question = Demand | GangDemand
"""What the planner is asked: about pods that are all alike, or about the roles of a gang."""

_REQUIRED, _PREFERRED = (
    f"{rule}DuringSchedulingIgnoredDuringExecution" for rule in ("required", "preferred")
)


def question_of(job: Object, snapshot: Snapshot, options: PlanOptions) -> Question:
    """Return what the pods of *job* request from the cluster in *snapshot*, by role where they are not alike.

    Raises ``UsageError`` for options that only a gang of pods that are alike can have, and ``DocumentError``
    for a job without pods to plan.
    """
    # Anybody may write a job of two billion pods without GPUs, which fit anywhere as far as they go.
    if (pods := pods_of_job(kind_of(job), job)) > MOST_WORKERS:
        raise UsageError(f"the job asks for {pods:,} pods, and at most {MOST_WORKERS:,} are planned")
    gang = replace(_gang_of_roles(job, snapshot, options), ranks=rank_order(kind_of(job), job))
    if _are_alike(gang.roles):
        return demand_of(job, snapshot, options)
    for flag, is_used in (
        ("--parallel", options.parallel is not None),
        ("--coalesce", options.coalesce),
        ("--share-gpus", options.share_gpus),
        ("--spread-evenly", bool(options.spread_evenly)),
        ("--spares", bool(options.spares)),
    ):
        if is_used:
            roles = ", ".join(role.name for role in gang.roles)
            raise UsageError(
                f"{flag} is for jobs whose pods are all alike, and those of {roles} differ",
                hint="leave it out",
            )
    return gang


def asked_roles(question: Question) -> list[tuple[str, Demand]]:
    """Return what each role asks for, in the order of the numbers of their pods.

    One without a name where all are alike.
    """
    if isinstance(question, Demand):
        return [("", question)]
    return [(role.name, role.demand) for role in question.roles]


def _gang_of_roles(job: Object, snapshot: Snapshot, options: PlanOptions) -> GangDemand:
    planned = [pods for pods in planned_replicas(kind_of(job), job) if pods.count > 0]
    names = [pods.role for pods in planned]
    return GangDemand(
        roles=tuple(_role(pods, names, snapshot) for pods in planned),
        policy=options.policy,
        required_level=options.required_level,
        preferred_level=options.preferred_level,
        objective=options.objective,
    )


def demand_of(job: Object, snapshot: Snapshot, options: PlanOptions) -> Demand:
    """Return what the pods of *job*, as many alike to the first, request from the cluster in *snapshot*.

    Raises ``UsageError`` where the axes of *options* are not those of as many ranks as the job has, and
    ``DocumentError`` for a job without pods to plan.
    """
    kind = kind_of(job)
    planned = planned_replicas(kind, job)
    if not planned:
        # The API server takes a job that lacks the role whose pods are planned; its operator does not.
        raise DocumentError(f"the job {cut(str(job['metadata']['name']))} has no pods that could be planned")
    first = next((pods for pods in planned if pods.count), planned[0])
    others = [pods for pods in kind.replicas(job) if not is_planned(kind, pods.role)]
    role = _role(first, [first.role], snapshot)
    workers = sum(pods.count for pods in planned)
    if options.parallel:
        # Frameworks run a rank for each GPU, whether mpirun starts it or a worker's own launcher does.
        slots = job["spec"].get("slotsPerWorker")
        check_ranks(options.parallel, workers, role.gpus or (slots if isinstance(slots, int) else 1))
    # v1alpha1 has one template: what its launcher requests is the operator's to decide, and nothing is set
    # aside.
    launcher = others[0].pods if others else None
    demand = role.demand
    return replace(
        demand,
        workers=workers,
        launcher=None if launcher is None else _requests(launcher),
        launcher_selector=((launcher or {}).get("spec") or {}).get("nodeSelector") or {},
        policy=options.policy,
        required_level=options.required_level,
        preferred_level=options.preferred_level,
        spread_evenly=options.spread_evenly,
        spares=options.spares,
        coalesce=options.coalesce,
        objective=options.objective,
        parallel=options.parallel,
        isolated=bool(role.gpus) and requests_rdma(demand) and not _see_each_other(demand, options),
        ranks=rank_order(kind, job),
    )


def _are_alike(roles: Sequence[Role]) -> bool:
    """Whether pods of *roles* ask for the same, and for no more than places."""
    first = roles[0] if roles else None
    return first is None or (
        all(replace(role, name=first.name, pods=first.pods) == first for role in roles)
        and not (first.serves or first.anywhere or first.slices)
        # One pod to a node is what a demand can ask for as well, of all pods together.
        and (first.spread is Spread.NONE or (first.spread is Spread.REQUIRED and len(roles) == 1))
    )


def _role(pods: Replicas, names: Sequence[str], snapshot: Snapshot) -> Role:
    spec = pods.pods.get("spec") or {}
    requests = _requests(pods.pods)
    gpu_resource = _gpu_resource(requests, snapshot)
    apart = _near_itself(spec, pods, "podAntiAffinity")
    return Role(
        name=pods.role,
        pods=pods.count,
        gpus=requests.get(gpu_resource, 0),
        requests={name: amount for name, amount in requests.items() if name != gpu_resource},
        gpu_resource=gpu_resource,
        one_per_node=_takes_host_port(spec),
        node_selector=spec.get("nodeSelector") or {},
        affinity=_required_affinity(spec),
        tolerations=tolerations_of(spec),
        containers=aligned_requests(spec),
        spread={_REQUIRED: Spread.REQUIRED, _PREFERRED: Spread.PREFERRED}.get(apart, Spread.NONE),
        slices=(Slice(pods.count, "node"),) if _near_itself(spec, pods, "podAffinity") == _REQUIRED else (),
        serves=next((role for role in pods.serves if role in names), ""),
        anywhere=pods.anywhere,
    )


def _near_itself(spec: Object, pods: Replicas, rule: str) -> str:
    """Return the term of affinity *rule* by which a pod is to be near pods of its own role, or apart.

    Only the terms for nodes count: what a plan makes of any wider domain is the fabric's. Empty if there is
    none.
    """
    metadata = pods.pods.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **pods.labels}
    affinity = (spec.get("affinity") or {}).get(rule) or {}
    for strength in (_REQUIRED, _PREFERRED):
        for entry in affinity.get(strength) or ():
            term = entry.get("podAffinityTerm") or entry
            if term.get("topologyKey") == keys.HOSTNAME and _selects(term.get("labelSelector"), labels):
                return strength
    return ""


def _selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether a label *selector* matches a pod with *labels*; none matches no pod."""
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(term.holds(labels) for term in _requirements(selector.get("matchExpressions")))


def _requests(template: Object) -> Resources:
    """Return what kube-scheduler will reserve for a pod of *template*."""
    requests = pod_spec_requests(template.get("spec") or {})
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    claimed = optional_number(annotations.get(keys.CLAIMED_GPUS))
    # Once a job was created its claimed GPUs are a number in an annotation, and no container requests them.
    return requests if claimed is None else {**requests, keys.DRA_GPU: claimed}


def _gpu_resource(requests: Resources, snapshot: Snapshot) -> str:
    """Return the resource by which a worker requests its GPUs, empty where it has none.

    Some node of the cluster offers its GPUs by it, or it is named as a GPU of a vendor that none has.
    """
    offered = {node.gpu_resource for node in snapshot.nodes}
    candidates = [name for name in requests if name in offered or name.endswith("/gpu")]
    return max(candidates, key=lambda name: requests[name], default="")


def _takes_host_port(spec: Object) -> bool:
    """Whether a pod of *spec* takes a port of its node, which two alike cannot.

    Source: kube-scheduler's plugin NodePorts.
    """
    ports = [port for container in spec.get("containers") or () for port in container.get("ports") or ()]
    # In the node's network every port that a container declares is the node's.
    return any(port.get("hostPort") or spec.get("hostNetwork") for port in ports)


def tolerations_of(spec: Object) -> tuple[Toleration, ...]:
    """Return the tolerations of a pod's *spec*."""
    return tuple(
        Toleration(
            key=raw.get("key") or "",
            operator=raw.get("operator") or "Equal",
            value=raw.get("value") or "",
            effect=raw.get("effect") or "",
        )
        for raw in spec.get("tolerations") or ()
    )


def _required_affinity(spec: Object) -> tuple[SelectorTerm, ...]:
    affinity: Mapping[str, list[Object]] = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    # Only what is required decides where a pod can go; preferences merely rank the nodes.
    return tuple(
        SelectorTerm(
            expressions=_requirements(term.get("matchExpressions")),
            fields=_requirements(term.get("matchFields")),
        )
        for term in affinity.get("nodeSelectorTerms") or ()
    )


def _requirements(raw: list[Object] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(str(entry.get("key")), str(entry.get("operator")), tuple(entry.get("values") or ()))
        for entry in raw or ()
    )


def plan_question(question: Question, snapshot: Snapshot, options: PlanOptions, *, least: int = 0) -> Verdict:
    """Return where the pods of *question* go in *snapshot*, or why they cannot.

    Of pods alike *least* will do.
    Raises ``UsageError``.
    """
    if isinstance(question, GangDemand):
        return plan(question, snapshot)
    return plan_demand(question, snapshot, options, least=least)


def plan_demand(demand: Demand, snapshot: Snapshot, options: PlanOptions, *, least: int = 0) -> Verdict:
    """Return where the workers of *demand* go in *snapshot*, or why they cannot.

    All of them, or *least* and as many as fit.
    Raises ``UsageError``.
    """
    found = plan_elastic(demand, least, snapshot) if 0 < least < demand.workers else plan(demand, snapshot)
    if demand.coalesce and isinstance(found, Placement):
        _check_coalesced(demand, found, snapshot, options)
    return _predicted(found, demand, snapshot, options)


def _predicted(verdict: Verdict, demand: Demand, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return *verdict* with what its ranks will probably see."""
    # The prediction is of what NCCL reaches between GPUs.
    if not isinstance(verdict, Placement) or not verdict.gpus:
        return verdict
    nodes = {node.name: node for node in snapshot.nodes}
    if verdict.gpus * verdict.workers == 1:
        return replace(verdict, products=_products(verdict.shares, nodes))
    predicted = partial(predicted_rates, verdict.shares, verdict.gpus, nodes, demand, options)
    has_rdma = requests_rdma(demand)
    prediction = predicted(rdma=has_rdma)
    notes = [*verdict.notes, *shared_clique_notes(verdict, snapshot)]
    if demand.ranks.by_command and verdict.workers > _ONE_DIGIT:
        notes.insert(0, _RANKS_BY_COMMAND)
    # Every node must offer the devices: a gang is as fast as its slowest link.
    offered = _common_rdma(nodes[share.node] for share in verdict.shares)
    if offered and not has_rdma and len(verdict.shares) > 1:
        notes += _rdma_advice(offered, prediction, predicted(rdma=True))
    found = replace(
        verdict, prediction=prediction, notes=tuple(notes), products=_products(verdict.shares, nodes)
    )
    return replace(found, warnings=tuple(_coalesce_advice(found, demand, snapshot, options)))


_ONE_DIGIT = 10
"""Pods whose text and number have the same order."""
_RANKS_BY_COMMAND = (
    "c10d in the command ranks pods by name, 10 before 2, and not as planned: "
    "torchrun --node-rank=$JOB_COMPLETION_INDEX --master-addr=... does"
)


def predicted_rates(
    shares: Sequence[NodeShare],
    gpus: int,
    nodes: Mapping[str, GpuNode],
    demand: Demand,
    options: PlanOptions,
    *,
    rdma: bool,
) -> Prediction:
    """Return what ranks in pods of *gpus* GPUs will probably see where they have *shares* of *nodes*."""
    return gang_prediction(
        tuple(shares),
        nodes,
        gpus_per_pod=gpus,
        pods_see_each_other=_see_each_other(demand, options),
        host_network_rdma=rdma,
        calibration=shipped_calibration(),
        ranks=demand.ranks.of(worker for share in shares for worker in share.workers),
    )


def rate_at(places: Sequence[Slot], demand: Demand, snapshot: Snapshot, options: PlanOptions) -> float | None:
    """Return the likely busbw of workers of *demand* at *places* in GB/s, None where nothing is exchanged.

    None as well where one of the nodes is not there any more.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    if demand.gpus * len(places) < 2 or not all(place.node in nodes for place in places):
        return None
    shares = list(shares_at(places, demand.gpus, nodes, MachineCatalog()))
    rdma = requests_rdma(demand)
    return predicted_rates(shares, demand.gpus, nodes, demand, options, rdma=rdma).busbw.likely


def shares_at(
    places: Sequence[PlannedWorker | Slot],
    gpus: int,
    nodes: Mapping[str, GpuNode],
    catalog: MachineCatalog,
) -> Iterator[NodeShare]:
    """Yield what a gang at *places*, with *gpus* GPUs a worker, has of each of *nodes*."""
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
    # Anyone who has all GPUs of a node has these.
    if len(sets) * gpus == len(node.gpus):
        return (1 << len(node.gpus)) - 1
    place_of = {gpu.index: 1 << place for place, gpu in enumerate(node.gpus)}
    if any(indices is None or not place_of.keys() >= set(indices) for indices in sets):
        return None
    return reduce(or_, (place_of[index] for indices in sets for index in indices or ()), 0)


def _see_each_other(demand: Demand, options: PlanOptions) -> bool:
    # ACK's device plugin shows every pod of a group the GPUs of the whole group.
    return keys.ACK_GPU in (demand.gpu_resource, *demand.requests) or options.share_gpus


def _products(shares: Iterable[NodeShare], nodes: Mapping[str, GpuNode]) -> tuple[str, ...]:
    products = {gpu.product for share in shares for gpu in nodes[share.node].gpus}
    return tuple(sorted(products - {""}))


def plan_spec(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return the plan of *job* as it would be submitted to the cluster of *snapshot*.

    Raises ``UsageError``.
    """
    least = job.elastic.least if job.elastic else 0
    return plan_demand(_demand_of_spec(job, snapshot, options), snapshot, options, least=least)


def plan_roles(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return the plan of *job* role by role, also where all of them are alike. Raises ``UsageError``."""
    return plan(_gang_of_roles(rendered_spec(job, snapshot), snapshot, options), snapshot)


def plan_job(job: Object, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return the plan of a *job* that is written already. Raises ``UsageError``."""
    return plan_question(question_of(job, snapshot, options), snapshot, options)


def compare_spec(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Comparison:
    """Return what other ways of asking for *job* would give, and a topology-unaware scheduler.

    Raises ``UsageError``.
    """
    demand = _demand_of_spec(job, snapshot, options)
    benchmark = benchmark_of(" ".join(job.command))

    nodes = {node.name: node for node in snapshot.nodes}
    rdma = requests_rdma(demand)

    def figures(shares: Sequence[NodeShare], gpus: int) -> tuple[Range | None, Range | None]:
        if not gpus:
            return None, None
        prediction = predicted_rates(shares, gpus, nodes, demand, options, rdma=rdma)
        ranks = sum(len(share.workers) for share in shares) * gpus
        busbw = prediction.busbw if ranks > 1 else None
        return busbw, _images_per_second(benchmark, ranks, _products(shares, nodes), prediction)

    return compare(demand, snapshot, figures)


def _images_per_second(
    benchmark: Benchmark | None, ranks: int, products: Sequence[str], prediction: Prediction
) -> Range | None:
    """Return what *benchmark* would reach in all, None where the speed of these GPUs is not known."""
    calibration = shipped_calibration()
    if benchmark is None or benchmark.model not in MODELS or len(products) != 1:
        return None
    if not calibration.knows(products[0]):
        return None
    workload = Workload(benchmark.model, benchmark.framework, benchmark.batch, products[0])
    transport = prediction.across or prediction.inside
    return predict(workload, ranks, prediction.busbw, transport, calibration).total


def coalesced(job: JobSpec, snapshot: Snapshot, options: PlanOptions, *, template: str = "") -> JobSpec:
    """Return *job* in the shape that fits best.

    Fewer, larger pods that request in proportion, as many slots in all.
    For example, 8 workers of 1 GPU, 2 cpu and 1 slot that are coalesced into 2 pods of 4 GPUs become 2
    workers of 4 GPUs, 8 cpu and 4 slots. Without a place now the job keeps the shape that the user gave it,
    and waits in it. *template* is the user's own. Raises ``UsageError`` for a job whose pods differ.
    """
    if job.roles:
        raise UsageError("--coalesce is for jobs whose pods are all alike", hint="leave it out")
    demand = demand_of(rendered_spec(job, snapshot, template), snapshot, options)
    verdict = plan(demand, snapshot)
    if isinstance(verdict, Infeasible) or not job.gpus:
        return job
    _check_coalesced(demand, verdict, snapshot, options)
    if verdict.workers == job.workers:
        return job
    ratio = verdict.gpus, job.gpus
    devices = {name: _scaled(quantity, ratio) for name, quantity in job.pod.devices.items()}
    return replace(
        job,
        workers=verdict.workers,
        gpus=verdict.gpus,
        slots=job.slots * verdict.gpus // job.gpus,
        # The words of torchrun follow the GPUs by themselves.
        processes=str(int(job.processes) * verdict.gpus // job.gpus)
        if job.processes.isdecimal()
        else job.processes,
        compute=Compute(cpu=_scaled(job.compute.cpu, ratio), memory=_scaled(job.compute.memory, ratio)),
        pod=replace(job.pod, devices=devices),
    )


def _demand_of_spec(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Demand:
    return demand_of(rendered_spec(job, snapshot), snapshot, options)


def rendered_spec(job: JobSpec, snapshot: Snapshot, template: str = "") -> Object:
    """Return *job* as it would be submitted to the cluster of *snapshot*, with a *template* of the user's."""
    context = RenderContext(newest_kind(job.kind), _gpu_resource_of(job, snapshot))
    return render(job, context, template=template).job


def _gpu_resource_of(job: JobSpec, snapshot: Snapshot) -> str:
    """Return the resource by which *job* would request its GPUs on the cluster of *snapshot*.

    It is the vendor's where a node is set up for it, and the DRA driver's device class where GPUs are
    allocated only by claims.
    """
    if job.topology and any(
        node.labels.get(keys.ACK_SCHEDULE) == keys.ACK_SCHEDULE_TOPOLOGY for node in snapshot.nodes
    ):
        return keys.ACK_GPU
    offered = {node.gpu_resource for node in snapshot.nodes if node.gpu_total}
    # Where NVIDIA's device plugin runs on some nodes, a plain request is scheduled there, and needs no claim.
    by_claims_alone = keys.DRA_GPU in offered and keys.NVIDIA_GPU not in offered
    return keys.DRA_GPU if by_claims_alone else keys.NVIDIA_GPU


def _coalesce_advice(
    verdict: Placement, demand: Demand, snapshot: Snapshot, options: PlanOptions
) -> Iterator[str]:
    """Yield what isolation costs the pods of *verdict*, and what ``--coalesce`` gives, where that is more."""
    nodes = {node.name: node for node in snapshot.nodes}
    # Where no node has GPUs for two of its pods, there is nothing to pack.
    most = max(nodes[share.node].gpu_total for share in verdict.shares)
    if verdict.prediction is None or _see_each_other(demand, options) or most < 2 * verdict.gpus:
        return
    packed = replace(demand, workers=verdict.workers, coalesce=True)
    instead = plan(packed, snapshot)
    if not isinstance(instead, Placement) or instead.workers == verdict.workers:
        return
    rdma = requests_rdma(demand)
    rate = predicted_rates(instead.shares, instead.gpus, nodes, packed, options, rdma=rdma).busbw
    now = verdict.prediction
    # A gain within the range of the prediction would be no reason to change the shape of a job.
    if rate.likely > now.busbw.high:
        over = now.across if now.across and now.busbw == now.across_busbw else now.inside
        yield (
            f"isolated pods cannot use the links between their GPUs: {now.busbw.likely:.3g} GB/s over "
            f"{over.value}; --coalesce gives {rate.likely:.3g} GB/s, as {_shape(instead)}"
        )


def _is_isolated(verdict: Placement, demand: Demand, options: PlanOptions) -> bool:
    """Whether some pods of *verdict* share a node, and do not see each other's GPUs there."""
    crowded = any(len(share.workers) > 1 for share in verdict.shares)
    return crowded and bool(verdict.gpus) and not _see_each_other(demand, options)


def _check_coalesced(demand: Demand, verdict: Placement, snapshot: Snapshot, options: PlanOptions) -> None:
    """Raise ``UsageError`` where not even idle nodes can take the ranks of *demand* in one pod each."""
    if not _is_isolated(verdict, demand, options):
        return
    idle = emptied(make_fleet(snapshot))

    def packs(workers: int) -> bool:
        answer = plan_on(replace(demand, workers=workers), idle, advises=False, explains=False)
        return isinstance(answer, Placement) and not _is_isolated(answer, demand, options)

    if packs(demand.workers):
        return
    nearby = range(max(demand.workers - _NEARBY_SIZES, 1), demand.workers + _NEARBY_SIZES + 1)
    sizes = ", ".join(f"--workers={workers}" for workers in nearby if packs(workers))
    raise UsageError(
        f"--coalesce cannot pack {_shape(demand)} into equal pods with a node each",
        hint=f"sizes that it can pack: {sizes}" if sizes else "leave it out",
    )


_NEARBY_SIZES = 3
"""How many workers more or fewer are tried where ``--coalesce`` cannot pack as many as were asked for."""


def _shape(gang: Demand | Placement) -> str:
    return f"{plural(gang.workers, 'worker')} of {plural(gang.gpus, 'GPU')}"


def requests_rdma(demand: Demand) -> bool:
    """Whether the workers of *demand* request an RDMA device."""
    return any(map(_is_rdma, (demand.gpu_resource, *demand.requests)))


def _is_rdma(resource: str) -> bool:
    return resource.startswith("rdma/")


def _common_rdma(nodes: Iterable[GpuNode]) -> str:
    """Return an RDMA device that all *nodes* offer, empty if there is none; the one of --rdma comes first."""
    offers = [
        {name for name, count in node.allocatable.items() if _is_rdma(name) and count} for node in nodes
    ]
    common = set.intersection(*offers) if offers else set()
    return keys.RDMA if keys.RDMA in common else min(common, default="")


def _rdma_advice(resource: str, without: Prediction, with_rdma: Prediction) -> Iterator[str]:
    """Yield what the RDMA devices of the nodes would give, where that is more than the job gets without."""
    if with_rdma.busbw.likely <= without.busbw.high:
        return
    flag = "--rdma" if resource == keys.RDMA else f"--device={resource}=1"
    yield (
        f"these nodes offer RDMA devices ({resource}) that the job does not request: {flag} gives up to "
        f"{with_rdma.busbw.likely:.3g} GB/s instead of {without.busbw.likely:.3g}"
    )


def _scaled(quantity: str, ratio: tuple[int, int]) -> str:
    return times(quantity, *ratio) if quantity else ""


# A job's plan for one snapshot: the planner's answer, as the record that the job carries.

UNREADABLE = (ArenaTopoError, ValueError)
"""What planning a job may raise that others wrote: it is the job's own matter, and must not stop the
others."""


@dataclass(slots=True)
class JobPlanner:
    """Plans one job for each snapshot that it is given, and keeps the planner's last answer in ``verdict``.

    ``plan`` is the planner; anyone who plans many jobs has one that remembers the cluster, and may know the
    ``question`` already.
    """

    job: Object
    options: PlanOptions
    enforcement: Enforcement
    companion_paths: tuple[str, ...] = ()
    pin: Pin = Pin.AUTO
    refuses_impossible: bool = False
    plan: Callable[[Question, Snapshot, PlanOptions], Verdict] = plan_question
    question: Question | None = None
    verdict: Verdict | None = field(default=None, init=False)

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the proposal for *snapshot*, or why the job waits.

        Raises ``UsageError``, and ``DoesNotFit`` for a job that could never fit, where it
        ``refuses_impossible`` ones.
        """
        # Whatever enforces a plan names nodes by their label: on one without it the workers would wait
        # forever.
        question = _pinned_by_hostname(
            self.question or question_of(self.job, snapshot, self.options),
            needed=self.enforcement is not Enforcement.NONE,
        )
        limits = worker_range(kind_of(self.job), self.job)
        least = limits.least if limits else 0
        is_first, verdict = (
            self.verdict is None,
            plan_question(question, snapshot, self.options, least=least)
            if least
            else self.plan(question, snapshot, self.options),
        )
        self.verdict = verdict
        if isinstance(verdict, Infeasible):
            # The first plan is made before anything is created, and only then a refusal leaves nothing
            # behind.
            if is_first and self.refuses_impossible:
                fewest = _fewest(question, least)
                _refuse_impossible(self.job["metadata"]["name"], fewest, snapshot)
            return PlanRecord(
                stage=Stage.WAITING,
                enforcement=self.enforcement,
                waiting_reason=waiting_reason(verdict),
                requested_options=self.options.annotation,
                companion_paths=self.companion_paths,
            )
        # What enforces a plan reads a cluster, which a plan for a snapshot goes without.
        from arena_topo.jobs.enforce import choose_gpu_enforcement

        slots, roles = verdict.slots, planned_roles(question)
        return PlanRecord(
            stage=Stage.PROPOSED,
            slots=slots,
            worker_requests=roles[0].requests,
            # Pods that are all alike need no roles to be told apart.
            roles=roles if len(roles) > 1 else (),
            enforcement=self.enforcement,
            hostnames=hostnames_of((*slots, *verdict.spares), snapshot),
            level=verdict.level,
            domain=verdict.domain,
            requested_options=self.options.annotation,
            companion_paths=self.companion_paths,
            spares=verdict.spares,
            gpu_enforcement=choose_gpu_enforcement(
                slots,
                snapshot,
                _resource_of_gpus(question),
                enforcement=self.enforcement,
                pin=self.pin,
                share=self.options.share_gpus,
            ),
        )


def _pinned_by_hostname(question: Question, *, needed: bool) -> Question:
    """Return *question* for nodes that have their hostname label, where that is *needed*."""
    if isinstance(question, Demand):
        return replace(question, needs_hostname=needed)
    return replace(question, roles=tuple(replace(role, needs_hostname=needed) for role in question.roles))


def _fewest(question: Question, least: int) -> Question:
    """Return *question* for the fewest pods that will do; *least* is 0 for a job of a fixed size."""
    if not least or not isinstance(question, Demand):
        return question
    return replace(question, workers=min(least, question.workers))


def planned_roles(question: Question) -> tuple[PlannedRole, ...]:
    """Return the roles of *question*, with what a pod of each requests."""
    return tuple(
        PlannedRole(
            name,
            demand.workers,
            {**demand.requests, **({demand.gpu_resource: demand.gpus} if demand.gpus else {})},
        )
        for name, demand in asked_roles(question)
    )


def _resource_of_gpus(question: Question) -> str:
    """Return the resource by which the pods request their GPUs, empty where none has any."""
    return next((demand.gpu_resource for _, demand in asked_roles(question) if demand.gpus), "")


def _refuse_impossible(name: str, question: Question, snapshot: Snapshot) -> None:
    """Raise ``DoesNotFit`` where the gang would not even fit on the idle cluster, all nodes in service."""
    if (never := never_fits(question, snapshot)) is None:
        return
    raise can_never_fit(name, waiting_reason(never), never.remedies[:2])


def can_never_fit(name: str, why: str, remedies: Iterable[str] = ()) -> DoesNotFit:
    """Return the error for a job that not even the idle cluster could hold."""
    hint = "; ".join((*remedies, "where the cluster will grow: --expect-nodes"))
    return DoesNotFit(f"the job {name} can never fit: {why}", hint=hint)


def waiting_reason(verdict: Infeasible) -> str:
    """Return on one line why a job waits, or is refused: the summary and the first two reasons."""
    return "; ".join((verdict.summary, *(reason.text for reason in verdict.all_reasons[:2])))


def hostnames_of(slots: Iterable[Slot], snapshot: Snapshot) -> dict[str, str]:
    """Return the hostname labels of the nodes of *slots*, where they differ from the nodes' names."""
    planned = {slot.node for slot in slots}
    labels = {node.name: node.hostname or node.name for node in snapshot.nodes if node.name in planned}
    # Most nodes are named like their label, and the annotations of a job may take 256 KiB in all.
    return {name: labels[name] for name in sorted(labels) if labels[name] != name}
