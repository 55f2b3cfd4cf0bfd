"""What a container prints and how it ends: Arena's VGG16/ResNet50 benchmarks, or what would have run."""

import hashlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from arena_topo.manifest.over_ssh import words_of
from arena_topo.model.keys import (
    ACK_GPU,
    GPU_RESOURCES,
    OPERATOR_JOB_NAME,
    OPERATOR_JOB_ROLE,
    RDMA,
    TOPOLOGY_NAME,
)
from arena_topo.model.notation.quantity import resources
from arena_topo.model.objects import Object
from arena_topo.prediction.benchmarks import Benchmark, benchmark_of
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.sim.kubelets.shell import ending_of
from arena_topo.sandbox.sim.kubelets.throughput import RankGroup, images_per_second
from arena_topo.sandbox.sim.objects import NODES, PODS

ITERATIONS = 10
PRODUCT = "nvidia.com/gpu.product"
_LEAST_SECONDS = 0.5  # so that whoever watches sees a program run
_MPI_JOBS = ("kubeflow.org", "mpijobs")

Lines = tuple[tuple[float, str], ...]
"""Lines with the seconds that pass before each."""


@dataclass(frozen=True, slots=True)
class PodProgram:
    """The lines that a container prints, and how it ends: an exit code, or None for never by itself."""

    lines: Lines = ()
    code: int | None = 0
    linger: float = 0.0


def program_of(api: Api, pod: Object) -> PodProgram | None:
    """Return what *pod* does, None while it has to wait, as a launcher does for its workers."""
    labels = pod["metadata"].get("labels") or {}
    # Only a launcher's output depends on others: mpirun starts the ranks of all workers.
    if labels.get(OPERATOR_JOB_ROLE) != "launcher":
        return _program(pod, [])
    namespace, job = pod["metadata"]["namespace"], labels[OPERATOR_JOB_NAME]
    stored = api.store.get(_MPI_JOBS, namespace, job)
    replicas = stored.body["spec"]["mpiReplicaSpecs"] if stored else {}
    running = [
        worker for worker in _workers(api, namespace, job) if worker["status"].get("phase") == "Running"
    ]
    if len(running) < int((replicas.get("Worker") or {}).get("replicas", 0)):
        return None
    return _program(pod, [group for worker in running if (group := _rank_group(api, worker)).ranks])


def _workers(api: Api, namespace: str, job: str) -> list[Object]:
    identity = {OPERATOR_JOB_NAME: job, OPERATOR_JOB_ROLE: "worker"}.items()
    pods = [stored.body for stored in api.store.scan(PODS, namespace)]
    return [pod for pod in pods if identity <= (pod["metadata"].get("labels") or {}).items()]


def _rank_group(api: Api, pod: Object) -> RankGroup:
    """Return the ranks of a worker: one for each GPU of its containers."""
    limits: dict[str, str] = {}
    for container in pod["spec"]["containers"]:
        limits |= container.get("resources", {}).get("limits") or {}
    node = api.store.get(NODES, "", pod["spec"]["nodeName"])
    labels = (node.body["metadata"].get("labels") or {}) if node else {}
    visible = TOPOLOGY_NAME in (pod["metadata"].get("labels") or {}) and ACK_GPU in limits
    amounts = resources(limits)
    ranks = sum(amounts.get(name, 0) for name in GPU_RESOURCES)
    return RankGroup(pod["spec"]["nodeName"], ranks, labels.get(PRODUCT, ""), visible, RDMA in limits)


def _program(pod: Object, groups: Sequence[RankGroup]) -> PodProgram:
    """Return what a pod's first container does, with its gang's ranks where they are."""
    container = pod["spec"]["containers"][0]
    # The names of workers resolve at once here, so that there is nothing to wait for.
    words = words_of(container)
    command, ending = " ".join(words), ending_of(words)
    benchmark = benchmark_of(command)
    if benchmark is not None and groups:
        return PodProgram(_benchmark_lines(benchmark, groups, pod["metadata"]["name"]), ending.code or 0)
    text = f"[arena-topo sandbox] nothing is executed here; this would run: {command or '(the image)'}"
    # A program that is meant to run always, and whose end nobody can know, is a server.
    is_server = not ending.known and pod["spec"].get("restartPolicy") == "Always"
    if ending.code is None or is_server:
        return PodProgram(((0.0, text),) if is_server else (), None)
    return PodProgram(((0.0, text),), ending.code, max(ending.seconds, _LEAST_SECONDS))


def _benchmark_lines(benchmark: Benchmark, groups: Sequence[RankGroup], seed: str) -> Lines:
    """Return what a benchmark prints on *groups* of ranks, with its deviations derived from *seed*."""
    speed, ranks = images_per_second(benchmark, groups), sum(group.ranks for group in groups)
    rates = [speed * (1 + _noise(seed, index)) for index in range(ITERATIONS)]
    # tf_cnn_benchmarks prints one total for all ranks, the PyTorch script a figure per GPU and iteration.
    if benchmark.framework == "tensorflow":
        return ((5.0, f"total images/sec: {ranks * rates[0]:.2f}"),)
    # The benchmark script prints the half-width of a 95 % interval: 1.96 standard deviations.
    mean, deviation = statistics.fmean(rates), 1.96 * statistics.pstdev(rates)
    return (
        (0.2, f"Model: {benchmark.model}"),
        (0.0, f"Batch size: {benchmark.batch}"),
        (0.0, f"Number of GPUs: {ranks}"),
        (0.3, "Running warmup..."),
        (1.0, "Running benchmark..."),
        *((1.0, f"Iter #{index}: {rate:.1f} img/sec per GPU") for index, rate in enumerate(rates)),
        (0.0, f"Img/sec per GPU: {mean:.1f} +-{deviation:.1f}"),
        (0.0, f"Total img/sec on {ranks} GPU(s): {ranks * mean:.1f} +-{ranks * deviation:.1f}"),
    )


def _noise(seed: str, index: int) -> float:
    """Return a repeatable deviation of at most 0.3 %."""
    digest = hashlib.sha256(f"{seed}/{index}".encode()).digest()
    return (digest[0] / 255 - 0.5) * 0.006
