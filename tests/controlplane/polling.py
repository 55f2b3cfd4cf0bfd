"""Waiting for facts, never for time alone."""

import time
from collections.abc import Callable
from typing import TypeVar

from tests.controlplane.errors import ControlPlaneError

T = TypeVar("T")

TIMEOUT_SECONDS = 180.0  # four tests at once on a slow machine take long, a missing fact is rare


def eventually(fact: Callable[[], T | None], what: str, timeout: float = TIMEOUT_SECONDS) -> T:
    """Call ``fact`` until it returns something true and
    return that; raise ControlPlaneError naming ``what``.
    """
    deadline = time.monotonic() + timeout
    pause = 0.02
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > deadline:
            raise ControlPlaneError(f"after {timeout:.0f} s still waiting for {what}; last seen: {value!r}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)
