"""Fixtures of tests that need the real control plane."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.availability import PLANES, require_built, require_extra
from tests.controlplane.components import install
from tests.controlplane.components.kubeconfig import write_kubeconfig
from tests.controlplane.components.options import Options
from tests.controlplane.kube import Kube, suppress_missing
from tests.controlplane.machines.kubelet import ScriptedKubelet
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes, remove_pods, two_v100
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually


@pytest.fixture(scope="session")
def plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run the control plane that all tests of a run share: keep to your namespace and your nodes."""
    require_built(pytestconfig)
    with ControlPlane() as running:
        yield running


@pytest.fixture(scope="session")
def kinds_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run a control plane with the operators of kinds of jobs beside MPIJob; a folder of tests returns it as `plane`."""
    yield from _with_operators(pytestconfig, PLANES["kinds_plane"])


@pytest.fixture(scope="session")
def kueue_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run a control plane with the training operator, JobSet, and Kueue, whose webhooks are off; a folder of tests returns it as `plane`."""
    yield from _with_operators(pytestconfig, PLANES["kueue_plane"])


def _with_operators(config: pytest.Config, operators: tuple[str, ...]) -> Iterator[ControlPlane]:
    require_built(config)
    for name in operators:
        require_extra(config, name)
    with ControlPlane(Options(operators=operators)) as running:
        yield running


@pytest.fixture
def kube(plane: ControlPlane) -> Kube:
    """Return the administrator's client, for set-up and for looking at what the product did."""
    return plane.kube


@pytest.fixture
def gpu_nodes(plane: ControlPlane) -> Iterator[list[str]]:
    """Names of two servers of eight V100, for one test."""
    names = create_nodes(plane.kube, two_v100())
    yield names
    delete_nodes(plane.kube, names)


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """Name of an empty namespace in which pods can be created at once; its jobs and pods are gone after the test."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    kube = plane.kube
    kube.create(install.namespace(name))
    kube.wait_for("v1", "ServiceAccount", "default", name)
    yield name
    # A plan counts for as long as its job exists, and the next test calls its nodes the same.
    for version in ("v2beta1", "v1", "v1alpha1"):
        with suppress_missing():
            remove_jobs(kube, f"kubeflow.org/{version}", "MPIJob", name)
    kube.delete("v1", "Namespace", name)
    eventually(lambda: not remove_pods(kube, name), f"the end of the pods in {name}")


def remove_jobs(kube: Kube, version: str, kind: str, namespace: str) -> None:
    """Delete all jobs of a kind in *namespace*, and return when there are none."""
    for job in kube.list(version, kind, namespace):
        kube.delete(version, kind, job["metadata"]["name"], namespace, propagationPolicy="Background")
    eventually(lambda: not kube.list(version, kind, namespace), f"the end of the jobs in {namespace}")


@pytest.fixture
def fake_log(plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[FakeLog]:
    """Serve one log, empty at first, for every pod of the test's namespace that runs on a fake node."""
    yield FakeLog.of_namespace(plane.kube, tmp_path, namespace)
    FakeLog.forget(plane.kube, namespace)


@pytest.fixture
def kubelet(plane: ControlPlane) -> Iterator[ScriptedKubelet]:
    """Run a node whose kubelet is the test; pods get there by nodeSelector ``kubernetes.io/hostname``."""
    with ScriptedKubelet(plane, NodeSpec(f"scripted-{uuid.uuid4().hex[:6]}")) as running:
        yield running


@pytest.fixture
def kubeconfig(plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    """Path of an administrator's kubeconfig whose namespace is that of the test."""
    site = plane.site
    return write_kubeconfig(tmp_path / "kubeconfig", site.url, site.authority, site.admin, namespace)
