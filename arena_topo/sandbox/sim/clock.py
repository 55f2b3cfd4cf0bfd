"""Simulated time: how long things take, divided by a speed."""

import asyncio
from dataclasses import dataclass


@dataclass(slots=True)
class Clock:
    """``speed`` simulated seconds pass in a real one; instants in objects are real ones."""

    speed: float = 1.0

    def real(self, seconds: float) -> float:
        """Return the real seconds that *seconds* of the simulation last."""
        return seconds / self.speed

    async def sleep(self, seconds: float) -> None:
        """Let *seconds* of the simulation pass."""
        await asyncio.sleep(self.real(seconds))
