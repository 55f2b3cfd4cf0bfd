"""Sandboxes served by a thread of the test's own process: they start fast and die with it."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from arena_topo.sandbox.lifecycle import Home
from arena_topo.sandbox.server import serve

TIMEOUT_SECONDS = 120.0


async def cut_off() -> None:
    """Cut off what connections this loop still has: no server knows one whose TLS handshake has not ended.

    A client that is gone by then never ends it, and a later test would fail of a socket that is open.
    """
    # What has just been accepted becomes a connection in the next turn.
    await asyncio.sleep(0)
    transports: Mapping[int, asyncio.Transport] = vars(asyncio.get_running_loop())["_transports"]
    for transport in [*transports.values()]:
        transport.abort()
    # Sockets close in the turn after that.
    await asyncio.sleep(0)


class _Server(threading.Thread):
    """A thread with an event loop of its own that serves one sandbox."""

    def __init__(self, home: Home) -> None:
        super().__init__(name=f"sandbox {home.folder}", daemon=True)
        self.error: Exception | None = None
        self._home = home
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()

    def run(self) -> None:
        """Serve until the test ends the server; an error is kept for the test to raise."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(serve(self._home, self._ended))
            except Exception as error:  # noqa: BLE001  # raised again by the thread that waits
                self.error = error
            runner.run(cut_off())

    def wait_ready(self) -> None:
        """Return once the server answers, which it does when its kubeconfig is there."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while self.is_alive() and time.monotonic() < end:
            if self._home.kubeconfig.exists():
                return
            time.sleep(0.01)
        raise self.error or AssertionError(f"{self.name} did not start")

    def stop(self) -> None:
        """End the server and raise its error if it had one."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self.join(TIMEOUT_SECONDS)
        assert not self.is_alive(), f"{self.name} did not end"
        if self.error:
            raise self.error


@contextmanager
def served(folder: Path, layout: str, speed: float = 20) -> Iterator[Home]:
    """Run a sandbox of *layout* in *folder*, twenty times as fast as life."""
    home = Home(folder)
    home.prepare()
    home.settings.write_text(json.dumps({"layout": layout, "speed": speed, "port": 0}), "utf-8")
    server = _Server(home)
    server.start()
    server.wait_ready()
    try:
        yield home
    finally:
        server.stop()
