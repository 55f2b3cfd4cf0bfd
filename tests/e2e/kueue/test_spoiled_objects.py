"""Whatever an API server admits, jobs in queues and Workloads among it, before a real controller."""

import pytest

from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.kube import Kube
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, placed, replica
from tests.e2e.kueue.queues import placed_as_pinned, submit_to_queue, workload
from tests.e2e.spoiled_objects import TIMEOUT, Tenant, among

pytestmark = pytest.mark.usefixtures("lease")


@pytest.mark.timeout(TIMEOUT)
@pytest.mark.full("objects of all kinds that an API server admits, spoiled by chance")
def test_whatever_the_server_admits_stops_no_job_in_a_queue(
    arena: Arena, kube: Kube, namespace: str, queued: str, tenant: Tenant
) -> None:
    """Jobs are placed in the midst of it, in our own queue and in one of Kueue's."""
    with replica(arena) as running:

        def place(number: int) -> None:
            own, theirs = f"own-{number}", f"theirs-{number}"
            assert 0 == submit_gang(arena, own, 1, 8).code
            assert 0 == submit_to_queue(arena, queued, theirs, 1, 8).code
            placed(kube, namespace, own)
            try:
                placed_as_pinned(kube, namespace, theirs, 1)
            except ControlPlaneError as error:
                raise ControlPlaneError(f"{error}: {workload(kube, namespace, theirs)}") from error
            for name in (own, theirs):
                end(kube, namespace, name)

        among(tenant, running, place)
