"""What is special to TrainJobs: their runtimes, on a real API server with the real Trainer and JobSet."""

import json

import pytest

from tests.controlplane.kube import Kube, KubeError
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.kinds.places import nodes_of, plan_on

TRAINJOB = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
RUNTIME = ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime")
COMMAND = "torchrun train.py"
SELECTOR = "jobset.sigs.k8s.io/jobset-name=bert"


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_what_the_runtime_says_of_places_counts(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """Its selector, its requests and its number of nodes, where the job says nothing of them."""
    container = {
        "name": "node",
        "image": "i",
        "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "2"}},
    }
    pod = {"nodeSelector": {"kubernetes.io/hostname": gpu_nodes[1]}, "containers": [container]}
    role = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": pod}},
        },
    }
    spec = {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "template": {"spec": {"replicatedJobs": [role]}},
    }
    kube.create(
        {"apiVersion": RUNTIME[0], "kind": RUNTIME[1], "metadata": {"name": "mine"}, "spec": spec}, namespace
    )
    eventually(lambda: is_known(kube, namespace, "mine"), "Trainer to know its runtime")
    outcome = arena(
        *("submit", "train", "--name=bert", "--workers=2", "--gpus=3", "--runtime=trainingruntime/mine"),
        *("--gputopology", COMMAND),
    )
    assert 0 == outcome.code, outcome.err

    job = kube.get(*TRAINJOB, "bert", namespace)
    noted = json.loads(job["metadata"]["annotations"]["arena-topo.dev/pod-requests"])
    assert {"cpu": "2", "nvidia.com/gpu": "3"} == noted
    assert (
        [gpu_nodes[1]] * 2
        == nodes_of(plan_on(kube, namespace, TRAINJOB))
        == pods.nodes_of(pods.all_running(kube, namespace, SELECTOR, 2))
    )


def is_known(kube: Kube, namespace: str, runtime: str) -> bool:
    """Whether Trainer's webhook takes a job with a runtime of
    the namespace: it learns of a new one after a moment.
    """
    spec = {"runtimeRef": {"name": runtime, "kind": RUNTIME[1]}}
    job = {"apiVersion": TRAINJOB[0], "kind": TRAINJOB[1], "metadata": {"name": "probe"}, "spec": spec}
    try:
        kube.request("POST", kube.path(*TRAINJOB, namespace), job, query={"dryRun": "All"})
    except KubeError:
        return False
    return True


def test_a_runtime_that_does_not_exist_is_named(arena: Arena) -> None:
    """Before anything is created."""
    outcome = arena("submit", "train", "--name=bert", "--gpus=1", "--runtime=none", COMMAND)

    assert 1 == outcome.code
    assert "the ClusterTrainingRuntime none does not exist" in outcome.err
