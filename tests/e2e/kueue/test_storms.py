"""Somebody writes every job and Workload without a pause, while a real controller places fifty jobs."""

import logging
import re
from collections.abc import Iterator

import pytest

from arena_topo.jobs.enforce import suspended_with_plan
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.keys import CONTROLLER, KUEUE_QUEUE, NVIDIA_GPU
from arena_topo.model.plan_record import Stage
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.planned_jobs import WAITING
from tests.e2e.controller.replicas import end, plan, replica, storm
from tests.e2e.kueue.queues import KUEUE, pins
from tests.e2e.pinning import mpijob

pytestmark = pytest.mark.usefixtures("lease")

_LOG = logging.getLogger(__name__)

JOBS = 50
_MOST_TRIES = 5
"""Writes for each job that may be refused, on average."""

_REFUSED = re.compile(
    r'apiserver_request_total\{(?=[^}]*code="(?:409|422)")(?=[^}]*resource="(?:mpijobs|workloads)")'
    r'(?=[^}]*verb="PATCH")[^}]*\} ([0-9.e+]+)'
)


def job(name: str, queue: str = "") -> Object:
    """Return a suspended job of one GPU, which waits in *queue*, or in our own."""
    made = mpijob(name, 1, {NVIDIA_GPU: "1"}, {})
    made["spec"]["runPolicy"]["suspend"] = True
    if not queue:
        return with_pins(made, suspended_with_plan(WAITING))
    made["metadata"]["labels"] = {KUEUE_QUEUE: queue}
    return made


def refused(kube: Kube) -> int:
    """Return how many patches of jobs and Workloads the server has refused, because of other writers."""
    return sum(int(float(count)) for count in _REFUSED.findall(kube.request("GET", "/metrics")))


@pytest.mark.full("a writer without a pause, and fifty jobs")
def test_a_storm_of_writes_to_everything_delays_nobody(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """Each job is placed, in our own queue and in one of Kueue's, and few writes are tried again."""

    def everything() -> Iterator[tuple[str, str, str]]:
        for kind in (MPIJOB, (KUEUE, "Workload")):
            for item in kube.list(*kind, namespace):
                yield *kind, item["metadata"]["name"]

    own, theirs = ([f"{name}-{at:02}" for at in range(JOBS // 2)] for name in ("own", "theirs"))
    left = {*own, *theirs}
    before = refused(kube)
    with replica(arena) as running, storm(plane, namespace, everything) as counts:
        for name in own:
            kube.create(job(name), namespace)
        for name in theirs:
            kube.create(job(name, queued), namespace)

        def all_placed() -> bool:
            for name in [*left]:
                is_placed = (
                    pins(kube, namespace, name)
                    if name in theirs
                    else plan(kube, namespace, name).stage is Stage.CONFIRMED
                )
                if is_placed:
                    left.remove(name)
                    end(kube, namespace, name)
            return not left

        eventually(all_placed, f"{JOBS} jobs to be placed", timeout=540)
        assert running.process.poll() is None, running.err
    tries = refused(kube) - before
    _LOG.info("%d writes of the storm, %d refused", counts["writes"], tries)
    assert counts["writes"] > JOBS
    assert tries <= _MOST_TRIES * JOBS, f"{tries} refused writes, {counts['writes']} of the storm"
    events = kube.list("v1", "Event", namespace)
    assert not [
        each
        for each in events
        if each["reason"] == "InternalError" and each["source"].get("component") == CONTROLLER
    ]
