"""API objects as the real operators make them, and the view of a job, for tests that need no cluster."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.job_view import JobStatus, JobView
from arena_topo.model.keys import PLAN
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import PlanRecord, Slot, Stage, encode

CREATED = "2026-11-21T01:00:00Z"


def mpijob(
    name: str, version: ApiVersion = ApiVersion.V2BETA1, *, workers: int = 4, gpus: int = 1, **extra: Any
) -> Object:
    """Return a submitted MPIJob with *gpus* for each worker; *extra* keys are merged in at the top."""
    container = {"name": "mpi", "image": "i", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
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


def ready_node(name: str, amounts: Mapping[str, str], labels: Mapping[str, str] | None = None) -> Object:
    """Return a node that is ready and has *amounts* of each resource, all of them allocatable."""
    return {
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
        },
        "spec": {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def plan_record(
    *places: str | tuple[str, tuple[int, ...] | None],
    gpus: int = 1,
    requests: Mapping[str, int] | None = None,
    stage: Stage = Stage.CONFIRMED,
    **fields: Any,
) -> PlanRecord:
    """Return a plan with a worker at each of *places*, a node or a
    node and its GPUs; each requests *gpus* and *requests*.
    """
    named = [(place, None) if isinstance(place, str) else place for place in places]
    return PlanRecord(
        stage=stage,
        slots=tuple(Slot(worker, node, on) for worker, (node, on) in enumerate(named)),
        worker_requests={"nvidia.com/gpu": gpus, **(requests or {})},
        **fields,
    )


def with_plan(job: Object, plan: PlanRecord | str) -> Object:
    """Return *job* with *plan*, or with a text in its place."""
    text = plan if isinstance(plan, str) else encode(plan)
    annotations = {**job["metadata"].get("annotations", {}), PLAN: text}
    return {**job, "metadata": {**job["metadata"], "annotations": annotations}}


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
