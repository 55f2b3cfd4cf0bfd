"""What a container prints and how it ends: the seeds' benchmarks, or what would have run."""

import hashlib
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from arena_topo.model.objects import Object
from arena_topo.sandbox.sim.kubelets.throughput import Benchmark, Predict, RankGroup

ITERATIONS = 10
_MODEL = re.compile(r"--model[= ](\S+)")
_BATCH = re.compile(r"--batch[-_]size[= ](\d+)")
_EXIT = re.compile(r"\bexit (\d+)\b")
_SLEEP = re.compile(r"\bsleep (\d+(?:\.\d+)?|infinity)\b")
_BATCH_DEFAULT = 32
_SERVERS = ("sshd", "sleep infinity", "tail -f /dev/null", "pause")


@dataclass(frozen=True, slots=True)
class Program:
    """Lines with the seconds before each, and how it ends: an exit code, or None for never by itself."""

    lines: tuple[tuple[float, str], ...] = ()
    code: int | None = 0
    linger: float = 0.0


def command_of(pod: Object) -> str:
    """Return the command line of a pod's first container."""
    container = pod["spec"]["containers"][0]
    return " ".join([*(container.get("command") or []), *(container.get("args") or [])])


def benchmark_of(command: str) -> Benchmark | None:
    """Return the seeds' benchmark that a command runs, or None."""
    frameworks = {"pytorch_synthetic_benchmark": "pytorch", "tf_cnn_benchmarks": "tensorflow"}
    for script, framework in frameworks.items():
        if script in command:
            model, batch = _MODEL.search(command), _BATCH.search(command)
            size = int(batch[1]) if batch else _BATCH_DEFAULT
            return Benchmark(framework, model[1] if model else "resnet50", size)
    return None


def program_of(pod: Object, groups: Sequence[RankGroup], predict: Predict) -> Program:
    """Return what a pod's first container does, with its gang's ranks where they are."""
    command = command_of(pod)
    benchmark = benchmark_of(command)
    if benchmark is not None and groups:
        speed = predict(benchmark, groups)
        ranks = sum(group.ranks for group in groups)
        printed = _pytorch if benchmark.framework == "pytorch" else _tensorflow
        return Program(printed(benchmark, ranks, speed, pod["metadata"]["name"]))
    if any(server in command for server in _SERVERS):
        return Program(code=None)
    ends = _EXIT.search(command)
    sleeps = _SLEEP.search(command)
    lines = (
        (0.0, f"[arena-topo sandbox] nothing is executed here; this would run: {command or '(the image)'}"),
    )
    return Program(lines, int(ends[1]) if ends else 0, float(sleeps[1]) if sleeps else 0.5)


def _noise(seed: str, index: int) -> float:
    """Return a repeatable deviation of at most 0.3 %."""
    digest = hashlib.sha256(f"{seed}/{index}".encode()).digest()
    return (digest[0] / 255 - 0.5) * 0.006


def _pytorch(benchmark: Benchmark, ranks: int, speed: float, seed: str) -> tuple[tuple[float, str], ...]:
    rates = [speed * (1 + _noise(seed, index)) for index in range(ITERATIONS)]
    mean, spread = statistics.fmean(rates), 1.96 * statistics.pstdev(rates)
    head = (
        (0.2, f"Model: {benchmark.model}"),
        (0.0, f"Batch size: {benchmark.batch}"),
        (0.0, f"Number of GPUs: {ranks}"),
        (0.3, "Running warmup..."),
        (1.0, "Running benchmark..."),
    )
    body = tuple((1.0, f"Iter #{i}: {rate:.1f} img/sec per GPU") for i, rate in enumerate(rates))
    tail = (
        (0.0, f"Img/sec per GPU: {mean:.1f} +-{spread:.1f}"),
        (0.0, f"Total img/sec on {ranks} GPU(s): {ranks * mean:.1f} +-{ranks * spread:.1f}"),
    )
    return head + body + tail


def _tensorflow(_: Benchmark, ranks: int, speed: float, seed: str) -> tuple[tuple[float, str], ...]:
    return ((5.0, f"total images/sec: {ranks * speed * (1 + _noise(seed, 0)):.2f}"),)
