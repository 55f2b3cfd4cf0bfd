"""Predictions against the vendor's published figures: ``python -m benchmarks.predictions [--write]``.

Fits what the shipped calibration takes from the published figures, predicts all of them, and prints the
tables of ``docs/explanation/prediction.md``; ``--write`` puts them there, with the picture of the page.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arena_topo.model.cluster import GpuNode, Nic
from arena_topo.model.plan import NodeShare, Range, Transport
from arena_topo.output.svg import element, label, picture
from arena_topo.planner.gpus.machine import Machine
from arena_topo.prediction.forecast import (
    Bandwidths,
    Calibration,
    Forecast,
    Framework,
    Workload,
    gang_prediction,
    predict,
    shipped_calibration,
)
from arena_topo.topology.hardware import build_graph, find_product, machine_type, usual_hardware
from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob
from tests.planner.machines import machine

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "prediction.md"
PICTURE = PAGE.with_suffix(".svg")
BEGIN, END = "<!-- python -m benchmarks.predictions --write -->\n", "<!-- end -->\n"
RANKS = 4
BEST_FOUR = 93.15
"""GB/s of the best four GPUs of a V100 cube mesh: three chains at 22.5 GB/s per link, less 8 %."""
REGULAR = {"pytorch": Transport.ISOLATED, "tensorflow": Transport.TCP}
"""What the runs without topology went over: four pods on one node, and two nodes."""


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of the vendor's guides: images/s of one of four V100."""

    framework: str
    model: str
    topology: bool
    rate: float

    @property
    def transport(self) -> Transport:
        """What its ranks talked over, as far as the figures tell."""
        return Transport.NVLINK if self.topology else REGULAR[self.framework]

    @property
    def is_fitted(self) -> bool:
        """Whether the calibration was made from it."""
        return self.topology or self.model == "vgg16"


def published() -> list[Published]:
    """Return the guides' figures, read from the logs that they show."""
    return [_published(documented) for documented in DOCUMENTED_JOBS]


def _published(documented: DocumentedJob) -> Published:
    per_gpu = re.search(r"^Img/sec per GPU: ([\d.]+)", documented.log, re.MULTILINE)
    total = re.search(r"^total images/sec: ([\d.]+)", documented.log, re.MULTILINE)
    # PyTorch's log shows the rate of one GPU, TensorFlow's that of all four.
    rate = float(per_gpu[1]) if per_gpu else float(total[1]) / RANKS if total else 0.0
    return Published(documented.framework, documented.name.rpartition("-")[2], documented.has_topology, rate)


def solve(rate: Callable[[float], float], goal: float, low: float, high: float, *, steps: int = 40) -> float:
    """Return where the rising function *rate* reaches *goal*, between *low* and *high*."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if rate(middle) < goal else (low, middle)
    return (low + high) / 2


def exactly(value: float) -> Range:
    """Return *value* as a range of no width."""
    return Range(value, value, value)


def with_overlap(base: Calibration, overlap: float) -> Calibration:
    """Return *base* with one overlap for every framework."""
    frameworks = {
        name: Framework(framework.exchange, exactly(overlap)) for name, framework in base.frameworks.items()
    }
    return replace(base, frameworks=frameworks)


def fit(framework: str, overlap: float) -> tuple[dict[str, float], float]:
    """Return the speeds of one GPU by model, and the bandwidth of the run without topology, at *overlap*.

    The speeds are fitted on the runs with topology, the bandwidth on VGG16's run without.
    """
    base = with_overlap(shipped_calibration(), overlap)
    figures = {
        (figure.model, figure.topology): figure.rate
        for figure in published()
        if figure.framework == framework
    }

    def rate(model: str, speed: float, busbw: float, transport: Transport) -> float:
        workload = Workload(model, framework, speed=speed)
        return predict(workload, RANKS, exactly(busbw), transport, base).per_gpu.likely

    speeds = {
        model: solve(
            lambda speed: rate(model, speed, BEST_FOUR, Transport.NVLINK),  # noqa: B023  # called at once
            figures[model, True],
            1.0,
            1000.0,
        )
        for model in ("vgg16", "resnet50")
    }
    busbw = solve(
        lambda value: rate("vgg16", speeds["vgg16"], value, REGULAR[framework]),
        figures["vgg16", False],
        0.1,
        50.0,
    )
    return speeds, busbw


def bandwidth(bandwidths: Bandwidths, transport: Transport) -> Range:
    """Return the calibrated bandwidth of a transport of the published runs."""
    match transport:
        case Transport.NVLINK:
            share = bandwidths.nvlink_share
            return Range(share.low * BEST_FOUR, share.likely * BEST_FOUR, share.high * BEST_FOUR)
        case Transport.ISOLATED:
            return bandwidths.isolated
        case _:
            return bandwidths.tcp


def forecast(figure: Published) -> Forecast:
    """Return what the shipped calibration predicts for a published figure."""
    shipped = shipped_calibration()
    busbw = bandwidth(shipped.bandwidths, figure.transport)
    return predict(Workload(figure.model, figure.framework), RANKS, busbw, figure.transport, shipped)


def main_table() -> str:
    """Return all published figures next to what is predicted."""
    head = [
        "framework",
        "model",
        "ranks talk over",
        "published",
        "predicted",
        "range",
        "error",
        "this figure is",
    ]
    rows = [
        [
            figure.framework,
            figure.model,
            figure.transport.value,
            f"{figure.rate:.1f}",
            f"{rate.likely:.1f}",
            f"{rate.low:.0f} - {rate.high:.0f}",
            f"{rate.likely / figure.rate - 1:+.1%}",
            "fitted on" if figure.is_fitted else "**predicted**",
        ]
        for figure in published()
        for rate in [forecast(figure).per_gpu]
    ]
    return markdown(head, rows)


def held_out(framework: str, overlap: float) -> tuple[float, float]:
    """Return the bandwidth fitted at *overlap*, and what
    it predicts for the figure that nothing is fitted on.
    """
    speeds, busbw = fit(framework, overlap)
    workload = Workload("resnet50", framework, speed=speeds["resnet50"])
    calibration = with_overlap(shipped_calibration(), overlap)
    predicted = predict(workload, RANKS, exactly(busbw), REGULAR[framework], calibration)
    return busbw, predicted.per_gpu.likely


def overlap_table() -> str:
    """Return what other overlaps would give, the one among them that would give what is published."""
    rows = []
    rates = {figure.framework: figure.rate for figure in published() if not figure.is_fitted}
    for framework, rate in rates.items():
        exact = round(_exact(framework, rate), 3)
        for overlap in sorted({0.0, 0.25, 0.5, 0.75, 1.0, exact}):
            busbw, predicted = held_out(framework, overlap)
            error = f"{predicted / rate - 1:+.1%}"
            rows.append([framework, f"{overlap:g}", f"{busbw:.2f}", f"{predicted:.1f}", f"{rate:.1f}", error])
    return markdown(["framework", "overlap", "GB/s fitted on VGG16", "ResNet50", "published", "error"], rows)


def _exact(framework: str, rate: float) -> float:
    return solve(lambda overlap: held_out(framework, overlap)[1], rate, 0.0, 1.0, steps=12)


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """A published busbw of a large all-reduce in GB/s, next to what is predicted for the same machines.

    ``why`` says why they differ by more than ``NEAR``, empty where they do not.
    """

    machine: str
    published: tuple[float, float]
    source: str
    predicted: float
    why: str = ""

    @property
    def error(self) -> float:
        """By how much the prediction is off the nearest figure that was published."""
        low, high = self.published
        nearest = min(max(self.predicted, low), high)
        return self.predicted / nearest - 1


NEAR = 0.15
_CARDS = 8


def _module(product: str, count: int, size: int = 0) -> float:
    found = machine(product, count)
    return found.best((1 << count) - 1, size or count).busbw  # type: ignore[union-attr]  # as many are free


def _box(product: str, words: Sequence[str]) -> float:
    """Return the busbw of all cards called *product* whose
    links are *words*, a row of nvidia-smi's matrix each.
    """
    spec = find_product(product)
    assert spec is not None
    graph = build_graph([row.split() for row in words], spec.generation, spec, product)
    assert graph is not None
    places = [(None, "", ())] * graph.size
    return Machine(graph, places, machine_type(graph, spec.name)).busbw((1 << graph.size) - 1)


def _sockets(count: int, sockets: int) -> list[str]:
    """Return the rows of *count* cards that are spread evenly over *sockets*."""
    each = count // sockets
    return [
        " ".join("X" if a == b else "NODE" if a // each == b // each else "SYS" for b in range(count))
        for a in range(count)
    ]


def _nodes(product: str, count: int, card: float) -> float:
    """Return the busbw of *count* nodes of eight GPUs
    called *product*, a card of *card* GB/s for each GPU.
    """
    found = usual_hardware(product, _CARDS)
    cards = tuple(Nic(f"mlx5_{number}", None, card) for number in range(_CARDS))
    nodes = {
        name: GpuNode(
            name,
            machine=found.machine,
            gpus=found.gpus,
            links=found.links,
            nics=cards,
            allocatable={"nvidia.com/gpu": _CARDS},
        )
        for name in map(str, range(count))
    }
    inside = _module(product, _CARDS)
    shares = tuple(
        NodeShare(name, (number,), tuple(range(_CARDS)), inside) for number, name in enumerate(nodes)
    )
    return gang_prediction(
        shares,
        nodes,
        gpus_per_pod=_CARDS,
        pods_see_each_other=False,
        host_network_rdma=True,
        calibration=shipped_calibration(),
    ).busbw.likely


def measured_rates() -> list[MeasuredRate]:
    """Return every machine of which a busbw was found published, with what is predicted for it."""
    v100, a100, h100 = "Tesla-V100-SXM2-16GB", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3"
    bridge = ["X NV12", "NV12 X"]
    return [
        MeasuredRate("8 x V100, cube mesh", (135.5, 135.5), "six rings of 25; fitted on", _module(v100, 8)),
        MeasuredRate("8 x A100, NVSwitch", (232, 232), "NVIDIA; fitted on", _module(a100, 8)),
        MeasuredRate("4 x A100, mesh", (220, 220), "forums.developer.nvidia.com 224173", _module(a100, 4)),
        MeasuredRate(
            "2 x A100 PCIe, bridge",
            (208, 208),
            "nccl-tests 178; fitted on",
            _box("NVIDIA-A100-PCIE-40GB", bridge),
        ),
        MeasuredRate(
            "3 x A100 PCIe, one socket",
            (20, 20),
            "nccl-tests 178",
            _box("NVIDIA-A100-PCIE-40GB", _sockets(3, 1)),
        ),
        MeasuredRate("8 x H100, NVSwitch", (480, 480), "nccl 1374; fitted on", _module(h100, 8)),
        MeasuredRate("4 of 8 x H100, rings", (370, 370), "nccl-tests 212; fitted on", _module(h100, 8, 4)),
        MeasuredRate("8 x H200, NVSwitch", (475, 480), "nccl-tests 272", _module("NVIDIA-H200", 8)),
        MeasuredRate("8 x H800, NVSwitch", (215, 215), "nccl 1374", _module("NVIDIA-H800", 8)),
        MeasuredRate(
            "2 x H100 PCIe, bridge",
            (116, 116),
            "nccl 1161",
            _box("NVIDIA-H100-PCIe", bridge),
            "the same bridge gives two A100 208, and who measured 116 asks why",
        ),
        MeasuredRate("8 x B200, NVSwitch", (830, 830), "NVIDIA; fitted on", _module("NVIDIA-B200", 8)),
        MeasuredRate(
            "4 x RTX 5090, one socket", (35, 35), "nccl 1639", _box("NVIDIA-GeForce-RTX-5090", _sockets(4, 1))
        ),
        MeasuredRate(
            "8 x RTX 5090, two sockets",
            (28, 28),
            "nccl 1639; fitted on",
            _box("NVIDIA-GeForce-RTX-5090", _sockets(8, 2)),
        ),
        MeasuredRate("2 of 8 x MI300X", (48, 48), "AMD; fitted on", _module("AMD_Instinct_MI300X_OAM", 8, 2)),
        MeasuredRate("2 nodes of 8 x A100, 8 x 25 GB/s", (192, 192), "NVIDIA", _nodes(a100, 2, 25.0)),
        MeasuredRate(
            "2 nodes of 8 x H100, 8 x 50 GB/s",
            (430, 469),
            "nccl 1221, nccl-tests 309; fitted on",
            _nodes(h100, 2, 50.0),
        ),
        MeasuredRate("4 nodes of 8 x H100, 8 x 50 GB/s", (320, 390), "nccl 1221", _nodes(h100, 4, 50.0)),
    ]


def rates_table() -> str:
    """Return all published rates next to what is predicted."""
    rows = [
        [
            each.machine,
            f"{each.published[0]:g}" + (f" - {each.published[1]:g}" if len({*each.published}) > 1 else ""),
            f"{each.predicted:.3g}",
            f"{each.error:+.0%}".replace("-0%", "+0%"),
            f"{each.source}{'; ' if each.why else ''}{each.why}",
        ]
        for each in measured_rates()
    ]
    return markdown(["machine", "published GB/s", "predicted", "error", "source"], rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def chart() -> str:
    """Return the picture of the page: each published figure as
    a bar, and on it what is predicted, with its range.
    """
    figures = [(figure, forecast(figure).per_gpu) for figure in published()]
    scale = (_RIGHT - _LEFT) / max(max(figure.rate, rate.high) for figure, rate in figures)
    rows = [part for row, (figure, rate) in enumerate(figures) for part in _bar(row, figure, rate, scale)]
    name = "Images per second of one GPU: published, and predicted"
    head = [label(name, 24, 38, "title"), *_legend()]
    described = "; ".join(
        f"{_words(figure)}: published {figure.rate:.0f}, predicted {rate.likely:.0f}"
        for figure, rate in figures
    )
    return picture(
        _RIGHT + 112, _TOP + _ROW * len(figures) + 10, [*head, *rows], name=name, described=described
    )


_LEFT, _RIGHT, _TOP, _ROW = 300.0, 700.0, 104.0, 30.0


def _words(figure: Published) -> str:
    return f"{figure.framework} {figure.model}, {figure.transport.value}"


def _legend() -> Iterator[str]:
    yield element("rect", x=24, y=60, width=28, height=16, rx=3, class_="gpu-heat-2")
    yield label("published", 60, 72, "small")
    yield _range(150, 178, 68)
    yield element("circle", cx=164, cy=68, r=5, class_="u6")
    yield label("fitted on it", 186, 72, "small")
    yield _range(276, 304, 68)
    yield _diamond(290, 68)
    yield label("predicted", 312, 72, "small")


def _bar(row: int, figure: Published, rate: Range, scale: float) -> Iterator[str]:
    y = _TOP + _ROW * row
    yield label(_words(figure), _LEFT - 14, y + 12, "end small")
    yield element("rect", x=_LEFT, y=y, width=figure.rate * scale, height=16, rx=3, class_="gpu-heat-2")
    yield _range(_LEFT + rate.low * scale, _LEFT + rate.high * scale, y + 8)
    x = _LEFT + rate.likely * scale
    yield element("circle", cx=x, cy=y + 8, r=5, class_="u6") if figure.is_fitted else _diamond(x, y + 8)
    words = f"{rate.likely:.0f}" if figure.is_fitted else f"{rate.likely:.0f} for {figure.rate:.0f}"
    yield label(words, _RIGHT + 20, y + 12, "small soft" if figure.is_fitted else "small strong")


def _range(left: float, right: float, y: float) -> str:
    return element("line", x1=left, y1=y, x2=right, y2=y, class_="link u6", stroke_width=3)


def _diamond(x: float, y: float) -> str:
    return element("path", d=f"M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z", class_="u0")


def page(text: str) -> str:
    """Return the page *text* with its tables as they are now."""
    rest = re.split(f"(?<={re.escape(BEGIN)})[^<]*(?={re.escape(END)})", text)
    tables = (rates_table(), main_table(), overlap_table())
    if len(rest) != len(tables) + 1:
        raise ValueError(f"{PAGE.name} does not have {len(tables)} places for tables")
    return rest[0] + "".join(table + after for table, after in zip(tables, rest[1:], strict=True))


def main() -> None:
    """Print the fit and the tables, or write the page."""
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
        PICTURE.write_text(f"{chart()}\n", "utf-8")
        return
    for framework in REGULAR:
        for overlap in (0.0, 0.5, 1.0):
            speeds, busbw = fit(framework, overlap)
            fitted = ", ".join(f"{model} {speed:.1f} images/s" for model, speed in speeds.items())
            print(f"{framework} at overlap {overlap:g}: {fitted}, {busbw:.3f} GB/s")
    print(f"\n{rates_table()}\n{main_table()}\n{overlap_table()}", end="")


if __name__ == "__main__":
    main()
