"""The planner's answer for a job, with the bandwidth that its ranks will probably see."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from arena_topo.jobs.placement.demand import Question, demand_of, gang_of_roles, question_of
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.kinds.table import newest_kind
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model import keys
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.job.job_spec import Compute, JobSpec
from arena_topo.model.notation.quantity import times
from arena_topo.model.objects import Object
from arena_topo.model.plan.comparison import Comparison
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import NodeShare, Placement, Prediction, Range, Transport, Verdict
from arena_topo.model.plan.roles import GangDemand, GangVerdict
from arena_topo.planner.advise.compare import compare
from arena_topo.planner.change.elastic import plan_elastic
from arena_topo.planner.groups.cliques import shared_clique_notes
from arena_topo.planner.plan import plan
from arena_topo.planner.roles.plan_gang import plan_gang
from arena_topo.prediction.benchmarks import Benchmark, benchmark_of
from arena_topo.prediction.calibration import shipped_calibration
from arena_topo.prediction.forecast import Workload, predict
from arena_topo.prediction.networks import MODELS
from arena_topo.prediction.transports import gang_prediction


def plan_question(
    question: Question, snapshot: Snapshot, options: PlanOptions, *, least: int = 0
) -> Verdict | GangVerdict:
    """Return where the pods of *question* go in *snapshot*, or why they cannot; of pods alike *least* will do.

    Raises ``UsageError``.
    """
    if isinstance(question, GangDemand):
        return plan_gang(question, snapshot, options.model)
    return plan_demand(question, snapshot, options, least=least)


def plan_demand(demand: Demand, snapshot: Snapshot, options: PlanOptions, *, least: int = 0) -> Verdict:
    """Return where the workers of *demand* go in *snapshot*, or why they cannot; all of them, or *least* and as many as fit.

    Raises ``UsageError``.
    """
    model = options.model
    found = (
        plan_elastic(demand, least, snapshot, model)
        if 0 < least < demand.workers
        else plan(demand, snapshot, model)
    )
    return _predicted(found, demand, snapshot, options)


def _predicted(verdict: Verdict, demand: Demand, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return *verdict* with what its ranks will probably see."""
    # Without GPUs there is nothing to predict: the prediction is of what NCCL reaches between them.
    if not isinstance(verdict, Placement) or not verdict.gpus:
        return verdict
    nodes = {node.name: node for node in snapshot.nodes}
    predicted = partial(predicted_rates, verdict.shares, verdict.gpus, nodes, demand, options)
    has_rdma = requests_rdma(demand)
    prediction = predicted(rdma=has_rdma)
    notes = [*verdict.notes, *shared_clique_notes(verdict, snapshot), *_advice(verdict, prediction)]
    # Every node must offer the devices: a gang is as fast as its slowest link.
    offered = _common_rdma(nodes[share.node] for share in verdict.shares)
    if offered and not has_rdma and len(verdict.shares) > 1:
        notes += _rdma_advice(offered, prediction, predicted(rdma=True))
    return replace(
        verdict, prediction=prediction, notes=tuple(notes), products=_products(verdict.shares, nodes)
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
        # ACK's device plugin shows every pod of a group the GPUs of the whole group.
        pods_see_each_other=keys.ACK_GPU in (demand.gpu_resource, *demand.requests) or options.share_gpus,
        host_network_rdma=rdma,
        calibration=shipped_calibration(),
    )


def _products(shares: Iterable[NodeShare], nodes: Mapping[str, GpuNode]) -> tuple[str, ...]:
    products = {gpu.product for share in shares for gpu in nodes[share.node].gpus}
    return tuple(sorted(products - {""}))


def plan_spec(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return the plan of *job* as it would be submitted to the cluster of *snapshot*. Raises ``UsageError``."""
    least = job.elastic.least if job.elastic else 0
    return plan_demand(_demand_of_spec(job, snapshot, options), snapshot, options, least=least)


def plan_roles(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> GangVerdict:
    """Return the plan of *job* role by role, also where all of them are alike. Raises ``UsageError``."""
    return plan_gang(gang_of_roles(rendered_spec(job, snapshot), snapshot, options), snapshot, options.model)


def plan_job(job: Object, snapshot: Snapshot, options: PlanOptions) -> Verdict | GangVerdict:
    """Return the plan of a *job* that is written already. Raises ``UsageError``."""
    return plan_question(question_of(job, snapshot, options), snapshot, options)


def compare_spec(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Comparison:
    """Return what other ways of asking for *job* would give, and a topology-unaware scheduler. Raises ``UsageError``."""
    demand = _demand_of_spec(job, snapshot, options)
    benchmark = benchmark_of(" ".join(job.command))

    nodes = {node.name: node for node in snapshot.nodes}
    rdma = requests_rdma(demand)

    def figures(shares: Sequence[NodeShare], gpus: int) -> tuple[Range | None, Range | None]:
        if not gpus:
            return None, None
        prediction = predicted_rates(shares, gpus, nodes, demand, options, rdma=rdma)
        ranks = sum(len(share.workers) for share in shares) * gpus
        return prediction.busbw, _images_per_second(benchmark, ranks, _products(shares, nodes), prediction)

    return compare(demand, snapshot, options.model, figures)


def _images_per_second(
    benchmark: Benchmark | None, ranks: int, products: Sequence[str], prediction: Prediction
) -> Range | None:
    """Return what *benchmark* would reach in all, None where the speed of these GPUs, or of this model, is not known."""
    calibration = shipped_calibration()
    if benchmark is None or benchmark.model not in MODELS or len(products) != 1:
        return None
    if not calibration.knows(products[0]):
        return None
    workload = Workload(benchmark.model, benchmark.framework, benchmark.batch, products[0])
    transport = prediction.across or prediction.inside
    return predict(workload, ranks, prediction.busbw, transport, calibration).total


def reshaped_job(job: JobSpec, verdict: Placement) -> JobSpec:
    """Return *job* in the shape of *verdict*: fewer, larger pods that request in proportion, as many slots in all.

    For example, 8 workers of 1 GPU, 2 cpu and 1 slot that were coalesced into 2 pods of 4 GPUs become 2 workers of
    4 GPUs, 8 cpu and 4 slots.
    """
    if verdict.workers == job.workers or not job.gpus:
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


def rendered_spec(job: JobSpec, snapshot: Snapshot) -> Object:
    """Return *job* as it would be submitted to the cluster of *snapshot*."""
    return render(job, RenderContext(newest_kind(job.kind), _gpu_resource(job, snapshot))).job


def _gpu_resource(job: JobSpec, snapshot: Snapshot) -> str:
    """Return the resource by which *job* would request its GPUs on the cluster of *snapshot*.

    It is the vendor's where a node is set up for it, and the DRA driver's device class where GPUs are allocated by
    claims alone.
    """
    if job.topology and any(
        node.labels.get(keys.ACK_SCHEDULE) == keys.ACK_SCHEDULE_TOPOLOGY for node in snapshot.nodes
    ):
        return keys.ACK_GPU
    offered = {node.gpu_resource for node in snapshot.nodes if node.gpu_total}
    # Where NVIDIA's device plugin runs on some nodes, a plain request is scheduled there, and needs no claim.
    by_claims_alone = keys.DRA_GPU in offered and keys.NVIDIA_GPU not in offered
    return keys.DRA_GPU if by_claims_alone else keys.NVIDIA_GPU


def _advice(verdict: Placement, prediction: Prediction) -> Iterator[str]:
    """Yield what ``--coalesce`` would change where the links between the pods of a node lie idle."""
    best = max((share.busbw for share in verdict.shares if share.busbw), default=0.0)
    # A gain within the range of the prediction would be no reason to change the shape of a job.
    if prediction.inside is Transport.ISOLATED and best > prediction.busbw.high:
        # Across nodes the network bounds the gang either way, so the two figures would not compare.
        instead = "" if prediction.across else f" instead of {prediction.busbw.likely:.3g}"
        yield (
            "the links of these GPUs lie idle between pods: --coalesce packs the ranks of a node into one pod, "
            f"which gives up to {best:.3g} GB/s inside a node{instead}"
        )


def requests_rdma(demand: Demand) -> bool:
    """Whether the workers of *demand* request an RDMA device."""
    return any(map(_is_rdma, (demand.gpu_resource, *demand.requests)))


def _is_rdma(resource: str) -> bool:
    return resource.startswith("rdma/")


def _common_rdma(nodes: Iterable[GpuNode]) -> str:
    """Return an RDMA device that all *nodes* offer, empty where there is none; the one of --rdma comes first."""
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
