"""How long the controller takes to decide, and how much memory: ``python -m benchmarks.controller.decisions [NODES [PODS]]``.

Everything is in memory, without an API server: a cluster of servers with eight GPUs, pods of one GPU on them, and for each of two
hundred decisions one pod that ends and one job that comes. A decision is from the event to the actions.
"""

import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles

from arena_topo.controller.placer import Placer, Rules
from arena_topo.controller.state import ClusterState, read_of_pod
from arena_topo.jobs.placement.enforcement import suspended_with_plan
from arena_topo.jobs.reading.watch import Change
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import Enforcement, PlanRecord, Stage
from benchmarks.snapshot import node, pod
from tests.objects import mpijob

DECISIONS = 200


def main(nodes: int = 1000, pods: int = 7000) -> None:
    """Print the times of the decisions, in milliseconds, and the memory in MiB."""
    objects: dict[str, dict[str, Object]] = {
        "nodes": {f"n{at}": ready(node(at), f"n{at}") for at in range(nodes)},
        "pods": {f"p{at}": running(pod(at, nodes), f"p{at}") for at in range(pods)},
        "mpijobs": {},
        "resourcequotas": {},
    }
    began = time.perf_counter()
    state = ClusterState(objects)
    seconds = [0.0]
    placer = Placer(Rules(timedelta()), lambda: seconds[0])
    placer.decide(state, datetime.now(UTC))
    first = time.perf_counter() - began
    times = []
    for at in range(DECISIONS):
        uid = f"p{at}"
        gone = objects["pods"].pop(uid)
        job = waiting(f"job-{at}", 1 + at % 4)
        objects["mpijobs"] = {job["metadata"]["uid"]: job}
        began = time.perf_counter()
        state.take([("pods", Change(1, gone, deleted=True)), ("mpijobs", Change(2, job))])
        actions = placer.decide(state, datetime.now(UTC))
        times.append(1000 * (time.perf_counter() - began))
        assert actions
        seconds[0] += 60
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    p99 = quantiles(times, n=100)[98]
    sys.stdout.write(
        f"{nodes} nodes, {pods} pods: first decision {1000 * first:.0f} ms; then p50 {median(times):.1f} ms, "
        f"p99 {p99:.1f} ms; {memory:.0f} MiB\n"
    )


def ready(item: Object, uid: str) -> Object:
    """Return a node as its kubelet reports it."""
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        **item,
        "metadata": {**item["metadata"], "uid": uid},
        "status": {**item["status"], "conditions": conditions},
    }


def running(item: Object, uid: str) -> Object:
    """Return what the controller keeps of a pod that runs."""
    metadata = {**item["metadata"], "uid": uid, "namespace": "default"}
    return read_of_pod({**item, "metadata": metadata, "status": {"phase": "Running"}})


def waiting(name: str, workers: int) -> Object:
    """Return a job that waits for a place."""
    record = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION)
    return with_pins(mpijob(name, workers=workers), suspended_with_plan(record))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
