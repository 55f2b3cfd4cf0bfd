"""How long an event waits for an estimate: ``python -m benchmarks.controller.estimate_steps [NODES [PODS]]``.

Everything is in memory, as in ``decisions``: servers with eight GPUs, pods of one GPU on them, of planned
jobs of eight that have deadlines, and a queue of jobs of many shapes that do not fit. An event that comes
while starts are estimated waits for one step at most: these are timed one by one, and the begin of the round
as well.
"""

import gc
import sys
import time
from datetime import UTC, datetime
from statistics import median, quantiles

from arena_topo.controller.estimates import Estimator
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Rules
from arena_topo.controller.state import ClusterState
from benchmarks.controller.decisions import QUEUE, World, waiting


def main(nodes: int = 1000, pods: int = 7000) -> None:
    """Print the times of the steps of two rounds, in milliseconds."""
    world, now = World(nodes, pods), datetime.now(UTC)
    for at in range(QUEUE):
        world.submitted(waiting(f"queued-{at}", nodes + at))
    state, reconciler = ClusterState(world.objects), PlanReconciler(Rules(), time.monotonic)
    reconciler.decide(state, now)
    gc.collect()
    gc.freeze()
    estimator = Estimator(time.monotonic)
    for number in range(2):
        began = time.perf_counter()
        prospect = reconciler.prospect(estimator.plan)
        assert prospect is not None
        estimator.begin(prospect, list(state.ledger.jobs.values()))
        begin = 1000 * (time.perf_counter() - began)
        times = []
        while True:
            began = time.perf_counter()
            if not estimator.step():
                break
            times.append(1000 * (time.perf_counter() - began))
        sys.stdout.write(
            f"round {number + 1} at {nodes} nodes, {pods} pods, {QUEUE} jobs waiting: begin {begin:.1f} ms; of {len(times)} steps "
            f"p50 {median(times):.1f} ms, p99 {quantiles(times, n=100)[98]:.1f} ms, most {max(times):.1f} ms; "
            f"{sum(times) / 1000:.1f} s in all, {len(estimator.known)} jobs with an estimate\n"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
