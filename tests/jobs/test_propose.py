"""A job's plan for one snapshot, as the record that the job carries."""

import pytest

from arena_topo.errors import DoesNotFit
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import JobPlanner
from arena_topo.kinds.training_operator import TFJOB
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlannedRole, Stage, decode, encode
from tests.kinds.jobs import training_job
from tests.planner.roles.test_servers import racks


def tfjob(servers: int = 4, workers: int = 15, server_cpu: str = "4") -> Object:
    """Return a TFJob whose chief and workers have two GPUs each, and whose servers have none."""
    job = training_job(TFJOB, {"PS": servers, "Worker": workers, "Chief": 1})
    requests = {
        "PS": {"cpu": server_cpu},
        "Worker": {"nvidia.com/gpu": "2"},
        "Chief": {"nvidia.com/gpu": "2"},
    }
    for role, each in requests.items():
        pods = {"containers": [{"name": "tensorflow", "resources": {"requests": each}}]}
        job["spec"]["tfReplicaSpecs"][role]["template"]["spec"] = pods
    return job


def planner(job: Object, *, refuses_impossible: bool = False) -> JobPlanner:
    """Return the planner of *job*, whose plan is enforced by the admission policy."""
    return JobPlanner(job, PlanOptions(), Enforcement.ADMISSION, refuses_impossible=refuses_impossible)


def test_the_pods_of_all_roles_are_numbered_through() -> None:
    """The chief first, then the workers, then the servers, which go to the nodes without GPUs."""
    record = planner(tfjob())(racks())

    assert Stage.PROPOSED is record.stage
    assert list(range(20)) == [slot.worker for slot in record.slots]
    assert ["g"] * 16 + ["c"] * 4 == [slot.node[0] for slot in record.slots]
    assert [2] * 16 + [0] * 4 == [len(slot.gpus or ()) for slot in record.slots]
    assert record == decode(encode(record))


def test_each_role_is_recorded_with_its_own_requests() -> None:
    """So that anyone who plans next to it knows what its pods will take."""
    record = planner(tfjob())(racks())

    assert (
        PlannedRole("chief", 1, {"nvidia.com/gpu": 2}),
        PlannedRole("worker", 15, {"nvidia.com/gpu": 2}),
        PlannedRole("ps", 4, {"cpu": 4000}),
    ) == record.roles


def test_a_gang_without_a_place_waits_and_says_for_which_role() -> None:
    """All or nothing: its workers would fit."""
    record = planner(tfjob(servers=1, server_cpu="1000"))(racks())

    assert Stage.WAITING is record.stage
    assert () == record.slots
    assert "ps: 1 pod" in record.waiting_reason


def test_a_gang_that_could_never_fit_is_refused() -> None:
    """Before anything of it is created."""
    with pytest.raises(DoesNotFit, match=r"can never fit: the cluster has 32 GPUs"):
        planner(tfjob(workers=16), refuses_impossible=True)(racks())
