"""A suspended job holds nothing, and is planned again when
it is resumed, on a real API server with the real operator.
"""

import json

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Outcome

ONE_NODE = ("--workers=1", "--gpus=8", "--image=train")


@pytest.fixture(autouse=True)
def nothing_reserved(plane: ControlPlane) -> None:
    """Wait until the jobs of other tests are gone: their plans reserve nodes of the same names."""
    eventually(lambda: not plane.kube.list(*MPIJOB), "the jobs of other tests to go")


def submit_one_node(arena: Arena, name: str, *flags: str) -> Outcome:
    """Submit a job that takes one node."""
    outcome = arena("submit", "mpi", f"--name={name}", *ONE_NODE, *flags, "--", "mpirun")
    assert 0 == outcome.code, outcome.err
    return outcome


def node_of(kube: Kube, namespace: str, name: str) -> str:
    """Return the node of the one worker, once it runs."""

    def running() -> str | None:
        found = [pod for pod in pods.of_job(kube, namespace, name, "worker") if pods.running(pod)]
        return str(found[0]["spec"]["nodeName"]) if found else None

    return eventually(running, f"the worker of {name} to run")


@pytest.mark.parametrize("means", ["gates", "affinity", "admission"])
def test_a_suspended_job_makes_room_and_is_planned_around_whoever_came(
    arena: Arena,
    kube: Kube,
    namespace: str,
    gpu_nodes: list[str],
    means: str,
    request: pytest.FixtureRequest,
) -> None:
    """Whatever keeps the plan: another job takes its node meanwhile, and it starts on the other one."""
    if means == "admission":
        request.getfixturevalue("policy")
    submit_one_node(arena, "job", "--gputopology", "--pin=nodes" if means == "affinity" else "--pin=auto")
    assert gpu_nodes[0] == node_of(kube, namespace, "job")

    stopped = arena("suspend", "job")
    assert (0, "The job job is suspended\n") == (stopped.code, stopped.out), stopped.err
    assert [] == [pod for pod in pods.of_job(kube, namespace, "job") if not pods.ended(pod)]
    shown = arena("get", "job")
    assert "Status:    SUSPENDED" in shown.out
    assert "suspended, and nothing is reserved" in shown.err
    assert "is suspended already" in arena("suspend", "job").err

    submit_one_node(arena, "other", "--gputopology")
    assert gpu_nodes[0] == node_of(kube, namespace, "other")
    resumed = arena("resume", "job")
    assert 0 == resumed.code, resumed.err
    assert gpu_nodes[1] == node_of(kube, namespace, "job")
    assert "1 of 1 worker where planned" in arena("get", "job").err


def test_a_suspended_job_waits_where_its_room_was_taken(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """Resuming says so with exit code 3, and starts it once there is room."""
    submit_one_node(arena, "job", "--gputopology")
    node_of(kube, namespace, "job")
    assert 0 == arena("suspend", "job").code
    for index, node in enumerate(gpu_nodes):
        submit_one_node(arena, f"other-{index}", "--gputopology")
        assert node == node_of(kube, namespace, f"other-{index}")

    refused = arena("resume", "job")
    assert 3 == refused.code
    assert "job waits for a placement" in refused.err
    assert [] == pods.of_job(kube, namespace, "job", "worker")
    assert 0 == arena("delete", "other-1").code
    assert 0 == arena("resume", "job", "--wait=1m").code
    assert gpu_nodes[1] == node_of(kube, namespace, "job")


@pytest.mark.usefixtures("gpu_nodes")
def test_a_job_without_a_plan_is_suspended_and_resumed_too(arena: Arena, kube: Kube, namespace: str) -> None:
    """Its scheduler places it, as before."""
    submit_one_node(arena, "job")
    node_of(kube, namespace, "job")
    assert 0 == arena("suspend", "job").code
    assert "SUSPENDED" in arena("get", "job").out
    assert (0, "The job job is resumed\n") == ((done := arena("resume", "job")).code, done.out)
    assert node_of(kube, namespace, "job")
    again = arena("resume", "job")
    assert (0, "The job job is not suspended: nothing to resume\n") == (again.code, again.out)


def test_a_job_that_kubectl_suspended_gets_a_new_place(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """Its plan may be out of date by the time that it is resumed."""
    submit_one_node(arena, "job", "--gputopology")
    assert gpu_nodes[0] == node_of(kube, namespace, "job")
    kube.patch(*MPIJOB, "job", {"spec": {"runPolicy": {"suspend": True}}}, namespace)
    eventually(lambda: not pods.of_job(kube, namespace, "job", "worker"), "the worker to go")
    assert "Status:    SUSPENDED" in arena("get", "job").out
    assert 0 == arena("resume", "job").code
    assert node_of(kube, namespace, "job") in gpu_nodes
    plan = json.loads(kube.get(*MPIJOB, "job", namespace)["metadata"]["annotations"]["arena-topo.dev/plan"])
    assert "confirmed" == plan["stage"]
