"""The operators that some planes run next to MPIJob's are
the real ones, with their webhooks where they are on.
"""

import uuid
from collections.abc import Iterator

import pytest

from tests.controlplane.components import install
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.nodes import create_nodes, delete_nodes, remove_pods, two_v100
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually

_GPU = "nvidia.com/gpu"
_JOBSET = "jobset.x-k8s.io/v1alpha2"
_TRAINJOB = "trainer.kubeflow.org/v1alpha1"


@pytest.fixture
def kinds(kinds_plane: ControlPlane) -> Iterator[tuple[Kube, str]]:
    """Return the administrator's client of a plane with
    all kinds of jobs and two servers, and a namespace.
    """
    kube, name = kinds_plane.kube, f"t-{uuid.uuid4().hex[:10]}"
    nodes = create_nodes(kube, two_v100())
    kube.create(install.namespace(name))
    kube.wait_for("v1", "ServiceAccount", "default", name)
    yield kube, name
    kube.delete("v1", "Namespace", name)
    eventually(lambda: not remove_pods(kube, name), f"the end of the pods in {name}")
    delete_nodes(kube, nodes)


def _replica(container: str, count: int) -> Object:
    limits = {"limits": {_GPU: "1"}}
    return {
        "replicas": count,
        "template": {"spec": {"containers": [{"name": container, "image": "i", "resources": limits}]}},
    }


def _training_job(kind: str, replicas: str, roles: Object) -> Object:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "job"},
        "spec": {replicas: roles},
    }


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            _training_job(
                "PyTorchJob",
                "pytorchReplicaSpecs",
                {"Master": _replica("pytorch", 1), "Worker": _replica("pytorch", 2)},
            ),
            {
                ("job-master-0", "master", "0"),
                ("job-worker-0", "worker", "0"),
                ("job-worker-1", "worker", "1"),
            },
        ),
        (
            _training_job(
                "TFJob",
                "tfReplicaSpecs",
                {"PS": _replica("tensorflow", 1), "Worker": _replica("tensorflow", 2)},
            ),
            {("job-ps-0", "ps", "0"), ("job-worker-0", "worker", "0"), ("job-worker-1", "worker", "1")},
        ),
    ],
    ids=["PyTorchJob", "TFJob"],
)
def test_the_training_operator_runs_every_role(
    kinds: tuple[Kube, str], job: Object, expected: set[tuple[str, str, str]]
) -> None:
    """Each pod says its role and its index, and goes with its job."""
    kube, namespace = kinds
    kube.create(job, namespace)

    def all_run() -> list[Object] | None:
        found = pods.of_job(kube, namespace, "job")
        return found if len(found) == len(expected) and all(map(pods.running, found)) else None

    found = eventually(all_run, f"{len(expected)} pods that run")
    prefix = "training.kubeflow.org/replica-"
    said = {
        (pod["metadata"]["name"], *(pod["metadata"]["labels"][prefix + key] for key in ("type", "index")))
        for pod in found
    }
    assert expected == said
    kube.delete("kubeflow.org/v1", job["kind"], "job", namespace)
    eventually(lambda: not pods.of_job(kube, namespace, "job"), "the end of the job's pods")


def test_the_training_operators_webhook_is_asked(kinds: tuple[Kube, str]) -> None:
    """It wants its own name for the container that trains."""
    kube, namespace = kinds
    with pytest.raises(KubeError, match="at least one container with name pytorch"):
        kube.create(
            _training_job("PyTorchJob", "pytorchReplicaSpecs", {"Worker": _replica("main", 1)}), namespace
        )


def test_jobset_indexes_the_pods_of_its_jobs(kinds: tuple[Kube, str]) -> None:
    """By a completion index in each Job, and the Job's own index; its webhook writes the defaults."""
    kube, namespace = kinds
    kube.create(
        {
            "apiVersion": _JOBSET,
            "kind": "JobSet",
            "metadata": {"name": "job"},
            "spec": {"replicatedJobs": [_replicated("worker", jobs=2, pods=2)]},
        },
        namespace,
    )

    assert [(0, 0), (0, 1), (1, 0), (1, 1)] == _indices(kube, namespace, 4)
    (replicated,) = kube.get(_JOBSET, "JobSet", "job", namespace)["spec"]["replicatedJobs"]
    assert "Indexed" == replicated["template"]["spec"]["completionMode"]


def test_trainer_makes_the_jobset_of_its_runtime(kinds: tuple[Kube, str]) -> None:
    """A TrainJob of two nodes is one Job of two pods, and takes them with it."""
    kube, namespace = kinds
    trainer = {"numNodes": 2, "image": "i", "resourcesPerNode": {"limits": {_GPU: "1"}}}
    kube.create(
        {
            "apiVersion": _TRAINJOB,
            "kind": "TrainJob",
            "metadata": {"name": "job"},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer},
        },
        namespace,
    )

    assert [(0, 0), (0, 1)] == _indices(kube, namespace, 2)
    kube.delete(_TRAINJOB, "TrainJob", "job", namespace)
    eventually(lambda: not kube.list("v1", "Pod", namespace), "the end of the job's pods")


def _replicated(name: str, *, jobs: int, pods: int) -> Object:
    container = {"name": "main", "image": "i", "resources": {"limits": {_GPU: "1"}}}
    spec = {
        "parallelism": pods,
        "completions": pods,
        "template": {"spec": {"containers": [container]}},
    }
    return {"name": name, "replicas": jobs, "template": {"spec": spec}}


def _indices(kube: Kube, namespace: str, count: int) -> list[tuple[int, int]]:
    """Return the job index and the completion index of
    each pod of JobSet ``job``, once *count* of them run.
    """

    def all_run() -> list[Object] | None:
        found = kube.list("v1", "Pod", namespace, labelSelector="jobset.sigs.k8s.io/jobset-name=job")
        return found if len(found) == count and all(map(pods.running, found)) else None

    keys = ("jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index")
    found = eventually(all_run, f"{count} pods that run")
    labels = [pod["metadata"]["labels"] for pod in found]
    return sorted((int(each[keys[0]]), int(each[keys[1]])) for each in labels)
