"""Fixtures of tests that need the real control plane."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.controlplane.availability import require_built, require_extra
from tests.controlplane.components import install
from tests.controlplane.components.kubeconfig import write_kubeconfig
from tests.controlplane.kube import Kube
from tests.controlplane.machines.kubelet import ScriptedKubelet
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import KeptNodes, NodeSpec, remove_pods, two_v100
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.controlplane.shared import OPERATORS, shared
from tests.harness.scheduling import chain_of

_JOBS: Mapping[str, Sequence[tuple[str, str]]] = {
    "": [("kubeflow.org/v2beta1", "MPIJob"), ("batch/v1", "Job")],
    "training-operator": [("kubeflow.org/v1", "PyTorchJob"), ("kubeflow.org/v1", "TFJob")],
    "trainer": [("trainer.kubeflow.org/v1alpha1", "TrainJob")],
    "jobset": [("jobset.x-k8s.io/v1alpha2", "JobSet")],
}
"""The jobs that tests make, by the operator whose kinds they are."""

NEXT = pytest.StashKey[pytest.Item | None]()
"""The test that comes after a test in its process, None where that is not known yet."""


@pytest.fixture(scope="session")
def plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Connect to the control plane that all tests of a run share: keep to your namespace and your nodes."""
    yield from _connected(pytestconfig, "plane")


@pytest.fixture(scope="session")
def kinds_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Connect to the one with the operators of kinds of jobs
    next to MPIJob; a folder of tests returns it as `plane`.
    """
    yield from _connected(pytestconfig, "kinds_plane")


@pytest.fixture(scope="session")
def kueue_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Connect to the one with the training operator, JobSet and Kueue
    without webhooks; a folder of tests returns it as `plane`.
    """
    yield from _connected(pytestconfig, "kueue_plane")


def _connected(config: pytest.Config, name: str) -> Iterator[ControlPlane]:
    require_built(config)
    for operator in OPERATORS[name]:
        require_extra(config, operator)
    with shared(name) as running:
        yield running


@pytest.fixture
def kube(plane: ControlPlane) -> Kube:
    """Return the administrator's client, for set-up and for looking at what the product did."""
    return plane.kube


@cache
def _kept_on(plane: ControlPlane) -> KeptNodes:
    return KeptNodes(plane.kube)


@pytest.fixture
def keep_nodes(
    plane: ControlPlane, request: pytest.FixtureRequest
) -> Iterator[Callable[[Sequence[NodeSpec]], list[str]]]:
    """Return a function that makes nodes and returns their names;
    they stay where the next test asks for some here too.
    """
    kept = _kept_on(plane)
    yield kept.use
    if not _follows_with_nodes(request.node):
        kept.drop()


def _follows_with_nodes(item: pytest.Item) -> bool:
    """Whether the test after *item* is on the same shared plane, and asks for nodes as this one does."""
    after, chain_here = item.stash.get(NEXT, None), chain_of(item.nodeid)
    return (
        after is not None
        and chain_here in OPERATORS
        and chain_here == chain_of(after.nodeid)
        and "keep_nodes" in getattr(after, "fixturenames", ())
    )


@pytest.fixture
def gpu_nodes(keep_nodes: Callable[[Sequence[NodeSpec]], list[str]]) -> list[str]:
    """Names of two servers of eight V100, for one test."""
    return keep_nodes(two_v100())


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """Name of an empty namespace in which pods can be created at once.

    Its jobs, whose plans would reserve nodes that the next test calls the same, and its pods, which would
    hold them, are gone after the test. The namespace itself stays until the plane ends: to end one takes the
    API server a quarter of a second of CPU, as the namespace controller looks for every kind that is served.
    It ends under Kueue only, whose queues have no name of their own.
    """
    name = f"t-{uuid.uuid4().hex[:10]}"
    kube = plane.kube
    kube.create(install.namespace(name))
    kube.wait_for("v1", "ServiceAccount", "default", name)
    yield name
    end_jobs(plane, name)
    if "kueue" in plane.options.operators:
        kube.delete("v1", "Namespace", name)
    eventually(lambda: not remove_pods(kube, name), f"the end of the pods in {name}")


def end_jobs(plane: ControlPlane, namespace: str) -> None:
    """Delete the jobs of all kinds in a namespace of *plane*."""
    # An operator starts after those on whose kinds its own build, so that what owns goes before what is
    # owned.
    for api, kind in chain(
        *(_JOBS.get(operator, ()) for operator in (*reversed(plane.options.operators), ""))
    ):
        plane.kube.delete_all(api, kind, namespace)


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
