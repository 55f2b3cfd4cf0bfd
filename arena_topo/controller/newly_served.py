"""Noticing what a cluster serves since the controller began to watch it: kinds of jobs, Kueue, and sources of topology."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Event, Thread

from arena_topo.errors import ArenaTopoError

EVERY = 60.0
"""Seconds between two looks at the discovery documents: a few small answers, which take no right as a watch of definitions would."""


@dataclass(slots=True)
class NewlyServed:
    """Looks every *every* seconds, in a thread of its own, for paths that are served beside the *known* ones.

    What is not served any more is nobody's news here: its stream ends with an error, and a group may be missing from
    discovery for a moment, when nothing that is watched may be forgotten.
    """

    look: Callable[[], Iterable[str]]
    known: Iterable[str]
    every: float = EVERY
    paths: tuple[str, ...] = field(default=(), init=False)
    _ended: Event = field(default_factory=Event, init=False)
    _thread: Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        known = frozenset(self.known)
        while not self._ended.wait(self.every):
            try:
                found = self.look()
            except ArenaTopoError:
                # The server may be away for a moment: whoever watches it says so.
                continue
            if added := sorted(set(found) - known):
                self.paths = tuple(added)
                return
