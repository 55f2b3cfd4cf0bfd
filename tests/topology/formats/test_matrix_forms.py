"""The form of a topology text never changes the graph that is read from it."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.cluster.hardware import Hardware
from arena_topo.topology.formats.nvidia_smi import parse_matrix

_PCIE = ("PIX", "PXB", "PHB", "NODE", "SYS")


@dataclass(frozen=True)
class Machine:
    """What a text of ``nvidia-smi topo -m`` shows: devices, the word of each pair, a NUMA node for each GPU."""

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


def shown(hardware: Hardware) -> object:
    """Return all that a text tells, free of the order of NICs."""
    return (hardware.links, hardware.gpus, hardware.nics, hardware.machine)


@given(machine=machines(), data=st.data())
def test_the_form_of_the_text_never_changes_the_graph(machine: Machine, data: st.DataObject) -> None:
    """Separators, order of rows and NICs, colour, line ends and prompts all read the same."""
    devices = [*machine.gpus, *machine.nics]
    plain = "\n".join(written(machine, devices, devices, "\t"))
    columns = [*machine.gpus, *data.draw(st.permutations(machine.nics))]
    order = data.draw(st.permutations(devices))
    cut = data.draw(st.sampled_from(["\t", "    ", " "]))
    lines = written(machine, columns, order, cut)
    if data.draw(st.booleans()):
        start, end = data.draw(st.sampled_from([("\x1b[4m", "\x1b[0m"), ("[4m", "[0m")]))
        lines[0] = f"{cut}{start}{lines[0].strip()}{end}"
    indent = data.draw(st.sampled_from(["", "    "])) if cut != "\t" else ""
    lines = [indent + line for line in lines]
    preamble = data.draw(st.lists(st.sampled_from(["$ nvidia-smi topo -m", "", "root@gpu-1:~#"]), max_size=2))
    legend = data.draw(
        st.sampled_from([[], ["", "Legend:", "", "  X    = Self", "  NV#  = a bonded set of # NVLinks"]])
    )
    end_of_line = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = end_of_line.join([*preamble, *lines, *legend])

    assert shown(parse_matrix(plain)) == shown(parse_matrix(text))


@given(machine=machines())
def test_a_glued_header_reads_as_a_spaced_one(machine: Machine) -> None:
    """Headers whose names run into each other name the same columns."""
    devices = [*machine.gpus, *machine.nics]
    lines = written(machine, devices, devices, "\t")
    glued = ["    " + "".join(devices) + "\tCPU Affinity\tNUMA Affinity", *lines[1:]]

    assert shown(parse_matrix("\n".join(lines))) == shown(parse_matrix("\n".join(glued)))
