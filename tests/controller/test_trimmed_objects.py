"""What is kept of an object is what is read of it, whatever else its writer put there."""

import pytest

from arena_topo.controller.objects import trimmed_job, trimmed_object, trimmed_pod, trimmed_workload
from arena_topo.controller.state import PlannedJob
from arena_topo.errors import DocumentError
from arena_topo.jobs.enforce import rewritten
from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import KINDS
from arena_topo.manifest.plan_on_job import changes, with_pins
from arena_topo.model import keys
from arena_topo.model.kind import Kind
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import PlanRecord, Slot, Stage, encode
from tests.controller.workload_objects import workload
from tests.objects import mpijob, pod

LARGE = "x" * 200_000


def cluttered_job(plan: str, workers: int = 2) -> Object:
    """Return a job that its user, its operator and others have written much onto."""
    job = mpijob("job", workers=workers)
    own = {"f:metadata": {"f:annotations": {f"f:{keys.PLAN}": {}, "f:other": {}}}, "f:spec": {"f:a": {}}}
    job["metadata"] |= {
        "resourceVersion": "7",
        "labels": {keys.PLANNED: "true", keys.KUEUE_QUEUE: "q", "team": "a"},
        "annotations": {keys.PLAN: plan, keys.ELASTIC: "1:4", "other": LARGE},
        "managedFields": [
            {"manager": "kubectl", "time": "2026-11-22T00:00:00Z", "fieldsV1": {"f:spec": {"f:b": {}}}},
            {"manager": "arena-topo", "operation": "Update", "time": "2026-11-22T01:00:00Z", "fieldsV1": own},
        ],
        "ownerReferences": [{"kind": "X", "name": LARGE}],
    }
    return job


def confirmed(workers: int) -> str:
    """Return the plan of so many workers, each on a node
    of its own with a name and a label of some length.
    """
    names = [f"gpu-node-{index:05d}.cluster-1.example.com" for index in range(workers)]
    return encode(
        PlanRecord(
            stage=Stage.CONFIRMED,
            slots=tuple(Slot(index, name, tuple(range(8))) for index, name in enumerate(names)),
            hostnames={name: name.partition(".")[0] for name in names},
        )
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}-{kind.version}")
def test_a_pod_of_any_kind_is_still_one_of_its_job(kind: Kind) -> None:
    """It is known by the labels of its operator: unknown it would wait at its gate forever."""
    labels = {
        keys.OPERATOR_JOB_NAME: "job",
        keys.OPERATOR_JOB_ROLE: "worker",
        keys.OPERATOR_REPLICA_TYPE: "worker",
        keys.OPERATOR_REPLICA_INDEX: "1",
        keys.COMPLETION_INDEX: "1",
        **(
            {keys.BATCH_JOB_NAME: "job"}
            if kind is INDEXED_JOB
            else {keys.JOBSET_NAME: "job", keys.JOBSET_JOB_INDEX: "0", keys.JOBSET_ROLE: "node"}
        ),
    }
    item = pod("job-worker-1")
    item["metadata"]["labels"] = labels
    found = kind.member(item)
    assert found
    assert ("job", 1) == (found.job, found.index)
    assert found == kind.member(trimmed_pod(item))


def test_a_job_is_kept_without_what_others_wrote_onto_it() -> None:
    """But for what decides on it: its plan and who wrote that when, its queue, its size."""
    plan = confirmed(2)
    job = cluttered_job(plan)
    kept = trimmed_job(ApiVersion.V2BETA1, job)

    assert 2_000 > len(repr(kept["metadata"]))
    assert {keys.PLAN: plan, keys.ELASTIC: "1:4"} == kept["metadata"]["annotations"]
    assert {keys.PLANNED: "true", keys.KUEUE_QUEUE: "q"} == kept["metadata"]["labels"]
    assert [("arena-topo", "2026-11-22T01:00:00Z")] == [
        (entry["manager"], entry["time"]) for entry in kept["metadata"]["managedFields"]
    ]
    assert job["spec"] == kept["spec"]
    assert LARGE == job["metadata"]["annotations"]["other"]


def test_what_is_kept_of_a_job_decides_as_the_whole_job() -> None:
    """And what is written to it is the same."""
    job = cluttered_job(confirmed(2))
    kept = trimmed_job(ApiVersion.V2BETA1, job)
    whole, part = PlannedJob(ApiVersion.V2BETA1, job), PlannedJob(ApiVersion.V2BETA1, kept)

    assert [
        (one.record, one.order, one.limit, one.name, one.is_ours, one.grows) for one in (whole, part)
    ] == [(one.record, one.order, one.limit, one.name, one.is_ours, one.grows) for one in (part, whole)]
    record = PlanRecord(stage=Stage.PROPOSED, slots=(Slot(0, "a"), Slot(1, "b")))
    assert changes(job, with_pins(job, rewritten(job, record))) == changes(
        kept, with_pins(kept, rewritten(kept, record))
    )


def test_of_templates_is_kept_what_the_pods_ask_for() -> None:
    """Not what they do once they run."""
    job = cluttered_job(confirmed(2))
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    # A label may be called as anything else is.
    template["spec"]["nodeSelector"] = {"env": "prod", "volumes": "fast"}
    template["spec"]["initContainers"] = [{"name": "init", "resources": {"requests": {"cpu": "1"}}}]
    asked = trimmed_job(ApiVersion.V2BETA1, job)["spec"]
    container = template["spec"]["containers"][0]
    container |= {"env": [{"name": "A", "value": LARGE}], "command": ["x"], "args": [LARGE]}
    template["spec"]["volumes"] = [{"name": LARGE}]
    template["metadata"] = {"annotations": {"other": LARGE, keys.PODS_PER_JOB: "2"}}
    kept = trimmed_job(ApiVersion.V2BETA1, job)["spec"]

    assert {"env": "prod", "volumes": "fast"} == kept["mpiReplicaSpecs"]["Worker"]["template"]["spec"][
        "nodeSelector"
    ]
    expected = {keys.PODS_PER_JOB: "2"}
    assert expected == kept["mpiReplicaSpecs"]["Worker"]["template"].pop("metadata")["annotations"]
    assert asked == kept


def test_a_job_of_which_too_much_would_be_kept_is_not_read() -> None:
    """Where it may go can be as long as its writer likes."""
    job = cluttered_job(confirmed(2))
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["spec"]["nodeSelector"] = {f"key-{number}": "x" * 60 for number in range(2_000)}
    with pytest.raises(DocumentError, match=r"what its pods request takes .* at most 65,536 are read"):
        trimmed_job(ApiVersion.V2BETA1, job)


@pytest.mark.parametrize("workers", [2, 1_000, 2_500])
def test_the_plan_of_a_large_job_is_kept(workers: int) -> None:
    """It may be as large as its pods make it."""
    plan = confirmed(workers)
    kept = trimmed_job(ApiVersion.V2BETA1, cluttered_job(plan, workers))

    assert plan == kept["metadata"]["annotations"][keys.PLAN]


@pytest.mark.parametrize("plan", [LARGE, confirmed(2_000)], ids=["no plan at all", "the plan of another job"])
def test_a_plan_that_is_larger_than_that_of_its_pods_is_not_read(plan: str) -> None:
    """The watch reports that at the job, and keeps its name."""
    job = cluttered_job(plan)
    del job["metadata"]["annotations"][keys.ELASTIC]
    with pytest.raises(DocumentError, match=r"its plan has .* characters, of which at most 33,792 are read"):
        trimmed_job(ApiVersion.V2BETA1, job)


def test_an_annotation_that_is_longer_than_any_of_its_kind_is_cut() -> None:
    """So that it cannot be read, as it could not before."""
    job = cluttered_job(confirmed(2))
    job["metadata"]["annotations"] |= {keys.ELASTIC: "1:" + "9" * 200_000, keys.POD_REQUESTS: LARGE}
    kept = trimmed_job(ApiVersion.V2BETA1, job)

    assert 20_000 > len(repr(kept["metadata"]))


def test_a_pod_is_kept_without_what_nobody_reads() -> None:
    """No environment, above all."""
    made = pod("p")
    made["spec"]["containers"][0]["env"] = [{"name": "SECRET", "value": "x"}]
    kept = trimmed_pod(made)
    assert "SECRET" not in str(kept)
    assert {"resources"} == kept["spec"]["containers"][0].keys()


def test_a_workload_is_kept_without_what_nobody_reads() -> None:
    """Nobody writes its templates, of which the options of the planner are read."""
    said = {keys.PLACEMENT_OPTIONS: '{"policy":"restricted"}', "other": LARGE, keys.PIN_NODES: LARGE}
    item = workload(metadata={"annotations": said, "labels": {"a": "b"}})
    item["metadata"] |= {"annotations": {"other": LARGE}, "managedFields": [{"manager": LARGE}]}
    kept = trimmed_workload(item)

    assert 40_000 > len(repr(kept))
    template = kept["spec"]["podSets"][1]["template"]
    assert {keys.PLACEMENT_OPTIONS, keys.PIN_NODES} == template["metadata"]["annotations"].keys()
    assert said[keys.PLACEMENT_OPTIONS] == template["metadata"]["annotations"][keys.PLACEMENT_OPTIONS]
    assert item["status"] is kept["status"]


def test_of_other_objects_the_annotations_of_their_writers_go() -> None:
    """When one was written last is known, and Koordinator's own annotations are read."""
    times = [{"manager": LARGE, "time": "2026-11-22T01:00:00Z", "fieldsV1": {"f:spec": {}}}]
    partitions = "scheduling.koordinator.sh/gpu-partitions"
    meta = {"name": "d", "uid": "u", "labels": {"a": "b"}, "annotations": {"x": LARGE, partitions: "{}"}}
    kept = trimmed_object(
        {"metadata": {**meta, "managedFields": times}, "spec": {"a": 1}, "status": {"b": 2}}
    )

    assert {
        "name": "d",
        "uid": "u",
        "labels": {"a": "b"},
        "annotations": {partitions: "{}"},
        "managedFields": [{"time": "2026-11-22T01:00:00Z"}],
    } == kept["metadata"]
    assert ({"a": 1}, {"b": 2}) == (kept["spec"], kept["status"])
