"""Estimates of when waiting jobs will start, made step by step while there is nothing to decide.

An estimate plans each of the first jobs of the queue ten times or more, in three scenarios
(``planner/start_time.py``). That takes seconds on a large cluster, where a decision takes milliseconds. So
the main loop makes one ``step`` after the other, and checks for changes in between. A round is of one moment,
whatever happens meanwhile; the next decisions write its results onto the jobs. A round that would take more
than some seconds ends early, and has estimated only the first jobs. Between two rounds there is a pause, so
that estimates take a twentieth of the time.

``FleetPlanner`` comes first: a planner that remembers the cluster. Decisions and estimates have one each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from arena_topo.controller.objects import Faults
from arena_topo.controller.state import JobName
from arena_topo.errors import DocumentError
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import Question
from arena_topo.jobs.when import end_of, past_run, runs_for
from arena_topo.model.cluster import Snapshot
from arena_topo.model.objects import Object
from arena_topo.model.plan import Verdict
from arena_topo.model.plan_record import End, StartEstimate
from arena_topo.planner.fleet import Fleets
from arena_topo.planner.plan import plan_on
from arena_topo.planner.queue import RunningJob
from arena_topo.planner.reservations import Plan
from arena_topo.planner.start_time import (
    EndingJob,
    PastRun,
    Prepare,
    RunHistory,
    StartingJob,
    endless_text,
    starts_estimated,
)


@dataclass(slots=True)
class FleetPlanner:
    """The planner, with the fleet kept from one snapshot to the next; for one thread."""

    _fleets: Fleets = field(default_factory=Fleets)

    def __call__(self, asked: Question, snapshot: Snapshot, _options: PlanOptions) -> Verdict:
        """Return where the pods of *asked* go in *snapshot*, without explanations, or why they cannot."""
        fleet = self._fleets.of(snapshot)
        return plan_on(asked, fleet, advises=False, explains=False)

    def prepare(self, snapshot: Snapshot) -> Iterator[None]:
        """Prepare for *snapshot* step by step, yielding after each, so that the next answer is quick."""
        yield from self._fleets.approach(snapshot)


_SOON, _LATER = 1.0, 10.0
"""Seconds between the starts of two rounds: if a job waits without an estimate, and if all have one."""

_REST = 20.0
"""The pause after a round, as a multiple of the time that it took."""

_MOST_SPENT = 5.0
"""Seconds of work in one round."""

_FEW = 20
"""Jobs that are read in one step."""

_LEAST_NEWS = timedelta(minutes=1)
_NEWS_SHARE = 0.15
"""By how much an estimate has to move to be written again, and as a share of the time until then."""

_ELSEWHERE = "a job of another namespace"


class TimedJob(Protocol):
    """A job as estimates read it: with a plan of its own, or in a queue of Kueue."""

    @property
    def uid(self) -> str:
        """The uid of the job, or of its Workload."""

    @property
    def name(self) -> JobName:
        """As its pods refer to it."""

    @property
    def order(self) -> tuple[str, str]:
        """The sort key of the queue."""

    @property
    def job(self) -> Object:
        """The job, in so far as it is known."""

    @property
    def ended(self) -> bool:
        """Whether it has ended."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """A waiting job, and what proposes a placement for it in a snapshot."""

    job: TimedJob
    plan: Plan


@dataclass(frozen=True, slots=True)
class Prospect:
    """One moment of a queue: the free capacity, what holds the rest, and which jobs wait, oldest first."""

    left: Snapshot
    running: Sequence[RunningJob]
    waiting: Sequence[Awaited]
    now: datetime


@dataclass(slots=True)
class Estimator:
    """Estimates round by round. *clock* counts seconds and is monotonic.

    *names_others*: an estimate names jobs of other namespaces too. ``known`` is of the last round, by uid.
    ``plan`` has another fleet than the decisions: the cluster of tomorrow differs much from that of today.
    Of a job at which anything fails nothing is assumed, and ``faults`` has it.
    """

    clock: Callable[[], float]
    names_others: bool = False
    faults: Faults = field(default_factory=Faults)
    plan: FleetPlanner = field(default_factory=FleetPlanner)
    known: Mapping[str, StartEstimate] = field(default_factory=dict)
    _round: Iterator[Mapping[str, StartEstimate]] | None = None
    _found: Mapping[str, StartEstimate] = field(default_factory=dict)
    _began: float = float("-inf")
    _spent: float = 0.0

    def is_due(self, waiting: Sequence[str]) -> bool:
        """Whether a round for the jobs with the uids *waiting* should begin."""
        if self._round is not None or not waiting:
            return False
        pause = _LATER if all(uid in self.known for uid in waiting) else _SOON
        return self.clock() - self._began >= max(pause, _REST * self._spent)

    def begin(self, prospect: Prospect, jobs: Sequence[TimedJob]) -> None:
        """Begin a round; *jobs* are those of all queues, ended or not."""
        self._round = _estimated(
            prospect, jobs, self.plan.prepare, self.faults, names_others=self.names_others
        )
        self._began, self._spent, self._found = self.clock(), 0.0, {}

    def step(self) -> bool:
        """Do a little of the round; return whether there was anything to do."""
        if self._round is None:
            return False
        began, found = self.clock(), None
        # A round in which anything fails ends; the estimates made so far are kept.
        with self.faults.at({"kind": "a round of estimates"}):
            found = next(self._round, None)
        self._spent += self.clock() - began
        if found is not None:
            self._found = found
        if found is None or self._spent > _MOST_SPENT:
            self.known, self._round = self._found, None
        return True


def _estimated(
    prospect: Prospect, jobs: Sequence[TimedJob], prepare: Prepare, faults: Faults, *, names_others: bool
) -> Iterator[Mapping[str, StartEstimate]]:
    """Yield after each step when the waiting jobs start, by uid, in so far as it is known by then."""
    found, going_on, runs = (
        dict[str, StartEstimate](),
        dict[tuple[str, str], TimedJob](),
        dict[JobName, tuple[datetime, PastRun]](),
    )
    for number, job in enumerate(jobs):
        if not job.ended:
            going_on[job.order] = job
        else:
            with faults.at(job.job):
                if known := past_run(job.job):
                    # A job with a plan of its own may have entered a queue of Kueue later: it has run once.
                    runs[job.name] = known
        if number % _FEW == 0:
            yield found
    history = RunHistory.of(run for _, run in sorted(runs.values(), key=lambda each: each[0]))
    ending: list[EndingJob] = []
    for number, one in enumerate(prospect.running):
        # By the sort key, as the plan of a Workload has no uid.
        holder = going_on.get(one.plan.order)
        name = _name(holder) if holder else f"{one.plan.namespace}/{one.plan.name}"
        end = None
        with faults.at(holder.job if holder else {}):
            end = _end(one, holder, history, prospect.now)
        ending.append(EndingJob(name, (one.plan,), end))
        if number % _FEW == 0:
            yield found
    starting = []
    for awaited in prospect.waiting:
        run = None
        with faults.at(awaited.job.job):
            run = runs_for(awaited.job.job, history)
        starting.append(StartingJob(_name(awaited.job), awaited.job.order, awaited.plan, run))
    waiting = iter(prospect.waiting)
    for estimate in starts_estimated(prospect.left, ending, starting, prospect.now, prepare):
        if estimate is not None:
            job = next(waiting).job
            found[job.uid] = estimate if names_others else seen_from(job.name[0], estimate)
        yield found


def _end(one: RunningJob, job: TimedJob | None, history: RunHistory, now: datetime) -> End | None:
    """Return when *one* ends, which is *job* if that is known."""
    if job is not None:
        try:
            return end_of(job.job, history, now)
        except DocumentError:
            return None
    return End(now, one.ends, one.ends, "its deadline") if one.ends else None


def _name(job: TimedJob) -> str:
    namespace, _, name = job.name
    return f"{namespace}/{name}"


def seen_from(namespace: str, estimate: StartEstimate) -> StartEstimate:
    """Return *estimate* without the names of jobs outside *namespace*, and of similar earlier ones.

    For example, ``after other/bert-7, by 3 earlier runs of bert`` is ``after a job of another namespace, by 3
    earlier runs``.
    """

    def is_own(name: str) -> bool:
        return name.startswith(f"{namespace}/")

    pairs = [
        (name, basis) if is_own(name) else (_ELSEWHERE, basis.partition(" of ")[0])
        for name, basis in zip(estimate.after, estimate.basis, strict=True)
    ]
    own = [name for name in estimate.endless if is_own(name)]
    return replace(
        estimate,
        after=tuple(name for name, _ in pairs),
        basis=tuple(basis for _, basis in pairs),
        unknown=endless_text(own, len(estimate.endless) - len(own)) if estimate.endless else estimate.unknown,
    )


def is_news(estimate: StartEstimate | None, written: StartEstimate | None, now: datetime) -> bool:
    """Whether *estimate* differs enough from the one *written* on the job to be written again."""
    if estimate is None or written is None or estimate.likely is None or written.likely is None:
        return estimate != written
    if (estimate.after, estimate.basis) != (written.after, written.basis):
        return True
    pairs = (
        (estimate.earliest, written.earliest),
        (estimate.likely, written.likely),
        (estimate.latest, written.latest),
    )
    least = max(_LEAST_NEWS, abs(estimate.likely - now) * _NEWS_SHARE)
    return any(after and before and abs(after - before) >= least for after, before in pairs)
