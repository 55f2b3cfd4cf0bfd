"""Planned against actual: where a job's workers are, and where they were to be."""

from collections.abc import Iterator, Sequence

from arena_topo.jobs.status.conditions import ended
from arena_topo.model.job.job_view import PlanView
from arena_topo.model.job.mpijob import worker_name
from arena_topo.model.keys import PLAN
from arena_topo.model.notation.words import plural
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord, Stage, UnreadablePlan, decode


def plan_view(job: Object, pods: Sequence[Object]) -> PlanView | None:
    """Return the plan of *job* against its *pods*, None for a job without one."""
    text = (job["metadata"].get("annotations") or {}).get(PLAN)
    if text is None:
        return None
    try:
        record = decode(text)
    except UnreadablePlan as error:
        return PlanView(stage="unreadable", enforcement="", message=str(error))
    nodes = {worker_name(job["metadata"]["name"], slot.worker): slot.node for slot in record.slots}
    moved = tuple(_moved(nodes, pods))
    return PlanView(
        stage=record.stage.value,
        enforcement=record.enforcement.value,
        message=_message(job, record, pods, moved),
        nodes=nodes,
        moved=moved,
    )


def _moved(nodes: dict[str, str], pods: Sequence[Object]) -> Iterator[str]:
    for pod in pods:
        name, node = pod["metadata"]["name"], (pod.get("spec") or {}).get("nodeName")
        if node and nodes.get(name, node) != node:
            yield name


def _message(job: Object, record: PlanRecord, pods: Sequence[Object], moved: Sequence[str]) -> str:
    name = job["metadata"]["name"]
    if record.stage is not Stage.CONFIRMED:
        return "the job ended without a place" if ended(job) else _unfinished(name, record)
    placed = {each["metadata"]["name"] for each in pods if (each.get("spec") or {}).get("nodeName")}
    found = sum(worker_name(name, slot.worker) in placed for slot in record.slots)
    workers = plural(len(record.slots), "worker")
    if ended(job) and found < len(record.slots):
        nodes = plural(len({slot.node for slot in record.slots}), "node")
        return f"{workers} on {nodes} ({record.enforcement.value}); the job has ended"
    told = f"{found - len(moved)} of {workers} where planned ({record.enforcement.value})"
    return told + (
        f"; elsewhere: {', '.join(moved[:5])}" + (" ..." if len(moved) > 5 else "") if moved else ""
    )


def _unfinished(name: str, record: PlanRecord) -> str:
    if record.stage is Stage.WAITING:
        return f"waits for a place: {record.waiting_reason}; arena-topo resume {name} tries again"
    return f"its submitter did not finish: arena-topo resume {name} goes on"
