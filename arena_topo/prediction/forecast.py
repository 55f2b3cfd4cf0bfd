"""The bandwidth that the ranks of a gang will see, and how fast a benchmark trains with it, as ranges.

``gang_prediction`` says which transports the ranks use, ``predict`` what a benchmark makes of them, both by a
calibration: measured figures from a file. The low end of a throughput takes every uncertain figure at its
worst, the high end at its best. Units: seconds, images/s, GB/s.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.cluster import GpuNode, LinkClass, Nic, rdma_cards
from arena_topo.model.plan import NodeShare, Prediction, Range, Transport, uplink_flows
from arena_topo.model.text.documents import (
    HEADER,
    NUMBER,
    REQUIRED,
    STRING,
    WHOLE,
    Field,
    Form,
    Table,
    check_header,
    checked,
    checked_mapping,
    list_of,
    one_of,
    read_fields,
    record,
)
from arena_topo.model.text.words import plural
from arena_topo.model.text.yaml import load
from arena_topo.prediction.training import EXCHANGES, MODELS, RingSpeed, network, step_seconds

# What predictions rest on and no formula gives: measured speeds, overlaps and bandwidths, from a file.
#
# A calibration is a YAML document; ``calibration.yaml`` next to this module is the one that comes with the
# tool, and says of each figure where it is from. A user's file overrides it entry by entry.

_API_VERSION = "arena-topo.dev/v1alpha1"
_KIND = "Calibration"
_SHIPPED = "calibration.yaml"
_MOST = 1e6
"""No bandwidth in GB/s and no speed in images/s is larger; a larger one is in the wrong unit."""
_BANDWIDTHS = {
    # A share may be above 1, because a prediction may be too low; more than twice as fast is a mistake.
    "nvlink_share": ("nvlinkShare", 2.0),
    "pcie": ("pcie", _MOST),
    "isolated": ("podIsolatedSocket", _MOST),
    "tcp": ("tcp", _MOST),
    "rdma_share": ("rdmaShare", 2.0),
    "two_nodes_share": ("twoNodesShare", 2.0),
    "rdma_card": ("rdmaCard", _MOST),
}
"""The fields of ``Bandwidths``: their keys in the file, and the largest value."""


@dataclass(frozen=True, slots=True)
class Framework:
    """How a framework exchanges gradients, and which share of the exchange hides behind backward, 0 to 1."""

    exchange: str
    overlap: Range


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Bus bandwidths in GB/s, and shares where the placement gives the nominal one.

    ``nvlink_share`` is the share of a GPU set's predicted busbw that is reached, ``rdma_share`` that of the
    rate of the RDMA cards, ``two_nodes_share`` the same for two nodes whose NVSwitches reduce; ``rdma_card``
    is the rate of a card whose own is not known. ``isolated`` is between pods of one node that do not see
    each other's GPUs, ``tcp`` between nodes without RDMA. ``uplinks`` are the rates of the uplink of a node
    and of the domains above it, the closest tier first, as far as they are known.
    """

    nvlink_share: Range
    pcie: Range
    isolated: Range
    tcp: Range
    rdma_share: Range
    rdma_card: Range
    two_nodes_share: Range
    uplinks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Calibration:
    """All that was measured; ``source`` names the files, ``speeds`` are images/s of a single GPU."""

    source: str
    bandwidths: Bandwidths
    frameworks: Mapping[str, Framework] = field(default_factory=dict)
    speeds: Mapping[tuple[str, str, str], float] = field(default_factory=dict)

    def framework(self, name: str) -> Framework:
        """Return the calibration of a framework; raises ``UsageError`` if there is none."""
        if name not in self.frameworks:
            raise UsageError(
                f"there is no calibration of framework {name!r}",
                hint=f"the known frameworks are {' and '.join(sorted(self.frameworks))}; --calibration FILE can add one",
            )
        return self.frameworks[name]

    def knows(self, gpu: str) -> bool:
        """Whether it has the speed of *gpu*, a product or a word of its name, for any framework and model."""
        return any(name.upper() in gpu.upper() for *_, name in self.speeds)

    def speed(self, framework: str, model: str, gpu: str) -> float:
        """Return the images/s of one *gpu*, a product or a word of its name.

        Raises ``UsageError`` if not known.
        """
        rates = {name: rate for (*key, name), rate in self.speeds.items() if key == [framework, model]}
        matching = [name for name in rates if name.upper() in gpu.upper()]
        if not matching:
            raise UsageError(
                f"how fast one {gpu} trains {model} with {framework} is not known",
                hint=f"measure it and give --images-per-second, or a --calibration FILE; known: {_listed(rates)}",
            )
        # The longest name is the most specific one: A100-PCIE before A100.
        return rates[max(matching, key=len)]


def _listed(rates: Mapping[str, float]) -> str:
    return ", ".join(sorted(rates)) or "none"


@lru_cache(maxsize=1)
def shipped_calibration() -> Calibration:
    """Return the calibration that comes with the tool."""
    text = (files("arena_topo.prediction") / _SHIPPED).read_text("utf-8")
    return read_calibration(load(text, name=_SHIPPED), f"the tool's own ({_SHIPPED})")


def read_calibration(document: object, source: str, base: Calibration | None = None) -> Calibration:
    """Return the calibration in *document*, entries that it lacks taken from *base*.

    Raises ``DocumentError`` naming the place in *source* and the reason.
    """
    check_header(document, source, _API_VERSION, _KIND, hint="docs/explanation/prediction.md shows one")
    given = base.bandwidths if base else None
    # Without a base nothing can stand in for an entry, so every one of them is required.
    bandwidths = tuple(
        Field(key, _range(0.0, most, above=True), getattr(given, name, REQUIRED), name)
        for name, (key, most) in _BANDWIDTHS.items()
    )
    uplinks = Field("uplinks", list_of(_bounded(0.0, _MOST, above=True)), given.uplinks if given else ())
    table = (
        *HEADER,
        # For readers of the file only.
        Field("description", STRING, ""),
        Field("frameworks", list_of(record(dict, _FRAMEWORK)), ()),
        Field("speeds", list_of(record(dict, _SPEED)), ()),
        Field("bandwidths", record(Bandwidths, (*bandwidths, uplinks)), given or REQUIRED),
    )
    values = read_fields(table, document, source)
    frameworks = {
        entry["name"]: Framework(entry["exchange"], entry["overlap"]) for entry in values["frameworks"]
    }
    speeds = {(entry["framework"], entry["model"], entry["gpu"]): entry["rate"] for entry in values["speeds"]}
    return Calibration(
        source=f"{source} over {base.source}" if base else source,
        bandwidths=values["bandwidths"],
        frameworks=MappingProxyType({**(base.frameworks if base else {}), **frameworks}),
        speeds=MappingProxyType({**(base.speeds if base else {}), **speeds}),
    )


def _range(lowest: float, highest: float, *, above: bool = False) -> Form:
    bounded = _bounded(lowest, highest, above=above)
    table = (Field("low", bounded), Field("likely", bounded), Field("high", bounded))

    def read(value: object, place: str) -> Range:
        limits = Range(**read_fields(table, value, place))
        if not limits.low <= limits.likely <= limits.high:
            raise DocumentError(f"{place} is not in order: low, likely and high must not decrease")
        return limits

    return Form(read)


def _bounded(lowest: float, highest: float, *, above: bool) -> Form:
    def read(value: object, place: str) -> float:
        number = checked(value, float, place)
        if not math.isfinite(number) or not lowest <= number <= highest or (above and number == lowest):
            since = "above" if above else "from"
            raise DocumentError(f"{place} is {number:g}, expected a number {since} {lowest:g} to {highest:g}")
        return number

    return Form(read)


_FRAMEWORK: Table = (
    Field("name", STRING),
    Field("exchange", one_of(EXCHANGES)),
    Field("overlap", _range(0.0, 1.0)),
)
_SPEED: Table = (
    Field("framework", STRING),
    Field("model", one_of(MODELS)),
    Field("gpu", STRING),
    Field("imagesPerSecond", _bounded(0.0, _MOST, above=True), attribute="rate"),
)


# How fast a benchmark trains.

_LATENCY: Mapping[Transport, float] = {
    Transport.NVLINK: 3.4e-6,
    Transport.PCIE: 5.7e-6,
    Transport.RDMA: 14e-6,
    Transport.ISOLATED: 28e-6,
    Transport.TCP: 28e-6,
    Transport.UNKNOWN: 28e-6,
    Transport.NONE: 0.0,
}
"""Seconds of one hop of a ring, as NCCL's tuner has them (``src/graph/tuning.cc``); sockets count as twice
its network."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A benchmark: a model, a framework and the images of a batch per GPU.

    ``gpu`` is a product or a word of its name; ``speed`` the images/s of a single GPU, where the
    calibration's figure is not to be used.
    """

    model: str
    framework: str
    batch: int = 64
    gpu: str = "V100"
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a workload on ``ranks`` GPUs probably does: seconds per step, images/s per GPU and in total.

    ``single_gpu_rate`` are the images/s of a GPU that exchanges nothing.
    """

    workload: Workload
    ranks: int
    single_gpu_rate: float
    step: Range
    per_gpu: Range
    total: Range

    @property
    def efficiency(self) -> float:
        """The share of the speed that the same GPUs would have without exchanging anything."""
        return self.per_gpu.likely / self.single_gpu_rate


def predict(
    workload: Workload, ranks: int, busbw: Range, transport: Transport, calibration: Calibration
) -> Forecast:
    """Return the forecast of *workload* on *ranks* GPUs that exchange at *busbw* over *transport*.

    Raises ``UsageError`` where the calibration lacks the framework, or the GPU's speed and none is given.
    """
    framework = calibration.framework(workload.framework)
    layers = network(workload.model)
    # A speed that the user has measured goes before the calibration's.
    single_gpu_rate = workload.speed or calibration.speed(workload.framework, workload.model, workload.gpu)

    def step(bandwidth: float, overlap: float) -> float:
        return step_seconds(
            layers,
            workload.batch / single_gpu_rate,
            ranks,
            RingSpeed(bandwidth, _LATENCY[transport]),
            fuse=EXCHANGES[framework.exchange],
            overlap=overlap,
        )

    overlap = framework.overlap
    # The shortest step has the highest bandwidth and overlap, and gives the highest rate.
    steps = Range(
        step(busbw.high, overlap.high), step(busbw.likely, overlap.likely), step(busbw.low, overlap.low)
    )
    per_gpu = Range(*(workload.batch / seconds for seconds in (steps.high, steps.likely, steps.low)))
    total = Range(*(ranks * rate for rate in (per_gpu.low, per_gpu.likely, per_gpu.high)))
    return Forecast(workload, ranks, single_gpu_rate, steps, per_gpu, total)


# Reading from a plan's document what a forecast needs of it: how many ranks, and what they exchange over.


@dataclass(frozen=True, slots=True)
class PlannedGang:
    """The number of ranks of a gang, what it will probably see, and the known names of its GPUs.

    ``ring`` has for each pod, in rank order, the domains of its node, the coarsest first, and the node.
    """

    ranks: int
    prediction: Prediction
    products: tuple[str, ...] = ()
    ring: tuple[tuple[str, ...], ...] = ()

    @property
    def transport(self) -> Transport:
        """What the farthest neighbours exchange over."""
        return self.prediction.across or self.prediction.inside

    def assuming(self, assumption: str) -> "PlannedGang":
        """Return the same gang with the further *assumption*."""
        assumptions = (*self.prediction.assumptions, assumption)
        return replace(self, prediction=replace(self.prediction, assumptions=assumptions))

    def bounded(self, calibration: Calibration) -> "PlannedGang":
        """Return the same gang as the uplinks that *calibration* knows let it be.

        The ring crosses an uplink as often as the order of its ranks says, and these flows share its rate.
        """
        rates = calibration.bandwidths.uplinks
        tiers = {path[: len(path) - tier]: tier for path in self.ring for tier in range(len(path))}
        shared = {
            domain: (rates[tiers[domain]] / flows, flows)
            for domain, flows in uplink_flows(self.ring).items()
            if tiers[domain] < len(rates)
        }
        if not shared:
            return self
        slowest = min(shared, key=lambda domain: shared[domain][0])
        most, flows = shared[slowest]
        busbw = self.prediction.busbw
        if most >= busbw.high:
            return self
        bounded = Range(min(busbw.low, most), min(busbw.likely, most), most)
        gang = replace(self, prediction=replace(self.prediction, busbw=bounded))
        return gang.assuming(
            f"{plural(flows, 'flow')} of the ring share the uplink of {slowest[-1]}, at {most:.3g} GB/s"
        )


_BUSBW: Table = (Field("low", NUMBER), Field("likely", NUMBER), Field("high", NUMBER))
_PREDICTION: Table = (
    Field("busbw", record(Range, _BUSBW, strict=False)),
    Field("inside", one_of(Transport)),
    Field("across", one_of(Transport), None),
    Field("assumptions", list_of(STRING), ()),
)
_SLOT: Table = (Field("worker", WHOLE), Field("node", STRING))
_SHARE: Table = (Field("node", STRING), Field("domain", list_of(STRING), ()))
_PLACEMENT: Table = (
    Field("workers", WHOLE),
    Field("gpus", WHOLE),
    Field("prediction", record(Prediction, _PREDICTION, strict=False)),
    Field("products", list_of(STRING), None),
    Field("slots", list_of(record(dict, _SLOT, strict=False)), ()),
    Field("shares", list_of(record(dict, _SHARE, strict=False)), ()),
    Field("ranks", list_of(WHOLE), ()),
)


_NO_PREDICTION = {"busbw": {"low": 0.0, "likely": 0.0, "high": 0.0}, "inside": Transport.NONE.value}


def read_planned_gang(document: object, source: str) -> PlannedGang:
    """Return what the document of a placement says; its other fields are ignored.

    It is what ``arena-topo plan -o json`` prints of pods that are all alike. Raises ``DocumentError`` naming
    the place in *source* and the reason.
    """
    top, place = checked_mapping(document, source), source
    if top.get("placement") is not None:
        top, place = checked_mapping(top["placement"], f"{source}.placement"), f"{source}.placement"
    # A single GPU exchanges nothing, and its plan predicts nothing.
    if (top.get("workers"), top.get("gpus")) == (1, 1) and top.get("prediction") is None:
        top = {**top, "prediction": _NO_PREDICTION}
    if top.get("prediction") is None:
        raise DocumentError(
            f"{place} has no prediction",
            hint="give a placement, as `arena-topo plan -o json` prints it for a gang that fits",
        )
    values = read_fields(_PLACEMENT, top, place, strict=False)
    workers, gpus = values["workers"], values["gpus"]
    if workers < 1 or gpus < 1:
        raise DocumentError(f"{place} has {workers} workers of {gpus} GPUs: expected at least one of each")
    ranks, prediction = workers * gpus, values["prediction"]
    low, likely, high = prediction.busbw.low, prediction.busbw.likely, prediction.busbw.high
    if not 0 <= low <= likely <= high or (ranks > 1 and low == 0):
        raise DocumentError(
            f"{place}.prediction.busbw is {low:g}, {likely:g}, {high:g}: expected rising bandwidths in GB/s"
        )
    domains = {share["node"]: share["domain"] for share in values["shares"]}
    paths = {slot["worker"]: (*domains.get(slot["node"], ()), slot["node"]) for slot in values["slots"]}
    order = values["ranks"] or sorted(paths)
    if not paths.keys() >= set(order):
        raise DocumentError(f"{place}.ranks has workers that {place}.slots has not")
    return PlannedGang(ranks, prediction, values["products"] or (), tuple(map(paths.__getitem__, order)))


# Which transports the ranks of a gang really use, and the bus bandwidth of the whole gang.
#
# Links are not all that decides. NCCL tries its transports in the order P2P, SHM, NET and takes the first
# that connects two ranks (``src/transport.cc``, ``ncclTransports`` and ``selectTransport``). What decides is
# the identity of the host, ``hostHash``, a hash of the host's name and the kernel's boot id, and the device
# of ``/dev/shm``, ``shmDev`` (``src/init.cc``, ``fillInfo``; ``src/misc/utils.cc``, ``getHostHash``). Each
# pod has a name and a ``/dev/shm`` of its own, so that for two pods of one node
#
# - P2P is ruled out: ``ncclTopoCheckP2p`` (``src/graph/paths.cc``) returns before it looks at links;
# - SHM is ruled out: ``shmCanConnect`` (``src/transport/shm.cc``) wants both to be equal;
# - NET connects: ``canConnect`` (``src/transport/net.cc``) refuses nobody of another host.
#
# To NCCL each pod is a node by itself. NET is one network for all: InfiniBand and RoCE where the pods have
# RDMA cards, else sockets (``src/plugin/net.cc``, ``initPluginLibsOnceFunc``: plugins, IB, Socket). So
# isolated pods with cards exchange over the cards, through the card or its switch and back, at their part of
# the rate: a ring leaves each pod once, and n pods of a node share its cards n ways. Between nodes NCCL uses
# RDMA only where every pod has RDMA cards. A ring is as fast as its slowest segment.

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
    ranks: Sequence[int] = (),
) -> Prediction:
    """Return what the gang of *shares* will see; a gang of one rank exchanges nothing, at 0 GB/s.

    *pods_see_each_other* says that the pods of one node can access each other's GPUs, *host_network_rdma*
    that the pods get the node's RDMA cards. *ranks* are the pods in the order of their ranks, if that is not
    the order of their numbers.
    """
    bandwidths = calibration.bandwidths
    node_of = {worker: share.node for share in shares for worker in share.workers}
    ring = [(node_of[worker],) for worker in ranks or sorted(node_of)]
    # Of ranks that see each other NCCL orders those of a node itself.
    flows = 1 if pods_see_each_other else max(uplink_flows(ring).values(), default=1)
    used = [
        _Cards(
            tuple(_cards(share, nodes[share.node], len(share.workers) * gpus_per_pod)),
            1 if pods_see_each_other else len(share.workers),
            _reduces(nodes[share.node], len(share.workers) * gpus_per_pod),
        )
        for share in shares
    ]
    # One network serves all of them: NCCL takes the first that every rank has.
    has_rdma = host_network_rdma and all(each.cards for each in used)
    inside = [
        segment
        for share, cards in zip(shares, used, strict=True)
        if len(share.workers) * gpus_per_pod > 1
        for segment in _inside(
            share, nodes[share.node], bandwidths, cards, several=gpus_per_pod > 1, rdma=has_rdma
        )
    ]
    across = _across(used, bandwidths, flows, rdma=host_network_rdma) if len(shares) > 1 else []
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


@dataclass(frozen=True, slots=True)
class _Cards:
    """The RDMA cards that a gang uses on a node, and how many isolated pods share them, 1 if none is.

    ``reduces``: the gang has all GPUs of a node whose NVSwitches reduce.
    """

    cards: tuple[Nic, ...]
    pods: int
    reduces: bool


def _inside(
    share: NodeShare,
    node: GpuNode,
    bandwidths: Bandwidths,
    cards: _Cards,
    *,
    several: bool,
    rdma: bool,
) -> Iterator[_Segment]:
    """Yield what the ring goes over inside a node; *several*: each pod has more than one GPU."""
    # One pod sees all of its own GPUs, so only several pods on a node can be isolated.
    if cards.pods > 1 and not rdma:
        note = "pods of one node do not see each other's GPUs: NCCL uses sockets between them"
        yield _Segment(Transport.ISOLATED, bandwidths.isolated, (note,))
        return
    if cards.pods > 1:
        note = "pods of one node do not see each other's GPUs: NCCL uses the RDMA cards between them too"
        yield _over_cards(cards, bandwidths, (note,))
    if cards.pods == 1 or several:
        yield _over_links(share, node, bandwidths)


def _over_links(share: NodeShare, node: GpuNode, bandwidths: Bandwidths) -> _Segment:
    if share.busbw is None or node.links is None:
        note = "links of some nodes are not known: no more than PCIe is assumed there"
        floor = Range(bandwidths.pcie.low, bandwidths.pcie.likely, bandwidths.pcie.likely)
        return _Segment(Transport.UNKNOWN, floor, (note,))
    notes = _ASSUMED if any(fact.assumed for fact in node.facts if fact.subject == "links") else ()
    # GPU links by themselves join all members, without leading through other GPUs; else a ring has to use
    # PCIe somewhere.
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


def _across(used: Sequence[_Cards], bandwidths: Bandwidths, flows: int, *, rdma: bool) -> list[_Segment]:
    """Return what the ring goes over between nodes that use these cards, node by node.

    *flows* of it share the uplink of a node at most; over RDMA all pods of a node share its cards anyway.
    """
    has_cards = all(node.cards for node in used)
    if not rdma or not has_cards:
        missing = "the pods get no RDMA cards" if has_cards else "not every node has an RDMA card"
        notes: tuple[str, ...] = (f"{missing}: nodes are reached over TCP",)
        if flows > 1:
            apart = "neighbours in rank order are on other nodes"
            notes = (*notes, f"{apart}: {flows} flows share the uplink of a node")
        tcp = bandwidths.tcp
        shared = Range(tcp.low / flows, tcp.likely / flows, tcp.high / flows)
        return [_Segment(Transport.TCP, shared, notes)]
    # Nothing publishes the rates of uplinks.
    notes = ("assumed: no uplink of the fabric is oversubscribed",)
    # On two nodes NCCL takes trees, in which each byte crosses once, so that busbw, which counts it 2(n-1)/n
    # times, goes beyond the cards (NVIDIA/nccl-tests issue 196, NVIDIA/nccl issue 812). How far was measured
    # of NVLSTree, where the switches sum inside; two DGX A100, without it, have 192 of 200 GB/s.
    if len(used) == _PAIR and all(node.reduces and node.pods == 1 for node in used):
        notes = (*notes, "NCCL sums in the NVSwitches of the two nodes (NVLSTree, NCCL 2.18 or later)")
        bandwidths = replace(bandwidths, rdma_share=bandwidths.two_nodes_share)
    return [_over_cards(node, bandwidths, notes) for node in used]


_PAIR = 2
_REDUCING = re.compile(r"G?(H(20|100|200|800)|B[23]00)(?!\d)")
_REDUCING_LINKS = 18
"""NVLinks of each GPU to the switches of Hopper and Blackwell; earlier ones have fewer and do not reduce."""


def _reduces(node: GpuNode, gpus: int) -> bool:
    """Whether *gpus* are all GPUs of *node*, and its NVSwitches reduce (NVLink SHARP)."""
    if node.links is None or gpus < max(len(node.gpus), 2):
        return False
    link = node.links.between(0, 1)
    is_new = link.count >= _REDUCING_LINKS or bool(_REDUCING.search(node.machine))
    return link.kind is LinkClass.NVSWITCH and is_new


def _over_cards(used: _Cards, bandwidths: Bandwidths, notes: tuple[str, ...]) -> _Segment:
    """Return what each pod of a node has of its cards: a ring leaves every isolated pod once."""
    if not all(card.rate for card in used.cards):
        assumed = f"{bandwidths.rdma_card.likely:g} GB/s each is assumed"
        # One card of unknown rate makes the whole figure rest on the calibration's.
        silent = "some RDMA cards do not report their rate"
        if not any(card.rate for card in used.cards):
            silent = "no RDMA card reports its rate"
        notes = (f"{silent}: {assumed}", *notes)
    card = bandwidths.rdma_card
    low, likely, high = (
        sum(nic.rate or unknown for nic in used.cards) / used.pods
        for unknown in (card.low, card.likely, card.high)
    )
    return _Segment(Transport.RDMA, _times(bandwidths.rdma_share, Range(low, likely, high)), notes)


def _cards(share: NodeShare, node: GpuNode, gpus: int) -> list[Nic]:
    return rdma_cards(node, None if share.gpus is None else _positions(share, node), gpus)


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
