"""Replicas of the controller as processes, and what they leave behind."""

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE, PLAN
from arena_topo.model.plan_record import PlanRecord, Stage, decode
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Running

LEASE = ("coordination.k8s.io/v1", "Lease", CONTROLLER)
WAYS = {"killed": signal.SIGKILL, "ended": signal.SIGTERM, "stopped": signal.SIGSTOP}
"""The ways in which a replica goes."""


@contextmanager
def replica(arena: Arena, *flags: str, leads: bool = True) -> Iterator[Running]:
    """Run a replica next to the test; it has the Lease when this enters, unless another one *leads*."""
    with arena.running("controller", "run", *flags) as running:
        running.until_said("leading" if leads else "waiting", "the replica to start")
        yield running


def holder(kube: Kube) -> str:
    """Return who holds the Lease."""
    return str(kube.get(*LEASE, CONTROLLER_NAMESPACE)["spec"]["holderIdentity"])


def pass_second(kube: Kube, namespace: str) -> None:
    """Wait until the server writes another second onto what is
    created: jobs of one second are sorted by their uids.
    """

    def second() -> str:
        made = kube.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "now-"}}, namespace
        )
        return str(made["metadata"]["creationTimestamp"])

    before = second()
    eventually(lambda: second() != before, "the server's next second")


def plan(kube: Kube, namespace: str, name: str) -> PlanRecord:
    """Return the plan that a job carries."""
    job: Object = kube.get(*MPIJOB, name, namespace)
    return decode(job["metadata"]["annotations"][PLAN])


def waits(kube: Kube, namespace: str, name: str) -> bool:
    """Whether a job has no place."""
    return plan(kube, namespace, name).stage is Stage.WAITING


def placed(kube: Kube, namespace: str, name: str) -> dict[int, str]:
    """Return the nodes of the workers, once each is on the one of the job's confirmed plan."""

    def all_placed() -> dict[int, str] | None:
        record = plan(kube, namespace, name)
        found = pods.nodes_by_index(kube, namespace, name)
        planned = {slot.worker: slot.node for slot in record.slots}
        return found if record.stage is Stage.CONFIRMED and found == planned else None

    try:
        return eventually(all_placed, f"the workers of {name} to be where they are planned")
    except ControlPlaneError as error:
        record, found = plan(kube, namespace, name), pods.nodes_by_index(kube, namespace, name)
        said = (record.stage, record.position, record.slots, found, reasons(kube, namespace, name))
        raise ControlPlaneError(f"{error}: {said}") from error


def end(kube: Kube, namespace: str, name: str) -> None:
    """Delete a job, anyone who waits for its GPUs."""
    kube.delete(*MPIJOB, name, namespace, propagationPolicy="Foreground")


def reasons(kube: Kube, namespace: str, name: str) -> list[str]:
    """Return the reasons of the controller's events on a job."""
    return [
        event["reason"]
        for event in kube.list("v1", "Event", namespace)
        if event["involvedObject"]["name"] == name and event["source"].get("component") == CONTROLLER
    ]


@contextmanager
def storm(
    plane: ControlPlane, namespace: str, targets: Callable[[], Iterable[tuple[str, str, str]]]
) -> Iterator[Counter[str]]:
    """Write objects without a pause, as an operator gone wrong does: others meet conflicts.

    They are those whose API, kind and name *targets* returns, again and again.
    """
    counts: Counter[str] = Counter()
    ended = threading.Event()
    client = plane.client("storm", ["system:masters"])

    def write() -> None:
        while not ended.is_set():
            for target in targets():
                number = counts["writes"]
                with suppress(KubeError):
                    client.patch(*target, {"metadata": {"annotations": {"storm": str(number)}}}, namespace)
                counts["writes"] += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield counts
    finally:
        ended.set()
        thread.join()


def text_of(item: Object) -> str:
    """Return *item* for a message."""
    return json.dumps(item)[:2000]
