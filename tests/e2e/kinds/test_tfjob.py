"""What is special to TFJobs with parameter servers, on a real API server with the real training operator."""

import json

import pytest

from tests.controlplane.kube import Kube, KubeError
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.kinds.places import plan_on
from tests.e2e.pinning import tried

TFJOB, MPIJOB = ("kubeflow.org/v1", "TFJob"), ("kubeflow.org/v2beta1", "MPIJob")
COMMAND = "python train.py"


@pytest.mark.usefixtures("gpu_nodes")
def test_a_job_with_servers_and_an_mpi_job_never_get_the_same_gpus(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """Servers with GPUs of their own among them, twelve in all,
    are planned while no pod of the namespace can be created.
    """
    kube.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "no-pods"},
            "spec": {"hard": {"count/pods": "0"}},
        },
        namespace,
    )
    eventually(lambda: pods_are_refused(kube, namespace), "the quota to act")
    # Whether an admission policy pins them is not waited for: there are no pods to see it on.
    planned = ("--gputopology", "--pin=nodes")
    servers = ("--ps-gpus=2", *planned)
    first = arena(
        "submit", "tf", "--name=wide", "--workers=2", "--gpus=4", "--ps=2", "--image=i", *servers, COMMAND
    )
    mpi = ("submit", "mpi", "--image=i", *planned, "--workers=1")
    beside = arena(*mpi, "--name=second", "--gpus=4", "c")
    too_many = arena(*mpi, "--name=too-many", "--gpus=1", "c")
    assert (0, 0, 0) == (first.code, beside.code, too_many.code), first.err + beside.err + too_many.err

    def gpus(kind: tuple[str, str], name: str) -> list[tuple[str, str]]:
        plan = plan_on(kube, namespace, kind, name)
        nodes = [node for node, count in plan["nodes"] for _ in range(count)]
        indices = [text for text, count in plan["gpus"] for _ in range(count)]
        return [(node, gpu) for node, text in zip(nodes, indices, strict=True) for gpu in text.split(",")]

    taken = [*gpus(TFJOB, "wide"), *gpus(MPIJOB, "second")]
    assert 16 == len(taken) == len(set(taken))
    assert "waiting" == plan_on(kube, namespace, MPIJOB, "too-many")["stage"]
    # Their reservations last as long as they do, and other tests plan on the same nodes.
    assert 0 == arena("delete", "wide", "second", "too-many").code


def pods_are_refused(kube: Kube, namespace: str) -> bool:
    """Whether the API server applies the quota: it learns of a new one after a moment."""
    try:
        tried(kube, "probe", {}, namespace)
    except KubeError as error:
        return "no-pods" in str(error)
    return False


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_the_server_tries_a_job_with_the_pins_of_every_role(arena: Arena, kube: Kube, namespace: str) -> None:
    """Nothing is created; the lists are the same in each
    template, and the offset says where a role begins in them.
    """
    shape = ("--name=wide", "--image=i", "--workers=3", "--gpus=4", "--ps=2", "--ps-cpu=4", "--chief")
    tried_only = ("--gputopology", "--dry-run=server", "--plan", "-o", "json")
    outcome = arena("submit", "tf", *shape, *tried_only, COMMAND)
    assert 0 == outcome.code, outcome.err

    specs = json.loads(outcome.out)["spec"]["tfReplicaSpecs"]
    annotations = {role: spec["template"]["metadata"]["annotations"] for role, spec in specs.items()}
    assert {"Chief": None, "Worker": "1", "PS": "4"} == {
        role: each.get("arena-topo.dev/pin-offset") for role, each in annotations.items()
    }
    assert 1 == len({each["arena-topo.dev/pin-nodes"] for each in annotations.values()})
    assert kube.find(*TFJOB, "wide", namespace) is None
