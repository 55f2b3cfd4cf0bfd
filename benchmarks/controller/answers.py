"""What the answers to Kueue's Workloads cost the controller's process: ``python -m
benchmarks.controller.answers [JOBS [NODES]]``.

Everything is in memory, without an API server, so that what else the machine does tells little: servers with
eight GPUs, and jobs of four workers that come one after the other, until all of them run. Each change of each
Workload is decided on alone, which is the most that there can be to decide.
"""

import sys
import time
from collections.abc import Iterator
from datetime import timedelta

from arena_topo.controller.objects import Action
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Rules
from arena_topo.model.objects import Object
from tests.controller.workload_objects import NOW, Cluster, condition, workload
from tests.controller.world import server


def main(jobs: int = 300, nodes: int = 640) -> None:
    """Print the CPU for each job, of the first and the last
    tenth as well: it should not grow with the jobs that run.
    """
    servers = [server(f"n{at:04}") for at in range(nodes)]
    cluster = Cluster(nodes=servers)
    reconciler = PlanReconciler(Rules(timedelta(days=1)), lambda: cluster.seconds)
    # As the controller does, whose planner remembers the cluster.
    cluster.reconciler.plan = reconciler.plan
    decided(cluster, reconciler)
    each = []
    for at in range(jobs):
        began = time.process_time()
        for item in course(f"job-{at}"):
            put = cluster.objects["workloads"].get(item["metadata"]["uid"], item)
            status = {**item["status"], "admissionChecks": put["status"]["admissionChecks"]}
            cluster.put("workloads", {**item, "status": status})
            cluster.carry_out(decided(cluster, reconciler))
            cluster.seconds += 0.05
        each.append(1000 * (time.process_time() - began))
    tenth = max(jobs // 10, 1)
    sys.stdout.write(
        f"{jobs} jobs on {nodes} nodes: {sum(each) / jobs:.1f} ms of CPU a job; "
        f"of the first tenth {sum(each[:tenth]) / tenth:.1f} ms, of the last {sum(each[-tenth:]) / tenth:.1f} ms\n"
    )


def course(job: str) -> Iterator[Object]:
    """Yield the Workload of *job* each time that Kueue writes it:
    it has come, has quota, is admitted, and its pods are ready.
    """
    item = workload(job, workers=4, gpus=4)
    conditions: list[Object] = []
    yield {**item, "status": {**item["status"], "conditions": []}}
    for name in ("QuotaReserved", "Admitted", "PodsReady"):
        conditions = [*conditions, condition(name)]
        yield {**item, "status": {**item["status"], "conditions": conditions}}


def decided(cluster: Cluster, reconciler: PlanReconciler) -> list[Action]:
    """Return what the controller decides now, in its own queue and in Kueue's."""
    now = NOW + timedelta(seconds=cluster.seconds)
    actions = reconciler.decide(cluster.state, now, cluster.reconciler.plans)
    return actions + cluster.reconciler.decide(cluster.state, reconciler.plans, now)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
