"""On which NUMA nodes and PCIe switches of its node each worker is, beside which NICs, and who sees to it."""

from collections.abc import Sequence

from arena_topo.model.cluster.hardware import Gpu
from arena_topo.model.cluster.numa import AlignmentPolicy, NumaZones
from arena_topo.model.cluster.pod_requests import CPU
from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import NodeAlignment, WorkerPlace
from arena_topo.planner.nodes.alignment import containers_of


def node_alignment(
    node: GpuNode, demand: Demand, by_worker: Sequence[tuple[int, ...] | None]
) -> NodeAlignment | None:
    """Return where on *node* workers of *demand* are whose GPUs are *by_worker*; None where that is not known."""
    if not demand.gpus or None in by_worker or all(gpu.numa is None for gpu in node.gpus):
        return None
    policy = node.zones.policy if node.zones else None
    gpus = {gpu.index: gpu for gpu in node.gpus}
    has_cores = _has_cores(node, demand, policy)
    return NodeAlignment(
        policy=policy,
        enforced=policy is not None
        and policy.refuses
        and _is_tied(node.zones, demand.gpu_resource or node.gpu_resource),
        workers=tuple(
            _place([gpus[index] for index in indices or ()], has_cores=has_cores) for indices in by_worker
        ),
    )


def _place(gpus: Sequence[Gpu], *, has_cores: bool) -> WorkerPlace:
    numa = tuple(sorted({gpu.numa for gpu in gpus if gpu.numa is not None}))
    return WorkerPlace(
        numa=numa,
        switches=tuple(dict.fromkeys(gpu.pcie_root for gpu in gpus if gpu.pcie_root)),
        nics=tuple(dict.fromkeys(nic for gpu in gpus for nic in gpu.nics)),
        cpus=numa if has_cores else (),
    )


def _has_cores(node: GpuNode, demand: Demand, policy: AlignmentPolicy | None) -> bool:
    """Whether a worker gets cores of its own beside its GPUs, if the kubelet's CPU manager is static."""
    asks = any(CPU in dict(asked) for asked in containers_of(demand, node.gpu_resource))
    return asks and policy not in (None, AlignmentPolicy.NONE) and _is_tied(node.zones, CPU)


def _is_tied(zones: NumaZones | None, resource: str) -> bool:
    """Whether *resource* is tied to NUMA nodes, so that the kubelet aligns it."""
    return zones is not None and any(zone.capacity.get(resource) for zone in zones.zones)
