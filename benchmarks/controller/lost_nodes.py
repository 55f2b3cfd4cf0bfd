"""What a lost node costs a job in a queue of Kueue, by our check and by Kueue's own TAS: ``python -m
benchmarks.controller.lost_nodes [WORKERS [LOST]]``.

On a real API server, with the real Kueue, the MPI operator, the scheduler and simulated nodes of eight GPUs,
twenty in a rack: the same losses in both queues, one node, two at once, and *LOST* nodes of a job of
*WORKERS* in random groups. Nodes are deleted, and nothing else; as Kueue leaves the pods of such a node to
the garbage collector, which takes 50 seconds, its pods are deleted by the benchmark at once.

Counted are evictions of the Workload, pods that were created again though their nodes are there (the
launcher's among them), seconds from a node's end until its worker's new pod is bound, and the racks that the
job takes then next to the fewest that could hold its new workers.
"""

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from statistics import median

from arena_topo.model.keys import CONTROLLER_NAMESPACE
from arena_topo.model.objects import Object
from benchmarks.controller.kueue import (
    KUEUE,
    PATIENCE,
    PER_RACK,
    RACK,
    clear,
    controller,
    job_of,
    queues,
    say,
)
from tests.controlplane.components import install
from tests.controlplane.components.options import Options
from tests.controlplane.kube import Kube
from tests.controlplane.machines.nodes import NodeSpec, create_nodes
from tests.controlplane.machines.pods import of_job
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.pinning import install_policy

_GROUPS_OF_TAS = 3
"""Groups of a large job's losses that are carried out in TAS's queue."""

_SPARE = 2 * PER_RACK
"""Nodes more than the largest job needs after all losses."""


@dataclass
class Outcome:
    """What losses have cost a job; seconds are those until each lost worker was bound again."""

    evictions: int = 0
    touched: int = 0
    seconds: list[float] = field(default_factory=list)
    racks: int = 0
    fewest: int = 0

    def __str__(self) -> str:
        """Return it in one line."""
        return (
            f"{self.evictions} evictions, {self.touched} other pods touched; bound after median "
            f"{median(self.seconds):.2f} s, longest {max(self.seconds):.2f} s; {self.racks} racks, "
            f"at least {self.fewest}"
        )


def main(workers: int = 500, lost: int = 64) -> None:
    """Print what each loss costs in either queue."""
    random = Random(11)
    groups, left = list[int](), lost
    while left:
        groups.append(min(random.randint(1, 9), left))
        left -= groups[-1]
    for queue, name in (("tas", "TAS"), ("ours", "our check")):
        for title, size, losses in (
            ("one node of 16", 16, [1]),
            ("two at once of 16", 16, [2]),
            (f"{lost} of {workers} in {len(groups)} groups", workers, groups),
        ):
            # Each group evicts the whole job: a few of them tell as much as all, in a tenth of the time.
            counted = losses[:_GROUPS_OF_TAS] if queue == "tas" else losses
            outcome = _run(queue, size, counted)
            part = f" (the first {len(counted)})" if len(counted) < len(losses) else ""
            say(f"{title}{part}, {name}: {outcome}")


def _run(queue: str, workers: int, groups: Sequence[int]) -> Outcome:
    """Return what losing *groups* of nodes costs a job of so many *workers*, each on a node of its own."""
    nodes = workers + sum(groups) + _SPARE
    racks = {f"n{at:04}": f"r{at // PER_RACK:03}" for at in range(nodes)}
    with ControlPlane(Options(operators=("kueue",))) as plane:
        kube = plane.kube
        create_nodes(kube, [NodeSpec(name, labels={RACK: rack}) for name, rack in racks.items()])
        install_policy(plane, "--kueue")
        for item in queues(nodes):
            kube.create(item, item["metadata"].get("namespace"))
        if kube.find("v1", "Namespace", CONTROLLER_NAMESPACE) is None:
            kube.create(install.namespace(CONTROLLER_NAMESPACE))
        if queue == "tas":
            return _lose(kube, queue, workers, groups, racks)
        with controller(plane):
            return _lose(kube, queue, workers, groups, racks)


def _lose(kube: Kube, queue: str, workers: int, groups: Sequence[int], racks: Mapping[str, str]) -> Outcome:
    random, outcome = Random(7), Outcome()
    kube.create(job_of("bert", queue, workers, 8), queue)
    eventually(lambda: len(_bound(kube, queue)) == workers, "all workers to be bound", PATIENCE)
    eventually(lambda: of_job(kube, queue, "bert", "launcher"), "the launcher", PATIENCE)
    free = Counter(racks[node] for node in racks if node not in set(_nodes(kube, queue).values()))
    begun = {racks[node] for node in _nodes(kube, queue).values()}
    for size in groups:
        before, admitted = _pods(kube, queue), _admitted_since(kube, queue)
        numbers = random.sample(range(workers), size)
        names = [f"bert-worker-{number}" for number in numbers]
        at = {name: before[name] for name in names}
        with ThreadPoolExecutor(8) as pool:
            ends = pool.map(lambda each: _end(kube, queue, each[1]), at.values())
            began = dict(zip(names, ends, strict=True))
        pending = set(names)
        while pending:
            for name in sorted(pending):
                pod = kube.find("v1", "Pod", name, queue)
                if pod and pod["metadata"]["uid"] != at[name][0] and pod["spec"].get("nodeName"):
                    outcome.seconds.append(time.monotonic() - began[name])
                    pending.discard(name)
            if time.monotonic() - min(began.values()) > PATIENCE:
                raise TimeoutError(f"{sorted(pending)} were not bound")
            time.sleep(0.02)
        eventually(lambda: len(_bound(kube, queue)) == workers, "all workers to be bound", PATIENCE)
        after = _pods(kube, queue)
        outcome.evictions += _admitted_since(kube, queue) != admitted
        gone = {node for _, node in at.values()}
        outcome.touched += sum(
            after.get(name, ("", ""))[0] != uid for name, (uid, node) in before.items() if node not in gone
        )
    outcome.racks = len({racks[node] for node in _nodes(kube, queue).values()})
    outcome.fewest = len(begun)
    more = sum(groups) - sum(free[rack] for rack in begun)
    for room in sorted((count for rack, count in free.items() if rack not in begun), reverse=True):
        if more <= 0:
            break
        more, outcome.fewest = more - room, outcome.fewest + 1
    clear(kube, queue)
    return outcome


def _end(kube: Kube, queue: str, node: str) -> float:
    """Delete a node, and the pods on it where nobody else does; return when."""
    began = time.monotonic()
    kube.delete("v1", "Node", node)
    if queue == "tas":
        for pod in kube.list("v1", "Pod", queue, fieldSelector=f"spec.nodeName={node}"):
            kube.delete("v1", "Pod", pod["metadata"]["name"], queue, gracePeriodSeconds="0")
    return began


def _pods(kube: Kube, queue: str) -> dict[str, tuple[str, str]]:
    """Return the uid and the node of each pod of the job by its name; launchers have one name."""
    found = {}
    for pod in of_job(kube, queue, "bert"):
        name = pod["metadata"]["name"]
        key = name if "-worker-" in name else "launcher"
        found[key] = str(pod["metadata"]["uid"]), str(pod["spec"].get("nodeName") or "")
    return found


def _nodes(kube: Kube, queue: str) -> dict[str, str]:
    return {name: node for name, (_, node) in _pods(kube, queue).items() if name != "launcher"}


def _bound(kube: Kube, queue: str) -> list[str]:
    return [node for node in _nodes(kube, queue).values() if node]


def _admitted_since(kube: Kube, queue: str) -> Sequence[Object]:
    """Return when the job was admitted, which changes with each eviction."""
    (workload,) = kube.list(KUEUE, "Workload", queue)
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return [each["lastTransitionTime"] for each in conditions if each["type"] in ("Admitted", "Evicted")]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
