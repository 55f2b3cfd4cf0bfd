"""Objects that the end-to-end tests create raw, independent of the product."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from arena_topo.model.keys import CONTROLLER_NAMESPACE
from tests.controlplane.components import install
from tests.controlplane.fixtures import end_jobs
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.nodes import remove_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.policy import wants_policy
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import LEASE
from tests.e2e.pinning import install_policy, remove_policy
from tests.e2e.spoiled_objects import SEED, Tenant
from tests.harness.scheduling import OWN_PLANES, chain_of


@pytest.fixture
def arena(kubeconfig: Path) -> Arena:
    """Return the tool as the administrator runs it, in the test's namespace."""
    return Arena(kubeconfig)


@pytest.fixture
def policy(plane: ControlPlane) -> None:
    """Have the admission policy on the plane, as an admin installs it."""
    install_policy(plane)


@pytest.fixture(autouse=True)
def _no_policy_unless_wanted(request: pytest.FixtureRequest) -> None:
    """Take the admission policy away for tests that do not want it; their order makes this rare."""
    own = chain_of(request.node.nodeid) == OWN_PLANES
    if not own and "plane" in request.fixturenames and not wants_policy(request.node):
        remove_policy(request.getfixturevalue("plane"))


@pytest.fixture(params=["gates", "admission"])
def pinned_by(request: pytest.FixtureRequest) -> str:
    """Run a test with scheduling gates, and with the admission
    policy; return the one by which gangs are pinned.
    """
    means = str(request.param)
    if means == "admission":
        request.getfixturevalue("policy")
    return means


@pytest.fixture
def lease(plane: ControlPlane) -> Iterator[None]:
    """Make the namespace in which replicas keep their Lease; no Lease is left there."""
    if plane.kube.find("v1", "Namespace", CONTROLLER_NAMESPACE) is None:
        plane.kube.create(install.namespace(CONTROLLER_NAMESPACE))
    yield
    plane.kube.delete(*LEASE, CONTROLLER_NAMESPACE)


@pytest.fixture
def tenant(plane: ControlPlane) -> Iterator[Tenant]:
    """Have a tenant who writes spoiled objects, of which nothing is left in the end."""
    name = f"hostile-{uuid.uuid4().hex[:8]}"
    plane.kube.create(install.namespace(name))
    plane.kube.wait_for("v1", "ServiceAccount", "default", name)
    writer = Tenant(plane.kube, name, Random(SEED))
    yield writer
    writer.end()
    end_jobs(plane, name)
    if "kueue" in plane.options.operators:
        plane.kube.delete("v1", "Namespace", name)
    eventually(lambda: not remove_pods(plane.kube, name), f"the end of the pods in {name}")


@pytest.fixture
def create_pod(kube: Kube, namespace: str) -> Callable[..., str]:
    """Return a function that creates a pod of one container ``main`` on a node and returns its name."""

    def create(node: str, **annotations: str) -> str:
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", "annotations": annotations},
            "spec": {
                "containers": [{"name": "main", "image": "busybox"}],
                "nodeSelector": {"kubernetes.io/hostname": node},
            },
        }
        kube.create(pod, namespace)
        kube.wait_for("v1", "Pod", "pod", namespace, until=lambda pod: pod["spec"].get("nodeName"))
        return "pod"

    return create


@pytest.fixture
def create_mpijob(kube: Kube, namespace: str) -> Callable[..., list[Object]]:
    """Return a function that creates MPIJob ``job`` (v2beta1) and returns its pods once all of them run."""

    def replica(count: int, limits: dict[str, int]) -> dict[str, Any]:
        container = {"name": "mpi", "image": "busybox", "resources": {"limits": limits}}
        return {"replicas": count, "template": {"spec": {"containers": [container]}}}

    def create(workers: int, gpus: int) -> list[Object]:
        replicas = {"Launcher": replica(1, {}), "Worker": replica(workers, {"nvidia.com/gpu": gpus})}
        kube.create(
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "metadata": {"name": "job"},
                "spec": {"mpiReplicaSpecs": replicas, "runPolicy": {"backoffLimit": 0}},
            },
            namespace,
        )

        def all_run() -> list[Object] | None:
            found = pods.of_job(kube, namespace, "job")
            return found if len(found) == workers + 1 and all(map(pods.running, found)) else None

        return eventually(all_run, f"a launcher and {workers} workers that run")

    return create
