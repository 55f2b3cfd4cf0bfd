"""What a lost node costs a job of each kind in our own queue: one pod, or a start of all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, placed, plan, reasons, replica, waits

pytestmark = pytest.mark.usefixtures("lease", "servers")


@dataclass(frozen=True, slots=True)
class Kind:
    """How a job of three pods is submitted, by what they are found, and what a lost node costs it.

    ``lasting`` is written into the spec so that the job continues without a pod. ``moves`` are the
    enforcements with which only the lost pod is replaced.
    """

    api: tuple[str, str]
    submit: tuple[str, ...]
    selector: str
    moves: tuple[str, ...] = ("gates", "admission")
    lasting: tuple[tuple[str, bool], ...] = ()


_OPERATOR, _JOBSET = "training.kubeflow.org/job-name=bert", "jobset.sigs.k8s.io/jobset-name=bert"

KINDS = {
    "PyTorchJob": Kind(("kubeflow.org/v1", "PyTorchJob"), ("pytorch", "--image=i", "--retry=3"), _OPERATOR),
    "TFJob": Kind(
        ("kubeflow.org/v1", "TFJob"),
        ("tf", "--image=i", "--retry=3"),
        _OPERATOR,
        # A worker that is being deleted counts as failed, and ends any other TFJob.
        lasting=(("enableDynamicWorker", True),),
    ),
    "JobSet": Kind(
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("jobset", "--image=i", "--retry=3"),
        _JOBSET,
        moves=("gates",),
    ),
    "Job": Kind(
        ("batch/v1", "Job"),
        ("job", "--image=i", "--retry=3"),
        "batch.kubernetes.io/job-name=bert",
        moves=("gates",),
    ),
    "TrainJob": Kind(
        ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
        ("train", "--runtime=torch-distributed", "--image=i"),
        _JOBSET,
        moves=("gates",),
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, kube: Kube, namespace: str) -> Iterator[Kind]:
    """Each kind; its job goes with the test, as its plan reserves servers."""
    found = KINDS[request.param]
    yield found
    for job in kube.list(*found.api, namespace):
        # Else the pods of a batch Job would outlive it.
        kube.delete(*found.api, job["metadata"]["name"], namespace, propagationPolicy="Background")
    eventually(lambda: not kube.list("v1", "Pod", namespace), "the pods to go")


def uids(found: Sequence[Object]) -> dict[str, str]:
    """Return the uid of each pod by its node."""
    return {pod["spec"]["nodeName"]: pod["metadata"]["uid"] for pod in found}


@pytest.mark.full("the operators of all kinds, each with a job of its own, and ten seconds of back-off")
def test_a_lost_node_costs_a_pod_or_a_start(
    arena: Arena, kube: Kube, namespace: str, kind: Kind, pinned_by: str
) -> None:
    """Of what can be pinned elsewhere while it runs only the lost pod gets another node. The template of a
    JobSet, Job or TrainJob cannot change then: with gates it need not, else the job is queued again.
    """
    with replica(arena):
        shape = ("--name=bert", "--workers=3", "--gpus=8", "--gputopology=true")
        outcome = arena("submit", *kind.submit, *shape, "torchrun train.py")
        assert 0 == outcome.code, outcome.err
        if kind.lasting:
            kube.patch(*kind.api, "bert", {"spec": dict(kind.lasting)}, namespace)
        before = uids(pods.all_running(kube, namespace, kind.selector, 3))
        # Never the first, which of a PyTorchJob is its master.
        lost = max(before)
        kube.delete("v1", "Node", lost)
        after = uids(pods.all_running(kube, namespace, kind.selector, 3, without=before[lost]))
        moves = pinned_by in kind.moves
        word = "Moved" if moves else "NodeLost"
        eventually(lambda: word in reasons(kube, namespace, "bert"), "its event")
    assert lost not in after
    stay = {uid for node, uid in before.items() if node != lost}
    assert (stay if moves else set()) == stay.intersection(after.values())


@pytest.mark.full("a node is lost; tests/planner/test_spares.py and tests/controller have the rules")
def test_a_lost_worker_gets_the_node_that_is_held_for_it(arena: Arena, kube: Kube, namespace: str) -> None:
    """Submit and describe say what it costs, and a younger job does not get it, also once all workers run."""
    submitted = submit_gang(arena, "gang", 2, 8, "--spares=1")
    assert "1 spare node held: 8 GPUs idle" in submitted.err
    with replica(arena):
        before = placed(kube, namespace, "gang")
        (spare,) = {slot.node for slot in plan(kube, namespace, "gang").spares}
        assert "1 spare node held: 8 GPUs idle" in arena("describe", "gang").out
        assert 0 == submit_gang(arena, "late", 2, 8).code
        eventually(lambda: 1 == plan(kube, namespace, "late").position, "its position in the queue")
        kube.delete("v1", "Node", before[1])
        eventually(
            lambda: {0: before[0], 1: spare} == pods.nodes_by_index(kube, namespace, "gang"), "the move"
        )
        assert waits(kube, namespace, "late")
        assert () == plan(kube, namespace, "gang").spares
    end(kube, namespace, "late")
