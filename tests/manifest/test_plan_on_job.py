"""Pins reach the job in one copy, and what the user set stays."""

from copy import deepcopy

import pytest

from arena_topo.errors import DocumentError
from arena_topo.kinds.mpijob import Role, pod_templates
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB
from arena_topo.manifest.plan_on_job import Pins, changes, resized, with_pins
from arena_topo.model.kind import containers
from arena_topo.model.objects import Object
from tests.kinds.jobs import training_job
from tests.objects import mpijob


def worker(job: Object) -> Object:
    """Return the worker template of *job*."""
    return pod_templates(job)[Role.WORKER]


def test_the_job_itself_stays_as_it_is() -> None:
    """It is compared with what it becomes."""
    job = mpijob("job")
    before = deepcopy(job)
    with_pins(
        job, Pins(plan="p", new=True, gated=True, suspended=True, annotations={"a": "1"}, shared_gpus=True)
    )

    assert before == job


def test_the_launcher_of_a_planned_job_is_known_by_a_label() -> None:
    """By which the controller's token may delete it; a job that is planned again keeps the label."""
    labels = {"arena-topo.dev/launcher-of": "job"}
    once = with_pins(mpijob("job"), Pins(plan="p", new=True))
    again = with_pins(once, Pins(plan="q"))
    for job in (once, again):
        launcher = pod_templates(job)[Role.LAUNCHER]
        assert labels == launcher["metadata"]["labels"]
        assert "arena-topo.dev/launcher-of" not in worker(job)["metadata"]["labels"]
    assert "metadata" not in pod_templates(with_pins(mpijob("job"), Pins(plan="p")))[Role.LAUNCHER]


def test_a_gate_stands_beside_the_users_own() -> None:
    """And once only."""
    job = mpijob("job")
    worker(job)["spec"]["schedulingGates"] = [{"name": "theirs"}]
    once = with_pins(job, Pins(plan="p", gated=True))

    assert [{"name": "theirs"}, {"name": "arena-topo.dev/gang"}] == worker(once)["spec"]["schedulingGates"]
    assert once == with_pins(once, Pins(plan="p", gated=True))


def test_a_job_that_was_never_suspended_is_not_resumed() -> None:
    """A gated job has no run policy that says so, and gets none."""
    assert "runPolicy" not in with_pins(mpijob("job"), Pins(plan="p", suspended=False))["spec"]


def test_claimed_gpus_become_a_number_in_an_annotation() -> None:
    """The workers get them from their claims; a device class cannot be requested by a container."""
    job = mpijob("job")
    for container in containers(worker(job)):
        container["resources"] = {"limits": {"gpu.nvidia.com": "2", "cpu": "1"}}
    pinned = worker(with_pins(job, Pins(plan="p", new=True)))

    assert [{"limits": {"cpu": "1"}}] == [container["resources"] for container in containers(pinned)]
    assert "2" == pinned["metadata"]["annotations"]["arena-topo.dev/claimed-gpus"]


def test_shared_gpus_do_not_overrule_the_users_environment() -> None:
    """Who sets NCCL_HOSTID knows why."""
    job = mpijob("job")
    for container in containers(worker(job)):
        container["env"] = [{"name": "NCCL_HOSTID", "value": "mine"}]
    (container,) = containers(worker(with_pins(job, Pins(plan="p", shared_gpus=True))))

    assert ["NCCL_HOSTID", "CUDA_VISIBLE_DEVICES", "NCCL_CUMEM_ENABLE"] == [
        variable["name"] for variable in container["env"]
    ]
    assert "mine" == container["env"][0]["value"]


TERM = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
EVERYTHING = Pins(plan="p", new=True, gated=True, suspended=True, node_term=TERM, shared_gpus=True)


def emptied() -> Object:
    """Return a job of a template whose author left keys without a value."""
    job = mpijob("job")
    job["spec"]["runPolicy"] = None
    worker(job)["metadata"] = {"labels": None, "annotations": None}
    worker(job)["spec"] |= {"affinity": None, "schedulingGates": None, "topologySpreadConstraints": None}
    worker(job)["spec"]["containers"][0]["env"] = None
    return job


def test_a_key_without_a_value_is_one_that_is_not_there() -> None:
    """As the API server reads it."""
    pinned = with_pins(emptied(), EVERYTHING)
    (alternative,) = worker(pinned)["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]

    assert {"suspend": True} == pinned["spec"]["runPolicy"]
    assert [TERM] == alternative["matchExpressions"]
    assert 3 == len(worker(pinned)["spec"]["containers"][0]["env"])


@pytest.mark.parametrize("key", ["affinity", "runPolicy", "env"])
def test_a_key_of_another_type_is_one_clear_error(key: str) -> None:
    """It names the key."""
    job = emptied()
    part = {"affinity": worker(job)["spec"], "runPolicy": job["spec"]}.get(
        key, worker(job)["spec"]["containers"][0]
    )
    part[key] = "yes"
    with pytest.raises(DocumentError, match=f"{key} is 'yes', expected a"):
        with_pins(job, EVERYTHING)


def test_a_job_without_a_run_policy_is_suspended_by_a_patch_that_works() -> None:
    """JSON patches add to what is there."""
    job = mpijob("job")
    suspended = with_pins(job, Pins(plan="p", suspended=True))

    assert {"op": "add", "path": "/spec/runPolicy", "value": {"suspend": True}} in changes(job, suspended)


def test_a_job_without_the_role_that_grows_is_one_clear_error() -> None:
    """As a server may answer it."""
    with pytest.raises(DocumentError, match="the job job has no workers, whose number could change"):
        resized({**mpijob("job"), "spec": {"a": 1}}, 3)


def test_a_new_number_of_pods_is_tested_and_written() -> None:
    """The elastic role has what the others leave: of six pods one is the master."""
    job = training_job(PYTORCHJOB, {"Master": 1, "Worker": 3})
    operations = changes(job, resized(job, 6))
    path = "/spec/pytorchReplicaSpecs/Worker/replicas"
    assert [
        {"op": "test", "path": path, "value": 3},
        {"op": "replace", "path": path, "value": 5},
    ] == operations[1:]
    assert 3 == job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"]


def test_a_kind_whose_pods_stay_as_many_is_not_resized() -> None:
    """A TFJob's pods know each other by number."""
    with pytest.raises(ValueError, match="TFJob"):
        resized(training_job(TFJOB, {"Worker": 3}), 4)
