"""The rights that ``controller manifest`` prints are enough, on a real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena_topo.controller.manifests import controller_objects
from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import nodes_by_index
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, placed, plan, reasons, replica
from tests.e2e.rights import controller_account

pytestmark = pytest.mark.usefixtures("lease", "servers")


@pytest.fixture
def controller(plane: ControlPlane, tmp_path: Path) -> Iterator[Arena]:
    """Return the tool as the controller's account runs it."""
    with controller_account(plane, tmp_path / "account") as account:
        yield account


def test_the_rights_of_the_manifest_are_enough(
    controller: Arena, arena: Arena, kube: Kube, namespace: str
) -> None:
    """To place a waiting job, to release and to move its workers, and to tell of it."""
    assert 0 == submit_gang(arena, "first", 3, 8).code
    assert 0 == submit_gang(arena, "late", 2, 8).code
    with replica(controller) as running:
        eventually(lambda: plan(kube, namespace, "late").position, "its position in the queue")
        end(kube, namespace, "first")
        before = placed(kube, namespace, "late")
        kube.patch("v1", "Node", before[1], {"spec": {"unschedulable": True}})
        kube.delete("v1", "Pod", "late-worker-1", namespace, gracePeriodSeconds="0")
        eventually(
            lambda: nodes_by_index(kube, namespace, "late").get(1) not in (None, before[1]), "another node"
        )
        eventually(lambda: {"Waiting", "Placed", "Moved"} <= set(reasons(kube, namespace, "late")), "events")
        # Another write may come first, as by the scheduler onto a pod: then it is tried again.
        assert not running.said("forbidden"), running.err


def test_the_objects_of_the_manifest_are_valid(kube: Kube) -> None:
    """The API server takes each of them."""
    for item in controller_objects("registry.example.com/arena-topo:1.0"):
        if item["kind"] != "Namespace":
            path = kube.path(item["apiVersion"], item["kind"], item["metadata"].get("namespace"))
            kube.request("POST", path, item, query={"dryRun": "All", "fieldValidation": "Strict"})
