"""The picture of what a plan is worth: for each gang how many
times as long it takes unplanned, on a logarithmic axis.
"""

from collections.abc import Iterator
from math import log10

from arena_topo.output.svg import element, label, picture, titled
from benchmarks.worth.figures import Figures, GangFigures

WORKS = (("16 MiB", "all-reduce of 16 MiB"), ("step", "training step"))
_WIDTH = 860.0
_LEFT, _RIGHT = 330.0, 820.0
_TOP, _ROW, _LINE = 112.0, 56.0, 24.0
_TICKS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
_NAME = "What a plan is worth"


def chart(figures: Figures) -> str:
    """Return the picture as an SVG document, for light and dark pages."""
    most = max(gang.ratio(gang.worst, work) for gang in figures.gangs for work, _ in WORKS)
    last = next((tick for tick in _TICKS if tick >= most), _TICKS[-1])
    height = _TOP + _ROW * len(figures.gangs) + 46
    head = [
        label(_NAME, 24, 38, "title"),
        label(
            "Times as long as with the plan: jobs placed by the stock kube-scheduler, 20 seeds, on a logarithmic axis",
            24,
            60,
            "soft",
        ),
        *_legend(),
    ]
    rows = [
        part for index, gang in enumerate(figures.gangs) for part in _row(gang, _TOP + index * _ROW, last)
    ]
    described = "; ".join(_words(gang, work) for gang in figures.gangs for work, _ in WORKS)
    return picture(_WIDTH, height, [*head, *_axis(height - 38, last), *rows], name=_NAME, described=described)


def _words(gang: GangFigures, work: str) -> str:
    return f"{gang.ranks} ranks, {gang.network}, {work}: {gang.stock(work).middle:.1f} times"


def _x(ratio: float, last: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * max(log10(ratio), 0.0) / log10(last)


def _legend() -> Iterator[str]:
    y = 86.0
    yield _range(24, 60, y)
    yield element("circle", cx=42, cy=y, r=5, class_="u1")
    yield label("stock: smallest, middle, largest", 70, y + 4, "small")
    yield _cross(274, y)
    yield label("worst placement", 286, y + 4, "small")
    yield _diamond(402, y)
    yield label("what predict said of stock", 414, y + 4, "small")


def _axis(bottom: float, last: float) -> Iterator[str]:
    for tick in (tick for tick in _TICKS if tick <= last):
        x = _x(tick, last)
        yield element("line", x1=x, y1=_TOP - 8, x2=x, y2=bottom, class_="link far", stroke_width=1)
        yield label(f"{tick}", x, bottom + 16, "small middle soft")


def _row(gang: GangFigures, y: float, last: float) -> Iterator[str]:
    yield label(f"{gang.ranks} ranks", 24, y + 16, "strong")
    yield label(gang.network, 24, y + 16 + _LINE, "small soft")
    for number, (work, words) in enumerate(WORKS):
        middle = y + 12 + number * _LINE
        stock, worst, said = gang.stock(work), gang.ratio(gang.worst, work), gang.predicted[work]
        tip = (
            f"{words}: stock {stock.low:.2f} to {stock.high:.2f}, middle {stock.middle:.2f}",
            f"worst {worst:.2f}, predict said {said:.2f}",
        )
        yield titled(
            tip,
            label(words, _LEFT - 14, middle + 4, "small end soft"),
            _range(_x(stock.low, last), _x(stock.high, last), middle),
            element("circle", cx=_x(stock.middle, last), cy=middle, r=5, class_="u1"),
            _cross(_x(worst, last), middle),
            _diamond(_x(said, last), middle),
        )


def _range(left: float, right: float, y: float) -> str:
    return element(
        "line", x1=left, y1=y, x2=right, y2=y, class_="link u1", stroke_width=4, stroke_opacity="0.45"
    )


def _cross(x: float, y: float) -> str:
    path = f"M{x - 6:.1f} {y - 6:.1f}l12 12m0 -12l-12 12"
    return element("path", d=path, class_="link u7", stroke_width=2)


def _diamond(x: float, y: float) -> str:
    return element("path", d=f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z", class_="gpu-free")
