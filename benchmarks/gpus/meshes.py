"""The first choice on machines that were never seen: ``python -m benchmarks.gpus.meshes [SEEDS]``.

Sixteen GPUs with 0 to 4 NVLinks between any two, at random: no two of them are alike, so that each of the
65,536 sets is rated by itself. Each machine is met by a process of its own, with nothing cached, and CPU time
is that of the whole process, the start of Python included.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from itertools import combinations
from random import Random

from arena_topo.model.cluster import Link, LinkClass, LinkGraph
from arena_topo.planner.gpus.machine import Machine

SIZE = 16
MISSING = (0.0, 0.2, 0.5, 0.8)
"""The shares of pairs without a link, in turn."""
_FAR = Link(LinkClass.SYS, 0, 8.0)
_NEAR = Link(LinkClass.NODE, 0, 10.0)


def irregular(seed: int) -> LinkGraph:
    """Return a machine whose pairs have NV1 to NV4, or no link."""
    rng = Random(seed)
    missing = MISSING[seed % len(MISSING)]
    rows = [[Link(LinkClass.SELF)] * SIZE for _ in range(SIZE)]
    for a, b in combinations(range(SIZE), 2):
        count = rng.randint(1, 4)
        link = Link(LinkClass.NVLINK, count, 25.0 * count)
        if rng.random() < missing:
            link = _NEAR if a // 8 == b // 8 else _FAR
        rows[a][b] = rows[b][a] = link
    return LinkGraph(tuple(map(tuple, rows)))


def first_choice(seed: int) -> str:
    """Return the best eight of thirteen free GPUs, and of all, of the machine with this *seed*."""
    machine = Machine(irregular(seed), [(None, "", ())] * SIZE, "")
    choices = [machine.best(free, count) for free, count in ((0xFFFF, 8), (0xB7FB, 5))]
    return "; ".join(f"{choice.mask:#06x} {choice.busbw} {choice.loss}" for choice in choices if choice)


def seconds_of(seed: int) -> float:
    """Return the CPU time of a process that chooses on the machine with this *seed*."""
    before = _children()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.gpus.meshes", "--one", str(seed)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "XDG_CACHE_HOME": folder})
    return _children() - before


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--one"]:
        print(first_choice(int(sys.argv[2])))
        return
    times = sorted(seconds_of(seed) for seed in range(int(sys.argv[1]) if sys.argv[1:] else 12))
    print(
        f"{len(times)} machines: median {statistics.median(times):.2f} s, fastest {times[0]:.2f} s, slowest {times[-1]:.2f} s"
    )


if __name__ == "__main__":
    main()
