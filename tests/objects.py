"""API objects as the real operators make them, and the view of a job, for tests that need no cluster."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.job_view import JobStatus, JobView
from arena_topo.model.objects import Object

CREATED = "2026-11-21T01:00:00Z"


def mpijob(name: str, version: ApiVersion = ApiVersion.V2BETA1, *, workers: int = 4, **extra: Any) -> Object:
    """Return a submitted MPIJob; *extra* keys are merged in at the top."""
    container = {"name": "mpi", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {"spec": {"containers": [container]}}
    if version is ApiVersion.V1ALPHA1:
        spec: Object = {"replicas": workers, "template": template}
    else:
        launcher = {"replicas": 1, "template": {"spec": {"containers": [{"name": "mpi"}]}}}
        spec = {
            "mpiReplicaSpecs": {"Launcher": launcher, "Worker": {"replicas": workers, "template": template}}
        }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": CREATED}
    return {
        "apiVersion": f"kubeflow.org/{version.value}",
        "kind": "MPIJob",
        "metadata": metadata,
        "spec": spec,
        **extra,
    }


def pod(name: str, *, role: str = "worker", phase: str = "Running", node: str = "n1", **extra: Any) -> Object:
    """Return a pod of a v2beta1 job with one GPU, or none for the launcher; *extra* goes into the status."""
    limits = {"nvidia.com/gpu": "1"} if role == "worker" else {}
    running = phase == "Running"
    state: Object = {"running": {"startedAt": CREATED}} if running else {}
    statuses = [{"name": "mpi", "ready": running, "state": state, "restartCount": 0}] if state else []
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": CREATED,
            "labels": {"training.kubeflow.org/job-role": role, "training.kubeflow.org/job-name": "job"},
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "mpi", "image": "i", "resources": {"limits": limits}}],
        },
        "status": {"phase": phase, "containerStatuses": statuses, **extra},
    }


def condition(kind: str, **extra: str) -> Object:
    """Return a condition that is true."""
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T01:10:00Z", **extra}


def viewed(**fields: Any) -> JobView:
    """Return the view of an MPIJob of one worker that runs and has no pod, but for its *fields*."""
    view = JobView(
        name="job",
        namespace="ml",
        uid="u",
        version="v2beta1",
        status=JobStatus.RUNNING,
        priority="",
        created=datetime.fromisoformat(CREATED),
        duration=60.0,
        ended=None,
        instances=(),
        requested_gpus=1,
        allocated_gpus=1,
        workers=1,
    )
    return replace(view, **fields)
