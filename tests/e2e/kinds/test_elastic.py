"""Elastic jobs that grow and shrink, pins and all, on a real API server with the real operators."""

import json
from collections.abc import Mapping

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.kinds.places import nodes_of, plan_on
from tests.e2e.kinds.test_pytorchjob import PYTORCHJOB

PYTORCH = ("submit", "pytorch", "--name=bert", "--gpus=2", "--image=i", "--gputopology", "--pin=workers")
MPI = ("submit", "mpi", "--name=bert", "--gpus=2", "--image=i", "--gputopology", "--pin=workers")
HOROVOD = "horovodrun --host-discovery-script /etc/elastic/discover_hosts.sh python t.py"


def workers(kube: Kube, namespace: str, count: int, without: str = "") -> dict[str, Object]:
    """Return the worker pods of the job by their names, once there are *count* and all of them run."""

    def found() -> dict[str, Object] | None:
        listed = kube.list("v1", "Pod", namespace, labelSelector="training.kubeflow.org/job-name=bert")
        named = {pod["metadata"]["name"]: pod for pod in listed if "-worker-" in pod["metadata"]["name"]}
        whole = len(named) == count and all(map(pods.running, named.values()))
        return named if whole and without not in uids(named).values() else None

    return eventually(found, f"{count} workers that run")


def nodes_by_index(found: Mapping[str, Object]) -> list[str]:
    """Return the node of each worker, by its index."""
    return [found[f"bert-worker-{index}"]["spec"]["nodeName"] for index in range(len(found))]


def uids(found: Mapping[str, Object]) -> dict[str, str]:
    """Return what tells whether a worker is still the same."""
    return {name: pod["metadata"]["uid"] for name, pod in found.items()}


def gone(kube: Kube, namespace: str, api_version: str, kind: str, name: str = "bert") -> None:
    """Wait until an object is gone."""
    eventually(lambda: kube.find(api_version, kind, name, namespace) is None, f"{kind} {name} to be gone")


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_pytorch_job_grows_and_shrinks_in_its_places(arena: Arena, kube: Kube, namespace: str) -> None:
    """The new workers are pinned next to the others, which run
    on; the highest indices leave, and the pins with them.
    """
    outcome = arena(*PYTORCH, "--min-workers=2", "--max-workers=6", "--workers=2", "torchrun t.py")
    assert 0 == outcome.code, outcome.err
    first = workers(kube, namespace, 2)
    (container,) = first["bert-worker-1"]["spec"]["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert ("2:6", "bert-worker-0:23456") == (env["PET_NNODES"], env["PET_RDZV_ENDPOINT"])

    outcome = arena("scale", "bert", "--workers=5")
    assert (0, "pytorchjob.kubeflow.org/bert scaled\n") == (outcome.code, outcome.out), outcome.err
    grown = workers(kube, namespace, 5)
    plan = plan_on(kube, namespace, PYTORCHJOB)
    assert ("confirmed", nodes_of(plan)) == (plan["stage"], nodes_by_index(grown))
    assert uids(first).items() <= uids(grown).items()
    lost = grown["bert-worker-4"]
    kube.delete("v1", "Pod", "bert-worker-4", namespace, gracePeriodSeconds="0")
    assert nodes_by_index(grown) == nodes_by_index(
        workers(kube, namespace, 5, without=lost["metadata"]["uid"])
    )

    outcome = arena("scale", "bert", "--workers=3")
    assert 0 == outcome.code, outcome.err
    left = workers(kube, namespace, 3)
    assert uids(left).items() <= uids(grown).items()
    assert nodes_of(plan_on(kube, namespace, PYTORCHJOB)) == nodes_by_index(grown)[:3]
    assert "bert-worker-0" == json.loads(arena("get", "bert", "-o", "json").out)["chiefName"]
    assert 2 == arena("scale", "bert", "--workers=7").code
    assert 0 == arena("delete", "bert").code


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_an_elastic_job_starts_as_large_as_it_fits_and_grows_when_there_is_room(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """Two nodes of eight GPUs hold eight workers of two, and half as many next to a job that has one node."""
    other = ("submit", "pytorch", "--name=other", "--gpus=8", "--image=i", "--gputopology", "c")
    assert 0 == arena(*other).code
    outcome = arena(*PYTORCH, "--nnodes=2:12", "torchrun t.py")
    assert 0 == outcome.code, outcome.err
    assert 1 == len(set(nodes_by_index(workers(kube, namespace, 4))))
    outcome = arena("scale", "bert", "--grow")
    assert 3 == outcome.code, outcome.err
    assert "confirmed" == plan_on(kube, namespace, PYTORCHJOB)["stage"]

    assert 0 == arena("delete", "other").code
    outcome = arena("scale", "bert", "--grow")
    assert 0 == outcome.code, outcome.err
    assert 2 == len(set(nodes_by_index(workers(kube, namespace, 8))))
    assert 0 == arena("delete", "bert").code


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_horovod_is_told_before_its_workers_leave(arena: Arena, kube: Kube, namespace: str) -> None:
    """An MPIJob grows and shrinks as well, and its launcher's own list names the workers that it may use."""
    outcome = arena(*MPI, "--min-workers=1", "--max-workers=6", "--workers=2", HOROVOD)
    assert 0 == outcome.code, outcome.err
    first = workers(kube, namespace, 2)

    outcome = arena("scale", "bert", "--workers=4")
    assert 0 == outcome.code, outcome.err
    grown = workers(kube, namespace, 4)
    assert nodes_of(plan_on(kube, namespace, MPIJOB)) == nodes_by_index(grown)
    assert uids(first).items() <= uids(grown).items()

    outcome = arena("scale", "bert", "--workers=3", "--grace=1ms")
    assert 0 == outcome.code, outcome.err
    assert "is asked to do without 1 worker" in outcome.err
    assert uids(workers(kube, namespace, 3)).items() <= uids(grown).items()
    hosts = kube.find("v1", "ConfigMap", "bert-elastic", namespace)
    assert hosts is not None
    expected = [f"bert-worker-{index}.bert.{namespace}.svc:2" for index in range(3)]
    assert expected == hosts["data"]["hosts"].splitlines()
    assert 0 == arena("delete", "bert").code
    gone(kube, namespace, "v1", "ConfigMap", "bert-elastic")


@pytest.mark.usefixtures("gpu_nodes")
def test_jobs_of_a_fixed_size_say_why_and_what_instead(arena: Arena, kube: Kube, namespace: str) -> None:
    """Plain mpirun, and torchrun without an elastic policy: nothing is changed."""
    for kind, word in ((MPIJOB, "mpi"), (PYTORCHJOB, "pytorch")):
        outcome = arena("submit", word, "--name=bert", "--workers=2", "--image=i", "mpirun c")
        assert 0 == outcome.code, outcome.err
        refused = arena("scale", "bert", "--workers=3")
        assert 2 == refused.code
        assert f"the {kind[1]} bert cannot grow or shrink: " in refused.err
        assert "--min-workers" in refused.err
        assert 0 == arena("delete", "bert").code
        gone(kube, namespace, *kind)
