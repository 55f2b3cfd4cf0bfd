"""Suspending a job: its pods go, and so does its plan, since whoever gets the GPUs meanwhile keeps them."""

import time
from collections.abc import Callable
from dataclasses import replace

from arena_topo.errors import Conflict, Invalid, UsageError, WaitTimeout
from arena_topo.jobs.lookup import ServedJob, find_job, pods_of
from arena_topo.jobs.placement.enforcement import pins_of
from arena_topo.jobs.placement.reservation import plan_of
from arena_topo.jobs.status.conditions import has_ended
from arena_topo.kube.resources import jobs_of
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import Pins, changes, with_pins, without_pins
from arena_topo.model.job.kind import Loose, is_suspended, title
from arena_topo.model.keys import KUEUE_QUEUE
from arena_topo.model.notation.words import plural, written_duration
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import GpuEnforcement, PlanRecord, Stage, encode

_PERIOD = 0.5
"""Seconds between two looks at pods that are about to go."""
_ENDED = ("Succeeded", "Failed")


def suspend_job(session: Session, name: str) -> ServedJob | None:
    """Suspend the job *name* and return it, None where it is suspended already.

    Its plan reserves nothing any more: ``resume`` plans it again. Raises ``UsageError`` for a job that has ended, that
    Kueue starts and stops, or whose served version cannot be suspended.
    """
    served = find_job(session, name)
    _check_suspendable(served)
    record = plan_of(served.job)
    # A job that waits for a place is suspended too, but by us, who may start it at any moment.
    if is_suspended(served.kind, served.job) and (record is None or record.stage is Stage.SUSPENDED):
        return None
    return replace(served, job=suspended(session, served, record))


def suspended(session: Session, served: ServedJob, record: PlanRecord | None) -> Object:
    """Return the job as the server has it once it is suspended, without the pins and reservations of *record*."""
    after = with_pins(served.job, Pins(plan=None, suspended=True))
    if record:
        # Some templates may not change as long as a pod is left: old pins do no harm there until new ones replace them.
        is_fixed = served.kind.loose is Loose.SCHEDULING
        bare = served.job if is_fixed else without_pins(served.job, pins_of(served.job, record))
        after = with_pins(bare, Pins(plan=encode(_unplaced(record)), suspended=True))
    path = jobs_of(served.kind).path(session.namespace, served.name)
    try:
        job = session.patch(path, changes(served.job, after), "json", fieldValidation="Strict")
    except Invalid as error:
        if "unknown field" in error.message:
            raise _unsupported(served) from error
        raise Conflict(
            f"the job {served.name} was not suspended, as it changes at this moment: {error.message}",
            hint=f"see arena-topo get {served.name}, and try again",
            status=409,
        ) from error
    # A server that is not asked to be strict drops a field that the schema does not have.
    if not is_suspended(served.kind, job):
        raise _unsupported(served)
    return job


def wait_until_stopped(
    session: Session, served: ServedJob, *, timeout: float, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return once no pod of the job runs; *timeout* in seconds, 0 for no limit. Raises ``WaitTimeout``."""
    deadline = time.monotonic() + timeout
    while left := [pod for pod in pods_of(session, served) if not _has_ended(pod)]:
        if timeout and time.monotonic() >= deadline:
            raise WaitTimeout(
                f"the job {served.name} is suspended, and {plural(len(left), 'pod')} of it still exist after "
                f"{written_duration(timeout)}",
                hint=f"its pods may take their time to stop, or {served.kind.served_by} is too old to suspend jobs",
            )
        sleep(_PERIOD)


def _unplaced(record: PlanRecord) -> PlanRecord:
    return replace(
        record,
        stage=Stage.SUSPENDED,
        slots=(),
        hostnames={},
        level="",
        domain="",
        waiting_reason="",
        gpu_enforcement=GpuEnforcement.NONE,
    )


def _check_suspendable(served: ServedJob) -> None:
    if has_ended(served.job):
        raise UsageError(
            f"the job {served.name} has ended, so there is nothing to suspend",
            hint=f"arena-topo rerun {served.name} runs it again",
        )
    if not served.kind.suspend:
        raise _unsupported(served)
    if queue := (served.job["metadata"].get("labels") or {}).get(KUEUE_QUEUE):
        raise UsageError(
            f"the job {served.name} is in queue {queue} of Kueue, which starts and stops it and would start it again",
            hint=f"stop its Workload: kubectl kueue stop workload, or delete it: arena-topo delete {served.name}",
        )


def _unsupported(served: ServedJob) -> UsageError:
    return UsageError(
        f"the {title(served.kind)} that this cluster serves cannot be suspended",
        hint="it needs mpi-operator >= 0.4 (v2beta1) or training-operator >= 1.7 (v1); "
        f"here: arena-topo delete {served.name}, and later arena-topo rerun with its manifest "
        f"(arena-topo get {served.name} -o json saves it)",
    )


def _has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in _ENDED
