"""How long our own answers about sets of GPUs take."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations

from arena_topo.model.cluster import Link, LinkClass, LinkGraph
from arena_topo.planner.gpus import packing
from arena_topo.planner.gpus.machine import Machine

SWITCH = Link(LinkClass.NVSWITCH, 6, 150.0)
PAIR, SOCKET, FAR = Link(LinkClass.PIX, 0, 12.0), Link(LinkClass.NODE, 0, 10.0), Link(LinkClass.SYS, 0, 8.3)


def machine_of(graph: LinkGraph) -> Machine:
    """Return a machine that has answered nothing yet."""
    return Machine(graph, [(None, "", ())] * graph.size, "")


def costs(v100: LinkGraph) -> Iterator[tuple[str, float]]:
    """Yield what was timed, and the seconds; the user's cache is left alone."""
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        yield from _of_v100(v100)
        yield from _of_sixteen("16 GPUs behind switches", _sixteen(lambda _a, _b: SWITCH))
        yield from _of_sixteen("16 GPUs on PCIe", _sixteen(_over_pcie))
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


def _of_v100(graph: LinkGraph) -> Iterator[tuple[str, float]]:
    counts = tuple(tuple(link.count for link in row) for row in graph.links)
    yield "V100, packings of all sets, computed", _timed(lambda: packing.compute(counts))
    # In a new process nothing is cached in memory, so the table has to be read again.
    packing.packings.cache_clear()
    machine = machine_of(graph)
    yield "V100, first choice, shipped table read", _timed(lambda: machine.best(255, 4))
    states = [(free, k) for free in range(256) for k in range(1, free.bit_count() + 1)]
    for when in ("once", "again"):
        spent = _timed(lambda: [machine.best(*state) for state in states])
        yield f"V100, mean of all 1,024 choices, {when}", spent / len(states)


def _of_sixteen(name: str, graph: LinkGraph) -> Iterator[tuple[str, float]]:
    for when in ("nothing kept", "table kept"):
        machine = machine_of(graph)
        yield f"{name}, first choice, {when}", _timed(partial(machine.best, 0xFFFF, 8))
    machine = machine_of(graph)
    machine.best(0xFFFF, 8)
    yield f"{name}, another choice", _timed(partial(machine.best, 0xFEFD, 7))


def _sixteen(link: Callable[[int, int], Link]) -> LinkGraph:
    rows = [[Link(LinkClass.SELF)] * 16 for _ in range(16)]
    for a, b in combinations(range(16), 2):
        rows[a][b] = rows[b][a] = link(a, b)
    return LinkGraph(tuple(map(tuple, rows)))


def _over_pcie(a: int, b: int) -> Link:
    return PAIR if a // 2 == b // 2 else SOCKET if a // 8 == b // 8 else FAR


def _timed(do: Callable[[], object]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start
