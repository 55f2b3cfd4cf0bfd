"""When a running job will probably end: by what it says itself, by its deadline, and by how long its like ran before.

Of the runs before, the most similar ones from which anything follows count: those of the same work (the name without its
numbers, and the image) and size, then those of the same work, then those of the same image, then all of the namespace. Only
runs that took longer than this one has run already say how long it will go on. A job ``bert-8``, for example, has run for 30 minutes::

    earlier runs   bert-5 took 20m    bert-6 took 50m    bert-7 took 60m    bert-large-2 took 300m
    of the same work and longer than 30m: 50m and 60m, so that it goes on for 20m or 30m

A range is from the tenth to the ninetieth percentile of what the runs took, widened by ``1 + 1/n``, because ``n`` runs
show less than all that can happen: one run of an hour stands for half an hour to two hours.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median, quantiles

from arena_topo.model.job.start_estimate import End
from arena_topo.model.notation.words import plural

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
    """Return what names of runs of the same work have in common: ``bert-large`` of ``bert-large-3`` and ``bert-large-0711``.

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
        """Return how much longer a job of *work* runs that has run for *elapsed* seconds, None where no run shows it."""
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
        """Return how long a job of *work* runs that may run until *deadline*, None where that is not known."""
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

        *deadline* is the longest that it may run; *reported* is how much longer it says itself that it goes on.
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
