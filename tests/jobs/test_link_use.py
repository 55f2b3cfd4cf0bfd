"""Jobs use the links of their planned places, or else of the nodes where their pods run."""

from datetime import UTC, datetime
from typing import Any

import pytest

from arena_topo.jobs.overview import link_uses
from arena_topo.jobs.status import job_view
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.objects import Object
from arena_topo.model.plan import Transport
from arena_topo.model.plan_record import PlanRecord, Slot, Stage
from arena_topo.model.reports import LinkUse
from arena_topo.planner.gpus.machine import MachineCatalog
from tests.objects import condition, mpijob, pod, with_plan
from tests.planner.fleets import NVIDIA, SWITCHED, cluster, node

CLUSTER = cluster([node("a", links=SWITCHED), node("b", links=SWITCHED)])


def job_with_slots(*slots: Slot, stage: Stage = Stage.CONFIRMED, text: str = "", **extra: Any) -> Object:
    """Return a job of as many workers with four GPUs as there are *slots*."""
    job = mpijob("job", workers=len(slots), gpus=4, **extra)
    record = PlanRecord(stage=stage, slots=slots, worker_requests={NVIDIA: 4})
    return with_plan(job, text or record)


def uses(job: Object, *pods: Object) -> list[LinkUse]:
    """Return what *job* uses."""
    view = job_view(ApiVersion.V2BETA1, job, pods, now=datetime.now(UTC))
    return list(link_uses([view], CLUSTER, MachineCatalog()))


def test_a_plan_tells_before_its_pods_run() -> None:
    """With the bandwidth of its GPUs, and between its nodes."""
    (use,) = uses(job_with_slots(Slot(0, "a", (0, 1, 2, 3)), Slot(1, "b", (4, 5, 6, 7))))

    assert ({"a": 1, "b": 1}, True) == (use.workers, use.is_planned)
    assert use.prediction is not None
    assert (Transport.NVLINK, Transport.TCP) == (use.prediction.inside, use.prediction.across)


def test_pods_tell_where_there_is_no_plan() -> None:
    """Which GPUs they have, nothing tells: their links count as not known."""
    job = job_with_slots(Slot(0, "a"))
    del job["metadata"]["annotations"]
    worker = pod("job-worker-0", node="a")
    (use,) = uses(job, pod("job-launcher-x", role="launcher"), worker)

    assert ({"a": 1}, False) == (use.workers, use.is_planned)
    assert use.prediction is not None
    assert Transport.UNKNOWN is use.prediction.inside


def test_pods_that_run_elsewhere_count_where_they_are() -> None:
    """Not where they were planned."""
    (use,) = uses(job_with_slots(Slot(0, "a", (0, 1, 2, 3))), pod("job-worker-0", node="b"))

    assert ({"b": 1}, False) == (use.workers, use.is_planned)


def test_whoever_has_all_gpus_of_a_node_has_these() -> None:
    """Though the plan leaves open which worker has which."""
    (use,) = uses(job_with_slots(Slot(0, "a"), Slot(1, "a")))

    assert use.prediction is not None
    # Pods of one node do not see each other's GPUs.
    assert Transport.ISOLATED is use.prediction.inside


@pytest.mark.parametrize(
    "job",
    [
        job_with_slots(Slot(0, "a"), stage=Stage.WAITING),
        job_with_slots(Slot(0, "a"), status={"conditions": [condition("Succeeded")]}),
        job_with_slots(Slot(0, "a"), text="{"),
    ],
    ids=["waits", "has ended", "has a plan that is none"],
)
def test_jobs_without_places_use_nothing(job: Object) -> None:
    """Neither do those that have ended."""
    assert [] == uses(job)


@pytest.mark.parametrize(
    "job",
    [
        job_with_slots(Slot(0, "gone", (0, 1))),
        job_with_slots(
            Slot(0, "a", (0,)),
            text='{"v":1,"stage":"confirmed","nodes":[["a",1]],"gpus":[["0",1]],"wishes":{"policy":"x"}}',
        ),
    ],
    ids=["a node that is gone", "options that are none"],
)
def test_what_cannot_be_predicted_is_shown_all_the_same(job: Object) -> None:
    """Somebody else's job must not hide the others."""
    (use,) = uses(job)
    assert None is use.prediction


def test_a_single_rank_exchanges_nothing() -> None:
    """So there is nothing to predict."""
    job = job_with_slots(Slot(0, "a", (0,)))
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] = {
        "limits": {NVIDIA: "1"}
    }

    assert [None] == [use.prediction for use in uses(job)]
