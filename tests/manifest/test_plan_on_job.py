"""Pins reach the job in one copy, and what the user set stays."""

from copy import deepcopy

from arena_topo.manifest.plan_on_job import Pins, with_pins
from arena_topo.model.job.mpijob import Role, containers, pod_templates
from arena_topo.model.objects import Object
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
