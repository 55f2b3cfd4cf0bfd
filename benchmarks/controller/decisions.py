"""How long the controller takes to decide, and how much memory: ``python -m benchmarks.controller.decisions
[NODES [PODS]]``.

Everything is in memory, without an API server: servers with eight GPUs, pods of one GPU on them, of jobs of
eight that were planned and have deadlines, and a queue of jobs of many shapes that do not fit. Again and
again a job ends and its pods go, and another one comes, which is proposed, confirmed and bound; in between it
is estimated for a while when those of the queue start. A decision is from the events to the actions, whatever
they are.
"""

import gc
import resource
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles

from arena_topo.controller.estimates import Estimator
from arena_topo.controller.objects import WritePlan, trimmed_pod
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Rules
from arena_topo.controller.state import ClusterState
from arena_topo.jobs.enforce import rewritten, suspended_with_plan
from arena_topo.jobs.watch import Change
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.keys import PLANNED
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage, decode, plan_text
from benchmarks.snapshot import name, node, pod
from tests.objects import mpijob

ROUNDS = 200
WIDTH = 8
"""Workers of a job, of one GPU each."""

QUEUE = 20
"""Jobs that wait, each of another shape, for more GPUs than are ever free."""

STEPS = 50
"""Steps of an estimate between two jobs that end."""

Changes = list[tuple[str, Change]]


def main(nodes: int = 1000, pods: int = 7000, reserve_after: float = 1e9) -> None:
    """Print the times of the decisions, in milliseconds, and the memory in MiB."""
    world = World(nodes, pods)
    began = time.perf_counter()
    state = ClusterState(world.objects)
    seconds = [0.0]
    reconciler = PlanReconciler(Rules(timedelta(seconds=reserve_after)), lambda: seconds[0])
    reconciler.decide(state, datetime.now(UTC))
    first = time.perf_counter() - began
    # As the controller does once it has seen everything.
    gc.collect()
    gc.freeze()
    times = []
    estimator = Estimator(time.monotonic)

    def estimate() -> None:
        """Do some steps of an estimate, as the controller does while nothing happens."""
        for _ in range(STEPS):
            if not estimator.step() and (prospect := reconciler.prospect(estimator.plan)):
                estimator.begin(prospect, list(state.ledger.jobs.values()))
        reconciler.estimates = estimator.known

    def decided(changes: Changes) -> list[WritePlan]:
        """Decide about *changes*, and return what is to be written."""
        began = time.perf_counter()
        state.take(changes)
        actions = reconciler.decide(state, datetime.now(UTC))
        times.append(1000 * (time.perf_counter() - began))
        return [action for action in actions if isinstance(action, WritePlan)]

    written = decided(
        [change for at in range(QUEUE) for change in world.submitted(waiting(f"queued-{at}", 2000 + at))]
    )
    decided(world.written(written))
    for at in range(ROUNDS):
        written = decided(world.ended(f"job-{at}"))
        job = f"new-{at}"
        # It is planned, proposed, and confirmed.
        for _ in range(3):
            come = [] if job in world.jobs else world.submitted(waiting(job, 1 + at % WIDTH))
            written = decided(world.written(written) + come)
        decided(world.written(written))
        decided(world.started(job))
        seconds[0] += 1
        estimate()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    p99 = quantiles(times, n=100)[98]
    sys.stdout.write(
        f"{nodes} nodes, {pods} pods, {QUEUE} jobs waiting: first decision {1000 * first:.0f} ms; then of {len(times)} "
        f"p50 {median(times):.1f} ms, p99 {p99:.1f} ms, most {max(times):.1f} ms; {memory:.0f} MiB\n"
    )


class World:
    """The objects that there are, and what changes of them."""

    def __init__(self, nodes: int, pods: int) -> None:
        """Make as many *nodes* and *pods*."""
        self.nodes = nodes
        self.objects: dict[str, dict[str, Object]] = {
            "nodes": {f"n{at}": ready(node(at), f"n{at}") for at in range(nodes)},
            "pods": {},
            "mpijobs": {},
            "resourcequotas": {},
        }
        for at in range(pods // WIDTH):
            places = [(WIDTH * at + index) % nodes for index in range(WIDTH)]
            self.run(f"job-{at}", [name(place) for place in places])

    def run(self, job: str, hosts: list[str]) -> Changes:
        """Have a worker of *job* on each of *hosts*."""
        item = running_job(job, hosts, 3600 + 7 * len(self.objects["mpijobs"]))
        changes = [
            ("pods", Change(0, running(pod(0, self.nodes), job, index, host)))
            for index, host in enumerate(hosts)
        ]
        return self.take([("mpijobs", Change(0, item)), *changes])

    def take(self, changes: Changes) -> Changes:
        """Note *changes*, and return them."""
        for collection, change in changes:
            uid = change.object["metadata"]["uid"]
            if change.deleted:
                del self.objects[collection][uid]
            else:
                self.objects[collection][uid] = change.object
        return changes

    def submitted(self, job: Object) -> Changes:
        """Return that *job* has come."""
        return self.take([("mpijobs", Change(0, job))])

    @property
    def jobs(self) -> set[str]:
        """The names of the jobs."""
        return {uid.removeprefix("uid-") for uid in self.objects["mpijobs"]}

    def written(self, actions: list[WritePlan]) -> Changes:
        """Return that plans were written."""
        return self.take(
            [
                ("mpijobs", Change(0, with_pins(action.job, rewritten(action.job, action.record))))
                for action in actions
            ]
        )

    def started(self, job: str) -> Changes:
        """Return that the workers of *job* run where they were planned."""
        record = decode(plan_text(self.objects["mpijobs"][f"uid-{job}"]) or "")
        assert record.stage is Stage.CONFIRMED
        return self.take(
            [
                ("pods", Change(0, running(pod(0, self.nodes), job, slot.worker, slot.node)))
                for slot in record.slots
            ]
        )

    def ended(self, job: str) -> Changes:
        """Return that *job* and its pods have gone."""
        pods: Iterable[Object] = (
            item
            for item in self.objects["pods"].values()
            if item["metadata"]["name"].startswith(f"{job}-worker-")
        )
        gone = [("pods", Change(0, item, deleted=True)) for item in pods]
        return self.take([("mpijobs", Change(0, self.objects["mpijobs"][f"uid-{job}"], deleted=True)), *gone])


def ready(item: Object, uid: str) -> Object:
    """Return a node as its kubelet reports it."""
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        **item,
        "metadata": {**item["metadata"], "uid": uid},
        "status": {**item["status"], "conditions": conditions},
    }


def running(item: Object, job: str, index: int, host: str) -> Object:
    """Return what the controller keeps of a worker that runs."""
    metadata = {
        **item["metadata"],
        "name": f"{job}-worker-{index}",
        "uid": f"uid-{job}-{index}",
        "namespace": "default",
        "labels": {PLANNED: "true", "training.kubeflow.org/job-name": job},
    }
    spec = {**item["spec"], "nodeName": host}
    return trimmed_pod({**item, "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


def running_job(job: str, hosts: list[str], seconds: int) -> Object:
    """Return a job whose plan is confirmed, and which may run for so many *seconds* from now on."""
    record = PlanRecord(
        stage=Stage.CONFIRMED,
        slots=tuple(Slot(index, host, None) for index, host in enumerate(hosts)),
        worker_requests={"nvidia.com/gpu": 1},
        enforcement=Enforcement.ADMISSION,
    )
    item = mpijob(
        job, workers=len(hosts), status={"startTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    )
    item["spec"]["runPolicy"] = {"activeDeadlineSeconds": seconds}
    return with_pins(item, rewritten({}, record))


def waiting(job: str, workers: int) -> Object:
    """Return a job that waits for a place."""
    record = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION)
    return with_pins(mpijob(job, workers=workers), suspended_with_plan(record))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
