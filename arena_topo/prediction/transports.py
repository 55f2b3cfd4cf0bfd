"""Which transports the ranks of a gang really use, and the bus bandwidth of the whole gang.

Links do not decide alone. NCCL uses them between two ranks only if both are in one pod, or each pod sees both GPUs and
shares the host's identity (NCCL, ``src/transport/p2p.cc`` and ``src/misc/utils.cc``); other pods of a node talk over sockets.
Between nodes it uses RDMA only where every pod has RDMA cards. A ring is as fast as its slowest segment.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena_topo.model.cluster import GpuNode
from arena_topo.model.hardware import Nic
from arena_topo.model.plan import NodeShare, Prediction, Range, Transport
from arena_topo.prediction.calibration import Bandwidths, Calibration

_RDMA_NAMES = re.compile(
    r"mlx[45]_|bnxt_re|irdma|i40iw|qedr|hfi1_|hns_|erdma|efa_|rdmap|rocep|ibp|ibs|ionic_|cxgb4_",
    re.IGNORECASE,
)
"""Names of RDMA devices: those of the kernel's drivers and rdma-core's persistent ones."""
_NOTHING = Range(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Segment:
    """One segment of the ring: what it goes over, how fast that is, and what that rests on."""

    transport: Transport
    busbw: Range
    notes: tuple[str, ...] = ()


def gang_prediction(
    shares: tuple[NodeShare, ...],
    nodes: Mapping[str, GpuNode],
    *,
    gpus_per_pod: int,
    pods_see_each_other: bool,
    host_network_rdma: bool,
    calibration: Calibration,
) -> Prediction:
    """Return what the gang of *shares* will see; a gang of one rank exchanges nothing, at 0 GB/s.

    *pods_see_each_other* says that the pods of one node can access each other's GPUs, *host_network_rdma* that the
    pods get the node's RDMA cards.
    """
    bandwidths = calibration.bandwidths
    inside = [
        _inside(share, nodes[share.node], bandwidths, visible=pods_see_each_other)
        for share in shares
        if len(share.workers) * gpus_per_pod > 1
    ]
    cards = [_cards(share, nodes[share.node], len(share.workers) * gpus_per_pod) for share in shares]
    across = _across(cards, bandwidths, rdma=host_network_rdma) if len(shares) > 1 else []
    segments = inside + across
    notes = dict.fromkeys(note for segment in segments for note in segment.notes)
    return Prediction(
        busbw=_slowest([segment.busbw for segment in segments]),
        inside=_transport(inside) or Transport.NONE,
        across=_transport(across),
        assumptions=(*notes, f"calibration: {calibration.source}"),
        inside_busbw=_slowest([segment.busbw for segment in inside]) if inside else None,
        across_busbw=_slowest([segment.busbw for segment in across]) if across else None,
    )


def _inside(share: NodeShare, node: GpuNode, bandwidths: Bandwidths, *, visible: bool) -> _Segment:
    # One pod sees all of its own GPUs, so only several pods on a node can be apart.
    if len(share.workers) > 1 and not visible:
        note = "pods of one node do not see each other's GPUs: NCCL uses sockets between them"
        return _Segment(Transport.ISOLATED, bandwidths.isolated, (note,))
    if share.busbw is None or node.links is None:
        note = "links of some nodes are not known: no more than PCIe is assumed there"
        floor = Range(bandwidths.pcie.low, bandwidths.pcie.likely, bandwidths.pcie.likely)
        return _Segment(Transport.UNKNOWN, floor, (note,))
    notes = _ASSUMED if any(fact.assumed for fact in node.facts if fact.subject == "links") else ()
    # GPU links alone join all members, without leading through other GPUs; else a ring has to use PCIe somewhere.
    if len(node.links.islands(_positions(share, node))) <= 1:
        return _Segment(Transport.NVLINK, _times(bandwidths.nvlink_share, Range(*[share.busbw] * 3)), notes)
    # The planner's own figure may lie outside of what was measured over PCIe, and the range has to hold it.
    low, high = min(bandwidths.pcie.low, share.busbw), max(bandwidths.pcie.high, share.busbw)
    return _Segment(Transport.PCIE, Range(low, share.busbw, high), notes)


_ASSUMED = ("links of some nodes, or their rates, are assumed: arena-topo topology NODE says from what",)


def _positions(share: NodeShare, node: GpuNode) -> Sequence[int]:
    """Return where the share's GPUs are among the node's, all of them where it does not say which it has."""
    if share.gpus is None:
        return range(len(node.gpus))
    return [i for i, gpu in enumerate(node.gpus) if gpu.index in share.gpus]


def _across(cards: Sequence[Sequence[Nic]], bandwidths: Bandwidths, *, rdma: bool) -> list[_Segment]:
    """Return what the ring goes over between nodes that use *cards*, node by node."""
    if not rdma or not all(cards):
        missing = "the pods get no RDMA cards" if all(cards) else "not every node has an RDMA card"
        return [_Segment(Transport.TCP, bandwidths.tcp, (f"{missing}: nodes are reached over TCP",))]
    notes: tuple[str, ...] = ("no uplink of the fabric is oversubscribed",)
    if not all(card.rate for node in cards for card in node):
        assumed = f"{bandwidths.rdma_card.likely:g} GB/s each is assumed"
        # One card of unknown rate makes the whole figure rest on the calibration's.
        notes = (f"some RDMA cards do not report their rate: {assumed}", *notes)
    return [
        _Segment(Transport.RDMA, _times(bandwidths.rdma_share, _rails(node, bandwidths)), notes)
        for node in cards
    ]


def _cards(share: NodeShare, node: GpuNode, gpus: int) -> list[Nic]:
    """Return the RDMA cards that the share's GPUs use: the nearest, else as many as its part of the node's GPUs."""
    # A node's other NICs carry no RDMA, whatever their rate.
    able = [nic for nic in node.nics if _RDMA_NAMES.match(nic.name)]
    used = [node.gpus[position] for position in _positions(share, node)] if share.gpus is not None else []
    near = {name for gpu in used for name in gpu.nics}
    if nearest := [nic for nic in able if nic.name in near]:
        return nearest
    return able[: max(len(able) * gpus // max(node.gpu_total, gpus), 1)]


def _rails(cards: Sequence[Nic], bandwidths: Bandwidths) -> Range:
    """Return the rate of *cards* together."""
    card = bandwidths.rdma_card
    return Range(
        sum(nic.rate or card.low for nic in cards),
        sum(nic.rate or card.likely for nic in cards),
        sum(nic.rate or card.high for nic in cards),
    )


def _times(share: Range, whole: Range) -> Range:
    return Range(share.low * whole.low, share.likely * whole.likely, share.high * whole.high)


def _slowest(bandwidths: Sequence[Range]) -> Range:
    """Return the bandwidth of a ring whose segments have *bandwidths*."""
    if not bandwidths:
        return _NOTHING
    lows, likelies, highs = zip(*((busbw.low, busbw.likely, busbw.high) for busbw in bandwidths), strict=True)
    return Range(min(lows), min(likelies), min(highs))


def _transport(segments: Sequence[_Segment]) -> Transport | None:
    """Return what the slowest of *segments* goes over."""
    return min(segments, key=lambda segment: segment.busbw.likely).transport if segments else None
