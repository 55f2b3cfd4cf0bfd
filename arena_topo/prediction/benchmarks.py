"""Arena's VGG16/ResNet50 benchmarks, recognized by the command that runs one."""

import re
from dataclasses import dataclass

_FRAMEWORKS = {"pytorch_synthetic_benchmark": "pytorch", "tf_cnn_benchmarks": "tensorflow"}
_MODEL = re.compile(r"--model[= ](\S+)")
_BATCH = re.compile(r"--batch[-_]size[= ](\d{1,6})")
_DEFAULT_BATCH = 32


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One of the benchmarks: its framework, its model and its batch per GPU."""

    framework: str
    model: str
    batch: int


def benchmark_of(command: str) -> Benchmark | None:
    """Return the benchmark that a command runs, or None."""
    framework = next((name for script, name in _FRAMEWORKS.items() if script in command), None)
    if framework is None:
        return None
    model, batch = _MODEL.search(command), _BATCH.search(command)
    return Benchmark(framework, model[1] if model else "resnet50", int(batch[1]) if batch else _DEFAULT_BATCH)
