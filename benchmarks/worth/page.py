"""The generated parts of docs/explanation/worth.md:
``python -m benchmarks.worth.page`` writes them from the kept figures.
"""

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.predictions import markdown
from benchmarks.worth.chart import chart
from benchmarks.worth.figures import Figures, GangFigures, Spread, read
from benchmarks.worth.figures import write as keep
from benchmarks.worth.predicted import Predictor
from benchmarks.worth.workloads import NETWORKS
from tests.e2e.arena import Arena

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "worth.md"
PICTURE = PAGE.with_suffix(".svg")
_WORKS = ("1 MiB", "16 MiB", "64 MiB", "step")


def tables(figures: Figures) -> str:
    """Return all tables, with a line that says what they were measured on."""
    return "\n".join(parts(figures).values())


def parts(figures: Figures) -> dict[str, str]:
    """Return the generated parts of the page by their names."""
    return {
        "machine": _machine(figures),
        "ratios": ratios(figures),
        "reasons": reasons(figures),
        "checks": checks(figures),
    }


def ratios(figures: Figures) -> str:
    """Return how many times as long everything takes without a plan."""
    head = ["network", "ranks", "16 MiB planned", *_WORKS, "worst, 16 MiB"]
    rows = [
        [
            gang.network,
            str(gang.ranks),
            f"{gang.planned_seconds('16 MiB'):.2f} s",
            *(_spread(gang.stock(work)) for work in _WORKS),
            f"{gang.ratio(gang.worst, '16 MiB'):.1f}",
        ]
        for gang in figures.gangs
    ]
    return markdown(head, rows)


def reasons(figures: Figures) -> str:
    """Return the rings, and what was to be expected of them."""
    head = [
        "network",
        "ranks",
        "planned",
        "stock, mostly",
        "worst",
        "16 MiB",
        "uplinks alone",
        "predict",
        "step",
        "predict",
    ]
    rows = [
        [
            gang.network,
            str(gang.ranks),
            *(f"`{ring}`" for ring in (gang.planned, _commonest(gang), gang.worst)),
            f"{gang.stock('16 MiB').middle:.1f}",
            "-" if gang.wires is None else f"{gang.wires:.1f}",
            f"{gang.predicted['16 MiB']:.1f}",
            f"{gang.stock('step').middle:.1f}",
            f"{gang.predicted['step']:.1f}",
        ]
        for gang in figures.gangs
    ]
    return markdown(head, rows)


def checks(figures: Figures) -> str:
    """Return the jobs with an ``mpirun`` of their own next to the benchmark's figures of their rings."""
    head = ["job", "ring", "16 MiB", "in the benchmark"]
    rows = [
        [check.kind, f"`{check.ring}`", f"{check.seconds:.2f} s", f"{check.benchmark:.2f} s"]
        for check in figures.checks
    ]
    return markdown(head, rows)


def _machine(figures: Figures) -> str:
    slow, fast = (rate / 1e6 for rate in (min(figures.inside.values()), max(figures.inside.values())))
    inside = f"inside of a node ranks had a bus bandwidth of {slow:.0f} to {fast:.0f} MB/s"
    return f"Measured on {figures.machine}, in {figures.minutes:.0f} minutes; {inside}.\n"


def _spread(ratio: Spread) -> str:
    limits = "" if ratio.low == ratio.high else f" ({ratio.low:.1f} to {ratio.high:.1f})"
    return f"**{ratio.middle:.1f}**{limits}"


def _commonest(gang: GangFigures) -> str:
    return Counter(gang.seeds).most_common(1)[0][0]


def filled(text: str, named: dict[str, str]) -> str:
    """Return the page *text* with its generated parts replaced;
    raises ``ValueError`` where it has no place for one.
    """
    for name, content in named.items():
        begin, end = f"<!-- benchmarks.worth: {name} -->\n", "<!-- end -->\n"
        before, *after = text.split(begin)
        if len(after) != 1 or end not in after[0]:
            raise ValueError(f"{PAGE.name} has {len(after)} places for {name}")
        text = f"{before}{begin}{content}{end}{after[0].partition(end)[2]}"
    return text


def write(figures: Figures) -> None:
    """Write the tables and the picture."""
    PAGE.write_text(filled(PAGE.read_text("utf-8"), parts(figures)), "utf-8")
    PICTURE.write_text(f"{chart(figures)}\n", "utf-8")


def predicted_again(figures: Figures, folder: Path) -> Figures:
    """Return *figures* with what ``predict`` says now of the rings that were measured."""
    fabrics = {network.name: network.fabric for network in NETWORKS}
    gangs = []
    for gang in figures.gangs:
        fabric, inside = fabrics[gang.network], figures.inside[gang.network]
        predictor = Predictor(Arena(folder / "none"), fabric, inside, folder)
        planned, *seeds = (tuple(f"node-{letter}" for letter in ring) for ring in (gang.planned, *gang.seeds))
        gangs.append(replace(gang, predicted=predictor.ratios(planned, seeds)))
    return replace(figures, gangs=gangs)


def main() -> None:
    """Write the page and its picture from the kept figures, and what ``predict`` says of them now."""
    with tempfile.TemporaryDirectory() as folder:
        found = predicted_again(read(), Path(folder))
    keep(found)
    write(found)


if __name__ == "__main__":
    main()
