"""When waiting jobs will probably start: the ends of the jobs that run, one after the other, until each fits.

The cluster is looked at three times: as if all jobs ended as early, as probable, and as late as they may. In
each of these futures the waiting jobs get their places oldest first, each at the first end after which it
fits; what it takes then is taken for those behind it, and returns when it has run. Two nodes, a and b, of
eight GPUs, at 10:00::

    running   A of 8 GPUs on a, which ends at 10:30 (10:20 to 11:00); B of 8 GPUs on b, whose end is unknown
    waiting   1st: 8 GPUs, which will run for an hour                  2nd: 8 GPUs    3rd: 16 GPUs

The 1st starts at 10:30 (10:20 to 11:00), after A. The 2nd starts when the 1st has run: 11:30. The 3rd needs b
as well, and it is not known when B ends: it has no estimate, and B and the 2nd are named as the reason.
"""

import re
from bisect import insort
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median, quantiles

from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan_record import End, PlanRecord, Stage, StartEstimate
from arena_topo.model.text.words import plural
from arena_topo.planner.queue import with_returned
from arena_topo.planner.reservations import OtherPlan, Plan, without_reserved

# When a running job will probably end: by its own report, its deadline, and how long similar jobs ran.
#
# Of the runs before, the most similar ones from which anything follows count: those of the same work (the
# name without its numbers, and the image) and size, then those of the same work, then those of the same
# image, then all of the namespace. Only runs that took longer than this one has run already say how long it
# will continue. A job ``bert-8``, for example, has run for 30 minutes::
#
#     earlier runs   bert-5 took 20m    bert-6 took 50m    bert-7 took 60m    bert-large-2 took 300m
#     of the same work and longer than 30m: 50m and 60m, so that it continues for 20m or 30m
#
# A range is from the tenth to the ninetieth percentile of what the runs took, widened by ``1 + 1/n``, because
# ``n`` runs show less than all that can happen: one run of an hour stands for half an hour to two hours.

_ENOUGH = 2
"""Runs that make less alike ones unnecessary."""

_MOST_KEPT = 200
"""The last runs of a group that are kept; work changes, and a cluster ends jobs for years."""

_DECILES = 10
_REPORTED_SPREAD = 0.25
"""Share by which what a job reports of its own rest may be off."""

_NUMBERED = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Work:
    """What a job is, as far as its run time depends on it; ``pods`` and ``gpus`` of a pod are its size."""

    namespace: str
    name: str
    image: str
    pods: int
    gpus: int


@dataclass(frozen=True, slots=True)
class PastRun:
    """A job that has ended well, and the seconds that it ran."""

    work: Work
    seconds: float


@dataclass(frozen=True, slots=True)
class RunRange:
    """How long a job that did not start yet will probably run."""

    shortest: timedelta
    likely: timedelta
    longest: timedelta
    basis: str


def stem(name: str) -> str:
    """Return what names of runs of the same work share: ``bert-large`` of ``bert-large-3``.

    A name all of whose parts have digits keeps the first one: ``gpt2`` of ``gpt2-7b-4``.
    """
    first, *rest = name.split("-")
    return "-".join([first, *(part for part in rest if not _NUMBERED.search(part))])


@dataclass(slots=True)
class RunHistory:
    """The runs of a cluster, by how alike they are."""

    _groups: dict[tuple[str, ...], list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Iterable[PastRun]) -> "RunHistory":
        """Return the history of *runs*, oldest first."""
        history = cls()
        for run in runs:
            history.add(run)
        return history

    def add(self, run: PastRun) -> None:
        """Add a run that has ended now."""
        for group, _ in _alike(run.work):
            seconds = self._groups.setdefault(group, [])
            seconds.append(run.seconds)
            del seconds[:-_MOST_KEPT]

    def rest_of(self, work: Work, elapsed: float = 0.0) -> RunRange | None:
        """Return how much longer a job of *work* runs after *elapsed* seconds, None if no run shows it."""
        found: tuple[list[float], str] | None = None
        for group, words in _alike(work):
            longer = [seconds - elapsed for seconds in self._groups.get(group, ()) if seconds > elapsed]
            if len(longer) >= _ENOUGH:
                return _range(longer, words)
            # A few of the likest say more than none; less alike ones are asked first whether they are enough.
            if longer and found is None:
                found = longer, words
        return _range(*found) if found else None

    def runs_for(self, work: Work, deadline: timedelta | None = None) -> RunRange | None:
        """Return how long a job of *work* runs that may run until *deadline*, None if unknown."""
        rest = self.rest_of(work)
        if deadline is None:
            return rest
        if rest is None:
            return RunRange(timedelta(), deadline, deadline, "its deadline")
        return RunRange(
            min(rest.shortest, deadline), min(rest.likely, deadline), min(rest.longest, deadline), rest.basis
        )

    def end_of(
        self,
        work: Work,
        started: datetime,
        now: datetime,
        *,
        deadline: timedelta | None = None,
        reported: timedelta | None = None,
    ) -> End | None:
        """Return when a job of *work* ends that *started* then, None where that is not known.

        *deadline* is the longest that it may run; *reported* is how much longer it says itself that it
        continues.
        """
        last = started + deadline if deadline is not None else None
        if reported is not None:
            spread = reported * _REPORTED_SPREAD
            return _bounded(
                End(
                    now + reported - spread, now + reported, now + reported + spread, "what it reports itself"
                ),
                last,
                now,
            )
        rest = self.rest_of(work, max((now - started).total_seconds(), 0.0))
        if rest:
            return _bounded(
                End(now + rest.shortest, now + rest.likely, now + rest.longest, rest.basis), last, now
            )
        return End(now, max(last, now), max(last, now), "its deadline") if last else None


def _alike(work: Work) -> Sequence[tuple[tuple[str, ...], str]]:
    """Return the groups to which runs of *work* belong, the likest first, and the words for each."""
    same = stem(work.name)
    size = f"{work.pods}x{work.gpus}"
    return (
        (("size", work.namespace, same, work.image, size), f"of {same}"),
        (("work", work.namespace, same, work.image), f"of {same}, of any size"),
        (("image", work.namespace, work.image), "with the same image"),
        (("namespace", work.namespace), f"of any job in {work.namespace}"),
    )


def _range(seconds: Sequence[float], words: str) -> RunRange:
    wider = 1 + 1 / len(seconds)
    deciles = (
        quantiles(seconds, n=_DECILES, method="inclusive") if len(seconds) > 1 else [seconds[0]] * _DECILES
    )
    return RunRange(
        timedelta(seconds=deciles[0] / wider),
        timedelta(seconds=median(seconds)),
        timedelta(seconds=deciles[-1] * wider),
        f"{plural(len(seconds), 'earlier run')} {words}",
    )


def _bounded(end: End, last: datetime | None, now: datetime) -> End:
    """Return *end*, no instant of which is after *last* or before *now*."""
    if last is None:
        return end
    last = max(last, now)
    return End(min(end.earliest, last), min(end.likely, last), min(end.latest, last), end.basis)


_MOST_NAMED = 3
_SLOTS = 200
"""Places that are given back in one step: as many nodes change, each of which is rebuilt."""

_FUTURES = ("earliest", "likely", "latest")


Prepare = Callable[[Snapshot], Iterator[None]]


@dataclass(frozen=True, slots=True)
class EndingJob:
    """A job that holds or has reserved ``plans``; ``end`` is None where its end is not known."""

    name: str
    plans: tuple[OtherPlan, ...]
    end: End | None = None


@dataclass(frozen=True, slots=True)
class StartingJob:
    """A job that waits; ``plan`` proposes a placement in a snapshot, ``runs_for`` is None if unknown."""

    name: str
    order: tuple[str, str]
    plan: Plan
    runs_for: RunRange | None = None


@dataclass(frozen=True, slots=True, order=True)
class _Release:
    """What becomes free at an instant."""

    at: datetime
    name: str
    plans: tuple[OtherPlan, ...] = field(compare=False)


@dataclass(slots=True)
class _Future:
    """One possible future: the cluster less what is taken, and what becomes free, in order of time.

    ``endless`` are the jobs whose ends are not known.
    """

    kind: str
    now: datetime
    left: Snapshot
    releases: list[_Release]
    endless: list[EndingJob]
    prepare: Prepare

    def place(
        self, job: StartingJob
    ) -> Generator[None, None, tuple[datetime, PlanRecord, list[_Release]] | None]:
        """Return when and where *job* starts, and after which releases; take it. None if it never fits.

        Yield before each plan, and whenever enough has been done for one step.
        """
        found: PlanRecord | None = None
        # Releases only add, so that the first count that is enough can be searched for by halves. What comes
        # later is worked out from the last snapshot that was too little: ``after`` is the cluster once
        # ``given`` of them have happened.
        count, enough = 0, len(self.releases) + 1
        given, after = 0, self.left
        while count < enough:
            middle = (count + enough) // 2
            snapshot = yield from _returned(after, [each.plans for each in self.releases[given:middle]])
            yield from self.prepare(snapshot)
            record = job.plan(snapshot)
            yield
            if record.stage is Stage.PROPOSED:
                found, enough = record, middle
            else:
                count, given, after = middle + 1, middle, snapshot
        if found is None:
            return None
        starts = self.releases[count - 1].at if count else self.now
        nodes = {slot.node for slot in found.taken}
        needed = [release for release in self.releases[:count] if nodes & _nodes(release.plans)]
        self._take(job, found, starts)
        return starts, found, needed

    def _take(self, job: StartingJob, record: PlanRecord, starts: datetime) -> None:
        taken = OtherPlan(order=job.order, record=record)
        self.left = without_reserved(self.left, [taken])
        if job.runs_for:
            insort(self.releases, _Release(starts + _time(job.runs_for, self.kind), job.name, (taken,)))
        else:
            self.endless.append(EndingJob(job.name, (taken,)))

    def why_never(self, job: StartingJob) -> Generator[None, None, StartEstimate]:
        """Return why it is not known when *job* starts; yield as ``place`` does."""
        ended = [*(release.plans for release in self.releases), *(one.plans for one in self.endless)]
        snapshot = yield from _returned(self.left, ended)
        yield from self.prepare(snapshot)
        record = job.plan(snapshot)
        yield
        if record.stage is not Stage.PROPOSED:
            return StartEstimate(
                unknown="it would not fit even after the end of all jobs that are seen: "
                f"{record.waiting_reason}"
            )
        nodes = {slot.node for slot in record.taken}
        in_the_way = tuple(one.name for one in self.endless if nodes & _nodes(one.plans))
        return StartEstimate(unknown=endless_text(in_the_way), endless=in_the_way)


def _returned(snapshot: Snapshot, ended: Sequence[tuple[OtherPlan, ...]]) -> Generator[None, None, Snapshot]:
    """Return *snapshot* once the plans *ended* have given back what they hold; yield after each few."""
    few, slots = list[OtherPlan](), 0
    for plan in (plan for plans in ended for plan in plans):
        few.append(plan)
        slots += len(plan.record.slots)
        if slots >= _SLOTS:
            snapshot = with_returned(snapshot, few)
            yield
            few, slots = [], 0
    return with_returned(snapshot, few)


def _nothing(snapshot: Snapshot) -> Iterator[None]:
    """Prepare nothing for plans in *snapshot*."""
    del snapshot
    return iter(())


def endless_text(names: Sequence[str], elsewhere: int = 0) -> str:
    """Return that the ends of the jobs *names* are unknown, and of those *elsewhere*, which stay unnamed."""
    parts = [*names[:_MOST_NAMED]]
    if (more := len(names) - _MOST_NAMED) > 0:
        parts.append(plural(more, "other job"))
    if elsewhere:
        parts.append(f"{plural(elsewhere, 'job')} of other namespaces")
    *first, last = parts or ["them"]
    named = (
        f"{', '.join(first)} and {last}" if first and (more > 0 or elsewhere) else ", ".join([*first, last])
    )
    return (
        f"it is not known when {named} will end, and this job needs what "
        f"{'it holds' if len(names) + elsewhere == 1 else 'they hold'}"
    )


def estimate_starts(
    snapshot: Snapshot, running: Sequence[EndingJob], waiting: Iterable[StartingJob], now: datetime
) -> list[StartEstimate]:
    """Return when each of the jobs *waiting*, which get their places in this order, will probably start.

    *snapshot* is without what the jobs *running* hold and have reserved.
    """
    return [estimate for estimate in starts_estimated(snapshot, running, waiting, now) if estimate]


def starts_estimated(
    snapshot: Snapshot,
    running: Sequence[EndingJob],
    waiting: Iterable[StartingJob],
    now: datetime,
    prepare: Prepare = _nothing,
) -> Iterator[StartEstimate | None]:
    """Yield what ``estimate_starts`` returns, and None in between, whenever something else may come first.

    *prepare* makes what plans ready for a snapshot that it has not seen, and yields in between as well.
    """
    known = [(job, job.end) for job in running if job.end]
    futures = [
        _Future(
            kind,
            now,
            snapshot,
            sorted(_Release(max(getattr(end, kind), now), job.name, job.plans) for job, end in known),
            [job for job in running if job.end is None],
            prepare,
        )
        for kind in _FUTURES
    ]
    bases = {job.name: end.basis for job, end in known}
    for job in waiting:
        if job.runs_for:
            bases[job.name] = job.runs_for.basis
        early = yield from futures[0].place(job)
        likely = yield from futures[1].place(job)
        late = yield from futures[2].place(job)
        if early is None or likely is None or late is None:
            yield (yield from futures[1].why_never(job))
            continue
        after = tuple(dict.fromkeys(release.name for release in likely[2]))
        yield StartEstimate(
            # An order of ends that differs may let a later course of things begin earlier.
            earliest=min(early[0], likely[0], late[0]),
            likely=likely[0],
            latest=max(early[0], likely[0], late[0]),
            after=after,
            basis=tuple(bases[name] for name in after),
        )


def _nodes(plans: Iterable[OtherPlan]) -> set[str]:
    return {slot.node for plan in plans for slot in plan.record.taken}


def _time(runs_for: RunRange, kind: str) -> timedelta:
    times = {"earliest": runs_for.shortest, "likely": runs_for.likely, "latest": runs_for.longest}
    return times[kind]
