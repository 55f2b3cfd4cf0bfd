"""Simulated time, and controllers as level-triggered loops: a step looks at everything."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass

from arena_topo.sandbox.api.kinds import ResourceKey
from arena_topo.sandbox.api.store import Change, Store

_EVENTS: ResourceKey = ("", "events")
_SETTLE_SECONDS = 0.01
_RETRY_SECONDS = 1.0

_Step = Callable[[], float | None]
"""A step does what is due, and returns in how many real seconds more may be: None for a change."""


@dataclass(slots=True)
class Clock:
    """``speed`` simulated seconds pass in a real one; instants in objects are real ones."""

    speed: float = 1.0

    async def sleep(self, seconds: float) -> None:
        """Let *seconds* of the simulation pass."""
        await asyncio.sleep(seconds / self.speed)


class Loop:
    """One controller, woken by changes of *resources*; by None, of all but events."""

    def __init__(self, store: Store, resources: Collection[ResourceKey] | None, step: _Step) -> None:
        self._resources = None if resources is None else frozenset(resources)
        self._step = step
        self._wake = asyncio.Event()
        # The first step looks at what was there before the loop listened.
        self._wake.set()
        self._stop = store.listen(self._notice)

    def _notice(self, change: Change) -> None:
        watched = (
            change.resource != _EVENTS if self._resources is None else change.resource in self._resources
        )
        if watched:
            self._wake.set()

    async def run(self) -> None:
        """Step whenever something has changed, until cancelled."""
        delay: float | None = None
        try:
            while True:
                try:
                    await asyncio.wait_for(self._wake.wait(), delay)
                    # Changes come in bursts: one step looks at all of a burst.
                    await asyncio.sleep(_SETTLE_SECONDS)
                # The time that the last step asked for has passed: it is due without a change.
                except TimeoutError:
                    pass
                # Cleared before the step, so that the step's own changes, and later ones, wake the loop
                # again.
                self._wake.clear()
                delay = self._guarded_step()
        finally:
            self._stop()

    def _guarded_step(self) -> float | None:
        try:
            return self._step()
        except Exception:  # noqa: BLE001  # one object must not end the cluster
            traceback.print_exc(file=sys.stderr)
            return _RETRY_SECONDS
