"""TensorBoard beside a job, as Arena runs it: a Deployment and a Service, both owned by the job.

Source: kubeflow/arena 0.15.5, charts/mpijob/templates/{tensorboard,service}.yaml and
pkg/argsbuilder/submit_tensorboard.go.
"""

import posixpath

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model import keys
from arena_topo.model.job.job_spec import JobSpec, TensorBoard
from arena_topo.model.job.kind import Kind
from arena_topo.model.objects import Object

_PORT = 6006
_VOLUME, _LOCAL = "training-logs-volume", "/output/training_logs"


def log_volume(job: JobSpec) -> Object | None:
    """Return the node's folder in which the job writes for TensorBoard, None where it writes to a claim or a URL."""
    board = job.tensorboard
    if board is None or not _is_local(job, board):
        return None
    # Every name is a part of one path, so that no two jobs write to one folder.
    path = f"/arena_logs/{job.namespace}/{job.name}"
    return {"name": _VOLUME, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def log_mount(job: JobSpec) -> Object | None:
    """Return where launcher and workers find that folder."""
    board = job.tensorboard
    return {"name": _VOLUME, "mountPath": board.logs} if board and _is_local(job, board) else None


def tensorboard_objects(job: JobSpec, kind: Kind) -> tuple[Object, ...]:
    """Return the Service and the Deployment, nothing for a job without TensorBoard."""
    board = job.tensorboard
    if board is None:
        return ()
    labels = {
        keys.ARENA_APP: keys.ARENA_APP_VALUE,
        keys.ARENA_RELEASE: job.name,
        keys.MANAGED_BY: keys.OWN_NAME,
        "role": "tensorboard",
    }
    metadata = {"name": f"{job.name}-tensorboard", "namespace": job.namespace, "labels": labels}
    ports = [{"name": "tensorboard", "port": _PORT, "targetPort": _PORT, "protocol": "TCP"}]
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": "NodePort", "ports": ports, "selector": labels},
    }
    deployment: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(job, board, kind)},
        },
    }
    return service, deployment


def _pod(job: JobSpec, board: TensorBoard, kind: Kind) -> Object:
    local = log_volume(job)
    if local:
        volumes, mounts = [local], [{"name": _VOLUME, "mountPath": _LOCAL}]
    else:
        names = [f"data-{index}" for index, _ in enumerate(job.pod.claims)]
        volumes = [
            {"name": name, "persistentVolumeClaim": {"claimName": claim.name}}
            for name, claim in zip(names, job.pod.claims, strict=True)
        ]
        mounts = [
            {"name": name, "mountPath": claim.path} for name, claim in zip(names, job.pod.claims, strict=True)
        ]
    container: Object = {
        "name": "tensorboard",
        "image": board.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["tensorboard", "--logdir", _LOCAL if local else board.logs, "--host", "0.0.0.0"],  # noqa: S104  # in its own pod
        "ports": [{"containerPort": _PORT}],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": mounts,
    }
    pod: Object = {
        "containers": [container],
        "volumes": volumes,
        "affinity": _beside_first_worker(job, kind),
    }
    if job.pod.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in job.pod.pull_secrets]
    if job.pod.priority:
        pod["priorityClassName"] = job.pod.priority
    return pod


def _beside_first_worker(job: JobSpec, kind: Kind) -> Object:
    """Return the affinity to the node of worker 0, which has the logs, or has mounted the claim."""
    if kind is ApiVersion.V1ALPHA1:
        labels = {keys.ALPHA_JOB_NAME: job.name, "statefulset.kubernetes.io/pod-name": f"{job.name}-worker-0"}
    else:
        labels = {keys.OPERATOR_JOB_NAME: job.name, keys.OPERATOR_REPLICA_INDEX: "0"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": keys.HOSTNAME}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _is_local(job: JobSpec, board: TensorBoard) -> bool:
    """Whether the logs go to a folder of the node: a path, and none below a mounted claim."""
    if not board.logs.startswith("/"):
        return False
    path = posixpath.normpath(board.logs)
    mounted = [posixpath.normpath(claim.path) for claim in job.pod.claims]
    return not any(path == claim or path.startswith(claim.rstrip("/") + "/") for claim in mounted)
