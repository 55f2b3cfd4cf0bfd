"""Jobs in queues of Kueue get the same estimates, in what our check says of their Workloads."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from arena_topo.controller.estimates import Estimator
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Reconciler, Rules
from arena_topo.controller.workloads import QueuedJob, read_workload
from arena_topo.jobs.enforce import suspended_with_plan
from arena_topo.jobs.queue import CheckMessage, read_message
from arena_topo.jobs.when import past_run
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import MOST_AHEAD, Enforcement, PlanRecord, Stage, StartEstimate
from tests.controller.workload_objects import (
    CHECK,
    EARLIER,
    NOW,
    Cluster,
    condition,
    entry,
    own_job,
    workload,
)
from tests.objects import mpijob

RUNS = [condition("QuotaReserved"), condition("Admitted")]


def running_workload(name: str = "first", workers: int = 4, **changes: Any) -> Object:
    """Return the Workload of a job that runs on so many of the four servers."""
    changes = {
        "conditions": RUNS,
        "admissionChecks": [entry("Ready", nodes={4: "0:a,1:b,2:c,3:d,4:", 2: "0:a,1:b,2:"}[workers])],
        **changes,
    }
    return workload(name, workers=workers, **changes)


def one_round(cluster: Cluster, reconciler: Reconciler[Any]) -> Mapping[str, StartEstimate]:
    """Return what one round estimates for the jobs of
    *reconciler* that wait after the last decision, by uid.
    """
    estimator = Estimator(lambda: 0.0)
    prospect = reconciler.prospect(estimator.plan)
    assert prospect is not None
    estimator.begin(prospect, [*cluster.state.ledger.jobs.values(), *cluster.reconciler.jobs])
    while estimator.step():
        pass
    return estimator.known


def estimated(cluster: Cluster) -> None:
    """Let the check know when those start that wait after the last decision."""
    cluster.reconciler.estimates = one_round(cluster, cluster.reconciler)


def told(cluster: Cluster, name: str) -> StartEstimate:
    """Return when a Workload starts, as our check tells it once that is estimated."""
    cluster.carry_out(cluster.decide())
    estimated(cluster)
    cluster.carry_out(cluster.decide())
    start = said(cluster, name).start
    assert start is not None
    return start


def said(cluster: Cluster, name: str) -> CheckMessage:
    """Return what our check says of a Workload."""
    (each,) = cluster.objects["workloads"][f"w-{name}"]["status"]["admissionChecks"]
    found = read_message(each["message"])
    assert found is not None
    return found


def test_a_workload_that_waits_is_told_when_it_starts() -> None:
    """Once that is estimated, by when Kueue ends the job in the way."""
    cluster = Cluster(running_workload(maximumExecutionTimeSeconds=7200), workload("late"))
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
    """What is known already is not written again, nor is
    what a new controller does not know yet forgotten.
    """
    cluster = Cluster(running_workload(maximumExecutionTimeSeconds=7200), workload("late"))
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
    cluster = Cluster(running_workload(maximumExecutionTimeSeconds=7200), workload("late"))
    cluster.carry_out(cluster.decide())
    estimated(cluster)
    assert 1 == len(cluster.decide())
    assert [] == cluster.decide()


def test_runs_of_its_like_tell_how_long_a_job_goes_on() -> None:
    """Those whose Workloads have ended well."""
    done = {**condition("Finished", "2026-11-22T14:00:00Z"), "reason": "Succeeded"}
    ended = [running_workload(f"bert-{at}", conditions=[*RUNS, done]) for at in range(3)]
    cluster = Cluster(*ended, running_workload("bert-9"), workload("late"))
    start = told(cluster, "late")
    assert (("default/bert-9",), ("3 earlier runs of bert",)) == (start.after, start.basis)
    assert NOW + timedelta(hours=2) == start.likely


def test_without_an_end_the_job_in_the_way_is_named() -> None:
    """It may run forever."""
    cluster = Cluster(running_workload(), workload("late"))
    start = told(cluster, "late")
    assert "it is not known when default/first will end, and this job needs what it holds" == start.unknown


def test_estimates_are_for_the_first_workloads() -> None:
    """As in our own queue."""
    late = [workload(f"late-{at:02}", workers=4) for at in range(MOST_AHEAD + 2)]
    cluster = Cluster(running_workload(), *late)
    cluster.decide()
    assert [f"w-late-{at:02}" for at in range(MOST_AHEAD)] == list(cluster.reconciler.waiting)


def test_nobody_waits_and_nothing_is_estimated() -> None:
    """Once all have their places."""
    cluster = Cluster(workload("first"))
    cluster.carry_out(cluster.decide())
    cluster.decide()
    assert [] == list(cluster.reconciler.waiting)
    assert None is cluster.reconciler.prospect(Estimator(lambda: 0.0).plan)


def test_a_job_that_failed_tells_nothing_of_its_like() -> None:
    """Of the like of a job, how long others ran before they failed says nothing."""
    done = {**condition("Finished", "2026-11-22T14:00:00Z"), "reason": "Failed"}
    failed = read_workload(running_workload(conditions=[*RUNS, done]), [CHECK], {})
    assert failed is not None
    assert failed.planned is not None
    job = QueuedJob(failed, failed.planned)
    assert (True, None, EARLIER) == (job.ended, past_run(job.job), job.job["status"]["startTime"])


def test_a_workload_that_is_no_gang_is_no_job() -> None:
    """Of a kind without ranks nothing is planned."""
    cluster = Cluster(
        workload("gang"), workload("web", owner={"kind": "Deployment", "apiVersion": "apps/v1"})
    )
    assert ["w-gang"] == [job.uid for job in cluster.reconciler.jobs]


def test_a_workload_starts_after_a_job_of_our_own_queue() -> None:
    """What that one says of its end is known here as well, and what it holds comes back then."""
    job, pods = own_job("own", "abcd", hours=3)
    cluster = Cluster(workload("late"), mpijobs=[job], pods=pods)
    start = told(cluster, "late")
    assert (("default/own",), ("its deadline",), NOW + timedelta(hours=2)) == (
        start.after,
        start.basis,
        start.likely,
    )


def test_runs_in_our_own_queue_tell_how_long_a_workload_goes_on() -> None:
    """They are of the same work, image and size."""
    ended = [own_job(f"bert-{at}", "abcd", completionTime="2026-11-22T14:00:00Z")[0] for at in range(3)]
    cluster = Cluster(running_workload("bert-9"), workload("late"), mpijobs=ended)
    start = told(cluster, "late")
    assert (("default/bert-9",), ("3 earlier runs of bert",), NOW + timedelta(hours=2)) == (
        start.after,
        start.basis,
        start.likely,
    )


def test_a_job_of_our_own_queue_starts_after_a_workload() -> None:
    """By when Kueue ends that one."""
    job = with_pins(
        mpijob("own", workers=2),
        suspended_with_plan(PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION)),
    )
    cluster = Cluster(running_workload(maximumExecutionTimeSeconds=7200), mpijobs=[job])
    cluster.decide()
    reconciler = PlanReconciler(Rules(), lambda: cluster.seconds)
    reconciler.decide(cluster.state, NOW, cluster.reconciler.plans)
    start = one_round(cluster, reconciler)["uid-own"]
    assert (("default/first",), ("its deadline",), NOW + timedelta(hours=1)) == (
        start.after,
        start.basis,
        start.likely,
    )
