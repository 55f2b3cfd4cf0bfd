"""Pods of every kind of job get their own place at creation, from the lists in the template of their role."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from arena_topo.pin.run_lists import pin_annotations
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods

_TRAINING = "training.kubeflow.org"
_COMPLETION = "batch.kubernetes.io/job-completion-index"
_JOBSET = "jobset.sigs.k8s.io"
_PODS_PER_JOB = "arena-topo.dev/pods-per-job"
_TRAINJOB = ("trainer.kubeflow.org/v1alpha1", "TrainJob")


pytestmark = pytest.mark.usefixtures("policy")


@dataclass(frozen=True)
class Kind:
    """How a test makes a job of one kind whose pods have *nodes*, role by role, and finds its pods again."""

    made: Callable[[Mapping[str, Sequence[str]]], Object]
    selector: str
    place: Callable[[Mapping[str, str]], tuple[str, int]]
    roles: tuple[str, ...]


def _template(container: str, nodes: Sequence[str], **annotations: str) -> Object:
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "metadata": {"annotations": {**pin_annotations(nodes=nodes), **annotations}},
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{"name": container, "image": "i", "resources": limits}],
        },
    }


def _of_training_operator(kind: str, field: str, container: str, **more: bool) -> Callable[..., Object]:
    def made(nodes: Mapping[str, Sequence[str]]) -> Object:
        roles = {
            role: {"replicas": len(each), "template": _template(container, each)}
            for role, each in nodes.items()
        }
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": kind,
            "metadata": {"name": "job"},
            "spec": {field: roles, **more},
        }

    return made


def _indexed_job(nodes: Mapping[str, Sequence[str]]) -> Object:
    (each,) = nodes.values()
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": _job_spec(each, len(each)),
    }


def _job_spec(nodes: Sequence[str], size: int, **annotations: str) -> Object:
    return {
        "completionMode": "Indexed",
        "parallelism": size,
        "completions": size,
        "template": _template("main", nodes, **annotations),
    }


def _jobset(nodes: Mapping[str, Sequence[str]]) -> Object:
    """Return a JobSet whose roles have two pods a Job."""
    replicated = [
        {
            "name": role,
            "replicas": len(each) // 2,
            "template": {"spec": _job_spec(each, 2, **{_PODS_PER_JOB: "2"})},
        }
        for role, each in nodes.items()
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "job"},
        "spec": {"replicatedJobs": replicated},
    }


def _by_replica(labels: Mapping[str, str]) -> tuple[str, int]:
    return labels[f"{_TRAINING}/replica-type"], int(labels[f"{_TRAINING}/replica-index"])


def _by_job(labels: Mapping[str, str]) -> tuple[str, int]:
    job = int(labels[f"{_JOBSET}/job-index"])
    return labels[f"{_JOBSET}/replicatedjob-name"], job * 2 + int(labels[_COMPLETION])


KINDS = {
    "PyTorchJob": Kind(
        _of_training_operator("PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
        f"{_TRAINING}/job-name=job",
        _by_replica,
        ("Master", "Worker"),
    ),
    "TFJob": Kind(
        # A worker that is being deleted counts as failed, and ends any other TFJob.
        _of_training_operator("TFJob", "tfReplicaSpecs", "tensorflow", enableDynamicWorker=True),
        f"{_TRAINING}/job-name=job",
        _by_replica,
        ("PS", "Worker"),
    ),
    "Job": Kind(
        _indexed_job,
        "batch.kubernetes.io/job-name=job",
        lambda labels: ("all", int(labels[_COMPLETION])),
        ("all",),
    ),
    "JobSet": Kind(_jobset, f"{_JOBSET}/jobset-name=job", _by_job, ("leader", "node")),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_pod_runs_on_its_planned_node_and_comes_back_to_it(
    kube: Kube, namespace: str, gpu_nodes: list[str], kind: Kind
) -> None:
    """In every role of every kind, by its operator's own labels; also when it is recreated."""
    one, two = gpu_nodes
    lists = [[two, one], [one, two, two, one]]
    wanted = dict(zip(kind.roles, lists if len(kind.roles) == 2 else lists[1:], strict=True))
    if "Master" in wanted:  # the training operator admits one alone
        wanted["Master"] = [two]
    kube.create(kind.made(wanted), namespace)
    count = sum(map(len, wanted.values()))
    places = {(role.lower(), i): node for role, nodes in wanted.items() for i, node in enumerate(nodes)}

    found = pods.all_running(kube, namespace, kind.selector, count)
    assert places == _places(found, kind)
    lost = next(pod for pod in found if kind.place(pod["metadata"]["labels"])[1] == len(lists[1]) - 1)
    _lose(kube, namespace, lost)
    assert places == _places(
        pods.all_running(kube, namespace, kind.selector, count, lost["metadata"]["uid"]), kind
    )


def test_a_trainjob_gets_its_pins_while_it_is_suspended(
    kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """As a patch of its runtime, in the write that starts it; Trainer hands them on to JobSet."""
    one, two = gpu_nodes
    planned = [two, one, two]
    trainer = {"numNodes": 3, "image": "i", "resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"suspend": True, "runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}
    api, kind = _TRAINJOB
    kube.create({"apiVersion": api, "kind": kind, "metadata": {"name": "job"}, "spec": spec}, namespace)
    kube.wait_for("jobset.x-k8s.io/v1alpha2", "JobSet", "job", namespace)
    template = {"metadata": {"annotations": pin_annotations(nodes=planned)}}
    node = {"name": "node", "template": {"spec": {"template": template}}}
    patch = {
        "manager": "arena-topo.dev/planner",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [node]}}},
    }
    kube.patch(*_TRAINJOB, "job", {"spec": {"suspend": False, "runtimePatches": [patch]}}, namespace)

    selector = f"{_JOBSET}/jobset-name=job"
    places = {("node", i): node for i, node in enumerate(planned)}
    found = pods.all_running(kube, namespace, selector, 3)
    assert places == _places(found, KINDS["JobSet"])
    _lose(kube, namespace, found[0])
    assert places == _places(
        pods.all_running(kube, namespace, selector, 3, found[0]["metadata"]["uid"]), KINDS["JobSet"]
    )


def _places(found: Sequence[Object], kind: Kind) -> dict[tuple[str, int], str]:
    return {kind.place(pod["metadata"]["labels"]): pod["spec"]["nodeName"] for pod in found}


def _lose(kube: Kube, namespace: str, pod: Object) -> None:
    kube.delete("v1", "Pod", pod["metadata"]["name"], namespace, gracePeriodSeconds="0")
