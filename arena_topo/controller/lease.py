"""Who decides: of several replicas the one that holds the Lease, and only for as long as it is sure to.

A holder renews the Lease every few seconds. Another replica takes it once it has seen no renewal for the Lease's whole
duration, by its own clock. The holder counts the same time from before it sent its last renewal, so that it stops writing
before anybody else begins, also where it was stopped for a while in between. Source: coordination.k8s.io/v1, and client-go's
leaderelection, whose rules these are.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Lock

from arena_topo.errors import ArenaTopoError, Conflict, DocumentError, NotFound
from arena_topo.kube.resources import LEASES
from arena_topo.kube.session import Session
from arena_topo.kube.status_errors import is_unserved
from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE
from arena_topo.model.notation.printable import printable
from arena_topo.model.objects import Object

DURATION = 10.0
"""Seconds for which a Lease is held without being renewed."""

_PERIOD = DURATION / 5
"""Seconds between two renewals, or between two looks at the Lease of another replica."""

_MARGIN = 1.0
"""Seconds before the end of the Lease in which nothing is sent any more: the server has to take it, too."""


@dataclass(slots=True)
class Lease:
    """The Lease of this replica, which calls itself *identity*; *clock* counts seconds, and nobody sets it.

    ``may_write`` may be asked by any thread.
    """

    session: Session
    identity: str
    clock: Callable[[], float] = time.monotonic
    _held_until: float = field(default=0.0, init=False)
    _seen: tuple[str, float] = field(default=("", 0.0), init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def may_write(self) -> bool:
        """Whether nobody else can hold the Lease now, nor in the next moment."""
        with self._lock:
            return self.clock() < self._held_until - _MARGIN

    def acquire(self, ended: Event, say: Callable[[str], None]) -> bool:
        """Wait until this replica holds the Lease; return False where it was told to end before."""
        reported = ""
        while not ended.is_set():
            holder = self._try()
            if holder == self.identity:
                return True
            if holder != reported:
                say(f"waiting: {printable(holder)} decides")
                reported = holder
            ended.wait(_PERIOD)
        return False

    def keep(self, ended: Event, lost: Callable[[str], None]) -> None:
        """Renew the Lease until the end; *lost* hears of it where somebody else has it, or it could not be renewed."""
        while not ended.wait(_PERIOD):
            try:
                holder = self._renew()
            except ArenaTopoError as error:
                # The server may be away for a moment: the Lease is held until its time is over.
                if not self.may_write():
                    lost(f"the Lease could not be renewed: {error.message}")
                    return
                continue
            if holder != self.identity:
                with self._lock:
                    self._held_until = 0.0
                lost(f"{printable(holder) or 'nobody'} holds the Lease")
                return

    def release(self) -> None:
        """Give the Lease up, so that another replica need not wait for its end."""
        if not self.may_write():
            return
        with self._lock:
            self._held_until = 0.0
        try:
            found = self.session.get(_PATH)
            if _holder(found) == self.identity:
                self._write(found, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except ArenaTopoError:
            # It ends by itself.
            return

    def _renew(self) -> str:
        """Renew the Lease, and return who holds it; nobody where it was given up or deleted.

        It is not taken then: another replica may have decided in between, and this one knows nothing of that.
        """
        try:
            found = self.session.get(_PATH)
        except NotFound:
            return ""
        holder = _holder(found)
        return self._take(found, {}) if holder == self.identity else holder

    def _try(self) -> str:
        """Take the Lease where that is possible, and return who holds it."""
        began = self.clock()
        try:
            found = self.session.get(_PATH)
        except NotFound:
            return self._created(began)
        holder, version = _holder(found), str(found["metadata"].get("resourceVersion"))
        if holder and holder != self.identity:
            if self._seen[0] != version:
                self._seen = version, self.clock()
            if self.clock() - self._seen[1] <= DURATION:
                return holder
        transitions = _spec(found).get("leaseTransitions")
        count = transitions if isinstance(transitions, int) else 0
        try:
            return self._take(found, {"acquireTime": _now(), "leaseTransitions": count + 1})
        except Conflict:
            # Another replica was quicker, or the answer to our own write got lost: the next look tells.
            return holder or "another replica"

    def _take(self, found: Object, changed: Object) -> str:
        """Write this replica into the Lease that was *found*. Raises ``Conflict`` where it is another one by now."""
        began = self.clock()
        self._write(
            found, {"holderIdentity": self.identity, "leaseDurationSeconds": int(DURATION), **changed}
        )
        return self._hold(began)

    def _created(self, began: float) -> str:
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": int(DURATION), "acquireTime": _now()}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": CONTROLLER, "namespace": CONTROLLER_NAMESPACE},
            "spec": {**spec, "renewTime": _now(), "leaseTransitions": 0},
        }
        try:
            self.session.create(LEASES.path(CONTROLLER_NAMESPACE), body)
        except Conflict:
            return "another replica"
        except NotFound as error:
            if is_unserved(error):
                raise NotFound(
                    "this cluster serves no Leases (coordination.k8s.io/v1), and without one two replicas could decide",
                    status=404,
                ) from error
            raise NotFound(
                f"there is no namespace {CONTROLLER_NAMESPACE}, in which the controller keeps its Lease",
                hint="arena-topo controller manifest prints it with all that the controller needs",
                status=404,
            ) from error
        return self._hold(began)

    def _hold(self, began: float) -> str:
        with self._lock:
            self._held_until = began + DURATION
        return self.identity

    def _write(self, found: Object, spec: Object) -> None:
        # The version that was read makes the server refuse the write after any other.
        version = found["metadata"].get("resourceVersion")
        self.session.patch(
            _PATH, {"metadata": {"resourceVersion": version}, "spec": {**spec, "renewTime": _now()}}
        )


_PATH = LEASES.path(CONTROLLER_NAMESPACE, CONTROLLER)


def _spec(lease: Object) -> Object:
    spec = lease.get("spec")
    if not isinstance(spec, dict):
        raise DocumentError("the Lease of the controller has no spec")
    return spec


def _holder(lease: Object) -> str:
    return str(_spec(lease).get("holderIdentity") or "")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
