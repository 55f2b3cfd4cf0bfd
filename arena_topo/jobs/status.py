"""The view of a job from its API objects, by Arena's rules (trainer_mpi.go, get_advanced.go).

The three versions of MPIJob write the same facts of a job's status in different places; this module finds
them all.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from arena_topo.errors import Forbidden, JobFailed, NotFound
from arena_topo.jobs.conditions import (
    FAILED,
    SUCCEEDED,
    chief_pod,
    failure_message,
    first_failed_worker,
    is_held_up,
    pod_word,
    true_condition,
    why_down,
    why_waiting,
)
from arena_topo.kinds.names import is_chief
from arena_topo.kube.resources import EVENTS, Resource
from arena_topo.kube.session import Session
from arena_topo.model import keys
from arena_topo.model.job_view import Goal, Instance, JobEvent, JobStatus, JobView, MoveView, PlanView
from arena_topo.model.keys import GANG_GATE
from arena_topo.model.kind import (
    Kind,
    Replicas,
    chief_title,
    is_planned,
    is_suspended,
    number_of,
    planned_noun,
    pod_name_at,
)
from arena_topo.model.objects import Object
from arena_topo.model.text.documents import Each, Part, count, fitted, text
from arena_topo.model.text.json import optional_number
from arena_topo.model.text.quantity import amount, parse_instant

# What would help a job, or where to look, as ``get`` and ``describe`` say it: the next command to type.

STARTS_BY_ITSELF = "it starts by itself; who holds the GPUs: arena-topo top node"
_WHAT_ENDS_FIRST = "arena-topo plan with --when shows what has to end first"
"""What is left to do about a job that waits in a queue."""


def advice(kind: Kind, job: Object, pods: Sequence[Object], status: JobStatus, chief: Object | None) -> str:
    """Return what to do next about *job*, empty where nothing needs to be done."""
    name = job["metadata"]["name"]
    if status is JobStatus.FAILED:
        return _where_to_look(name, pods, chief, chief_title(kind, job))
    gated = [pod["metadata"]["name"] for pod in pods if _waits_at_our_gate(pod)]
    # Only a recreated worker waits while others run: submit releases a gang as a whole.
    if gated and len(gated) < sum(kind.member(pod) is not None for pod in pods):
        return f"{gated[0]} was recreated and waits at its gate; release it with: arena-topo resume {name}"
    if gated:
        return (
            f"the {planned_noun(kind)}s wait at their gates; "
            f"if no submit is running any more: arena-topo resume {name}"
        )
    if status is JobStatus.SUSPENDED:
        return f"the job is suspended; continue with: arena-topo resume {name}"
    if status is JobStatus.PENDING and (worker := first_failed_worker(pods)):
        return f"see arena-topo logs {name} -i {worker.pod}"
    return ""


def _where_to_look(name: str, pods: Sequence[Object], chief: Object | None, title: str) -> str:
    if worker := first_failed_worker(pods):
        return f"see arena-topo logs {name} -i {worker.pod}, and arena-topo logs {name} for {title}'s side"
    if chief is not None:
        return f"see arena-topo logs {name}"
    return f"its pods are gone; arena-topo events {name} shows what is left"


def _waits_at_our_gate(pod: Object) -> bool:
    gates = (pod.get("spec") or {}).get("schedulingGates") or ()
    return any(gate.get("name") == GANG_GATE for gate in gates)


# What happened to a job: the events of the job itself and of everything that belongs to it.

_PART = re.compile(
    r"launcher(-[a-z0-9]+)?|(worker|master|chief|ps|evaluator|node)(-\d+){0,2}(-[a-z0-9]{5}|-gpus)?|\d+-[a-z0-9]{5}"
    r"|gang|config|ssh"
)
"""What follows the job's name: its pods, of whatever kind it is, and their batch Job or StatefulSet, claims,
pod group, and files."""

_NEVER_PARTS = frozenset({"MPIJob", "PyTorchJob", "TFJob", "TrainJob"})
"""Kinds whose jobs never belong to another job, whatever their names."""

_MOST = 10_000
"""Events of a namespace that are looked at."""


def job_events(session: Session, job: JobView) -> tuple[JobEvent, ...]:
    """Return the events of *job* and its pods in the order of time, by what they are about.

    One call for each page.
    The API cannot be asked for the events of several objects, so those of the job's namespace are read.
    """
    found: list[JobEvent] = []
    seen = 0
    for page in session.pages(EVENTS.path(job.namespace)):
        items = page.get("items") or []
        seen += len(items)
        found += [event for item in items if (event := event_of_job(item, job.name))]
        if seen >= _MOST:
            break
    first = {
        event.source: event.last_seen for event in sorted(found, key=lambda e: e.last_seen, reverse=True)
    }
    return tuple(sorted(found, key=lambda event: (first[event.source], event.source, event.last_seen)))


def event_of_job(item: Object, job: str) -> JobEvent | None:
    """Return the event *item*, None where it is not about the job *job* or what belongs to it."""
    about = item.get("involvedObject") or {}
    kind, name = str(about.get("kind") or ""), str(about.get("name") or "")
    # Another job may be called like a part of this one.
    if name != job and (kind in _NEVER_PARTS or not _part_of(job, name)):
        return None
    return JobEvent(
        source=f"{kind.lower()}/{name}",
        kind=str(item.get("type") or ""),
        reason=str(item.get("reason") or ""),
        message=" ".join(str(item.get("message") or "").split()),
        last_seen=_last_seen(item),
    )


def _part_of(job: str, name: str) -> bool:
    """Whether *name* is what operators and arena-topo call a part of *job*, also one that is gone."""
    return name.startswith(f"{job}-") and _PART.fullmatch(name[len(job) + 1 :]) is not None


def _last_seen(item: Object) -> datetime:
    # Newer reporters count in a series, and only set eventTime at first.
    moments = (
        (item.get("series") or {}).get("lastObservedTime"),
        item.get("lastTimestamp"),
        item.get("eventTime"),
        (item.get("metadata") or {}).get("creationTimestamp"),
    )
    for moment in moments:
        try:
            if moment:
                return parse_instant(str(moment))
        except ValueError:
            continue
    return datetime.fromtimestamp(0, UTC)


# Whether a job has come as far as somebody waits for.


def has_reached(view: JobView, goal: Goal) -> bool:
    """Whether the job of *view* runs, or has succeeded, as *goal* says; one that has succeeded was running.

    Raises ``JobFailed`` for one that will not come there any more.
    """
    if view.status is JobStatus.FAILED:
        why = f": {view.message}" if view.message else ""
        raise JobFailed(f"the job {view.name} failed{why}", hint=view.advice)
    return view.status is JobStatus.SUCCEEDED or (goal is Goal.RUNNING and view.status is JobStatus.RUNNING)


# Planned against actual: where a job's workers run, and where they were planned.


def job_view(
    kind: Kind,
    job: Object,
    pods: Sequence[Object],
    *,
    now: datetime,
    launcher_job: Object | None = None,
    with_plan: bool = True,
) -> JobView:
    """Return the view of *job* with its *pods* at *now*.

    ``v1alpha1`` needs the launcher's batch Job for its end.
    """
    chief, roles = chief_pod(pods), kind.replicas(job)
    # Of a suspended job the plan says who suspended it.
    suspended = is_suspended(kind, job)
    plan = _plan(job, pods) if with_plan or suspended or _waits(job) else None
    status = _status(kind, job, pods, chief, plan)
    created = parse_instant(job["metadata"]["creationTimestamp"])
    ended = _end_time(job, chief, launcher_job) if status.is_final else None
    instances = tuple(_instance(pod, chief, now) for pod in sorted(pods, key=_sort_key))
    # Pods of a job that has ended or is suspended may still be listed, and hold no GPUs any more.
    active = status in (JobStatus.PENDING, JobStatus.RUNNING)
    message = _message(kind, job, pods, status, chief)
    next_step = advice(kind, job, pods, status, chief)
    # While it has no place, its pods wait for nothing else.
    if plan and plan.reason and status is JobStatus.PENDING:
        message, next_step = plan.message, STARTS_BY_ITSELF if plan.position else _WHAT_ENDS_FIRST
    if status in (JobStatus.RUNNING, JobStatus.SUSPENDED) and (hang := _hang(job)):
        message, saved = hang, f"arena-topo why {job['metadata']['name']} --saved shows what was seen"
        # One that was stopped for it can be resumed.
        next_step = f"{saved}; {next_step}" if next_step else saved
    return JobView(
        name=job["metadata"]["name"],
        namespace=job["metadata"]["namespace"],
        uid=job["metadata"].get("uid", ""),
        version=kind.version,
        status=status,
        priority=_priority(roles),
        created=created,
        duration=((ended or now) - created).total_seconds(),
        ended=ended,
        instances=instances,
        requested_gpus=requested_gpus(kind, job),
        allocated_gpus=sum(_pod_gpus(pod) for pod in pods if _holds_gpus(pod)) if active else 0,
        workers=sum(role.count for role in roles if is_planned(kind, role.role)),
        message=message,
        advice=next_step or (STARTS_BY_ITSELF if plan and plan.position else ""),
        plan=plan,
        moves=(moves := _moves(kind, job, pods))[0],
        moved=moves[1],
        manifest=job,
        kind=kind.kind,
        group=kind.group,
    )


_CLOCKS = timedelta(seconds=5)
"""How much later the operator's clock may be than the server's, to the second."""


def _hang(job: Object) -> str:
    """Return what the controller saw of a job without progress, empty for nothing."""
    if keys.HANG not in (job["metadata"].get("annotations") or {}):
        return ""

    # Hardly any job has it.
    from arena_topo.model.hang import hang_of

    found = hang_of(job)
    return found.text if found else ""


def _moves(kind: Kind, job: Object, pods: Sequence[Object]) -> tuple[tuple[MoveView, ...], str]:
    """Return the moves of workers of *job* since it started, and what they are in one line."""
    if keys.MOVES not in (job["metadata"].get("annotations") or {}):
        return (), ""

    # Hardly any job has them.
    from arena_topo.model.moves import moves_of, moves_text

    started = (job.get("status") or {}).get("startTime")
    since = parse_instant(started) if started else None
    placed = {number_of(kind, job, pod) for pod in pods if (pod.get("spec") or {}).get("nodeName")}
    moves = [
        # Nothing records that a worker that waited is back on its old node.
        replace(move, workers={number: each for number, each in move.workers.items() if number not in placed})
        if move.waits
        else move
        for move in moves_of(job)
        if since is None or move.at >= since - _CLOCKS
    ]
    moves = [move for move in moves if move.count]
    views = tuple(
        MoveView(
            move.at,
            move.why,
            tuple((pod_name_at(kind, job, number), *nodes) for number, nodes in sorted(move.workers.items())),
            move.waits,
            move.more,
        )
        for move in moves
    )
    workers = sum(role.count for role in kind.replicas(job) if is_planned(kind, role.role))
    return views, moves_text(moves, workers)


def _plan(job: Object, pods: Sequence[Object]) -> PlanView | None:
    # Values of plans take their time to import, and most jobs of others have no plan. Where our check gave a
    # job in a queue of Kueue its nodes, they stand in its templates.
    metadata = job["metadata"]
    if keys.PLAN not in (metadata.get("annotations") or {}) and keys.KUEUE_QUEUE not in (
        metadata.get("labels") or {}
    ):
        return None

    # Jobs without a plan need nothing of it: get and list of them start a tenth faster.
    from arena_topo.jobs.plan_drift import plan_view

    return plan_view(job, pods)


def _waits(job: Object) -> bool:
    """Whether the plan of *job* seems to be that of one that waits; it is not decoded for that."""
    return '"stage":"waiting"' in ((job["metadata"].get("annotations") or {}).get(keys.PLAN) or "")[:40]


def _status(
    kind: Kind, job: Object, pods: Sequence[Object], chief: Object | None, plan: PlanView | None
) -> JobStatus:
    # v1alpha1 has launcherStatus, the others have conditions. How a job ended comes before all else: its pods
    # may be gone by then, and a job without pods looks pending.
    launcher_status = (job.get("status") or {}).get("launcherStatus")
    if launcher_status == "Succeeded" or true_condition(job, *SUCCEEDED):
        return JobStatus.SUCCEEDED
    if launcher_status == "Failed" or true_condition(job, *FAILED):
        return JobStatus.FAILED
    if is_suspended(kind, job):
        # Arena-topo itself suspends a job until its plan is confirmed: to the user it is pending. Any other
        # suspended job was stopped by somebody.
        by_us = plan is None or plan.stage in ("waiting", "proposed")
        if by_us and keys.PLANNED in (job["metadata"].get("labels") or {}):
            return JobStatus.PENDING
        queued = keys.KUEUE_QUEUE in (job["metadata"].get("labels") or {})
        return JobStatus.QUEUING if queued else JobStatus.SUSPENDED
    # A worker whose sshd cannot start keeps restarting in phase Running, and nothing can be computed on it.
    if chief is None or any(map(is_held_up, pods)):
        return JobStatus.PENDING
    return JobStatus.RUNNING


def _end_time(job: Object, chief: Object | None, launcher_job: Object | None) -> datetime | None:
    """Return when a final job ended, by the best source there is, None where no source says."""
    condition = true_condition(job, *SUCCEEDED, *FAILED) or {}
    pod_conditions = ((chief or {}).get("status") or {}).get("conditions") or []
    # The operator's own word, then the batch Job's (v1alpha1), then the last change on record.
    times = [
        (job.get("status") or {}).get("completionTime"),
        ((launcher_job or {}).get("status") or {}).get("completionTime"),
        condition.get("lastTransitionTime"),
        max((condition.get("lastTransitionTime") or "" for condition in pod_conditions), default=""),
    ]
    return next((parse_instant(time) for time in times if time), None)


def _instance(pod: Object, chief: Object | None, now: datetime) -> Instance:
    status = pod.get("status") or {}
    pending = status.get("phase", "Pending") == "Pending"
    created = parse_instant(pod["metadata"]["creationTimestamp"])
    return Instance(
        name=pod["metadata"]["name"],
        status=pod_word(pod),
        chief=pod is chief,
        gpus=_pod_gpus(pod),
        age=(now - created).total_seconds(),
        created=created,
        # Arena shows no node for a pending pod, though it may have one already.
        node="" if pending else (pod.get("spec") or {}).get("nodeName", ""),
        ip=status.get("podIP", ""),
        node_ip=status.get("hostIP", ""),
        reason=why_down(pod),
    )


def _sort_key(pod: Object) -> tuple[int, str, int, str]:
    """Launchers first, then workers by index: worker-10 comes after worker-9.

    Pods of several roles come role by role, by name as Arena lists them: parameter servers before worker 0,
    also where that is the chief.
    """
    name = pod["metadata"]["name"]
    of_role, _, number = name.rpartition("-")
    if keys.OPERATOR_REPLICA_TYPE in (pod["metadata"].get("labels") or {}):
        return (1, of_role, optional_number(number) or 0, name)
    if is_chief(pod):
        return (0, "", 0, name)
    return (1, "", optional_number(number) or 0, name)


def _pod_gpus(pod: Object) -> int:
    containers = (pod.get("spec") or {}).get("containers") or []
    # No container requests the GPUs of a claim: submit wrote their number into an annotation of the template.
    claimed = ((pod.get("metadata") or {}).get("annotations") or {}).get(keys.CLAIMED_GPUS)
    return sum(_gpu_limits(container) for container in containers) + (optional_number(claimed) or 0)


def _gpu_limits(container: Object) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    # Every vendor's resource for whole GPUs ends like this: nvidia.com/gpu, amd.com/gpu, aliyun.com/gpu.
    return sum(amount(name, quantity) for name, quantity in limits.items() if name.endswith("/gpu"))


def _holds_gpus(pod: Object) -> bool:
    """Whether *pod* has its GPUs allocated now: it has a node, and has not ended."""
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not ended and bool((pod.get("spec") or {}).get("nodeName"))


def _has_failed(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Failed")


def _priority(roles: Sequence[Replicas]) -> str:
    # Launcher and workers have the same one unless a template sets them apart: the first that is named stands
    # for all.
    names = [(role.pods.get("spec") or {}).get("priorityClassName") for role in roles]
    return next((name for name in names if name), "")


def requested_gpus(kind: Kind, job: Object) -> int:
    """Return the GPUs that the job asks for in all."""
    # As in Arena, the number that the submitter wrote comes before what the templates add up to.
    annotated = optional_number((job["metadata"].get("annotations") or {}).get(keys.ARENA_REQUESTED_GPUS))
    if annotated is not None:
        return annotated
    return sum(role.count * _pod_gpus(role.pods) for role in kind.replicas(job))


def _no_pods(kind: Kind, job: Object) -> str:
    # The operators of v1 and v2beta1 begin on a job by writing its condition Created.
    conditions = (job.get("status") or {}).get("conditions") or []
    return "" if conditions else f"no pods yet: {kind.served_by} has not started on the job"


def _message(kind: Kind, job: Object, pods: Sequence[Object], status: JobStatus, chief: Object | None) -> str:
    if status is JobStatus.FAILED:
        return failure_message(kind, job, pods, chief)
    if status is not JobStatus.PENDING:
        return ""
    # The operator does not replace a worker that has failed, and the launcher waits for all of them.
    if failed := first_failed_worker(list(filter(_has_failed, pods))):
        return f"{failed.pod}: {failed.words}"
    waiting = [(pod["metadata"]["name"], why_waiting(pod)) for pod in sorted(pods, key=_sort_key)]
    return next((f"{name}: {why}" for name, why in waiting if why), "" if pods else _no_pods(kind, job))


# GPUs that pods get by ResourceClaims which somebody else wrote: no container requests them, so that claims
# are counted.

_CLAIM_VERSIONS = ("v1", "v1beta2", "v1beta1")
_MOST_CLAIMED = 256  # of one claim: no node has more GPUs

_DEVICES = {"deviceClassName": text, "count": count}
_REQUEST = Part({**_DEVICES, "exactly": Part(_DEVICES), "firstAvailable": Each(Part(_DEVICES))})
_RESULT = Part({"driver": text})
_CLAIM = Part(
    {
        "metadata": Part({"name": text}),
        "spec": Part({"devices": Part({"requests": Each(_REQUEST)})}),
        "status": Part({"allocation": Part({"devices": Part({"results": Each(_RESULT)})})}),
    }
)
"""What is read of a claim, in resource.k8s.io/v1 and in v1beta1, which has in the request what ``exactly``
holds."""


def with_claimed_gpus(session: Session, pods: Sequence[Object]) -> list[Object]:
    """Return *pods* with the GPUs of their claims in the annotation that ``submit`` writes for its own.

    Takes one call, or none where no pod has claims. Where claims cannot be listed, the pods are returned as
    they are.
    """
    if not any(map(_claim_names, pods)):
        return list(pods)
    counts = dict(_gpus_of_claim(fitted(claim, _CLAIM)) for claim in _claims(session))
    return [_annotated(pod, sum(counts.get(name, 0) for name in _claim_names(pod))) for pod in pods]


def _claim_names(pod: Object) -> set[str]:
    """Return the names of the claims of *pod*: its own, and those that were made for it from templates."""
    spec, status, metadata = (pod.get(key) or {} for key in ("spec", "status", "metadata"))
    if keys.CLAIMED_GPUS in (metadata.get("annotations") or {}):
        return set()
    named = (*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ()))
    return {name for claim in named if isinstance(name := claim.get("resourceClaimName"), str)}


def _claims(session: Session) -> list[Object]:
    for version in _CLAIM_VERSIONS:
        try:
            return session.list(
                Resource("resource.k8s.io", version, "resourceclaims").path(session.namespace)
            )
        except NotFound:
            continue
        except Forbidden:
            break
    return []


def _gpus_of_claim(claim: Object) -> tuple[str, int]:
    """Return the name of *claim*, and its GPUs: those that were allocated, else those that it asks for.

    Device classes and drivers of GPUs are called ``gpu.VENDOR``: gpu.nvidia.com, gpu.amd.com.
    """
    name = str((claim.get("metadata") or {}).get("name") or "")
    allocated = ((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}
    if results := allocated.get("results"):
        gpus = sum((result.get("driver") or "").startswith("gpu.") for result in results)
    else:
        requests = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
        gpus = sum(map(_gpus_of_request, requests))
    return name, min(gpus, _MOST_CLAIMED)


def _gpus_of_request(request: Object) -> int:
    # Of alternatives the first is what the claim would rather have.
    (exact, *_) = request.get("firstAvailable") or (request.get("exactly") or request,)
    if not (exact.get("deviceClassName") or "").startswith("gpu."):
        return 0
    wanted = exact.get("count") or 1
    return int(wanted) if wanted <= _MOST_CLAIMED else 1


def _annotated(pod: Object, gpus: int) -> Object:
    if not gpus:
        return pod
    metadata = pod["metadata"]
    annotations = {**(metadata.get("annotations") or {}), keys.CLAIMED_GPUS: str(gpus)}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}
