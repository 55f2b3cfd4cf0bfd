"""The rights of a user and of the controller's account are enough where Kueue runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena_topo.cluster.setup import TOPOLOGY_RULES, USER_RULES
from tests.controlplane.kube import Kube
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import replica
from tests.e2e.kueue.queues import pins, placed_as_pinned, submit_to_queue
from tests.e2e.rights import GROUP, controller_account, grant

pytestmark = pytest.mark.usefixtures("lease")


@pytest.fixture
def account(plane: ControlPlane, tmp_path: Path) -> Iterator[Arena]:
    """Return the tool as the controller's account runs it."""
    with controller_account(plane, tmp_path / "account") as account:
        yield account


def test_the_rights_of_setup_and_manifest_are_enough(
    plane: ControlPlane, account: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """For a user who submits and waits, and for the controller that answers him and moves his worker."""
    user = f"user-{namespace}"
    grant(kube, user, USER_RULES, namespace)
    grant(kube, user, TOPOLOGY_RULES)
    theirs = Arena(plane.kubeconfig(user, namespace=namespace))
    with replica(account) as running:
        outcome = submit_to_queue(theirs, queued, "job", 2, 8, "--wait")
        assert 0 == outcome.code, outcome.err
        assert "job is placed by the controller: 2 workers on 2 nodes" in outcome.err
        lost = placed_as_pinned(kube, namespace, "job", 2)[1]
        kube.delete("v1", "Node", lost)
        eventually(lambda: lost not in pins(kube, namespace, "job"), "another node for its worker")
        placed_as_pinned(kube, namespace, "job", 2)
        # Another write may come first: then it is tried again.
        assert not running.said("forbidden"), running.err
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        kube.delete(f"{GROUP}/v1", kind, user)
