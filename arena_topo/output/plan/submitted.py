"""What submit and resume say of a job that has its place, or waits for one."""

from collections.abc import Iterator

from arena_topo.model.plan.placement import Placement, Verdict
from arena_topo.model.plan.plan_record import PlanRecord, placed_text
from arena_topo.model.plan.roles import GangPlacement, GangVerdict
from arena_topo.output.lines import rendered
from arena_topo.output.plan.gang import placed_lines
from arena_topo.output.plan.render import rate_lines, summary_lines


def submitted_lines(
    name: str,
    verdict: Verdict | GangVerdict | None,
    record: PlanRecord,
    *,
    suspended: bool,
    enforced: str,
    queued: bool = False,
) -> Iterator[str]:
    """Yield what submit reports: where the job goes and how that is enforced, or what it waits for.

    *queued*: a controller places the job, and starts it.
    """
    if isinstance(verdict, Placement):
        yield from rendered(summary_lines(name, verdict), colour=False).splitlines()
        if verdict.prediction:
            yield "predicted busbw:"
            yield from rendered(rate_lines(verdict.prediction), colour=False).splitlines()
        yield from (f"note: {note}" for note in verdict.notes)
    elif isinstance(verdict, GangPlacement):
        yield from rendered(placed_lines(name, verdict), colour=False).splitlines()
        yield from (f"note: {note}" for note in verdict.notes)
    elif record.waiting_reason:
        yield f"{name} waits for a placement: {record.waiting_reason}"
        if queued:
            number = f"number {record.position} in the queue: " if record.position else ""
            yield f"{number}the controller starts it; this terminal may close. Give up: arena-topo delete {name}"
        elif suspended:
            yield f"nothing of it runs. Retry: arena-topo resume {name}; give up: arena-topo delete {name}"
        else:
            yield "it is not pinned: the cluster's scheduler starts it on any nodes once it fits"
        return
    elif queued:
        yield f"{name} is placed by the controller: {placed_text(record)}"
    yield f"enforced: {enforced}"
