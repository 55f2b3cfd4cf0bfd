"""Releasing the gated workers of a job, each to its planned node."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.errors import Conflict, NotFound, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, pods_of
from arena_topo.kube.resources import PODS
from arena_topo.kube.session import Session
from arena_topo.model.job.kind import number_of, planned_noun
from arena_topo.model.notation.words import written_duration
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord
from arena_topo.pin.gates import is_gated, release_patch

Uuids = Mapping[int, Sequence[str]]

_TRIES = 5
"""Attempts to release a pod that others write at the same time."""


@dataclass(frozen=True, slots=True)
class Released:
    """How far a release has got: workers released by it, workers released before, and workers that do not exist yet."""

    now: int
    before: int
    missing: int


def gated_workers(session: Session, served: ServedJob) -> frozenset[int]:
    """Return the workers of the job that wait at our gate."""
    return frozenset(index for index, pod in _workers(session, served) if is_gated(pod))


def ungate_existing(
    session: Session, served: ServedJob, record: PlanRecord, uuids: Uuids | None = None
) -> Released:
    """Release every gated worker of the job that exists to its place in *record*, and to its GPUs where given."""
    workers = dict(_workers(session, served))
    gated = {index: pod for index, pod in workers.items() if is_gated(pod)}
    for slot in record.slots:
        if slot.worker in gated:
            gpus = (uuids or {}).get(slot.worker, ())
            _release(session, gated[slot.worker], record.hostname(slot.node), gpus)
    # A worker without a gate was released before, by us or by another submitter.
    existing = sum(slot.worker in workers for slot in record.slots)
    return Released(len(gated), existing - len(gated), len(record.slots) - existing)


def ungate_as_created(
    session: Session,
    served: ServedJob,
    record: PlanRecord,
    waiter: Waiter,
    *,
    uuids: Uuids | None = None,
    timeout: float = 120.0,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Release the workers as the operator creates them; return how many were released now.

    *timeout* is in seconds. Raises ``WaitTimeout`` when some were never created.
    """
    deadline, released = clock() + timeout, 0
    while True:
        progress = ungate_existing(session, served, record, uuids)
        released += progress.now
        if not progress.missing:
            return released
        missing = f"{progress.missing} of {len(record.slots)} {planned_noun(served.kind)}s"
        if clock() > deadline:
            raise WaitTimeout(
                f"{missing} were not created within {written_duration(timeout)}",
                hint=f"is {served.kind.served_by} running? Continue with: arena-topo resume {served.name}",
            )
        waiter.pause(f"waiting for {served.kind.served_by} to create {missing}")


def _workers(session: Session, served: ServedJob) -> Iterator[tuple[int, Object]]:
    """Yield the planned pods of the job that exist, with their numbers."""
    for pod in pods_of(session, served):
        number = number_of(served.kind, served.job, pod)
        if number is not None:
            yield number, pod


def _release(session: Session, pod: Object, hostname: str, uuids: Sequence[str]) -> None:
    path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"])
    for _ in range(_TRIES):
        try:
            session.patch(path, release_patch(pod, hostname, uuids))
        except Conflict:
            # The operator or kubelet wrote the pod since it was read; another submitter may have released it.
            pod = session.get(path)
            if not is_gated(pod):
                return
        except NotFound:
            # A worker that was deleted is recreated behind the gate, and waits for arena-topo resume.
            return
        else:
            return
    raise Conflict(f"the pod {pod['metadata']['name']} changes too fast to be released", status=409)
