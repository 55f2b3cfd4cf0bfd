"""Many jobs that run, as the operator and the kubelets would
leave them: created on an API server that nothing acts on.
"""

import json
import os
import subprocess
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

from tests.controlplane.kube import Kube, Object
from tests.controlplane.plane import ControlPlane

ARENA = Path(sysconfig.get_path("scripts")) / "arena-topo"
STARTED = "2026-11-21T01:00:00Z"
CONNECTIONS = 4


def fill(plane: ControlPlane, namespace: str, jobs: int, workers: int) -> None:
    """Create *namespace* with *jobs* jobs, each of which has a launcher and *workers* workers, which run."""
    template = job(workers)
    plane.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    # No controller creates it, and pods need one.
    plane.kube.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, namespace
    )
    clients = [plane.client(f"fill-{index}", ["system:masters"]) for index in range(CONNECTIONS)]

    def create(index: int) -> None:
        for number in range(index, jobs, CONNECTIONS):
            create_job(clients[index], namespace, f"job-{number}", template, workers)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(create, range(CONNECTIONS)))


def job(workers: int) -> Object:
    """Return the MPIJob that ``submit`` creates for *workers* workers of one GPU each."""
    flags = ("--name=job", "--image=registry.example.com/train:1", f"--workers={workers}", "--gpus=1")
    line = (
        ARENA,
        "submit",
        "mpi",
        *flags,
        "--dry-run=client",
        "-o",
        "json",
        "--",
        "mpirun",
        "python",
        "train.py",
    )
    # Rendered for no cluster: the one of those who measures may have such a job.
    env = {**os.environ, "KUBECONFIG": os.devnull}
    done = subprocess.run(line, check=True, capture_output=True, text=True, env=env)
    rendered: Object = json.loads(done.stdout)
    return rendered


def create_job(kube: Kube, namespace: str, name: str, template: Object, workers: int) -> None:
    """Create one job with its pods and their status."""
    body = deepcopy(template)
    body["metadata"] |= {"name": name, "namespace": namespace}
    created = kube.create(body, namespace)
    running = {"type": "Running", "status": "True", "reason": "MPIJobRunning", "message": "is running."}
    conditions = [{**running, "lastTransitionTime": STARTED, "lastUpdateTime": STARTED}]
    replicas = {"Launcher": {"active": 1}, "Worker": {"active": workers}}
    status = {"conditions": conditions, "replicaStatuses": replicas, "startTime": STARTED}
    kube.patch("kubeflow.org/v2beta1", "MPIJob", name, {"status": status}, namespace, sub="status")
    for pod in pods(created, workers):
        kube.create(pod, namespace)
        kube.patch("v1", "Pod", pod["metadata"]["name"], {"status": pod_status()}, namespace, sub="status")


def pods(created: Object, workers: int) -> Iterator[Object]:
    """Yield the pods of the job *created*, as the operator of v2beta1 makes them."""
    meta, specs = created["metadata"], created["spec"]["mpiReplicaSpecs"]
    names = [("launcher", f"{meta['name']}-launcher-x7k2p")]
    names += [("worker", f"{meta['name']}-worker-{index}") for index in range(workers)]
    for role, name in names:
        template = deepcopy(specs[role.capitalize()]["template"])
        labels = {
            "training.kubeflow.org/job-name": meta["name"],
            "training.kubeflow.org/job-role": role,
            "training.kubeflow.org/operator-name": "mpi-operator",
        }
        owner = {
            "apiVersion": created["apiVersion"],
            "kind": "MPIJob",
            "name": meta["name"],
            "uid": meta["uid"],
        }
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **template.get("metadata", {}),
                "name": name,
                "labels": {**template.get("metadata", {}).get("labels", {}), **labels},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {**template["spec"], "nodeName": "gpu-node-1", "automountServiceAccountToken": False},
        }


def pod_status() -> Object:
    """Return what a kubelet says of a pod whose one container runs."""
    ready = {"status": "True", "lastTransitionTime": STARTED}
    container = {
        "name": "mpi",
        "image": "registry.example.com/train:1",
        "imageID": "registry.example.com/train@sha256:" + "0" * 64,
        "containerID": "containerd://" + "0" * 64,
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": STARTED}},
    }
    return {
        "phase": "Running",
        "hostIP": "192.168.16.173",
        "podIP": "10.244.0.7",
        "startTime": STARTED,
        "conditions": [
            {**ready, "type": kind} for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [container],
    }
