"""What Prometheus reads of a controller: whether it decides, who waits, how long decisions take, and what was written.

It needs prometheus-client, which comes with the extra ``controller``: nothing imports this module unless metrics are served.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from arena_topo.controller.actions import Action, DeletePod, PatchStatus, ReleaseWorker, WritePlan
from arena_topo.errors import UsageError

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the classes of decisions, around the ten milliseconds that one should take at most."""


class Metrics:
    """The figures of one controller, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._leading = Gauge(
            "arena_topo_leading", "1 where this replica decides, and 0 elsewhere.", registry=self.registry
        )
        self._waiting = Gauge(
            "arena_topo_waiting_jobs",
            "Jobs that wait for a place, in the controller's own queue and with quota of Kueue.",
            ["queue"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "arena_topo_decision_seconds",
            "How long each decision on all jobs took.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._actions = Counter(
            "arena_topo_actions",
            "What was decided: plans written, by stage, workers released or deleted, and checks of Kueue answered.",
            ["action"],
            registry=self.registry,
        )
        self._failed = Counter(
            "arena_topo_failed_actions", "Actions that could not be carried out.", registry=self.registry
        )

        self._faults = Counter(
            "arena_topo_faults",
            "Objects that could not be read, planned or written for an error that nobody foresaw.",
            registry=self.registry,
        )

    def note_leading(self, *, leading: bool) -> None:
        """Note whether this replica decides."""
        self._leading.set(int(leading))

    def note_decision(self, seconds: float, actions: Sequence[Action], own: int, kueue: int) -> None:
        """Note a decision that took so many *seconds*, and after which so many jobs wait in the *own* queue and in Kueue's."""
        self._seconds.observe(seconds)
        self._waiting.labels("own").set(own)
        self._waiting.labels("kueue").set(kueue)
        for action in actions:
            if word := _word(action):
                self._actions.labels(word).inc()

    def note_faults(self, count: int) -> None:
        """Note that so many errors were caught at one object each."""
        self._faults.inc(count)

    def note_failures(self, count: int) -> None:
        """Note that so many actions could not be carried out."""
        self._failed.inc(count)


@contextmanager
def serve_metrics(port: int) -> Iterator[Metrics]:
    """Serve metrics at *port* of all addresses until the block ends. Raises ``UsageError`` where nobody can listen there."""
    metrics = Metrics()
    try:
        try:
            server, thread = start_http_server(port, "::", registry=metrics.registry)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
            # A cluster may have addresses of version 6 alone, and a machine none of them.
            everywhere = "0.0.0.0"  # noqa: S104  # Prometheus comes from elsewhere
            server, thread = start_http_server(port, everywhere, registry=metrics.registry)
    except OSError as error:
        raise UsageError(
            f"--metrics-port: cannot listen at port {port}: {os.strerror(error.errno or 0)}",
            hint="choose a port that is free",
        ) from error
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _word(action: Action) -> str:
    """Return what *action* is counted as, empty for events, which say what other actions do."""
    match action:
        case WritePlan(record=record):
            return f"plan_{record.stage.value}"
        case ReleaseWorker():
            return "worker_released"
        case DeletePod():
            return "worker_deleted"
        case PatchStatus():
            return "check_answered"
        case _:
            return ""
