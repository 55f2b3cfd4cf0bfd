"""Planned against actual: where a job's workers run, and where they were planned."""

from collections.abc import Iterator, Sequence

from arena_topo.jobs.conditions import has_ended
from arena_topo.kinds.table import kind_of
from arena_topo.model.job_view import PlannedWorker, PlanView
from arena_topo.model.keys import PIN_NODES
from arena_topo.model.kind import number_of, pod_name_at
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import (
    MOST_AHEAD,
    MOST_WORKERS,
    Enforcement,
    PlanRecord,
    Slot,
    Stage,
    StartEstimate,
    UnreadablePlan,
    decode,
    enforced_text,
    plan_text,
    pods_text,
)
from arena_topo.model.text.words import plural
from arena_topo.pin.gates import is_gated
from arena_topo.pin.run_lists import decoded

_MOST_NAMES = 5
"""Workers that the message names: it is one line, and a gang may have thousands."""


def plan_view(job: Object, pods: Sequence[Object]) -> PlanView | None:
    """Return the plan of *job* compared with its *pods*, None for a job without one."""
    text = plan_text(job)
    try:
        record = pinned_record(job) if text is None else decode(text)
    except UnreadablePlan as error:
        # The job itself can be shown anyway.
        return PlanView(message=str(error))
    if record is None:
        return None
    names = _names(job, record, pods)
    nodes = {name: slot.node for name, slot in zip(names, record.slots, strict=True)}
    # Pins name nodes by their hostname labels, which need not be their names.
    moved = () if text is None else tuple(_moved_pods(nodes, pods))
    waits = record.stage is Stage.WAITING and not has_ended(job)
    return PlanView(
        message=_message(job, record, names, pods, moved),
        moved=moved,
        stage=record.stage.value,
        enforcement=record.enforcement.value,
        gpu_enforcement=record.gpu_enforcement.value,
        enforced=enforced_text(record) if record.stage is Stage.CONFIRMED and not has_ended(job) else "",
        level=record.level,
        domain=record.domain,
        workers=tuple(
            PlannedWorker(name, slot.node, slot.gpus) for name, slot in zip(names, record.slots, strict=True)
        ),
        reason=record.waiting_reason if waits else "",
        position=record.position if waits else 0,
        start=_start(record) if waits else None,
    )


def pinned_record(job: Object) -> PlanRecord | None:
    """Return the plan by which the templates of *job* are pinned, None where they are not.

    A job that Kueue has admitted by the answer of our check has no other record of its plan.
    """
    annotations = {
        key: value
        for replicas in kind_of(job).replicas(job)
        for key, value in ((replicas.template.get("metadata") or {}).get("annotations") or {}).items()
    }
    try:
        nodes = decoded(str(annotations[PIN_NODES]), MOST_WORKERS) if PIN_NODES in annotations else []
    except ValueError:
        nodes = []
    if not nodes:
        return None
    slots = tuple(Slot(number, node, None) for number, node in enumerate(nodes))
    return PlanRecord(stage=Stage.CONFIRMED, slots=slots, enforcement=Enforcement.ADMISSION)


def _start(record: PlanRecord) -> StartEstimate:
    """Return when the job of *record*, which waits, starts, or why there is no estimate."""
    if not record.position:
        return StartEstimate(unknown="no controller has it in its queue")
    if record.estimate:
        return record.estimate
    ahead = record.position - 1
    return StartEstimate(
        unknown=f"{plural(ahead, 'job')} wait before it"
        if ahead >= MOST_AHEAD
        else "the controller has made none yet"
    )


def _moved_pods(nodes: dict[str, str], pods: Sequence[Object]) -> Iterator[str]:
    for pod in pods:
        name, node = pod["metadata"]["name"], (pod.get("spec") or {}).get("nodeName")
        # A pod that the plan does not name, as the launcher, is nowhere else than planned.
        if node and nodes.get(name, node) != node:
            yield name


def _names(job: Object, record: PlanRecord, pods: Sequence[Object]) -> list[str]:
    """Return the names of the planned pods, in the order of the plan."""
    kind = kind_of(job)
    # Names of some kinds end in random letters: what a pod is called is known once there is one, the newest
    # if several.
    oldest_first = sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    found = {number_of(kind, job, pod): str(pod["metadata"]["name"]) for pod in oldest_first}
    return [found.get(slot.worker) or pod_name_at(kind, job, slot.worker) for slot in record.slots]


def _unfinished_text(name: str, record: PlanRecord) -> str:
    if record.stage is Stage.SUSPENDED:
        return f"suspended, and nothing is reserved; plan and start it with: arena-topo resume {name}"
    if record.stage is Stage.WAITING:
        # A job in the controller's queue needs no retry.
        following = (
            f"number {record.position} in the controller's queue"
            if record.position
            else f"retry with: arena-topo resume {name}"
        )
        return f"waits for a placement: {record.waiting_reason}; {following}"
    return f"submission was interrupted; continue with: arena-topo resume {name}"


def _message(
    job: Object, record: PlanRecord, names: Sequence[str], pods: Sequence[Object], moved: Sequence[str]
) -> str:
    name = job["metadata"]["name"]
    if record.stage is not Stage.CONFIRMED:
        return "the job ended before it was placed" if has_ended(job) else _unfinished_text(name, record)
    placed = {pod["metadata"]["name"] for pod in pods if (pod.get("spec") or {}).get("nodeName")}
    running = sum(each in placed for each in names)
    workers = pods_text(record)
    # The operator deletes the workers of a job that has ended: where they ran is only known from the plan.
    if has_ended(job) and running < len(record.slots):
        nodes = plural(len({slot.node for slot in record.slots}), "node")
        return f"{workers} on {nodes} ({record.enforcement.value}); the job has ended"
    of_all = plural(len(record.slots), "pod" if record.roles else "worker")
    where = f"{running - len(moved)} of {of_all} where planned ({record.enforcement.value})"
    # The operator recreates a lost worker from the template, gate included, and --retry then waits for it
    # forever.
    if gated := sum(map(is_gated, pods)):
        verb = "waits" if gated == 1 else "wait"
        where += f"; {plural(gated, 'worker')} {verb} at the scheduling gate, continue with: arena-topo resume {name}"
    if not moved:
        return where
    more = " ..." if len(moved) > _MOST_NAMES else ""
    return f"{where}; elsewhere: {', '.join(moved[:_MOST_NAMES])}{more}"
