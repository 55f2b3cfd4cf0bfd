"""A cluster with its jobs, kept up to date for a screen that somebody watches for hours.

Jobs and their pods arrive by two streams, as for ``list -w``. What the nodes offer and what other pods take
is listed again when a job's pods changed, and otherwise rarely: the lists of a large cluster are megabytes.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import ArenaTopoError, Forbidden, NotFound
from arena_topo.jobs.lists import newest_first
from arena_topo.jobs.options import PlanOptions, options_from_annotation
from arena_topo.jobs.plan import (
    Question,
    asked_roles,
    predicted_rates,
    question_of,
    requests_rdma,
    shares_at,
)
from arena_topo.jobs.watch import JobWatch
from arena_topo.kube.session import Session
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.job_view import JobView, PlannedWorker
from arena_topo.model.plan import Prediction
from arena_topo.model.plan_record import decode, plan_text
from arena_topo.model.reports import LinkUse, Overview
from arena_topo.planner.gpus.machine import MachineCatalog

# The links that jobs use where they are, and the bandwidth that their ranks will probably see there.


def link_uses(jobs: Iterable[JobView], snapshot: Snapshot, catalog: MachineCatalog) -> Iterator[LinkUse]:
    """Yield what each of *jobs* that has places, and has not ended, uses of the links in *snapshot*.

    Planned places come before those of the pods: they are known sooner, and with their GPUs. *catalog* keeps
    what was computed of the machines from one call to the next.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    for job in jobs:
        if job.status.is_final:
            continue
        planned = job.plan.workers if job.plan and job.plan.stage in ("proposed", "confirmed") else ()
        # An elastic job may have grown since, and a pod may run elsewhere than planned.
        moved = job.plan.moved if job.plan else ()
        places = planned if planned and not moved else _seen(job)
        if places:
            yield LinkUse(
                job=(job.namespace, job.name),
                workers=dict(Counter(place.node for place in places)),
                is_planned=places is planned,
                prediction=_prediction(job, places, nodes, snapshot, catalog),
            )


def _seen(job: JobView) -> tuple[PlannedWorker, ...]:
    return tuple(
        PlannedWorker(instance.name, instance.node, None)
        for instance in job.instances
        if instance.node and instance.gpus
    )


def _prediction(
    job: JobView,
    places: Sequence[PlannedWorker],
    nodes: Mapping[str, GpuNode],
    snapshot: Snapshot,
    catalog: MachineCatalog,
) -> Prediction | None:
    """Return what the ranks of *job* will probably see, None where that cannot be known."""
    if not all(place.node in nodes for place in places):
        return None
    # Anyone who may edit a job may write anything into it, and must not hide the others.
    try:
        options = _options(job)
        question = question_of(job.manifest, snapshot, options)
        # Those with the most GPUs train; parameter servers exchange nothing by NCCL.
        demand = max((demand for _, demand in asked_roles(question)), key=lambda demand: demand.gpus)
    except (ArenaTopoError, ValueError, IndexError):
        return None
    places = _of_gpus(places, question, demand.gpus)
    if demand.gpus * len(places) < 2:
        return None
    shares = list(shares_at(places, demand.gpus, nodes, catalog))
    return predicted_rates(shares, demand.gpus, nodes, demand, options, rdma=requests_rdma(demand))


def _of_gpus(places: Sequence[PlannedWorker], question: Question, gpus: int) -> Sequence[PlannedWorker]:
    """Return those of *places*, in the order of their numbers, whose pods have *gpus* GPUs."""
    asked = [
        demand.gpus for _, demand in asked_roles(question) for _ in range(min(demand.workers, len(places)))
    ]
    # An elastic job may have grown since, and places that were seen are only of pods with GPUs.
    if len(asked) != len(places):
        return places
    return [place for place, of_pod in zip(places, asked, strict=True) if of_pod == gpus]


def _options(job: JobView) -> PlanOptions:
    text = plan_text(job.manifest)
    return PlanOptions() if text is None else options_from_annotation(decode(text).requested_options)


_SOON = 5.0
"""Seconds between two readings of the cluster while its jobs change."""

_LATE = 30.0
"""Seconds after which the cluster is read again though no job has changed: pods of others come and go too."""

_SHARE = 10
"""Reading the cluster takes one part in so many of the time at the most."""


class ClusterWatch:
    """The cluster of *session*, and its jobs.

    Those of all namespaces, or of the session's own where others are forbidden.
    It survives whatever its methods raise: the next ``look`` begins again.
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
                    f"only the jobs of namespace {self._session.namespace}: you cannot list those of all namespaces"
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
        # An equal cluster is the same one, so that nothing is drawn again.
        if replace(snapshot, taken=self._snapshot.taken) != self._snapshot:
            self._snapshot = snapshot
        self._read_at = self._clock()
        self._took = self._read_at - began
        self._is_due = False
