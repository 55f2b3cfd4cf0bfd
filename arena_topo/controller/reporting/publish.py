"""Publishing what is free in the cluster, in a thread of its own: deciding does not wait for it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from threading import Thread

from arena_topo.cluster.published import Detail, publishable, published_parts
from arena_topo.controller.faults import said_of
from arena_topo.errors import ArenaTopoError
from arena_topo.kube.resources import CONFIG_MAPS
from arena_topo.kube.session import NotSent, Session
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.keys import CONTROLLER_NAMESPACE
from arena_topo.model.notation.printable import printable

EVERY = 5.0
"""Seconds between two writings, where something has changed; a snapshot of 10,000 nodes is an object of half a MiB."""

_REFRESH = 30.0
"""Seconds after which it is written all the same: readers are told of one that is a minute old."""


@dataclass(slots=True)
class Publisher:
    """Writes the snapshots that it is offered over *session*, while *may_write* says so; *clock* counts seconds."""

    session: Session
    detail: Detail
    may_write: Callable[[], bool]
    say: Callable[[str], None]
    clock: Callable[[], float]
    _offered: SimpleQueue[Snapshot | None] = field(default_factory=SimpleQueue, init=False)
    _thread: Thread | None = field(default=None, init=False)
    _last_offer: float = field(default=float("-inf"), init=False)
    _written: tuple[GpuNode, ...] | None = field(default=None, init=False)
    _at: float = field(default=float("-inf"), init=False)
    _said: str = field(default="", init=False)

    def start(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what was offered last may stay unwritten."""
        self._offered.put(None)
        if self._thread:
            self._thread.join()

    @property
    def is_due(self) -> bool:
        """Whether it is time to offer a snapshot again."""
        return self.detail is not Detail.NONE and self.clock() - self._last_offer >= EVERY

    def offer(self, snapshot: Snapshot) -> None:
        """Have *snapshot*, without what is reserved, written soon."""
        self._last_offer = self.clock()
        self._offered.put(snapshot)

    def _run(self) -> None:
        while (snapshot := self._offered.get()) is not None:
            try:
                # Only the newest one matters.
                while (newer := self._offered.get_nowait()) is not None:
                    snapshot = newer
            except Empty:
                self.publish(snapshot)
            else:
                return

    def publish(self, snapshot: Snapshot) -> None:
        """Write *snapshot*, unless all is as it was written a moment ago."""
        try:
            published = publishable(snapshot, self.detail)
            if published.nodes == self._written and self.clock() - self._at < _REFRESH:
                return
            taken = (self.session.server_time or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
            session = self.session.only_while(self.may_write)
            # The first part is written last: readers begin with it, and find the others.
            for part in reversed(published_parts(replace(published, taken=taken))):
                session.apply(CONFIG_MAPS.path(CONTROLLER_NAMESPACE, part["metadata"]["name"]), part)
        except NotSent:
            # Another replica publishes from now on.
            return
        except Exception as error:  # noqa: BLE001  # what others wrote into a node must not end the thread
            told = error.message if isinstance(error, ArenaTopoError) else said_of(error)
            text = f"the cluster is not published: {printable(told)}"
            # Once: it is tried again every few seconds.
            if text != self._said:
                self.say(text)
            self._said = text
            return
        self._written, self._at, self._said = published.nodes, self.clock(), ""
