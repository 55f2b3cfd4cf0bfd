"""``kubectl apply -k`` of the documented folder, by a real kubectl on a real API server, and its way back."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arena_topo.controller.manifests import controller_objects
from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE
from tests.controlplane.kube import Kube, Object
from tests.controlplane.plane import ControlPlane
from tests.paths import ROOT

FOLDER = str(ROOT / "docs" / "how-to" / "kustomize")
IMAGE = "registry.example.com/arena-topo:1.0"
"""The one that the folder names."""

Kubectl = Callable[..., list[str]]


@pytest.fixture
def kubectl(plane: ControlPlane, tmp_path: Path) -> Iterator[Kubectl]:
    """Return a function that runs kubectl as the administrator, and returns the lines that it printed."""
    program = Path(sys.executable).parent / "kubectl"
    env = {"HOME": str(tmp_path), "KUBECONFIG": str(plane.admin_kubeconfig), "PATH": os.defpath}

    def run(*arguments: str) -> list[str]:
        done = subprocess.run([program, *arguments], env=env, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, (arguments, done.stdout, done.stderr)
        return done.stdout.splitlines()

    run("delete", "-k", FOLDER, "--ignore-not-found")  # the namespace of a test before has no objects of ours
    yield run
    run("delete", "-k", FOLDER, "--ignore-not-found")


def found(kube: Kube) -> list[Object]:
    """Return what there is of the controller's objects."""
    wanted = [(item, item["metadata"]) for item in controller_objects(IMAGE)]
    every = [
        kube.find(item["apiVersion"], item["kind"], meta["name"], meta.get("namespace"))
        for item, meta in wanted
    ]
    return [item for item in every if item]


@pytest.mark.full("twenty seconds, most of them the end of a namespace")
@pytest.mark.usefixtures("gpu_nodes")
def test_the_controller_is_applied_and_deleted_by_kustomize(kubectl: Kubectl, kube: Kube) -> None:
    """Applied again it changes nothing, both replicas are rolled out, and nothing is left in the end."""
    objects = controller_objects(IMAGE)
    applied = kubectl("apply", "-k", FOLDER)
    assert (len(objects), {"created"}) == (len(applied), {line.split()[-1] for line in applied})
    before = found(kube)
    assert len(objects) == len(before)

    # kubectl says "configured" of the budget and the policy each time: it sends patches that change nothing.
    kubectl("apply", "-k", FOLDER)
    assert [] == kubectl("diff", "-k", FOLDER)
    kept = [item["metadata"].get("generation") for item in before]
    assert kept == [item["metadata"].get("generation") for item in found(kube)]

    kubectl("rollout", "status", f"deployment/{CONTROLLER}", "-n", CONTROLLER_NAMESPACE, "--timeout=120s")
    pods = kube.list("v1", "Pod", CONTROLLER_NAMESPACE)
    assert [IMAGE, IMAGE] == [pod["spec"]["containers"][0]["image"] for pod in pods]

    kubectl("delete", "-k", FOLDER)
    assert [] == found(kube)
