"""Jobs of kinds other than MPIJob wait in the controller's queue, and start pinned once there is room."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from arena_topo.model.keys import HOSTNAME, PLAN
from arena_topo.model.plan_record import PlanRecord, Stage, decode
from tests.controlplane.kube import Kube
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, placed, replica

pytestmark = pytest.mark.usefixtures("lease", "gpu_nodes")


@dataclass(frozen=True)
class Kind:
    """How a kind is submitted, where its jobs and their pods are,
    and how the names of these begin, in the order of their ranks.
    """

    submit: tuple[str, ...]
    api: tuple[str, str]
    label: str
    pods: tuple[str, ...]


KINDS = {
    "PyTorchJob": Kind(
        ("pytorch", "--workers=2"),
        ("kubeflow.org/v1", "PyTorchJob"),
        "training.kubeflow.org/job-name=late",
        ("late-master-0", "late-worker-0"),
    ),
    "TFJob": Kind(
        ("tf", "--workers=1", "--chief", "--ps=1"),
        ("kubeflow.org/v1", "TFJob"),
        "training.kubeflow.org/job-name=late",
        ("late-chief-0", "late-worker-0", "late-ps-0"),
    ),
    "JobSet": Kind(
        ("jobset", "--workers=2"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        "jobset.sigs.k8s.io/jobset-name=late",
        ("late-worker-0-0-", "late-worker-0-1-"),
    ),
}


def plan(kube: Kube, namespace: str, kind: Kind) -> PlanRecord:
    """Return the plan that the job carries."""
    return decode(kube.get(*kind.api, "late", namespace)["metadata"]["annotations"][PLAN])


def members(kube: Kube, namespace: str, kind: Kind) -> Mapping[int, tuple[str, str]]:
    """Return the node of each pod that has one, and the host that it asks for, by its rank."""
    found = kube.list("v1", "Pod", namespace, labelSelector=kind.label)
    return {
        rank: (pod["spec"]["nodeName"], pod["spec"].get("nodeSelector", {}).get(HOSTNAME, ""))
        for rank, name in enumerate(kind.pods)
        for pod in found
        if pod["metadata"]["name"].startswith(name) and pod["spec"].get("nodeName")
    }


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_job_that_waited_starts_pinned_when_there_is_room(
    arena: Arena,
    kube: Kube,
    namespace: str,
    kind: Kind,
    pinned_by: str,
) -> None:
    """Behind an MPIJob that takes the whole cluster; none of its pods
    has a node meanwhile, and each is then where it was planned.
    """
    with replica(arena):
        assert 0 == submit_gang(arena, "first", 2, 8).code
        placed(kube, namespace, "first")
        shape = ("--name=late", "--gpus=8", "--image=train")
        late = arena("submit", *kind.submit, "--gang", "--gputopology", *shape, "train.py")
        assert 0 == late.code, late.err
        assert "late waits for a placement" in late.err
        eventually(lambda: 1 == plan(kube, namespace, kind).position, "its position in the queue")
        assert {} == members(kube, namespace, kind)
        end(kube, namespace, "first")
        found = eventually(
            lambda: found if len(found := members(kube, namespace, kind)) == len(kind.pods) else None,
            "all pods to have nodes",
        )
    record = plan(kube, namespace, kind)
    assert (Stage.CONFIRMED, pinned_by) == (record.stage, record.enforcement.value)
    assert {slot.worker: (slot.node, record.hostname(slot.node)) for slot in record.slots} == found
