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
from arena_topo.errors import ArenaTopoError, NotFound
from arena_topo.jobs.placement.reservation import write_plan
from arena_topo.kinds.table import kind_of
from arena_topo.kube.resources import EVENTS, PODS
from arena_topo.kube.session import NotSent, Session
from arena_topo.model.keys import CONTROLLER
from arena_topo.model.notation.bounded_json import cut
from arena_topo.model.objects import Object
from arena_topo.pin.gates import release_patch

_MOST_MESSAGE = 1000
"""Characters of an event's message; the API server admits 1,024."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that was not carried out, and why."""

    action: Action
    message: str


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
            except ArenaTopoError as error:
                self._failures.put(Failure(action, error.message))
            except Exception as error:  # noqa: BLE001  # one object that others wrote must not end a thread that all need
                self._failures.put(Failure(action, f"{type(error).__name__}: {error}"))


def carry_out(session: Session, action: Action) -> None:
    """Send *action*. Raises what the server refuses it with."""
    match action:
        case WritePlan(job, record, uuids):
            write_plan(session, kind_of(job), job, record, uuids, manager=CONTROLLER)
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
            namespace = job["metadata"]["namespace"]
            session.create(EVENTS.path(namespace), _event(job, reason, message, kind.value))


def _event(job: Object, reason: str, message: str, kind: str) -> Object:
    meta, now = job["metadata"], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name'][:200]}.{uuid4().hex[:16]}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            "name": meta["name"],
            "namespace": meta["namespace"],
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
