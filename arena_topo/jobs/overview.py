"""A cluster with its jobs, kept up to date for a screen that somebody watches for hours.

Jobs and their pods arrive by two streams, as for ``list -w``. What the nodes offer and what other pods take is listed again
when a job's pods changed, and otherwise rarely: the lists of a large cluster are megabytes.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import Forbidden, NotFound
from arena_topo.jobs.link_use import link_uses
from arena_topo.jobs.reading.job_list import newest_first
from arena_topo.jobs.reading.watch import JobWatch
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.job_view import JobView
from arena_topo.model.plan.overview import Overview
from arena_topo.planner.gpus.machine import MachineCatalog

_SOON = 5.0
"""Seconds between two readings of the cluster while its jobs change."""

_LATE = 30.0
"""Seconds after which the cluster is read again though no job has changed: pods of others come and go too."""

_SHARE = 10
"""Reading the cluster takes one part in so many of the time at the most."""


class ClusterWatch:
    """The cluster of *session*, and its jobs: those of all namespaces, or of the session's own where others are forbidden.

    It survives whatever its methods raise: the next ``look`` begins anew.
    """

    def __init__(
        self,
        session: Session,
        *,
        all_namespaces: bool = True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._session, self._clock, self._sleep = session, clock, sleep
        self._all_namespaces = all_namespaces
        self._jobs: JobWatch | None = None
        self._catalog = MachineCatalog()
        self._snapshot = Snapshot()
        self._notes: dict[str, str] = {}
        self._read_at, self._took = float("-inf"), 0.0
        self._places: frozenset[tuple[str, str]] = frozenset()
        self._is_due = True

    def look(self) -> Overview:
        """Return everything as it is now. Raises what reading raises, such as ``ConnectionFailed``."""
        jobs = self._job_views()
        places = frozenset((job.uid, one.name + one.node) for job in jobs for one in job.instances)
        self._is_due |= places != self._places
        self._places = places
        self._read_cluster()
        return Overview(
            snapshot=self._snapshot,
            jobs=tuple(jobs),
            uses=tuple(link_uses(jobs, self._snapshot, self._catalog)),
            namespace="" if self._all_namespaces else self._session.namespace,
            notes=tuple(self._notes.values()),
        )

    def wait(self) -> None:
        """Return when it is worth looking again. Raises what watching raises."""
        if self._jobs is None:
            # Nothing shows when the cluster gets its first MPIJob.
            self._sleep(_SOON)
            return
        try:
            self._jobs.wait(max(self._next_reading() - self._clock(), 0.0))
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Stop watching, until the next ``look``."""
        if self._jobs is not None:
            self._jobs.close()
        self._jobs = None
        # Whatever happened meanwhile, nothing that is shown may rest on what was read before.
        self._read_at = float("-inf")

    def _job_views(self) -> list[JobView]:
        try:
            if self._jobs is None:
                self._jobs = self._opened()
            return newest_first(self._jobs.views().values())
        except NotFound as error:
            self._notes["jobs"] = error.message
            return []

    def _opened(self) -> JobWatch:
        if self._all_namespaces:
            try:
                return JobWatch(self._session, all_namespaces=True)
            except Forbidden:
                self._all_namespaces = False
                self._notes["jobs"] = (
                    f"only the jobs of namespace {self._session.namespace}: you may not list those of all namespaces"
                )
        return JobWatch(self._session)

    def _next_reading(self) -> float:
        return self._read_at + max(_SOON if self._is_due else _LATE, _SHARE * self._took)

    def _read_cluster(self) -> None:
        began = self._clock()
        if began < self._next_reading():
            return
        try:
            snapshot = take_snapshot(self._session)
            self._notes.pop("nodes", None)
        except Forbidden as error:
            snapshot = Snapshot()
            self._notes["nodes"] = f"no nodes: {error.message}"
        # An equal cluster is the same one, so that nothing is drawn anew.
        if replace(snapshot, taken=self._snapshot.taken) != self._snapshot:
            self._snapshot = snapshot
        self._read_at = self._clock()
        self._took = self._read_at - began
        self._is_due = False
