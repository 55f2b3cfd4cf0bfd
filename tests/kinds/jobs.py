"""Jobs of the training operator, as small as they can be."""

from collections.abc import Mapping

from arena_topo.kinds.training_operator import TrainingOperatorKind
from arena_topo.model.kind import api_version
from arena_topo.model.objects import Object


def training_job(
    kind: TrainingOperatorKind, roles: Mapping[str, int | None], *, suspend: bool = False
) -> Object:
    """Return a job of *kind* with a number of pods for each of
    *roles*, by their keys; None leaves the number out.
    """
    specs = {
        role: {**({} if count is None else {"replicas": count}), "template": {"spec": {"containers": []}}}
        for role, count in roles.items()
    }
    return {
        "apiVersion": api_version(kind),
        "kind": kind.kind,
        "metadata": {"name": "job", "namespace": "ml", "uid": "1"},
        "spec": {kind.specs: specs, **({"runPolicy": {"suspend": True}} if suspend else {})},
    }


def pod_of(kind: TrainingOperatorKind, role: str, index: int, *, chief: bool = False) -> Object:
    """Return a pod as the operator labels it."""
    labels = {
        "training.kubeflow.org/job-name": "job",
        "training.kubeflow.org/operator-name": f"{kind.kind.lower()}-controller",
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": str(index),
        **({"training.kubeflow.org/job-role": "master"} if chief else {}),
    }
    return {"metadata": {"name": f"job-{role}-{index}", "labels": labels}}
