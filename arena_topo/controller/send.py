"""Carrying out what was decided: threads that only send, each request right after a look at the Lease."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Thread
from uuid import uuid4

from arena_topo.controller.actions import (
    Action,
    DeletePod,
    Notice,
    PatchStatus,
    ReleaseWorker,
    WritePlan,
)
from arena_topo.controller.faults import said_of
from arena_topo.errors import ApiError, Conflict, ConnectionFailed, NotFound
from arena_topo.jobs.placement.reservation import write_plan
from arena_topo.kinds.table import kind_of
from arena_topo.kube.resources import EVENTS, PODS, jobs_of
from arena_topo.kube.session import NotSent, Session
from arena_topo.model.job.kind import api_version
from arena_topo.model.job.object_shapes import TRAINING_JOB
from arena_topo.model.keys import CONTROLLER
from arena_topo.model.notation.bounded_json import cut
from arena_topo.model.notation.shapes import fitted
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import Stage, plan_text
from arena_topo.pin.gates import release_patch

_MOST_MESSAGE = 1000
"""Characters of an event's message; the API server admits 1,024."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that was not carried out, and why."""

    action: Action
    message: str
    fault: Exception | None = None
    """Why nothing could be sent: what others wrote, or what nobody foresaw; None for what the server refused."""


@dataclass(slots=True)
class Sender:
    """Sends actions over *sessions*, one thread each, while *may_write* says so; ``failures`` has what went wrong."""

    sessions: Sequence[Session]
    may_write: Callable[[], bool]
    _actions: SimpleQueue[Action | None] = field(default_factory=SimpleQueue, init=False)
    _failures: SimpleQueue[Failure] = field(default_factory=SimpleQueue, init=False)
    _threads: list[Thread] = field(default_factory=list, init=False)

    def start(self) -> None:
        """Start the threads."""
        for session in self.sessions:
            thread = Thread(target=self._run, args=(session,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Send what was decided, and end the threads."""
        for _ in self._threads:
            self._actions.put(None)
        for thread in self._threads:
            thread.join()

    def send(self, action: Action) -> None:
        """Send *action* soon."""
        self._actions.put(action)

    def failures(self) -> list[Failure]:
        """Return what went wrong since the last call."""
        return [self._failures.get() for _ in range(self._failures.qsize())]

    def _run(self, session: Session) -> None:
        while (action := self._actions.get()) is not None:
            try:
                carry_out(session.only_while(self.may_write), action)
            except NotSent:
                self._failures.put(Failure(action, "the Lease has ended"))
            except (ApiError, ConnectionFailed) as error:
                self._failures.put(Failure(action, error.message))
            except Exception as error:  # noqa: BLE001  # one object that others wrote must not end a thread that all need
                self._failures.put(Failure(action, said_of(error), error))


def carry_out(session: Session, action: Action) -> None:
    """Send *action*. Raises what the server refuses it with."""
    match action:
        case WritePlan(job, record, uuids):
            # The write that starts it has its templates, of which the controller keeps what it reads.
            whole = _whole(session, job) if record.stage is Stage.CONFIRMED else job
            write_plan(session, kind_of(job), whole, record, uuids, manager=CONTROLLER)
        case ReleaseWorker(pod, hostname, uuids):
            meta = pod["metadata"]
            patch = release_patch(pod, hostname, uuids)
            path = PODS.path(meta["namespace"], meta["name"])
            session.patch(path, patch, fieldManager=CONTROLLER)
        case DeletePod(pod):
            meta = pod["metadata"]
            try:
                session.delete(PODS.path(meta["namespace"], meta["name"]), uid=meta["uid"])
            except NotFound:
                return
        case PatchStatus(path, _, body):
            # A Workload or a check that is gone meanwhile needs no answer.
            with suppress(NotFound):
                session.patch(
                    path, body, "json" if isinstance(body, list) else "merge", fieldManager=CONTROLLER
                )
        case Notice(job, reason, message, kind):
            # Those of objects without a namespace are in this one, and nowhere else.
            namespace = job["metadata"].get("namespace") or "default"
            session.create(EVENTS.path(namespace), _event(job, namespace, reason, message, kind.value))


def _whole(session: Session, job: Object) -> Object:
    """Return *job* as the server has it. Raises ``Conflict`` where it has another plan by now, or is another job."""
    kind, meta = kind_of(job), job["metadata"]
    found = session.get(jobs_of(kind).path(meta["namespace"], meta["name"]))
    whole: Object = {**fitted(found, TRAINING_JOB), "apiVersion": api_version(kind), "kind": kind.kind}
    if (whole["metadata"]["uid"], plan_text(whole)) != (meta["uid"], plan_text(job)):
        raise Conflict(f"somebody else is placing the job {meta['name']} at this moment", status=409)
    return whole


def _event(job: Object, namespace: str, reason: str, message: str, kind: str) -> Object:
    meta, now = job["metadata"], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name'][:200]}.{uuid4().hex[:16]}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            "name": meta["name"],
            **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
            "uid": meta["uid"],
        },
        "reason": reason,
        "message": cut(message, _MOST_MESSAGE),
        "type": kind,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": CONTROLLER},
        "reportingComponent": CONTROLLER,
    }
