"""From a job to what the planner is asked, and to its answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from arena_topo.model import labels as keys
from arena_topo.model.comparison import Comparison
from arena_topo.model.demand import Demand, TopologyPolicy
from arena_topo.model.jobspec import Compute, JobSpec
from arena_topo.model.placement import Verdict
from arena_topo.model.quantity import Resources, amount
from arena_topo.model.snapshot import Snapshot
from arena_topo.planner.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.compare import compare
from arena_topo.planner.plan import plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the user asks of a placement; levels are a tier's name or label key, empty for none."""

    policy: TopologyPolicy = TopologyPolicy.BEST_EFFORT
    required_level: str = ""
    preferred_level: str = ""
    coalesce: bool = False
    model: BandwidthModel = DEFAULT_MODEL


def plan_job(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return where the workers of *job* go in *snapshot*, or why they cannot. Raises ``UsageError``."""
    return plan(demand_of(job, snapshot, options), snapshot, options.model)


def compare_job(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Comparison:
    """Return what other ways of asking for *job* would give, and a blind scheduler. Raises ``UsageError``."""
    return compare(demand_of(job, snapshot, options), snapshot, options.model)


def demand_of(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Demand:
    """Return what the pods of *job* will ask of the cluster in *snapshot*."""
    resource, gpus, others = _gpus(job, snapshot)
    rdma = {keys.RDMA: 1} if job.pod.rdma else {}
    return Demand(
        workers=job.workers,
        gpus=gpus,
        requests={**_compute(job.compute), **others, **rdma},
        launcher=_compute(job.launcher.compute),
        launcher_selector=job.launcher.selector or job.pod.selector,
        gpu_resource=resource if gpus else "",
        node_selector=job.pod.selector,
        tolerations=job.pod.tolerations,
        policy=options.policy,
        required_level=options.required_level,
        preferred_level=options.preferred_level,
        coalesce=options.coalesce,
    )


def gpu_resource(job: JobSpec, snapshot: Snapshot) -> str:
    """Return the resource by which *job* asks for its GPUs: the vendor's where a node is set up for it."""
    vendor = any(node.labels.get(keys.ACK_SCHEDULE) == keys.ACK_SCHEDULE_TOPOLOGY for node in snapshot.nodes)
    return keys.ACK_GPU if job.topology and vendor else keys.NVIDIA_GPU


def _gpus(job: JobSpec, snapshot: Snapshot) -> tuple[str, int, Mapping[str, int]]:
    """Return the GPU resource, the GPUs of a worker, and its other devices.

    GPUs of another vendor are asked for as a device (``--device amd.com/gpu=8``).
    """
    devices = {name: amount(name, quantity) for name, quantity in job.pod.devices.items()}
    if job.gpus:
        return gpu_resource(job, snapshot), job.gpus, devices
    known = {node.gpu_resource for node in snapshot.nodes if node.gpu_total}
    resource = next((name for name in devices if name in known), "")
    return resource, devices.pop(resource, 0), devices


def _compute(asked: Compute) -> Resources:
    given = {"cpu": asked.cpu, "memory": asked.memory}
    return {name: amount(name, quantity) for name, quantity in given.items() if quantity}
