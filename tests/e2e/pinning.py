"""The admission policy on a test's cluster, and jobs and pods whose places a test writes by hand."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from arena_topo.pin.run_lists import pin_annotations
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena

HOSTNAME = "kubernetes.io/hostname"


_INSTALLED: set[str] = set()
"""Addresses of the planes that have the policy: the tests
of a plane run one after the other, in one process.
"""


@contextmanager
def admission_policy(plane: ControlPlane, *flags: str) -> Iterator[None]:
    """Install the policy as an admin does, with *flags*, until it acts; take it away at the end."""
    install_policy(plane, *flags)
    yield
    remove_policy(plane)


def install_policy(plane: ControlPlane, *flags: str) -> None:
    """Install the policy as an admin does, with *flags*, and
    return once it acts; it stays for the tests that follow.
    """
    if plane.site.url in _INSTALLED:
        return
    outcome = Arena(plane.admin_kubeconfig)("cluster", "setup", "--apply", *flags)
    assert 0 == outcome.code, outcome.err
    eventually(lambda: acts(plane.kube), "the admission policy to act")
    _INSTALLED.add(plane.site.url)


def remove_policy(plane: ControlPlane) -> None:
    """Take the policy away where it is, and return once it acts no more."""
    if plane.site.url not in _INSTALLED:
        return
    outcome = Arena(plane.admin_kubeconfig)("cluster", "remove", "--apply")
    assert 0 == outcome.code, outcome.err
    eventually(lambda: not acts(plane.kube), "the policy to be gone")
    _INSTALLED.remove(plane.site.url)


def acts(kube: Kube) -> bool:
    """Whether the API server applies the policy: it learns of a new one after a moment."""
    return bool(tried(kube, "job-worker-0", pin_annotations(nodes=["probe"]))["spec"].get("nodeSelector"))


def tried(
    kube: Kube,
    name: str,
    annotations: Mapping[str, str],
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Return a pod as the API server would make it, its name
    generated where *name* ends in a hyphen; nothing is stored.
    """
    named = {"generateName" if name.endswith("-") else "name": name}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**named, "labels": dict(labels or {}), "annotations": dict(annotations)},
        "spec": {"containers": [{"name": "mpi", "image": "i"}, {"name": "side", "image": "i"}], **spec},
    }
    path = kube.path("v1", "Pod", namespace)
    answer: Object = kube.request("POST", path, pod, query={"dryRun": "All", "fieldValidation": "Strict"})
    return answer


def mpijob(name: str, workers: int, limits: Mapping[str, str], annotations: Mapping[str, str]) -> Object:
    """Return an MPIJob whose worker template has *annotations*, and whose launcher waits for the workers."""

    def template(limits: Mapping[str, str], annotations: Mapping[str, str]) -> Object:
        container = {"name": "mpi", "image": "i", "resources": {"limits": dict(limits)} if limits else {}}
        return {"metadata": {"annotations": dict(annotations)}, "spec": {"containers": [container]}}

    replicas = {
        "Launcher": {"replicas": 1, "template": template({}, {})},
        "Worker": {"replicas": workers, "template": template(limits, annotations)},
    }
    spec = {
        "launcherCreationPolicy": "WaitForWorkersReady",
        "mpiReplicaSpecs": replicas,
        "runPolicy": {"backoffLimit": 0},
    }
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}


def running_workers(kube: Kube, namespace: str, job: str, count: int) -> list[Object]:
    """Return the workers of *job* by index, once *count* of them run."""

    def all_run() -> list[Object] | None:
        found = pods.of_job(kube, namespace, job, "worker")
        return found if len(found) == count and all(map(pods.running, found)) else None

    found = eventually(all_run, f"{count} workers of {job} that run")
    return sorted(found, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))
