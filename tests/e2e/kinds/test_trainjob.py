"""TrainJobs from submit to delete, on a real API server with the real Trainer and JobSet."""

import json
import re

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.logs import FakeLog
from tests.e2e.arena import Arena
from tests.e2e.kinds.places import (
    POD_FLAGS,
    after_a_loss,
    assert_deleted,
    assert_in_places,
    end,
    nodes_of,
    places,
    plan_on,
    running_pods,
    suspend_and_resume,
    tried,
)

TRAINJOB = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
RUNTIME = ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime")
SUBMIT = ("submit", "train", "--name=bert", "--workers=3", "--gpus=2", "--runtime=torch-distributed")
COMMAND = "torchrun train.py --note='a  b'"
SELECTOR = "jobset.sigs.k8s.io/jobset-name=bert"


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_job_runs_in_its_places_from_submit_to_delete(
    arena: Arena, kube: Kube, namespace: str, fake_log: FakeLog
) -> None:
    """Each pod on its own node, a recreated one again; one job, whose JobSet is none beside it, known by its name alone."""
    outcome = arena(*SUBMIT, "--gputopology", "--pin=workers", "--image=i", COMMAND)
    assert (0, "trainjob.trainer.kubeflow.org/bert created\n") == (outcome.code, outcome.out), outcome.err

    members = running_pods(kube, namespace, selector=SELECTOR)
    planned = nodes_of(plan_on(kube, namespace, TRAINJOB))
    assert planned == places(members)
    (container,) = members[0]["spec"]["containers"]
    assert ["sh", "-c", COMMAND] == container["command"]
    assert "3" == next(each["value"] for each in container["env"] if each["name"] == "PET_NNODES")
    again = after_a_loss(kube, namespace, members[1], selector=SELECTOR)
    assert planned == places(again)

    assert "trainjob.trainer.kubeflow.org/bert running\n" == arena("wait", "bert", "--for=running").out
    assert "trainjob.trainer.kubeflow.org/bert\n" == arena("list", "-o", "name").out
    table = arena("get", "bert").out
    assert "Trainer:   TRAINJOB" in table
    assert "3 of 3 workers where planned (admission)" in arena("get", "bert", "-o", "json").out
    assert [pod["metadata"]["name"] for pod in again] == re.findall(r"^  (bert-\S+)", table, re.MULTILINE)
    assert re.search(r"^bert +RUNNING +TRAINJOB +\w+ +6 +6 ", arena("list").out, re.MULTILINE)
    assert "bert" not in arena("list", "--type=jobset").out
    assert "bert-node-0-0" in arena("describe", "bert").out
    assert "bert" in arena("top", "job").out
    fake_log.write("step 1")
    assert "step 1" in arena("logs", "bert").out

    assert_deleted(arena, kube, namespace)


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_suspended_job_is_planned_anew(arena: Arena, kube: Kube, namespace: str) -> None:
    """Its patch may not change while a pod is left: old pins stay until new ones replace them."""
    assert 0 == arena(*SUBMIT, "--gputopology", COMMAND).code
    running_pods(kube, namespace, selector=SELECTOR)

    suspend_and_resume(arena, kube, namespace)
    assert_in_places(kube, namespace, TRAINJOB, selector=SELECTOR)


@pytest.mark.usefixtures("gpu_nodes")
def test_without_the_policy_gates_hold_the_pods_until_all_have_a_place(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """The gate is in the patch of the runtime; suspended and resumed, they are gated again."""
    outcome = arena(*SUBMIT, "--gang", "--gang-scheduler=gates", COMMAND)
    assert 0 == outcome.code, outcome.err
    assert_in_places(kube, namespace, TRAINJOB, selector=SELECTOR)

    suspend_and_resume(arena, kube, namespace)
    assert_in_places(kube, namespace, TRAINJOB, selector=SELECTOR)


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_job_has_succeeded_once_its_pods_have(arena: Arena, kube: Kube, namespace: str) -> None:
    """Trainer calls that Complete."""
    assert 0 == arena(*SUBMIT, COMMAND).code
    end(kube, namespace, running_pods(kube, namespace, selector=SELECTOR))

    assert 0 == arena("wait", "bert", "--for=succeeded").code
    assert re.search(r"^Status: +SUCCEEDED", arena("get", "bert").out, re.MULTILINE)


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
        == places(running_pods(kube, namespace, 2, selector=SELECTOR))
    )


@pytest.mark.usefixtures("gpu_nodes")
def test_the_server_takes_every_flag(arena: Arena, kube: Kube, namespace: str) -> None:
    """Under strict validation against Trainer's own definition, and by its webhook."""
    everything = (
        *("--running-timeout=2h", "--nproc-per-node=2", *POD_FLAGS),
        *("--data=claim:/data", "--data-dir=/a:/b", "--image-pull-secret=s", "--device=a.com/b=1"),
    )
    outcome = arena(*SUBMIT, *everything, "--image=i", "--dry-run=client", "-o", "yaml", COMMAND)
    assert 0 == outcome.code, outcome.err
    stored = tried(kube, namespace, outcome.out)["TrainJob"]
    assert (3, 2, 7200) == (
        stored["spec"]["trainer"]["numNodes"],
        stored["spec"]["trainer"]["numProcPerNode"],
        stored["spec"]["activeDeadlineSeconds"],
    )


def test_a_runtime_that_does_not_exist_is_named(arena: Arena) -> None:
    """Before anything is created."""
    outcome = arena("submit", "train", "--name=bert", "--gpus=1", "--runtime=none", COMMAND)

    assert 1 == outcome.code
    assert "the ClusterTrainingRuntime none does not exist" in outcome.err
