"""Releasing the gated workers of a job, each to its planned node."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.errors import Conflict, NotFound, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, pods_of
from arena_topo.kube.resources import PODS
from arena_topo.kube.session import Session
from arena_topo.model.job.mpijob import parse_worker_name
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord
from arena_topo.pin.gates import is_gated, release

Uuids = Mapping[int, Sequence[str]]

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Released:
    """How far a release got: workers let go now, workers that had been, and those that do not exist yet."""

    now: int
    before: int
    missing: int


def gated_workers(session: Session, found: ServedJob) -> frozenset[int]:
    """Return the workers of the job that are held back."""
    return frozenset(index for index, pod in _workers(pods_of(session, found)) if is_gated(pod))


def release_all(
    session: Session, found: ServedJob, record: PlanRecord, uuids: Uuids | None = None
) -> Released:
    """Release every gated worker of the job that exists to its place in *record*, and to its GPUs where given."""
    workers = dict(_workers(pods_of(session, found)))
    gated = {index: pod for index, pod in workers.items() if is_gated(pod)}
    for slot in record.slots:
        if slot.worker in gated:
            gpus = (uuids or {}).get(slot.worker, ())
            _release(session, gated[slot.worker], record.hostname(slot.node), gpus)
    known = sum(slot.worker in workers for slot in record.slots)
    return Released(len(gated), known - len(gated), len(record.slots) - known)


def release_as_they_come(
    session: Session,
    found: ServedJob,
    record: PlanRecord,
    waiter: Waiter,
    *,
    uuids: Uuids | None = None,
    timeout: float = 120.0,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Release the workers as the operator makes them; return how many were released now.

    *timeout* is in seconds. Raises ``WaitTimeout`` when some were never made.
    """
    deadline, released = clock() + timeout, 0
    while True:
        done = release_all(session, found, record, uuids)
        released += done.now
        if not done.missing:
            return released
        if clock() > deadline:
            raise WaitTimeout(
                f"{done.missing} of {len(record.slots)} workers have not been made after {timeout:g} seconds",
                hint=f"is the MPI operator running? arena-topo resume {found.job['metadata']['name']} goes on",
            )
        waiter.pause(f"waiting for the operator to make {done.missing} of {len(record.slots)} workers")


def _workers(pods: list[Object]) -> Iterator[tuple[int, Object]]:
    for pod in pods:
        if name := parse_worker_name(pod["metadata"]["name"]):
            yield name.index, pod


def _release(session: Session, pod: Object, hostname: str, uuids: Sequence[str]) -> None:
    path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"])
    for _ in range(_TRIES):
        try:
            session.patch(path, release(pod, hostname, uuids))
        except Conflict:
            pod = session.get(path)
            if not is_gated(pod):
                return
        except NotFound:
            return
        else:
            return
    raise Conflict(f"the pod {pod['metadata']['name']} changes too fast to be released", status=409)
