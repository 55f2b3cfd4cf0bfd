"""What our check has answered in a namespace, by everything that its Workloads said on the way."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from arena_topo.model.keys import PIN_NODES
from arena_topo.model.plan_record import MOST_WORKERS
from arena_topo.pin.run_lists import decoded
from tests.controlplane.kube import Kube, Object
from tests.e2e.kueue.queues import CHECK, KUEUE


@dataclass(frozen=True, slots=True)
class Answers:
    """``count`` is how often each job was answered with
    places; ``most`` is how many workers had each node at once.
    """

    count: dict[str, int]
    most: dict[str, int]


def answers(kube: Kube, namespace: str) -> Answers:
    """Return what was answered in *namespace*, whose Workloads are all younger than itself."""
    born = kube.get("v1", "Namespace", namespace)["metadata"]["resourceVersion"]
    count: Counter[str] = Counter()
    current: dict[str, list[str]] = {}
    most: Counter[str] = Counter()
    for event in _events(kube, namespace, born):
        item = event["object"]
        job = item["metadata"]["ownerReferences"][0]["name"]
        nodes = [] if event["type"] == "DELETED" else _nodes(item)
        if nodes and nodes != current.get(job):
            count[job] += 1
        current[job] = nodes
        most |= Counter(node for each in current.values() for node in each)
    return Answers(dict(count), dict(most))


def _events(kube: Kube, namespace: str, since: str) -> Iterator[Object]:
    query = {"watch": "true", "resourceVersion": since, "timeoutSeconds": "1"}
    with kube.stream(kube.path(KUEUE, "Workload", namespace), query) as stream:
        for line in stream.read().splitlines():
            event = json.loads(line)
            # An expired version would hide what was answered before.
            assert event["type"] != "ERROR", event
            yield event


def _nodes(workload: Object) -> list[str]:
    """Return the node that the answer of our check gives each
    worker, by its number; nothing where it gives none.
    """
    status = workload.get("status") or {}
    if any(each["type"] == "Finished" for each in status.get("conditions") or ()):
        return []
    for entry in status.get("admissionChecks") or ():
        # Next to any other state the places are those of an earlier answer.
        if entry["name"] == CHECK and entry["state"] == "Ready":
            # That of the launcher's pod set has no nodes.
            (pins,) = [
                update["annotations"][PIN_NODES]
                for update in entry["podSetUpdates"]
                if PIN_NODES in (update.get("annotations") or {})
            ]
            return decoded(pins, MOST_WORKERS)
    return []
