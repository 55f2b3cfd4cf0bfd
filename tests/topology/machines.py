"""Machines of any shape, and the text of ``nvidia-smi topo -m`` that shows them."""

from dataclasses import dataclass

from hypothesis import strategies as st

_PCIE = ("PIX", "PXB", "PHB", "NODE", "SYS")


@dataclass(frozen=True)
class Machine:
    """What a text of ``nvidia-smi topo -m`` shows: devices,
    the word of each pair, a NUMA node for each GPU.
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    words: dict[frozenset[str], str]
    numa: tuple[int, ...]


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines of one to eight GPUs and up to four NICs, with at most one NVLink between two GPUs."""
    gpus = tuple(f"GPU{index}" for index in range(draw(st.integers(1, 8))))
    nics = tuple(f"mlx5_{index}" for index in range(draw(st.integers(0, 4))))
    words = {}
    for a in (*gpus, *nics):
        for b in (*gpus, *nics):
            both_gpus = a in gpus and b in gpus
            if a < b:
                words[frozenset((a, b))] = draw(st.sampled_from((*_PCIE, "NV1") if both_gpus else _PCIE))
    numa = tuple(draw(st.lists(st.integers(0, 7), min_size=len(gpus), max_size=len(gpus))))
    return Machine(gpus, nics, words, numa)


def written(machine: Machine, columns: list[str], order: list[str], cut: str) -> list[str]:
    """Return the lines of *machine* with its columns and rows in the given orders, cells apart by *cut*."""

    def word(a: str, b: str) -> str:
        if a == b:
            return " X " if cut == "\t" else "X"
        return machine.words[frozenset((a, b))]

    lines = [cut.join(["", *columns, "CPU Affinity", "NUMA Affinity"])]
    for a in order:
        tail = ["0-15", str(machine.numa[machine.gpus.index(a)])] if a in machine.gpus else []
        lines.append(cut.join([a, *(word(a, b) for b in columns), *tail]))
    return lines
