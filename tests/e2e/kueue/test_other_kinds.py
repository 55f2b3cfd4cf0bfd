"""Jobs of kinds other than MPIJob in a queue of the real
Kueue get the places of all their roles from our planner.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

import pytest

from arena_topo.model.keys import PIN_NODES
from arena_topo.pin.run_lists import decoded
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import replica
from tests.e2e.kueue.queues import check

pytestmark = pytest.mark.usefixtures("lease")


@dataclass(frozen=True)
class Kind:
    """How a job of a kind is submitted, by what its pods are found, and how their names begin, by role in the
    order of their ranks.

    ``lost`` is the pod that a test deletes, and ``lasting`` is written into the spec so that the job
    continues without it.
    """

    api: tuple[str, str]
    submit: tuple[str, ...]
    label: str
    roles: Mapping[str, tuple[str, ...]]
    lost: str
    lasting: Mapping[str, bool] = field(default_factory=dict)

    @property
    def pods(self) -> list[str]:
        """The names of all pods, in the order of their ranks."""
        return list(chain.from_iterable(self.roles.values()))


_OPERATOR, _JOBSET = "training.kubeflow.org/job-name=bert", "jobset.sigs.k8s.io/jobset-name=bert"

KINDS = {
    "PyTorchJob": Kind(
        ("kubeflow.org/v1", "PyTorchJob"),
        ("pytorch", "--workers=3"),
        _OPERATOR,
        {"master": ("bert-master-0",), "worker": ("bert-worker-0", "bert-worker-1")},
        "bert-worker-1",
    ),
    "TFJob": Kind(
        ("kubeflow.org/v1", "TFJob"),
        ("tf", "--workers=2", "--chief", "--ps=2", "--ps-gpus=4"),
        _OPERATOR,
        {
            "chief": ("bert-chief-0",),
            "worker": ("bert-worker-0", "bert-worker-1"),
            "ps": ("bert-ps-0", "bert-ps-1"),
        },
        "bert-worker-1",
        # A worker that is being deleted counts as failed, and ends any other TFJob.
        {"enableDynamicWorker": True},
    ),
    "JobSet": Kind(
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("jobset", "--workers=3"),
        _JOBSET,
        {"worker": ("bert-worker-0-0-", "bert-worker-0-1-", "bert-worker-0-2-")},
        "bert-worker-0-1-",
    ),
}


def running(kube: Kube, namespace: str, kind: Kind, without: str = "") -> list[Object]:
    """Return the pods by their ranks, once all of them run, *without* the one of this uid."""
    found = pods.all_running(kube, namespace, kind.label, len(kind.pods), without)
    return [next(pod for pod in found if pod["metadata"]["name"].startswith(name)) for name in kind.pods]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_pods_of_each_role_are_where_the_answer_says(
    arena: Arena, kube: Kube, namespace: str, queued: str, kind: Kind
) -> None:
    """One list for all roles, in the order of the ranks; a pod that is deleted comes back to its node."""
    gang = ("--gang", "--gang-scheduler=kueue", f"--queue={queued}")
    shape = ("--name=bert", "--gpus=8", "--image=i", "--retry=3")
    outcome = arena("submit", *kind.submit, *gang, *shape, "torchrun train.py")
    assert 0 == outcome.code, outcome.err
    kube.patch(*kind.api, "bert", {"spec": dict(kind.lasting)}, namespace)
    with replica(arena):
        before = running(kube, namespace, kind)
        answer = check(kube, namespace, "bert")
        assert "Ready" == answer["state"]
        updates = answer["podSetUpdates"]
        assert isinstance(updates, list)
        assert list(kind.roles) == [each["name"] for each in updates]
        (nodes,) = {each["annotations"][PIN_NODES] for each in updates}
        planned = decoded(nodes, len(kind.pods))
        assert planned == pods.nodes_of(before)
        lost = before[kind.pods.index(kind.lost)]["metadata"]
        kube.delete("v1", "Pod", lost["name"], namespace, gracePeriodSeconds="0")
        assert planned == pods.nodes_of(running(kube, namespace, kind, without=lost["uid"]))
