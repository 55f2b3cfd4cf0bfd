"""A manifest of each kind of job with three pods of two GPUs, as people write them."""

from typing import Any

_GPUS = {"limits": {"nvidia.com/gpu": "2"}}


def container(name: str, **more: Any) -> dict[str, Any]:
    """Return a container of two GPUs."""
    return {"name": name, "image": "i", "command": ["train", "--rate=1e-3", "y"], "resources": _GPUS, **more}


def _manifest(api: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "name": "bert",
        "labels": {"team": "nlp", "on": "yes"},
        "annotations": {"note": "12:30", "number": "007"},
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def _role(replicas: int, pod: dict[str, Any], policy: str = "OnFailure") -> dict[str, Any]:
    return {"replicas": replicas, "restartPolicy": policy, "template": {"spec": {"containers": [pod]}}}


def _mpi() -> dict[str, Any]:
    launcher = {"name": "mpi", "image": "i", "command": ["mpirun", "train"]}
    return {
        "slotsPerWorker": 2,
        "mpiReplicaSpecs": {
            "Launcher": _role(1, launcher, "Never"),
            "Worker": _role(3, container("mpi"), "Never"),
        },
    }


def _indexed(pods: int) -> dict[str, Any]:
    return {
        "completionMode": "Indexed",
        "parallelism": pods,
        "completions": pods,
        "template": {
            "metadata": {"labels": {"mine": "kept"}},
            "spec": {"restartPolicy": "OnFailure", "containers": [container("main")]},
        },
    }


MANIFESTS: dict[str, dict[str, Any]] = {
    "MPIJob.v2beta1": _manifest("kubeflow.org/v2beta1", "MPIJob", _mpi()),
    "MPIJob.v1": _manifest("kubeflow.org/v1", "MPIJob", _mpi()),
    "MPIJob.v1alpha1": _manifest(
        "kubeflow.org/v1alpha1",
        "MPIJob",
        {"replicas": 3, "template": {"spec": {"containers": [container("mpi")]}}},
    ),
    "PyTorchJob": _manifest(
        "kubeflow.org/v1",
        "PyTorchJob",
        {
            "nprocPerNode": "2",
            "pytorchReplicaSpecs": {
                "Master": _role(1, container("pytorch")),
                "Worker": _role(2, container("pytorch")),
            },
        },
    ),
    "TFJob": _manifest(
        "kubeflow.org/v1",
        "TFJob",
        {
            "enableDynamicWorker": True,
            "tfReplicaSpecs": {
                "Worker": _role(2, container("tensorflow")),
                "PS": _role(1, {**container("tensorflow"), "resources": {"requests": {"cpu": "1"}}}),
            },
        },
    ),
    "TrainJob": _manifest(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"image": "i", "command": ["train"], "numNodes": 3, "resourcesPerNode": _GPUS},
        },
    ),
    "JobSet": _manifest(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {
            "failurePolicy": {"maxRestarts": 3},
            "replicatedJobs": [
                {"name": "leader", "replicas": 1, "template": {"spec": _indexed(1)}},
                {"name": "node", "replicas": 2, "template": {"spec": _indexed(1)}},
            ],
        },
    ),
    "Job": _manifest("batch/v1", "Job", _indexed(3)),
}
"""By their kinds, and those of MPIJob by their versions."""
