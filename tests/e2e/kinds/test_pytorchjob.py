"""What is special to PyTorchJobs, on a real API server with the real training operator."""

import pytest

from tests.controlplane.kube import Kube
from tests.e2e.arena import Arena
from tests.e2e.kinds.places import nodes_of, plan_on

PYTORCHJOB = ("kubeflow.org/v1", "PyTorchJob")
COMMAND = "torchrun train.py"


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_jobs_of_two_kinds_never_get_the_same_gpus(arena: Arena, kube: Kube, namespace: str) -> None:
    """The plan of one that has not started yet is read by the
    submit of the other, which waits as there is no more room.
    """
    first = arena(
        "submit", "pytorch", "--name=bert", "--workers=2", "--gpus=8", "--image=i", "--gputopology", COMMAND
    )
    second = arena(
        "submit",
        "mpi",
        "--name=vgg16",
        "--workers=1",
        "--gpus=8",
        "--image=i",
        "--gputopology",
        "--pin=workers",
        "c",
    )

    assert (0, 0) == (first.code, second.code), first.err + second.err
    assert 2 == len(set(nodes_of(plan_on(kube, namespace, PYTORCHJOB))))
    mpijob = ("kubeflow.org/v2beta1", "MPIJob")
    assert "waiting" == plan_on(kube, namespace, mpijob, "vgg16")["stage"]
    assert 0 == arena("delete", "bert").code
    assert 0 == arena("resume", "vgg16").code
    assert "confirmed" == plan_on(kube, namespace, mpijob, "vgg16")["stage"]
