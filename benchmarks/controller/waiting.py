"""How far off the estimates of starts are: ``python -m benchmarks.controller.waiting [JOBS [SEEDS]]``.

A simulated cluster of 32 servers with eight GPUs gets jobs of forty works (a name, an image and a size), more
than it can run, and gives them turns as the controller does. The run times of a work are spread around its
own middle (log-normal), and the works differ by a factor of a hundred; every third job has a deadline, one to
four times what it needs. Whenever a job that has to wait comes, its start is estimated, and next to it the
naive one: the mean of how long the jobs before it have waited. The estimates know the jobs that have ended,
the deadlines, and nothing else.
"""

import heapq
import math
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import mean, median

from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import Demand, Placement
from arena_topo.model.plan_record import PlanRecord, Stage, StartEstimate
from arena_topo.planner.plan import plan
from arena_topo.planner.queue import HeadReservation, RunningJob, WaitingJob, decide_queue
from arena_topo.planner.reservations import OtherPlan, Plan, without_reserved
from arena_topo.planner.start_time import EndingJob, PastRun, RunHistory, StartingJob, Work, estimate_starts
from tests.planner.fleets import NVIDIA, cluster, node

SERVERS = 32
GPUS = 8
WORKS = 40
LOAD = 0.9
"""What comes, in shares of what the cluster can run."""
MOST_AHEAD = 50

START = datetime(2026, 1, 1, tzinfo=UTC)
SIZES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (8, 8), (4, 4))
"""Workers, and the GPUs of each."""


@dataclass(slots=True)
class Job:
    """A job of the trace; ``lasts`` and ``deadline`` are in seconds, the latter 0 for none."""

    work: Work
    workers: int
    each: int
    lasts: float
    deadline: float
    came: datetime
    started: datetime | None = None
    estimate: StartEstimate | None = None
    naive: float | None = None

    @property
    def order(self) -> tuple[str, str]:
        """What sorts jobs by age."""
        return self.came.isoformat(), self.work.name

    def plan(self) -> Plan:
        """Return what proposes a place."""
        demand = Demand(workers=self.workers, gpus=self.each, gpu_resource=NVIDIA)

        def propose(snapshot: Snapshot) -> PlanRecord:
            verdict = plan(demand, snapshot)
            if isinstance(verdict, Placement):
                return PlanRecord(
                    stage=Stage.PROPOSED, slots=verdict.slots, worker_requests={NVIDIA: self.each}
                )
            return PlanRecord(stage=Stage.WAITING, waiting_reason=verdict.summary)

        return propose

    @property
    def limit(self) -> timedelta | None:
        """The longest that it may run."""
        return timedelta(seconds=self.deadline) if self.deadline else None


def trace(jobs: int, random: Random) -> list[Job]:
    """Return *jobs* jobs, oldest first."""
    works = [
        (
            f"work{chr(97 + at % 26)}{chr(97 + at // 26)}",
            *random.choice(SIZES),
            random.lognormvariate(7.5, 1.1),
        )
        for at in range(WORKS)
    ]
    drawn = []
    for at in range(jobs):
        name, workers, each, middle = random.choice(works)
        lasts = max(random.lognormvariate(math.log(middle), 0.5), 60.0)
        deadline = lasts * random.uniform(1, 4) if random.random() < 1 / 3 else 0.0
        drawn.append(
            Job(
                Work("ml", f"{name}-{at}", name, workers, workers * each),
                workers,
                each,
                lasts,
                deadline,
                START,
            )
        )
    seconds = sum(job.lasts * job.work.gpus for job in drawn) / (SERVERS * GPUS * LOAD)
    came = 0.0
    for job in drawn:
        came += random.expovariate(jobs / seconds)
        job.came = START + timedelta(seconds=came)
    return drawn


@dataclass(slots=True)
class Simulation:
    """The cluster at one moment."""

    idle: Snapshot
    history: RunHistory = field(default_factory=RunHistory)
    running: dict[str, tuple[Job, OtherPlan]] = field(default_factory=dict)
    waiting: dict[str, Job] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    kept: HeadReservation | None = None

    def left(self) -> Snapshot:
        """Return the cluster without what runs."""
        return without_reserved(self.idle, [taken for _, taken in self.running.values()])

    def turns(self, now: datetime) -> list[Job]:
        """Start what may start, and return it."""
        turns = decide_queue(
            [
                WaitingJob(
                    uid=name,
                    name=name,
                    order=job.order,
                    since=job.came,
                    plan=job.plan(),
                    runs_for=job.limit,
                    question=f"{job.workers}x{job.each} {job.limit}",
                )
                for name, job in self.waiting.items()
            ],
            self.left(),
            [
                RunningJob(taken, job.started + job.limit if job.limit and job.started else None)
                for job, taken in self.running.values()
            ],
            now=now,
            reserve_after=timedelta(minutes=5),
            reservation=self.kept,
        )
        self.kept = turns.reservation
        begun = []
        for turn in turns.decisions:
            if turn.record.stage is Stage.PROPOSED:
                job = self.waiting.pop(turn.uid)
                job.started = now
                self.running[turn.uid] = job, OtherPlan(order=job.order, record=turn.record)
                # Those that start at once would make the mean of the waits smaller than that of those who
                # wait.
                if now > job.came:
                    self.waits.append((now - job.came).total_seconds())
                begun.append(job)
        return begun

    def estimate_last(self, now: datetime) -> StartEstimate:
        """Return when the job that came last starts, as far as anybody can know."""
        waiting = sorted(self.waiting.values(), key=lambda job: job.order)
        if len(waiting) > MOST_AHEAD + 1:
            return StartEstimate(unknown=f"{len(waiting)} jobs wait before it")
        ending = [
            EndingJob(
                name,
                (taken,),
                self.history.end_of(job.work, job.started or now, now, deadline=job.limit),
            )
            for name, (job, taken) in self.running.items()
        ]
        starting = [
            StartingJob(job.work.name, job.order, job.plan(), self.history.runs_for(job.work, job.limit))
            for job in waiting
        ]
        return estimate_starts(self.left(), ending, starting, now)[-1]


def simulate(jobs: list[Job]) -> None:
    """Run *jobs* to their ends, with an estimate for each that had to wait."""
    cluster_now = Simulation(cluster([node(f"n{at:02}") for at in range(SERVERS)]))
    ends: list[tuple[datetime, str]] = []
    coming = iter(jobs)
    nextly = next(coming, None)
    while nextly or ends:
        if nextly and (not ends or nextly.came <= ends[0][0]):
            now, new = nextly.came, nextly
            cluster_now.waiting[new.work.name] = new
            nextly = next(coming, None)
        else:
            now, name = heapq.heappop(ends)
            done, _ = cluster_now.running.pop(name)
            cluster_now.history.add(PastRun(done.work, done.lasts))
            new = None
        for job in cluster_now.turns(now):
            heapq.heappush(ends, (now + timedelta(seconds=job.lasts), job.work.name))
        if new and new.started is None:
            new.estimate = cluster_now.estimate_last(now)
            new.naive = mean(cluster_now.waits) if cluster_now.waits else None


def main(jobs: int = 1000, seeds: int = 3) -> None:
    """Print the errors in minutes, and how often a job started in the range that it was told."""
    for seed in range(seeds):
        drawn = trace(jobs, Random(seed))
        simulate(drawn)
        report(seed, [job for job in drawn if job.estimate])


def report(seed: int, waited: list[Job]) -> None:
    """Print a line for the trace *seed*."""
    ours, naive, actual, inside = [], [], [], 0
    for job in waited:
        if job.estimate is None or job.estimate.likely is None or job.naive is None:
            continue
        wait = minutes(job, job.started)
        actual.append(wait)
        ours.append(abs(minutes(job, job.estimate.likely) - wait))
        naive.append(abs(job.naive / 60 - wait))
        inside += minutes(job, job.estimate.earliest) <= wait <= minutes(job, job.estimate.latest)
    sys.stdout.write(
        f"seed {seed}: {len(waited)} jobs waited; {len(actual)} were told when, and waited {mean(actual):.0f} min (median "
        f"{median(actual):.0f}); error {mean(ours):.0f} min (median {median(ours):.0f}), of the naive mean {mean(naive):.0f} "
        f"(median {median(naive):.0f}); {100 * inside / len(actual):.0f} % started in the range\n"
    )


def minutes(job: Job, at: datetime | None) -> float:
    """Return the minutes from the coming of *job* to *at*."""
    return ((at or job.came) - job.came).total_seconds() / 60


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
