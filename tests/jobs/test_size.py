"""Jobs whose size must stay for now are told from those that may change it."""

from typing import Any

import pytest

from arena_topo.errors import UsageError
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.scale import check_size, elastic_job
from arena_topo.kinds.training_operator import PYTORCHJOB
from arena_topo.model.keys import PLAN
from arena_topo.model.plan_record import PlanRecord, Slot, Stage, encode
from tests.kinds.jobs import training_job
from tests.objects import condition


def served(record: PlanRecord | None = None, *, workers: int = 3, **spec: Any) -> ServedJob:
    """Return an elastic PyTorchJob of two to eight workers."""
    job = training_job(PYTORCHJOB, {"Worker": workers})
    job["spec"] |= {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 8}, **spec}
    job["metadata"]["annotations"] = {PLAN: encode(record)} if record else {}
    return ServedJob(PYTORCHJOB, job)


def plan(places: int, stage: Stage = Stage.CONFIRMED, **more: Any) -> PlanRecord:
    """Return a plan with a number of places."""
    return PlanRecord(stage=stage, slots=tuple(Slot(worker, "a") for worker in range(places)), **more)


def test_a_running_job_has_its_size_its_bounds_and_its_plan() -> None:
    """With a plan, or without."""
    for record in (None, plan(3)):
        elastic = elastic_job(served(record))
        assert (3, 2, 8, record) == (elastic.pods, elastic.limits.least, elastic.limits.most, elastic.record)


def test_a_growth_that_nobody_finished_is_as_if_it_had_not_been_asked_for() -> None:
    """The number of pods changes with the pins, so that a proposal for more has changed nothing."""
    elastic = elastic_job(served(plan(5, Stage.PROPOSED)))
    assert elastic.record
    assert (Stage.CONFIRMED, 3) == (elastic.record.stage, len(elastic.record.slots))


def test_places_of_workers_that_were_taken_away_by_hand_are_nobodys() -> None:
    """Kubectl scale leaves the plan as it was."""
    elastic = elastic_job(served(plan(5)))
    assert elastic.record
    assert 3 == len(elastic.record.slots)


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (served(plan(2)), "3 workers and a plan for 2"),
        (served(plan(0, Stage.WAITING)), "does not run"),
        (served(plan(3, Stage.PROPOSED)), "does not run"),
        (served(runPolicy={"suspend": True}), "does not run"),
        (served(plan(3, requested_options={"parallel": "tp=3"})), "--parallel=tp=3"),
    ],
    ids=["scaled by hand", "waiting", "proposed", "suspended", "laid out"],
)
def test_what_must_stay_says_why(job: ServedJob, told: str) -> None:
    """And what to do."""
    with pytest.raises(UsageError, match=told) as raised:
        elastic_job(job)
    assert raised.value.hint


def test_jobs_that_have_ended_or_that_kueue_holds_stay_as_they_are() -> None:
    """Kueue would stop a job whose size changes."""
    ended, queued = served(), served()
    ended.job["status"] = {"conditions": [condition("Succeeded")]}
    queued.job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    for job, told in ((ended, "has ended"), (queued, "queue q of Kueue")):
        with pytest.raises(UsageError, match=told):
            elastic_job(job)


@pytest.mark.parametrize(
    ("workers", "told"),
    [(1, "may have 2 to 8 workers, and not 1"), (9, "and not 9"), (2, "ranks meet at worker 2")],
)
def test_a_size_out_of_bounds_is_refused(workers: int, told: str) -> None:
    """Those of the job, and that of its rendezvous."""
    policy = {"minReplicas": 2, "maxReplicas": 8, "rdzvHost": "job-worker-2"}
    with pytest.raises(UsageError, match=told):
        check_size(elastic_job(served(elasticPolicy=policy)), workers)
