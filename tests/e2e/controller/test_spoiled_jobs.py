"""What tenants write that an API server admits, among honest jobs, before a real controller."""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, pass_second, placed, plan, replica, storm
from tests.e2e.spoiled_objects import TIMEOUT, Tenant, among

pytestmark = pytest.mark.usefixtures("lease", "servers")


@pytest.mark.timeout(TIMEOUT)
@pytest.mark.full("objects of all kinds that an API server admits, spoiled by chance")
def test_whatever_the_server_admits_stops_no_honest_job(
    arena: Arena, kube: Kube, namespace: str, tenant: Tenant
) -> None:
    """They are placed, in the midst of it and afterwards; no object is beyond what the controller foresaw."""
    with replica(arena) as running:

        def place(number: int) -> None:
            assert 0 == submit_gang(arena, f"job-{number}", 1, 8).code
            placed(kube, namespace, f"job-{number}")
            end(kube, namespace, f"job-{number}")

        among(tenant, running, place)


def test_a_storm_of_writes_delays_nobody(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str
) -> None:
    """A job that somebody writes without a pause is placed nevertheless, and so are the others."""
    assert 0 == submit_gang(arena, "first", 4, 8).code
    assert 0 == submit_gang(arena, "late", 2, 8).code
    pass_second(kube, namespace)
    assert 0 == submit_gang(arena, "younger", 2, 8).code
    with replica(arena) as running, storm(plane, namespace, lambda: [(*MPIJOB, "late")]) as counts:
        eventually(lambda: plan(kube, namespace, "late").position, "the job to wait")
        end(kube, namespace, "first")
        assert 2 == len(placed(kube, namespace, "late"))
        assert 2 == len(placed(kube, namespace, "younger"))
        assert running.process.poll() is None, running.err
    assert counts["writes"]
