"""Two jobs that want the same GPUs: without a gang each
holds what the other waits for; as gangs they run in turn.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.controlplane.availability import require_built
from tests.controlplane.components.options import native_gang
from tests.controlplane.kube import Object
from tests.controlplane.machines import pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.pinning import admission_policy
from tests.ranks.jobs import Jobs, mpirun

pytestmark = pytest.mark.usefixtures("nodes")

_GPU = "nvidia.com/gpu"
_WANTED = {"large": 4, "small": 3}
"""GPUs of a worker, by job: each has two, so that either
fits on two nodes of four GPUs, and both together do not.
"""


def filler(node: str) -> Object:
    """Return a pod that holds one GPU of a node."""
    container = {
        "name": "main",
        "image": "ranks",
        "command": ["sleep", "infinity"],
        "resources": {"limits": {_GPU: "1"}},
    }
    place = {"nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 0}
    meta = {"name": "filler"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**place, "containers": [container]}}


def contend(jobs: Jobs, *flags: str) -> None:
    """Submit both jobs while one GPU of ``node-b`` is taken, the one with the larger workers first."""
    jobs.kube.create(filler("node-b"), jobs.namespace)
    jobs.kube.wait_for("v1", "Pod", "filler", jobs.namespace, until=pods.running)
    for name, gpus in _WANTED.items():
        jobs.submit(name, *flags, workers=2, gpus=gpus, command=mpirun(2))
        eventually(partial(looked_at, jobs, name), f"the scheduler to have looked at {name}")


def looked_at(jobs: Jobs, name: str) -> bool:
    """Whether the scheduler has decided on both workers of a job, one way or the other."""
    workers = jobs.pods(name, "worker")
    return len(workers) == 2 and all(map(decided, workers))


def half_runs(jobs: Jobs, name: str) -> bool:
    """Whether one of the two workers of a job runs."""
    return sum(map(pods.running, jobs.pods(name, "worker"))) == 1


def decided(pod: Object) -> bool:
    """Whether a scheduler has looked at a pod."""
    return any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions") or ())


def remove_filler(jobs: Jobs) -> None:
    """Free its GPU."""
    jobs.kube.delete("v1", "Pod", "filler", jobs.namespace)
    jobs.kube.wait_gone("v1", "Pod", "filler", jobs.namespace)


def nodes_of_workers(jobs: Jobs, name: str) -> list[str]:
    """Return the nodes of the workers of a job that have one."""
    return [pod["spec"]["nodeName"] for pod in jobs.pods(name, "worker") if pod["spec"].get("nodeName")]


def free_gpus(jobs: Jobs) -> dict[str, int]:
    """Return how many GPUs of each node no pod of the jobs holds."""
    free = {"node-a": 4, "node-b": 4}
    for name, gpus in _WANTED.items():
        for node in nodes_of_workers(jobs, name):
            free[node] -= gpus
    return free


@pytest.fixture(scope="module")
def plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run a control plane whose scheduler has gangs itself,
    with the admission policy that puts workers into them.
    """
    require_built(pytestconfig)
    with ControlPlane(native_gang()) as running, admission_policy(running):
        yield running


def test_without_a_gang_they_deadlock(jobs: Jobs) -> None:
    """One worker of each runs, the others fit nowhere, and no launcher starts; deleting a job ends it."""
    contend(jobs)
    remove_filler(jobs)
    for name in _WANTED:
        eventually(partial(half_runs, jobs, name), f"one worker of {name} to run")

    assert {"large": ["node-a"], "small": ["node-b"]} == {
        name: nodes_of_workers(jobs, name) for name in _WANTED
    }
    # Whatever a scheduler does, no node has room for the second worker of either.
    assert max(free_gpus(jobs).values()) < min(_WANTED.values())
    assert [] == [pod for name in _WANTED for pod in jobs.pods(name, "launcher")]
    for name in _WANTED:
        jobs.wait(name, "PENDING")

    assert 0 == jobs.arena("delete", "small").code
    assert 2 == len(jobs.ranks("large"))


def test_as_gangs_of_the_scheduler_they_run_in_turn_and_nobody_resumes(jobs: Jobs) -> None:
    """The larger waits whole while a GPU is taken, so the smaller runs; then the larger does, by itself."""
    contend(jobs, "--gang", "--gang-scheduler=native")
    assert 2 == len(jobs.ranks("small"))
    jobs.wait("small", "SUCCEEDED")
    assert [] == nodes_of_workers(jobs, "large")

    remove_filler(jobs)
    assert 2 == len(jobs.ranks("large"))
    jobs.wait("large", "SUCCEEDED")
