"""Going on with a job: what cannot be resumed is said, and lost workers alone get other places."""

import time
from dataclasses import replace

import pytest

from arena_topo.errors import DocumentError, NotFound, UsageError
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.reserve import WaitPolicy, plan_of
from arena_topo.jobs.resume import Replacement, Unplanned, resume_job
from arena_topo.kinds.training_operator import TFJOB
from arena_topo.kube.session import Session
from arena_topo.model.keys import PLAN
from arena_topo.model.plan_record import PlannedRole, PlanRecord, Slot, Stage, encode
from tests.fakes import Answer, Call, missing, session, unserved
from tests.kinds.jobs import training_job
from tests.objects import mpijob
from tests.planner.fleets import cluster, node
from tests.planner.roles.test_servers import racks

RECORD = PlanRecord(
    stage=Stage.CONFIRMED, slots=(Slot(0, "gone", (0,)), Slot(1, "n2", (3,))), hostnames={"n2": "host-n2"}
)


def test_only_the_lost_worker_gets_another_place() -> None:
    """Workers keep their numbers; of all nodes only those of the plan have their hostnames in it."""
    nodes = [node("n1"), node("n2", range(8)), node("n3")]
    nodes = [replace(each, hostname=f"host-{each.name}") for each in nodes]
    found = Replacement(mpijob("job", workers=2), RECORD, frozenset({0}))(cluster(nodes))

    assert Stage.PROPOSED is found.stage
    assert [0, 1] == [slot.worker for slot in found.slots]
    assert ("n1", RECORD.slots[1]) == (found.slots[0].node, found.slots[1])
    assert {"n1": "host-n1", "n2": "host-n2"} == found.hostnames


def test_the_lost_worker_comes_beside_the_one_that_stays() -> None:
    """Its node has room, and is closer than any other."""
    found = Replacement(mpijob("job", workers=2), RECORD, frozenset({0}))(
        cluster([node("n1"), node("n2", (3,))])
    )

    assert "n2" == found.slots[0].node
    assert RECORD.slots[1] == found.slots[1]


def test_the_place_of_a_worker_that_has_no_node_yet_is_none_for_the_lost_one() -> None:
    """Only a pod that is bound is counted by the cluster: until then its plan says what it takes."""
    nodes = cluster([node("n1"), node("n2", (0, 1, 2, 4, 5, 6, 7))])
    job = mpijob("job", workers=2)

    assert "n1" == Replacement(job, RECORD, frozenset({0}))(nodes).slots[0].node


def test_a_gang_that_has_moved_says_where_it_is() -> None:
    """Its level and domain are those of its places, not of those that it had."""
    record = replace(RECORD, level="node", domain="gone")
    found = Replacement(mpijob("job", workers=2), record, frozenset({0}))(
        cluster([node("n1"), node("n2", range(8))])
    )

    assert ("cluster", "cluster") == (found.level, found.domain)


def test_lost_pods_of_a_role_get_places_for_what_that_role_asks() -> None:
    """A server needs cores that only a node without GPUs has left; the worker's node stays its own."""
    job = training_job(TFJOB, {"Worker": 1, "PS": 2})
    for role, requests in (("Worker", {"nvidia.com/gpu": "1"}), ("PS", {"cpu": "60"})):
        pods = {"containers": [{"name": "tensorflow", "resources": {"requests": requests}}]}
        job["spec"]["tfReplicaSpecs"][role]["template"]["spec"] = pods
    record = PlanRecord(
        stage=Stage.CONFIRMED,
        slots=(Slot(0, "g0", (0,)), Slot(1, "gone", ()), Slot(2, "c0", ())),
        roles=(PlannedRole("worker", 1, {"nvidia.com/gpu": 1}), PlannedRole("ps", 2, {"cpu": 60_000})),
    )
    held = [
        replace(each, requested={"cpu": 60_000, "pods": 1}) if each.name == "c0" else each
        for each in racks().nodes
    ]
    found = Replacement(job, record, frozenset({1}))(replace(racks(), nodes=tuple(held)))

    assert [record.slots[0], record.slots[2]] == [found.slots[0], found.slots[2]]
    assert found.slots[1].node in {"c1", "c2", "c3", "c4", "c5"}


AT_ONCE = WaitPolicy(waiter=Waiter(lambda _: None), clock=time.monotonic)


def opened(annotations: dict[str, str], labels: dict[str, str] | None = None, **policy: bool) -> Session:
    """Return a session with a cluster that has the job, with a run *policy*, and nothing else."""
    job = mpijob("job")
    job["metadata"] |= {"annotations": annotations, "labels": labels or {}}
    job["spec"]["runPolicy"] = policy

    def answer(call: Call) -> Answer:
        if "/v2beta1/" in call.path:
            return Answer(body=job)
        return missing("files") if "configmaps" in call.path else unserved()

    return session(answer)[0]


def test_a_job_that_is_not_suspended_stays_as_it_is() -> None:
    """A resume can be repeated, as kubectl's commands can."""
    assert Unplanned.RAN_ALREADY is resume_job(opened({}), "job", AT_ONCE)


def test_a_job_in_a_queue_of_kueue_is_left_to_kueue() -> None:
    """Our own command says what it waits for."""
    queued = opened({}, {"kueue.x-k8s.io/queue-name": "q"}, suspend=True)
    with pytest.raises(UsageError, match="the job job waits in queue q of Kueue") as caught:
        resume_job(queued, "job", AT_ONCE)
    assert "arena-topo get job shows what it waits for, and what to do next" == caught.value.hint


def test_a_plan_of_a_newer_tool_is_left_alone() -> None:
    """Nothing is guessed."""
    with pytest.raises(DocumentError, match="job job: the annotation"):
        plan_of({"metadata": {"name": "job", "annotations": {PLAN: '{"v":9}'}}})


def test_a_job_that_was_half_created_is_told() -> None:
    """What is missing cannot be recreated: only the user has the file."""
    half = PlanRecord(
        stage=Stage.PROPOSED, companion_paths=("/api/v1/namespaces/default/configmaps/job-files",)
    )
    with pytest.raises(
        NotFound, match="half created: /api/v1/namespaces/default/configmaps/job-files is missing"
    ):
        resume_job(opened({PLAN: encode(half)}), "job", AT_ONCE)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/pods/x/proxy/metrics",
        "/api/v1/namespaces/default/services/x:80/proxy",
        "/api/v1/namespaces/default/pods/..",
        "/api/v1/secrets?watch=1",
        "https://elsewhere",
        "",
    ],
)
def test_what_a_plan_names_is_asked_for_only_where_it_is_an_object(path: str) -> None:
    """Somebody else may have written the annotation, and the request has the rights of those who resumes."""
    forged = PlanRecord(stage=Stage.PROPOSED, companion_paths=(path,))
    with pytest.raises(DocumentError, match="which is the path of no object"):
        resume_job(opened({PLAN: encode(forged)}), "job", AT_ONCE)


def test_lost_workers_get_the_spare_nodes_first() -> None:
    """Also where another one is closer; what the spares cannot take goes where there is room."""
    nodes = cluster([node("n1"), node("n2", range(7)), node("n3"), node("n4", range(1, 8))])
    slots = (Slot(0, "gone", (0,)), Slot(1, "n2", (3,)), Slot(2, "gone", (1,)))
    spares = (Slot(3, "n4"), Slot(4, "n5"))
    record = replace(RECORD, slots=slots, spares=spares, requested_options={"spares": "2"})
    job = mpijob("job", workers=3)
    one = Replacement(job, record, frozenset({0}))(nodes)
    assert ("n4", ("n5",)) == (one.slots[0].node, tuple(slot.node for slot in one.spares))
    assert {"spares": "1"} == one.requested_options
    both = Replacement(job, record, frozenset({0, 2}))(nodes)
    assert ("n4", "n2") == (both.slots[0].node, both.slots[2].node)
