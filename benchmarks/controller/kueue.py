"""How fast and how full jobs are admitted through our check, next to Kueue's own TAS: ``python -m
benchmarks.controller.kueue [JOBS [NODES [RUNS]]]``.

On a real API server, with the real Kueue and simulated nodes of eight GPUs, twenty in a rack: once with a
flavor that has a topology, once with our admission check, the same jobs in both. No operator runs, so that
nothing but the queues is measured. Then the time from a pod's end to the next job's answer, and how many GPUs
of an overfilled cluster either admits.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean, median

import urllib3

from arena_topo.model.keys import CHECK_CONTROLLER, CONTROLLER_NAMESPACE, PIN_NODES
from arena_topo.model.objects import Object
from arena_topo.pin.run_lists import decoded
from tests.controlplane.components import install
from tests.controlplane.components.options import Options
from tests.controlplane.kube import Kube
from tests.controlplane.machines.nodes import NodeSpec, create_nodes
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually

KUEUE, MPIJOB, GPU = "kueue.x-k8s.io/v1beta2", "kubeflow.org/v2beta1", "nvidia.com/gpu"
RACK, HOST = "topology.kubernetes.io/rack", "kubernetes.io/hostname"
PER_RACK, PATIENCE = 20, 300.0
SHAPES = ((1, 8), (2, 8), (4, 8), (2, 4), (4, 4), (8, 2), (8, 1), (4, 2))
"""Workers, and GPUs of each: four workers in the mean."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of jobs took: seconds from the first creation to the last admission and to the last start,
    and CPU seconds by process.

    A job is started once Kueue has unsuspended it. The CPU is that up to the last admission.
    """

    seconds: float
    until_started: float
    cpu: dict[str, float]
    admitted: Sequence[Object]

    @property
    def a_minute(self) -> float:
        """Jobs that were admitted in a minute."""
        return 60 * len(self.admitted) / self.seconds

    @property
    def started_a_minute(self) -> float:
        """Jobs that were started in a minute."""
        return 60 * len(self.admitted) / self.until_started


def main(jobs: int = 300, nodes: int = 640, runs: int = 1) -> None:
    """Print the rates and the CPU for each job of so many
    *runs*, the delay, and how full the cluster gets.
    """
    racks = {f"n{at:03}": f"r{at // PER_RACK:02}" for at in range(nodes)}
    with ControlPlane(Options(operator=False, operators=("kueue",))) as plane:
        _furnish(plane, racks)
        fits = _shapes(jobs, nodes * 8)
        overfull = _shapes(10 * jobs, int(nodes * 8 * 1.3))[: 2 * jobs]
        with controller(plane) as pid:
            for _ in range(runs):
                _compare(plane, fits, pid)
            full_ours = _filled(plane, "ours", overfull)
            _say_fill("our check", full_ours, racks, PIN_NODES)
            delays = _delays(plane, list(racks))
        say(
            f"from a pod's end to the next answer: median {median(delays):.2f} s, longest {max(delays):.2f} s"
        )
    with ControlPlane(Options(operator=False, operators=("kueue",))) as plane:
        # Of the pods that stand for others TAS would know nothing.
        _furnish(plane, racks)
        _say_fill("TAS", _filled(plane, "tas", overfull), racks, None)


def _compare(plane: ControlPlane, shapes: Sequence[tuple[int, int]], pid: int) -> None:
    """Print what jobs of *shapes* take by TAS, and then by
    our check, whose controller is the process *pid*.
    """
    tas = _run(plane, "tas", shapes, {})
    _say_rate("TAS", tas)
    ours = _run(plane, "ours", shapes, {"controller": pid})
    _say_rate("our check", ours)
    each = 1000 * ours.cpu["controller"] / len(ours.admitted)
    say(
        f"ratio {ours.a_minute / tas.a_minute:.2f}, of the starts {ours.started_a_minute / tas.started_a_minute:.2f}; "
        f"{each:.1f} ms of CPU a job"
    )


def _furnish(plane: ControlPlane, racks: Mapping[str, str]) -> None:
    create_nodes(plane.kube, [NodeSpec(name, labels={RACK: rack}) for name, rack in racks.items()])
    for item in (install.namespace(CONTROLLER_NAMESPACE), *queues(len(racks))):
        plane.kube.create(item, item["metadata"].get("namespace"))


def say(line: str) -> None:
    """Print *line* at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _say_rate(name: str, run: Run) -> None:
    spent = ", ".join(f"{each} {seconds:.1f} s" for each, seconds in run.cpu.items())
    say(
        f"{name}: {len(run.admitted)} jobs in {run.seconds:.1f} s, {run.a_minute:.0f} a minute, "
        f"started {run.started_a_minute:.0f} a minute; CPU: {spent}"
    )


def _say_fill(name: str, workloads: Sequence[Object], racks: Mapping[str, str], key: str | None) -> None:
    gpus = sum(map(_gpus, workloads))
    wide = mean(len({racks[node] for node in _nodes(each, key)}) for each in workloads)
    say(
        f"overfilled, {name}: {gpus} of {len(racks) * 8} GPUs in {len(workloads)} jobs, {wide:.3f} racks a gang"
    )


def _shapes(jobs: int, most: int) -> list[tuple[int, int]]:
    """Return workers and GPUs of as many *jobs* as ask for *most* GPUs at most."""
    random, found, total = Random(7), list[tuple[int, int]](), 0
    for _ in range(jobs):
        shape = random.choice(SHAPES)
        total += shape[0] * shape[1]
        if total > most:
            break
        found.append(shape)
    return found


def queues(nodes: int) -> Iterator[Object]:
    """Yield the queues ``tas`` and ``ours``, whose quota is so many *nodes*, and what they need."""

    def item(kind: str, name: str, spec: Object, namespace: str = "") -> Object:
        inside = {"namespace": namespace} if namespace else {}
        return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, **inside}, "spec": spec}

    yield item("Topology", "racks", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]})
    yield item("AdmissionCheck", "ours", {"controllerName": CHECK_CONTROLLER})
    for name in ("tas", "ours"):
        yield install.namespace(name)
        labels = {"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": "racks"}
        yield item("ResourceFlavor", name, labels if name == "tas" else {})
        amounts = [{"name": GPU, "nominalQuota": nodes * 8}, {"name": "cpu", "nominalQuota": nodes * 96}]
        quota = {"name": name, "resources": amounts}
        checks = {"admissionChecksStrategy": {"admissionChecks": [{"name": "ours"}]}}
        groups = {
            "resourceGroups": [{"coveredResources": [GPU, "cpu"], "flavors": [quota]}],
            "namespaceSelector": {},
        }
        yield item("ClusterQueue", name, groups | (checks if name == "ours" else {}))
        yield item("LocalQueue", name, {"clusterQueue": name}, name)


def job_of(name: str, queue: str, workers: int, gpus: int) -> Object:
    """Return an MPIJob of *workers* of *gpus* each that waits in *queue*."""
    limits = {"limits": {GPU: str(gpus)}}
    # TAS admits no pod set without a resource of its flavor.
    one = {"limits": {"cpu": "1"}}
    wish = {"kueue.x-k8s.io/podset-preferred-topology": RACK} if queue == "tas" else {}

    def replica(count: int, resources: Object, annotations: Object) -> Object:
        container = {"name": "mpi", "image": "i", "resources": resources}
        template = {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}
        return {"replicas": count, "template": template}

    specs = {"Launcher": replica(1, one, {}), "Worker": replica(workers, limits, wish)}
    meta = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    spec = {"mpiReplicaSpecs": specs, "runPolicy": {"suspend": True}}
    return {"apiVersion": MPIJOB, "kind": "MPIJob", "metadata": meta, "spec": spec}


def _submit(kube: Kube, queue: str, shapes: Sequence[tuple[int, int]]) -> None:
    jobs = [job_of(f"job-{number:04}", queue, *shape) for number, shape in enumerate(shapes)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(partial(kube.create, namespace=queue), jobs))


def _run(plane: ControlPlane, queue: str, shapes: Sequence[tuple[int, int]], more: dict[str, int]) -> Run:
    """Submit jobs of *shapes* and wait until all are admitted and started; then delete them."""
    pids = {
        "kueue": plane.processes.pids["kueue"],
        "API server": plane.processes.pids["kube-apiserver"],
        **more,
    }
    before = {name: _cpu(pid) for name, pid in pids.items()}
    began = time.monotonic()
    submitter = threading.Thread(target=_submit, args=(plane.kube, queue, shapes))
    submitter.start()
    eventually(lambda: _admitted_count(plane, queue) >= len(shapes), f"the jobs in {queue}", PATIENCE)
    seconds = time.monotonic() - began
    submitter.join()
    cpu = {name: _cpu(pid) - before[name] for name, pid in pids.items()}
    eventually(lambda: _are_started(plane.kube, queue), f"the jobs in {queue} to start", PATIENCE)
    until_started = time.monotonic() - began
    found = _admitted(plane.kube, queue)
    clear(plane.kube, queue)
    return Run(seconds, until_started, cpu, found)


def _filled(plane: ControlPlane, queue: str, shapes: Sequence[tuple[int, int]]) -> list[Object]:
    """Return the Workloads that are admitted once nothing
    moves any more, of jobs that ask for more than there is.
    """
    _submit(plane.kube, queue, shapes)
    last, since = -1, time.monotonic()
    while time.monotonic() - since < 15:
        if (count := _admitted_count(plane, queue)) != last:
            last, since = count, time.monotonic()
        time.sleep(1)
    found = _admitted(plane.kube, queue)
    clear(plane.kube, queue)
    return found


def _delays(plane: ControlPlane, nodes: Sequence[str]) -> list[float]:
    """Return how long after a pod's end the job is answered
    that waits for its node, which is the only one.
    """
    kube, delays = plane.kube, list[float]()
    for node in nodes:
        kube.create(_blocker(node), "default")
    for turn, node in enumerate(nodes[:10]):
        name = f"wait-{turn}"
        kube.create(job_of(name, "ours", 1, 8), "ours")
        eventually(lambda name=name: "fit" in _answer(kube, name).get("message", ""), "it to wait")  # type: ignore[misc]
        began = time.monotonic()
        kube.delete("v1", "Pod", f"blocker-{node}", "default", gracePeriodSeconds="0")
        eventually(lambda name=name: _answer(kube, name).get("state") == "Ready", "its answer")  # type: ignore[misc]
        delays.append(time.monotonic() - began)
    return delays


def _blocker(node: str) -> Object:
    container = {"name": "c", "image": "i", "resources": {"limits": {GPU: "8"}}}
    meta = {"name": f"blocker-{node}", "annotations": {"arena-topo.dev/test-hold": "true"}}
    spec = {"nodeName": node, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _answer(kube: Kube, job: str) -> Object:
    for each in kube.list(KUEUE, "Workload", "ours"):
        if each["metadata"]["ownerReferences"][0]["name"] == job:
            entries = (each.get("status") or {}).get("admissionChecks") or [{}]
            return dict(entries[0])
    return {}


def _admitted_count(plane: ControlPlane, queue: str) -> int:
    # Counted by Kueue itself: to list all Workloads all the time would be half of the API server's work.
    status = plane.kube.get(KUEUE, "LocalQueue", queue, queue).get("status") or {}
    return int(status.get("admittedWorkloads") or 0)


def _are_started(kube: Kube, queue: str) -> bool:
    return not any(job["spec"]["runPolicy"]["suspend"] for job in kube.list(MPIJOB, "MPIJob", queue))


def _admitted(kube: Kube, queue: str) -> list[Object]:
    def is_admitted(item: Object) -> bool:
        conditions = (item.get("status") or {}).get("conditions") or ()
        return any(each["type"] == "Admitted" and each["status"] == "True" for each in conditions)

    return [each for each in kube.list(KUEUE, "Workload", queue) if is_admitted(each)]


def clear(kube: Kube, queue: str) -> None:
    """Delete all jobs of *queue*, and wait until it has none."""
    # The server continues where it takes longer than a request may.
    with suppress(urllib3.exceptions.HTTPError):
        kube.request("DELETE", kube.path(MPIJOB, "MPIJob", queue))
    eventually(lambda: not kube.list(KUEUE, "Workload", queue), f"{queue} to be empty", PATIENCE)


def _gpus(workload: Object) -> int:
    return sum(
        int(each.get("resourceUsage", {}).get(GPU, 0))
        for each in workload["status"]["admission"]["podSetAssignments"]
    )


def _nodes(workload: Object, key: str | None) -> set[str]:
    """Return the nodes of an admitted Workload: by our answer, or by Kueue's assignment."""
    if key:
        updates = workload["status"]["admissionChecks"][0]["podSetUpdates"]
        return set(decoded(updates[0]["annotations"][key], 10_000))
    found: set[str] = set()
    for each in workload["status"]["admission"]["podSetAssignments"]:
        if each["name"] != "worker":
            continue
        for part in each["topologyAssignment"]["slices"]:
            values = part["valuesPerLevel"][-1]
            if "universal" in values:
                found.add(values["universal"])
            else:
                own = values["individual"]
                found |= {f"{own.get('prefix', '')}{root}{own.get('suffix', '')}" for root in own["roots"]}
    return found


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def controller(plane: ControlPlane) -> Iterator[int]:
    """Run the controller next to the benchmark, and yield the id of its process."""
    env = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
    argv = [sys.executable, "-m", "arena_topo", "controller", "run"]
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            if line.startswith("leading"):
                break
        else:
            raise RuntimeError(f"the controller has ended with {process.wait()}")
        threading.Thread(target=lambda: [sys.stderr.write(line) for line in process.stderr or ()]).start()
        try:
            yield process.pid
        finally:
            process.terminate()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
