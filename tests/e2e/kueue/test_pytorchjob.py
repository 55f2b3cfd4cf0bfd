"""A PyTorchJob in a queue of the real Kueue gets the places of all its roles from our planner."""

import pytest

from arena_topo.model.keys import PIN_NODES
from arena_topo.pin.run_lists import decoded
from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import replica
from tests.e2e.kueue.queues import check

pytestmark = pytest.mark.usefixtures("lease")


def test_the_pods_of_a_pytorch_job_are_where_the_answer_says(
    arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """The master has the first node of the list, and the workers those after it, by their indices."""
    shape = ("--name=bert", "--workers=3", "--gpus=8", "--image=i")
    with replica(arena):
        outcome = arena(
            "submit",
            "pytorch",
            "--gang",
            "--gang-scheduler=kueue",
            f"--queue={queued}",
            *shape,
            "torchrun train.py",
        )
        assert 0 == outcome.code, outcome.err

        def found() -> dict[str, str] | None:
            listed = kube.list("v1", "Pod", namespace, labelSelector="training.kubeflow.org/job-name=bert")
            whole = len(listed) == 3 and all(map(pods.running, listed))
            return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in listed} if whole else None

        places = eventually(found, "three pods that run")
        answer = check(kube, namespace, "bert")
    updates = answer["podSetUpdates"]
    assert isinstance(updates, list)
    assert ["master", "worker"] == [each["name"] for each in updates]
    nodes = decoded(updates[0]["annotations"][PIN_NODES], 3)
    assert 3 == len(set(nodes))
    assert dict(zip(("bert-master-0", "bert-worker-0", "bert-worker-1"), nodes, strict=True)) == places
