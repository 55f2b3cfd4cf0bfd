"""A planned placement, or why there is none, in every form in which it can be printed."""

from collections.abc import Iterator, Sequence

from arena_topo.errors import UsageError
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.notation.words import last_part, plural, written_rate
from arena_topo.model.plan.placement import Infeasible, NodeShare, Placement, Prediction, Step, Verdict
from arena_topo.model.plan.plan_record import PlanRecord
from arena_topo.output.text.spans import Line, Span, rendered
from arena_topo.output.text.table import table_lines

_MOST_NODES = 40


def render_plan(
    name: str, verdict: Verdict, snapshot: Snapshot, form: str = "text", *, colour: bool = False
) -> str:
    """Return the plan of the job *name* as ``text``, ``json``, ``yaml``, ``svg`` or ``html``.

    Raises ``UsageError`` where a picture is asked of a job that has no place.
    """
    match form:
        case "json" | "yaml":
            from arena_topo.output.documents import document
            from arena_topo.output.plan.document import plan_document

            return document(plan_document(name, verdict), form)
        case "svg" | "html":
            return _picture(name, verdict, snapshot, form)
        case _:
            return rendered(plan_lines(name, verdict), colour=colour)


def plan_lines(name: str, verdict: Verdict) -> Iterator[Line]:
    """Yield the lines that tell the whole of *verdict*."""
    if isinstance(verdict, Infeasible):
        yield from _refusal(name, verdict)
        return
    yield from summary_lines(name, verdict)
    yield []
    yield from table_lines(_shares(verdict))
    if verdict.prediction:
        yield []
        yield from _prediction(verdict.prediction)
    yield []
    yield [Span("Why", "bold")]
    yield from _steps(verdict.why)
    yield from ([Span(f"note: {note}", "yellow")] for note in verdict.notes)


def summary_lines(name: str, verdict: Placement) -> Iterator[Line]:
    """Yield what a user needs to know at the least: the shape, and where it goes."""
    shape = f"{plural(verdict.workers, 'worker')}" + (
        f" of {plural(verdict.gpus, 'GPU')}" if verdict.gpus else ""
    )
    merged = ", coalesced" if verdict.coalesced else ""
    nodes = "" if verdict.level == "node" else f" on {plural(len(verdict.shares), 'node')}"
    where = (
        verdict.domain
        if verdict.level in ("node", "cluster")
        else f"{last_part(verdict.level)} {verdict.domain}"
    )
    where = {"node": f"node {where}", "cluster": "the cluster"}.get(verdict.level, where)
    yield [
        Span(name, "bold"),
        Span(f"  {shape}{merged}{nodes} in {where}" if nodes else f"  {shape}{merged} on {where}", ""),
    ]


def settled_lines(
    name: str, verdict: Verdict | None, record: PlanRecord, *, held: bool, enforced: str
) -> Iterator[str]:
    """Yield what a submitter is told: where the job goes and what keeps it there, or what it waits for."""
    if isinstance(verdict, Placement):
        yield from rendered(summary_lines(name, verdict), colour=False).splitlines()
        if verdict.prediction:
            yield from rendered(_prediction(verdict.prediction), colour=False).splitlines()[1:3]
        yield from (f"note: {note}" for note in verdict.notes)
    elif record.waiting_reason:
        yield f"{name} waits for a place: {record.waiting_reason}"
        if held:
            yield f"it is held back; arena-topo resume {name} tries again, arena-topo delete {name} gives up"
        else:
            yield "it is not pinned: the cluster's scheduler starts it, anywhere, once it fits"
        return
    yield f"enforced: {enforced}"


def _shares(verdict: Placement) -> list[Sequence[str]]:
    rows = (
        (
            share.node,
            runs(share.workers),
            _gpus(share, verdict.gpus),
            written_rate(share.busbw),
            written_rate(share.best),
            "/".join(share.domain) or "-",
        )
        for share in verdict.shares[:_MOST_NODES]
    )
    return [("NODE", "WORKERS", "GPUS", "BUSBW", "BEST", "DOMAIN"), *rows]


def runs(numbers: Sequence[int]) -> str:
    """Return *numbers* with runs shortened: ``0-3,7``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _gpus(share: NodeShare, each: int) -> str:
    if share.gpus is None:
        return f"any {len(share.workers) * each}" if each else "-"
    return ",".join(map(str, share.gpus))


def _prediction(prediction: Prediction) -> Iterator[Line]:
    rate = prediction.busbw
    span = f"{rate.likely:.3g} GB/s" + (
        f" ({rate.low:.3g} to {rate.high:.3g})" if rate.low != rate.high else ""
    )
    across = f", {prediction.across.value} across nodes" if prediction.across else ""
    yield [Span("Predicted", "bold")]
    yield [Span(f"  busbw      {span}", "")]
    yield [Span(f"  transport  {prediction.inside.value} inside a node{across}", "")]
    for each in prediction.assumptions:
        yield [Span(f"  - {each}", "dim")]


def _steps(steps: Sequence[Step]) -> Iterator[Line]:
    width = max((len(step.criterion) for step in steps), default=0)
    for step in steps:
        yield [Span(f"  {step.criterion:<{width}}  ", "dim"), Span(step.chosen, "")]
        proof = step.bound if step.proven else f"heuristic{': ' if step.bound else ''}{step.bound}"
        for words in (proof, f"next: {step.runner_up}" if step.runner_up else ""):
            if words:
                yield [Span(f"  {'':<{width}}    {words}", "dim")]


def _refusal(name: str, verdict: Infeasible) -> Iterator[Line]:
    yield [Span(name, "bold"), Span("  does not fit: ", "red"), Span(verdict.summary, "")]
    for title, lines in (
        ("Nodes", [reason.text for reason in verdict.reasons]),
        ("Levels", verdict.levels),
        ("What would help", verdict.remedies),
    ):
        if lines:
            yield []
            yield [Span(title, "bold")]
            yield from ([Span(f"  {line}", "")] for line in lines)


def _picture(name: str, verdict: Verdict, snapshot: Snapshot, form: str) -> str:
    if isinstance(verdict, Infeasible):
        raise UsageError(f"{name} does not fit, so there is no placement to draw: {verdict.summary}")
    from arena_topo.output.plan.overlay import placed
    from arena_topo.output.topology.render import render_topology

    shown = placed(name, verdict, snapshot)
    names = [share.node for share in verdict.shares] if len(verdict.shares) == 1 else []
    return render_topology(shown, names, form)
