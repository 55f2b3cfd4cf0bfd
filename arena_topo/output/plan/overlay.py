"""A plan as the cluster would look with the job on it, for the drawings of topologies."""

from dataclasses import replace

from arena_topo.model.cluster.snapshot import GpuNode, Holder, Snapshot
from arena_topo.model.job.mpijob import worker_name
from arena_topo.model.plan.placement import NodeShare, Placement

_WHOLE = 64


def placed(name: str, verdict: Placement, snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* with the workers of *verdict* as holders of their GPUs.

    Of a cluster with more nodes than a page holds, only the nodes of the domain that the gang takes are kept.
    """
    shares = {share.node: share for share in verdict.shares}
    nodes = [
        _with(node, name, shares[node.name], verdict) if node.name in shares else node
        for node in snapshot.nodes
        if node.name in shares or len(snapshot.nodes) <= _WHOLE
    ]
    return replace(snapshot, nodes=tuple(nodes))


def _with(node: GpuNode, name: str, share: NodeShare, verdict: Placement) -> GpuNode:
    count = len(share.workers) * verdict.gpus
    holders = tuple(
        Holder("plan", worker_name(name, worker), name, verdict.gpus, verdict.slots[worker].gpus)
        for worker in share.workers
    )
    used = (
        node.used | frozenset(share.gpus) if node.used is not None and share.gpus is not None else node.used
    )
    requested = {**node.requested, node.gpu_resource: node.requested.get(node.gpu_resource, 0) + count}
    return replace(node, holders=(*node.holders, *holders), used=used, requested=requested)
