"""Jobs in queues of Kueue get the same estimates, in what our check says of their Workloads."""

from datetime import timedelta
from typing import Any

from arena_topo.controller.estimating.estimates import Estimator
from arena_topo.controller.estimating.queued_jobs import queued_job
from arena_topo.controller.kueue.workloads import read_workload
from arena_topo.jobs.waiting.check_message import CheckMessage, read_message
from arena_topo.jobs.waiting.run_facts import past_run
from arena_topo.model.job.start_estimate import MOST_AHEAD
from arena_topo.model.objects import Object
from tests.controller.kueue.workload_objects import CHECK, EARLIER, NOW, Cluster, condition, entry, workload

RUNS = [condition("QuotaReserved"), condition("Admitted")]


def running(name: str = "first", workers: int = 4, **changes: Any) -> Object:
    """Return the Workload of a job that runs on so many of the four servers."""
    changes = {
        "conditions": RUNS,
        "admissionChecks": [entry("Ready", nodes={4: "0:a,1:b,2:c,3:d,4:", 2: "0:a,1:b,2:"}[workers])],
        **changes,
    }
    return workload(name, workers=workers, **changes)


def estimated(cluster: Cluster) -> None:
    """Estimate one round for those that wait after the last decision, and let the check know."""
    estimator = Estimator(lambda: 0.0)
    prospect = cluster.answerer.prospect(estimator.plan)
    assert prospect is not None
    estimator.begin(prospect)
    while estimator.step():
        pass
    cluster.answerer.estimates = estimator.known


def said(cluster: Cluster, name: str) -> CheckMessage:
    """Return what our check says of a Workload."""
    (each,) = cluster.objects["workloads"][f"w-{name}"]["status"]["admissionChecks"]
    found = read_message(each["message"])
    assert found is not None
    return found


def test_a_workload_that_waits_is_told_when_it_starts() -> None:
    """Once that is estimated, by when Kueue ends the job in the way."""
    cluster = Cluster(running(maximumExecutionTimeSeconds=7200), workload("late"))
    cluster.carry_out(cluster.decide())
    assert None is said(cluster, "late").start
    estimated(cluster)
    cluster.carry_out(cluster.decide())
    start = said(cluster, "late").start
    assert start is not None
    # It runs for an hour, of two.
    assert NOW + timedelta(hours=1) == start.likely
    assert (("default/first",), ("its deadline",)) == (start.after, start.basis)
    assert 1 == said(cluster, "late").position


def test_it_is_told_once() -> None:
    """What is known already is not written again, nor is what a new controller does not know yet forgotten."""
    cluster = Cluster(running(maximumExecutionTimeSeconds=7200), workload("late"))
    cluster.carry_out(cluster.decide())
    estimated(cluster)
    cluster.carry_out(cluster.decide())
    told = said(cluster, "late")
    cluster.seconds += 60
    assert [] == cluster.decide()
    cluster.restart()
    assert [] == cluster.decide()
    assert told == said(cluster, "late")


def test_what_is_on_its_way_is_not_sent_again() -> None:
    """The write of a first estimate is seen after a moment."""
    cluster = Cluster(running(maximumExecutionTimeSeconds=7200), workload("late"))
    cluster.carry_out(cluster.decide())
    estimated(cluster)
    assert 1 == len(cluster.decide())
    assert [] == cluster.decide()


def test_runs_of_its_like_tell_how_long_a_job_goes_on() -> None:
    """Those whose Workloads have ended well."""
    done = {**condition("Finished", "2026-11-22T14:00:00Z"), "reason": "Succeeded"}
    ended = [running(f"bert-{at}", conditions=[*RUNS, done]) for at in range(3)]
    cluster = Cluster(*ended, running("bert-9"), workload("late"))
    cluster.carry_out(cluster.decide())
    estimated(cluster)
    cluster.carry_out(cluster.decide())
    start = said(cluster, "late").start
    assert start is not None
    assert (("default/bert-9",), ("3 earlier runs of bert",)) == (start.after, start.basis)
    assert NOW + timedelta(hours=2) == start.likely


def test_without_an_end_the_job_in_the_way_is_named() -> None:
    """It may run for ever."""
    cluster = Cluster(running(), workload("late"))
    cluster.carry_out(cluster.decide())
    estimated(cluster)
    cluster.carry_out(cluster.decide())
    start = said(cluster, "late").start
    assert start is not None
    assert "it is not known when default/first will end, and this job needs what it holds" == start.unknown


def test_estimates_are_for_the_first_workloads() -> None:
    """As in our own queue."""
    late = [workload(f"late-{at:02}", workers=4) for at in range(MOST_AHEAD + 2)]
    cluster = Cluster(running(), *late)
    cluster.decide()
    assert [f"w-late-{at:02}" for at in range(MOST_AHEAD)] == list(cluster.answerer.waiting)


def test_nobody_waits_and_nothing_is_estimated() -> None:
    """Once all have their places."""
    cluster = Cluster(workload("first"))
    cluster.carry_out(cluster.decide())
    cluster.decide()
    assert [] == list(cluster.answerer.waiting)
    assert None is cluster.answerer.prospect(Estimator(lambda: 0.0).plan)


def test_a_job_that_failed_tells_nothing_of_its_like() -> None:
    """Nor does one that is of no kind with ranks."""
    done = {**condition("Finished", "2026-11-22T14:00:00Z"), "reason": "Failed"}
    failed = read_workload(running(conditions=[*RUNS, done]), [CHECK], {})
    assert failed is not None
    job = queued_job(failed)
    assert job is not None
    assert (True, None, EARLIER) == (job.ended, past_run(job.job), job.job["status"]["startTime"])
    other = read_workload(workload(owner={"kind": "Deployment", "apiVersion": "apps/v1"}), [CHECK], {})
    assert other is not None
    assert None is queued_job(other)
