"""What becomes of a job whose size changes, as text and as a document: where it is before and after, and why."""

from collections.abc import Iterator, Sequence

from arena_topo.model.notation.words import last_part, plural, runs, written_rate
from arena_topo.model.plan.change import GangFigures, Growth, Scaling, Shrinkage
from arena_topo.output.lines import Line, Span, rendered, table_lines
from arena_topo.output.plan.render import step_lines

_MOST_PODS = 40


def render_scaling(scaling: Scaling, form: str = "text", *, steps: bool = False, colour: bool = False) -> str:
    """Return *scaling* as ``text``, ``json`` or ``yaml``; in text *steps* says why these places."""
    if form in ("json", "yaml"):
        from arena_topo.output.documents import document, plain
        from arena_topo.topology.snapshot_file import API_VERSION

        head = {"apiVersion": API_VERSION, "kind": "Scaling"}
        return document({**head, **plain(scaling)}, form)
    return rendered(_lines(scaling, steps=steps), colour=colour)


def _lines(scaling: Scaling, *, steps: bool) -> Iterator[Line]:
    change = scaling.change
    yield [
        Span(scaling.name, "bold"),
        Span(f"  {scaling.before} to {plural(scaling.after, 'worker')}", ""),
    ]
    if change is None:
        yield [Span(_unplanned(scaling), "dim")]
        return
    yield []
    yield from table_lines([("", "WORKERS", "NODES", "LEVEL", "DOMAIN", "BUSBW"), *_rows(scaling, change)])
    yield [Span("BUSBW: of the GPUs of its slowest node, or of that node's NICs, GB/s", "dim")]
    yield []
    yield from table_lines(_pod_rows(scaling, change))
    if len(scaling.pods) > _MOST_PODS:
        yield [Span(f"and {plural(len(scaling.pods) - _MOST_PODS, 'more pod')}; -o json lists all", "dim")]
    if isinstance(change, Shrinkage) and change.cheapest != tuple(slot.worker for slot in change.leaving):
        yield []
        yield [
            Span(
                f"note: the operator takes the highest indices; without {runs(change.cheapest)} it would keep more",
                "yellow",
            )
        ]
    if steps:
        yield []
        yield [Span("Why", "bold")]
        yield from step_lines(change.why)


def _unplanned(scaling: Scaling) -> str:
    if scaling.before == scaling.after:
        return "it has that size already"
    return "the job has no plan: its scheduler places new workers anywhere, and the highest indices leave"


def _rows(scaling: Scaling, change: Growth | Shrinkage) -> Iterator[Sequence[str]]:
    yield _row("before", scaling.before, change.before)
    yield _row("after", scaling.after, change.after)
    if isinstance(change, Shrinkage) and change.if_cheapest != change.after:
        yield _row("at best", scaling.after, change.if_cheapest)


def _row(word: str, workers: int, gang: GangFigures) -> Sequence[str]:
    domain = gang.domain if gang.level != "cluster" else "-"
    return (word, str(workers), str(gang.nodes), last_part(gang.level), domain, written_rate(gang.busbw))


def _pod_rows(scaling: Scaling, change: Growth | Shrinkage) -> Iterator[Sequence[str]]:
    slots = change.slots if isinstance(change, Growth) else change.leaving
    yield ("COMES" if isinstance(change, Growth) else "LEAVES", "NODE", "GPUS")
    for pod, slot in list(zip(scaling.pods, slots, strict=True))[:_MOST_PODS]:
        gpus = "-" if slot.gpus is None else ",".join(map(str, slot.gpus)) or "-"
        yield (pod, slot.node, gpus)
