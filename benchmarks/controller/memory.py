"""What the controller keeps of jobs onto which their users write much: ``python -m
benchmarks.controller.memory [JOBS [KILOBYTES]]``.

The jobs are read from JSON one after the other, as from the API server, and decided on once; each case in a
process of its own. An API server admits 256 KiB of annotations for each object, and the controller's limit of
memory is that of its manifest.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from arena_topo.controller.objects import Faults, trimmed_job
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Rules
from arena_topo.controller.state import ClusterState
from arena_topo.jobs.enforce import suspended_with_plan
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.keys import PLAN
from arena_topo.model.objects import TRAINING_JOB, Object
from arena_topo.model.plan_record import PlanRecord, Stage, encode
from arena_topo.model.text.documents import fitted
from benchmarks.snapshot import node
from tests.objects import mpijob

_NAMESPACES = 5


def _other(size: int) -> dict[str, str]:
    return {"example.com/notes": "x" * size}


def _no_plan(size: int) -> dict[str, str]:
    return {PLAN: "x" * size}


def _long_plan(size: int) -> dict[str, str]:
    return {PLAN: encode(PlanRecord(stage=Stage.WAITING, waiting_reason="x" * size))}


CASES: dict[str, Callable[[int], dict[str, str]]] = {
    "nothing": lambda _: {},
    "an annotation of others": _other,
    "an annotation of the pods": lambda _: {},
    "no plan, under the plan's key": _no_plan,
    "a plan with a long reason": _long_plan,
}


def job(number: int, annotations: dict[str, str], noted: dict[str, str]) -> bytes:
    """Return a job of two workers that waits, with *annotations*,
    and *noted* ones on its pods, as the API server sends it.
    """
    made = with_pins(mpijob(f"job-{number}", workers=2), suspended_with_plan(PlanRecord(stage=Stage.WAITING)))
    made["metadata"]["namespace"] = f"team-{number % _NAMESPACES}"
    made["metadata"]["annotations"] |= annotations
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"] = noted
    return json.dumps(made).encode()


def one_case(name: str, jobs: int, size: int, *, whole: bool) -> None:
    """Print how many MiB the process has grown by for so many
    *jobs*, and at its peak; *whole*: all is kept of them.
    """
    made, noted = CASES[name](size), _other(size) if "pods" in name else {}
    faults, kept = Faults(), dict[str, Object]()
    nodes = {
        f"n{index}": {**node(index), "metadata": {**node(index)["metadata"], "uid": f"n{index}"}}
        for index in range(10)
    }
    before = _resident()
    for number in range(jobs):
        item = fitted(json.loads(job(number, made, noted)), TRAINING_JOB)
        read = item
        if not whole:
            read = {
                "metadata": {
                    key: item["metadata"][key] for key in ("name", "namespace", "uid", "creationTimestamp")
                },
                "spec": {},
            }
            with faults.at(item):
                read = trimmed_job(ApiVersion.V2BETA1, item)
        kept[read["metadata"]["uid"]] = read
    state = ClusterState({"nodes": nodes, "pods": {}, "mpijobs": kept, "resourcequotas": {}}, faults=faults)
    reconciler = PlanReconciler(Rules(), lambda: 0.0)
    actions = reconciler.decide(state, datetime.now(UTC))
    print(
        f"{_resident() - before:6.0f} MiB, at the peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:6.0f} MiB; "
        f"{len(actions):,} actions, {reconciler.queued:,} wait, {len(faults.taken()):,} told"
    )


def _resident() -> float:
    with Path("/proc/self/status").open(encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024


def main(jobs: int = 5000, kilobytes: int = 200) -> None:
    """Print a line for each case, as much is kept and as all would be kept."""
    for name in CASES:
        for whole in (True, False):
            command = [
                sys.executable,
                "-m",
                __spec__.name,
                "case",
                name,
                str(jobs),
                str(1000 * kilobytes),
                str(int(whole)),
            ]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            kept = "all" if whole else "what is read"
            print(f"{name:32}{kept:14}{done.stdout.strip() or done.stderr[-300:]}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["case"]:
        case, count, characters, everything = sys.argv[2:6]
        one_case(case, int(count), int(characters), whole=bool(int(everything)))
    else:
        main(*map(int, sys.argv[1:]))
