"""What a container prints and how it ends; nothing is ever executed.

Arena's VGG16 and ResNet50 benchmarks print the throughput that the tool predicts for ranks where theirs are.
Any other container prints what would have run, and ends as its command line says where that is ``sleep N`` or
``exit N``.
"""

import hashlib
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from arena_topo.errors import UsageError
from arena_topo.manifest.pods import words_of
from arena_topo.model.keys import (
    ACK_GPU,
    GPU_RESOURCES,
    OPERATOR_JOB_NAME,
    OPERATOR_JOB_ROLE,
    RDMA,
    TOPOLOGY_NAME,
)
from arena_topo.model.objects import Object
from arena_topo.model.plan import Range, Transport
from arena_topo.model.text.quantity import resources
from arena_topo.prediction.forecast import Calibration, Workload, predict, shipped_calibration
from arena_topo.prediction.training import MODELS, Benchmark, benchmark_of
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.layouts import RUNS
from arena_topo.sandbox.sim.controllers import NODES, PODS

_ITERATIONS = 10
_PRODUCT = "nvidia.com/gpu.product"
_LEAST_SECONDS = 0.5  # so that a watcher sees a program run
_MPI_JOBS = ("kubeflow.org", "mpijobs")

_Lines = tuple[tuple[float, str], ...]
"""Lines with the seconds that pass before each."""


@dataclass(frozen=True, slots=True)
class PodProgram:
    """The lines that a container prints, and how it ends: an exit code, or None for never by itself."""

    lines: _Lines = ()
    code: int | None = 0
    linger: float = 0.0


@dataclass(frozen=True, slots=True)
class RankGroup:
    """The ranks of one pod: where they run, and whether their GPUs see those of the node's other pods."""

    node: str
    ranks: int
    product: str
    visible: bool = False
    rdma: bool = False


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
    return RankGroup(pod["spec"]["nodeName"], ranks, labels.get(_PRODUCT, ""), visible, RDMA in limits)


def _program(pod: Object, groups: Sequence[RankGroup]) -> PodProgram:
    """Return what a pod's first container does, with its gang's ranks where they are."""
    own = (pod["metadata"].get("annotations") or {}).get(RUNS)
    command = own or " ".join(words_of(pod["spec"]["containers"][0]))
    ending = ending_of(command)
    benchmark = benchmark_of(command)
    if benchmark is not None and groups:
        lines = _benchmark_lines(benchmark, groups, pod["metadata"]["name"])
        return PodProgram(((0.0, "[arena-topo sandbox] simulated"), *lines), ending.code or 0)
    text = f"[arena-topo sandbox] nothing is executed here; this would run: {command or '(the image)'}"
    # A program with restartPolicy Always whose command does not say how it ends counts as a server.
    is_server = not ending.known and pod["spec"].get("restartPolicy") == "Always"
    if ending.code is None or is_server:
        return PodProgram(((0.0, text),) if is_server else (), None)
    return PodProgram(((0.0, text),), ending.code, max(ending.seconds, _LEAST_SECONDS))


def _benchmark_lines(benchmark: Benchmark, groups: Sequence[RankGroup], seed: str) -> _Lines:
    """Return what a benchmark prints on *groups* of ranks, with its deviations derived from *seed*."""
    speed, ranks = images_per_second(benchmark, groups), sum(group.ranks for group in groups)
    rates = [speed * (1 + _noise(seed, index)) for index in range(_ITERATIONS)]
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


# How a command line ends, if it says so itself.

_SERVER = re.compile(r"(?:^|[\s/;&|])(?:sshd|pause)(?:\s|$)|\bsleep\s+inf(?:inity)?\b|\btail\s+-[fF]\b")
"""A program that never ends by itself, such as the sshd of MPI workers, also at a script's end."""
_STEP = re.compile(
    r"(?:(?:\S*/)?(?:ba)?sh\s+-\w*c\s+)*['\"]?"
    r"(?P<verb>sleep|exit)\s+(?P<number>\d{1,9})(?P<unit>[smhd]?)['\"]?"
)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_CODES = 256  # an exit code is one byte


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a program ends: its exit code, None where it never does, and the seconds it takes.

    ``known`` says whether the command line itself decides it.
    """

    code: int | None = 0
    seconds: float = 0.0
    known: bool = False


def ending_of(command: str) -> _Ending:
    """Return how a command line ends: ``sh -c sleep 2; python train.py; exit 3`` after 2 seconds with 3.

    Its steps are what is between ``;``, ``&&`` and the ends of lines. A step that is neither ``sleep N`` nor
    ``exit N`` counts as a program that succeeds at once, and so does one with ``|``, ``if`` or another word
    of a shell.
    """
    if _SERVER.search(command):
        return _Ending(None, known=True)
    seconds, known = 0.0, False
    for text in re.split(r";|&&|\n", command):
        step = _STEP.fullmatch(text.strip())
        if step is None:
            continue
        if step["verb"] == "exit":
            return _Ending(int(step["number"]) % _CODES, seconds, known=True)
        seconds, known = seconds + int(step["number"]) * _UNITS[step["unit"]], True
    return _Ending(0, seconds, known)


# How fast Arena's VGG16/ResNet50 benchmarks run where their ranks were placed, by the tool's own prediction.
#
# The simulation knows products and not links: rings over a whole group of GPUs that see each other run at a
# figure of their product, and GPUs without a published speed compute as fast as a V100.

_INSIDE = {"V100": 93.0, "A100": 230.0, "H100": 370.0, "H200": 370.0}
"""GB/s of rings over GPUs that see each other: four of a V100 cube mesh, NVSwitches elsewhere."""
_PUBLISHED = "V100"


def exchange(groups: Sequence[RankGroup], calibration: Calibration) -> tuple[Transport, float]:
    """Return the slowest transport that the ranks use, and its bus bandwidth in GB/s."""
    rates = calibration.bandwidths
    used = [_inside(group.product, rates.pcie.likely) for group in groups]
    nodes = [group.node for group in groups]
    # Pods that do not see each other's GPUs exchange over sockets, even on one node.
    if any(nodes.count(group.node) > 1 and not group.visible for group in groups):
        used.append((Transport.ISOLATED, rates.isolated.likely))
    # A ring is as fast as its slowest part: one pod without RDMA brings all ranks to TCP.
    if len(set(nodes)) > 1 and all(group.rdma for group in groups):
        used.append((Transport.RDMA, rates.rdma_card.likely * rates.rdma_share.likely))
    elif len(set(nodes)) > 1:
        used.append((Transport.TCP, rates.tcp.likely))
    return min(used, key=lambda pair: pair[1])


def _inside(product: str, pcie: float) -> tuple[Transport, float]:
    nvlink = next((rate for name, rate in _INSIDE.items() if name in product), 0.0)
    # An "A100-PCIE" has the family's name but no NVSwitch.
    return (Transport.PCIE, pcie) if not nvlink or "PCIE" in product.upper() else (Transport.NVLINK, nvlink)


def images_per_second(benchmark: Benchmark, groups: Sequence[RankGroup]) -> float:
    """Return the predicted images per second and GPU; a model without figures counts as ResNet50."""
    calibration = shipped_calibration()
    model = benchmark.model if benchmark.model in MODELS else "resnet50"
    transport, rate = exchange(groups, calibration)
    workload = Workload(model, benchmark.framework, benchmark.batch, speed=_speed(benchmark, model, groups))
    ranks = sum(group.ranks for group in groups)
    # The simulation has one rate where the planner has a range of likely ones.
    return predict(workload, ranks, Range(rate, rate, rate), transport, calibration).per_gpu.likely


def _speed(benchmark: Benchmark, model: str, groups: Sequence[RankGroup]) -> float:
    """Return the images per second of the slowest of the groups' GPUs by itself."""
    calibration = shipped_calibration()

    def of(product: str) -> float:
        try:
            return calibration.speed(benchmark.framework, model, product)
        # The calibration refuses products without published figures rather than guess.
        except UsageError:
            return calibration.speed(benchmark.framework, model, _PUBLISHED)

    return min(of(group.product) for group in groups)
