"""``nvidia-smi topo -m``: every real text is read whole, and broken ones are refused by line and reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Hardware, LinkGraph
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from tests.topology.machines import Machine, machines, written
from tests.topology.texts import rows, saved

CUBE_MESH = rows(
    """
    X NV1 NV1 NV2 NV2 SYS SYS SYS
    NV1 X NV2 NV1 SYS NV2 SYS SYS
    NV1 NV2 X NV2 SYS SYS NV1 SYS
    NV2 NV1 NV2 X SYS SYS SYS NV1
    NV2 SYS SYS SYS X NV1 NV1 NV2
    SYS NV2 SYS SYS NV1 X NV2 NV1
    SYS SYS NV1 SYS NV1 NV2 X NV2
    SYS SYS SYS NV1 NV2 NV1 NV2 X
    """
)


PAIRS_OF_EIGHT = rows(
    """
    X NV12 NODE NODE SYS SYS SYS SYS
    NV12 X NODE NODE SYS SYS SYS SYS
    NODE NODE X NV12 SYS SYS SYS SYS
    NODE NODE NV12 X SYS SYS SYS SYS
    SYS SYS SYS SYS X NV12 NODE NODE
    SYS SYS SYS SYS NV12 X NODE NODE
    SYS SYS SYS SYS NODE NODE X NV12
    SYS SYS SYS SYS NODE NODE NV12 X
    """
)


def uniform(word: str, size: int) -> list[list[str]]:
    """Return a matrix with *word* between all GPUs."""
    return [["X" if a == b else word for b in range(size)] for a in range(size)]


def labels(graph: LinkGraph | None) -> list[list[str]]:
    """Return the words of a link graph."""
    assert graph is not None
    return [[link.label for link in row] for row in graph.links]


REAL = {
    "a100-4gpu-nv4-slurm-empty-cpu-affinity.txt": ("", "4xGPU-mesh", uniform("NV4", 4)),
    "a100-pcie-4gpu-nvlink-bridge-pairs.txt": (
        "NVIDIA A100 80GB PCIe",
        "4xA100-PCIe-bridge",
        rows("X NV12 SYS SYS\nNV12 X SYS SYS\nSYS SYS X NV12\nSYS SYS NV12 X"),
    ),
    "a100-pcie-8gpu-nv12-pairs-node-sys.txt": ("", "8xGPU-bridge", PAIRS_OF_EIGHT),
    "b300-8gpu-9nic-ansi-header-driver590.txt": (
        "NVIDIA-B300-SXM6-AC",
        "8xB300-nvswitch",
        uniform("NV18", 8),
    ),
    "dgx-a100-mlx5.txt": ("NVIDIA-A100-SXM4-40GB", "8xA100-nvswitch", uniform("NV12", 8)),
    "dgx1p-p100-soc-glued-header.txt": (
        "Tesla P100-SXM2-16GB",
        "8xP100-cubemesh",
        rows(
            """
            X NV1 NV1 NV1 NV1 SYS SYS SYS
            NV1 X NV1 NV1 SYS NV1 SYS SYS
            NV1 NV1 X NV1 SYS SYS NV1 SYS
            NV1 NV1 NV1 X SYS SYS SYS NV1
            NV1 SYS SYS SYS X NV1 NV1 NV1
            SYS NV1 SYS SYS NV1 X NV1 NV1
            SYS SYS NV1 SYS NV1 NV1 X NV1
            SYS SYS SYS NV1 NV1 NV1 NV1 X
            """
        ),
    ),
    "dgx1v-v100-mlx5.txt": ("Tesla V100-SXM2-16GB", "8xV100-cubemesh", CUBE_MESH),
    "gb200-nvl72-compute-tray.txt": ("NVIDIA GB200", "4xGB200-nvswitch", uniform("NV18", 4)),
    "h200-hgx-8gpu-12nic.txt": ("NVIDIA H200", "8xH200-nvswitch", uniform("NV18", 8)),
    "l40s-4gpu-2nic-sys-node.txt": (
        "NVIDIA-L40S",
        "4xL40S-pcie",
        rows("X NODE SYS SYS\nNODE X SYS SYS\nSYS SYS X NODE\nSYS SYS NODE X"),
    ),
    "polaris-a100-sxm-4gpu-nv4-broken-header.txt": (
        "NVIDIA A100-SXM4-40GB",
        "4xA100-mesh",
        uniform("NV4", 4),
    ),
    "rtx4090-8gpu-all-sys.txt": ("NVIDIA GeForce RTX 4090", "8xRTX-Ada-pcie", uniform("SYS", 8)),
    "t4-4gpu-one-remote.txt": (
        "Tesla-T4",
        "4xT4-pcie",
        rows("X SYS SYS SYS\nSYS X NODE NODE\nSYS NODE X NODE\nSYS NODE NODE X"),
    ),
    "v100-8gpu-blog-singlespace.txt": ("", "8xGPU-cubemesh", CUBE_MESH),
    "v100-sxm2-8gpu-driver580.txt": ("Tesla-V100-SXM2-32GB", "8xV100-cubemesh", CUBE_MESH),
}


@pytest.mark.parametrize("name", REAL)
def test_a_real_text_is_read_whole(name: str) -> None:
    """Every pair of GPUs has the class that the text shows, the same both ways, and the machine its type."""
    product, machine, words = REAL[name]
    hardware = parse_matrix(saved(name), name, product)

    assert machine == hardware.machine
    assert words == labels(hardware.links)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dgx-a100-mlx5.txt", [3, 3, 1, 1, 7, 7, 5, 5]),
        ("a100-4gpu-nv4-slurm-empty-cpu-affinity.txt", [0, 0, 1, 1]),
        ("gb200-nvl72-compute-tray.txt", [0, 0, 1, 1]),
        ("polaris-a100-sxm-4gpu-nv4-broken-header.txt", [3, 2, 1, 0]),
        ("l40s-4gpu-2nic-sys-node.txt", [0, 0, 1, 1]),
        ("t4-4gpu-one-remote.txt", [None] * 4),
    ],
)
def test_numa_nodes_are_those_of_the_affinity_column(name: str, expected: list[int | None]) -> None:
    """Of a range, and without the column, the NUMA node is
    not known; Grace lists its GPUs' memory behind it.
    """
    assert expected == [gpu.numa for gpu in parse_matrix(saved(name)).gpus]


FOUR = "\tGPU0\tGPU1\tGPU2\tGPU3\t{0}\n" + "".join(
    f"GPU{a}\t" + "\t".join(" X " if a == b else "SYS" for b in range(4)) + f"\t{{{a + 1}}}\n"
    for a in range(4)
)


@pytest.mark.parametrize(
    ("header", "affinities", "numa", "sockets"),
    [
        ("CPU Affinity\tNUMA Affinity", ("0-63\t0-3",) * 4, [None] * 4, [0] * 4),
        (
            "CPU Affinity\tNUMA Affinity",
            ("64-127\t4-7", "0-63\t0-3", "0-63\t0-3", "64-127\t4-7"),
            [None] * 4,
            [1, 0, 0, 1],
        ),
        (
            "CPU Affinity\tNUMA Affinity",
            ("0-15\t0", "0-15\t0", "16-31\t1", "16-31\t1"),
            [0, 0, 1, 1],
            [None] * 4,
        ),
        ("CPU Affinity", ("0-23", "0-23", "24-47", "24-47"), [None] * 4, [0, 0, 1, 1]),
        ("CPU Affinity", ("0,2,4,6", "1,3,5,7", "4,6", "1,3,5,7"), [None] * 4, [0, 1, 0, 1]),
        ("CPU Affinity", ("", "", "", ""), [None] * 4, [None] * 4),
        ("CPU Affinity\tNUMA Affinity\tGPU NUMA ID", ("0-7\t0,3,9-11\tN/A",) * 4, [None] * 4, [0] * 4),
    ],
    ids=["one range", "two ranges", "one node each", "cpus alone", "interleaved cpus", "nothing", "a list"],
)
def test_a_range_of_numa_nodes_is_a_range(
    header: str, affinities: tuple[str, ...], numa: list[int | None], sockets: list[int | None]
) -> None:
    """It is no NUMA node, but it tells the socket, as CPU affinity does where no NUMA node is shown."""
    gpus = parse_matrix(FOUR.format(header, *affinities)).gpus

    assert numa == [gpu.numa for gpu in gpus]
    assert sockets == [gpu.socket for gpu in gpus]


def test_nearest_nics_carry_the_names_of_the_legend() -> None:
    """``NIC0`` is shown by its device name, and each GPU knows the NIC behind its own PCIe switch."""
    gpus = parse_matrix(saved("h200-hgx-8gpu-12nic.txt")).gpus
    expected = ["mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"]

    assert [(name,) for name in expected] == [gpu.nics for gpu in gpus]


def test_gpus_that_share_a_near_nic_share_a_pcie_root() -> None:
    """Behind NVLink words the PCIe tree shows only through the NICs that two GPUs are close to."""
    gpus = parse_matrix(saved("dgx-a100-mlx5.txt")).gpus

    assert ["pcie0", "pcie0", "pcie1", "pcie1", "pcie2", "pcie2", "pcie3", "pcie3"] == [
        gpu.pcie_root for gpu in gpus
    ]


def test_a_header_over_two_lines_is_one_header() -> None:
    """A terminal's line break within the header does not matter."""
    text = "\tGPU0\tGPU1\n\tNIC0\tCPU Affinity\nGPU0\t X \tPIX\tPIX\t0-3\nGPU1\tPIX\t X \tPIX\t0-3\nNIC0\tPIX\tPIX\t X "

    assert [["X", "PIX"], ["PIX", "X"]] == labels(parse_matrix(text).links)


def test_one_gpu_is_a_machine_too() -> None:
    """A box with one GPU has a matrix of one cell."""
    hardware = parse_matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\t0", "one", "Tesla T4")

    assert ("1xT4-single", 0) == (hardware.machine, hardware.gpus[0].numa)


BROKEN = {
    "no header": ("GPU0 X NV1\nGPU1 NV1 X", "no header line"),
    "nothing at all": ("command not found", "no header line"),
    "row missing": ("GPU0 GPU1\nGPU0 X NV1", "the row of GPU1 is missing"),
    "row repeated": ("GPU0 GPU1\nGPU0 X NV1\nGPU0 X NV1\nGPU1 NV1 X", "line 3 repeats the row of GPU0"),
    "row cut": (
        "GPU0 GPU1 GPU2\nGPU0 X NV1\nGPU1 NV1 X SYS\nGPU2 SYS SYS X",
        "line 2 has 2 links of GPU0, expected 3",
    ),
    "cell unknown": ("GPU0 GPU1\nGPU0 X WAT\nGPU1 NV1 X", "line 2 has 'WAT' where a link to GPU0"),
    "not symmetric": (
        "GPU0 GPU1\nGPU0 X NV1\nGPU1 NV2 X",
        "line 2 says NV1 between GPU0 and GPU1, line 3 says NV2",
    ),
    "self missing": ("GPU0 GPU1\nGPU0 NV1 NV1\nGPU1 NV1 X", "line 2 has NV1 between GPU0 and GPU0"),
    "device twice": ("GPU0 GPU0\nGPU0 X X", "line 1 names a device twice"),
    "more links than a GPU has": (
        "GPU0 GPU1 GPU2\nGPU0 X NV12 NV12\nGPU1 NV12 X SYS\nGPU2 NV12 SYS X",
        "GPU0 shows 24 NVLinks to some GPUs and none to others",
    ),
}


@pytest.mark.parametrize("text, reason", BROKEN.values(), ids=BROKEN)  # noqa: PT006  # one table, two columns
def test_a_broken_matrix_is_refused_by_line_and_reason(text: str, reason: str) -> None:
    """A matrix that is incomplete or contradicts itself never becomes a graph."""
    with pytest.raises(DocumentError) as caught:
        parse_matrix(text, "node-1.txt")

    assert caught.value.message.startswith("node-1.txt: ")
    assert reason in caught.value.message


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


A100 = "dgx-a100-mlx5.txt"
# What `nvidia-smi topo -mp` prints on the same machine: no NVLinks, and no word for them in the legend.
PCIE_ONLY = "\n".join(line for line in saved(A100).replace("NV12", "SYS").splitlines() if "NV#" not in line)


@pytest.mark.parametrize(
    ("product", "machine", "assumed"),
    [
        ("NVIDIA A100-SXM4-40GB", "8xA100-nvswitch", "NVLinks as usual for the product"),
        ("", "8xGPU-pcie", "no NVLinks: `nvidia-smi topo -mp` leaves them out, and `topo -m` shows them"),
    ],
)
def test_a_matrix_without_its_nvlinks_is_known_as_such(product: str, machine: str, assumed: str) -> None:
    """The usual ones are assumed, or a note says that there may be some."""
    hardware = parse_matrix(PCIE_ONLY, A100, product)
    assert (machine, assumed) == (hardware.machine, hardware.assumptions[0])


def test_a_matrix_copied_without_its_legend_has_the_links_of_its_product() -> None:
    """Without the legend nothing tells `topo -mp` from `-m`,
    and an A100 SXM without NVLinks would be the odd one.
    """
    copied = PCIE_ONLY.partition("Legend")[0]
    hardware = parse_matrix(copied, A100, "NVIDIA A100-SXM4-40GB")
    assert ("8xA100-nvswitch", "NVLinks as usual for the product") == (
        hardware.machine,
        hardware.assumptions[0],
    )


def test_a_machine_without_nvlinks_lacks_nothing() -> None:
    """The legend of `topo -m` explains them there too."""
    assert () == parse_matrix(saved("l40s-4gpu-2nic-sys-node.txt"), "text", "NVIDIA L40S").assumptions


@pytest.mark.parametrize("state", ["OK", "CNS", "NS", "U"])
def test_what_pairs_support_is_no_matrix_of_links(state: str) -> None:
    """`nvidia-smi topo -p2p` looks alike; the hint names the right one."""
    text = f"      GPU0  GPU1\n GPU0 X  {state}\n GPU1 {state}  X\n"
    with pytest.raises(DocumentError, match="-p2p") as refused:
        parse_matrix(text)
    assert "topo -m" in str(refused.value.hint)


def test_a_nic_is_at_the_numa_node_of_the_gpus_below_its_switch() -> None:
    """Others on its side of the sockets may be at other nodes."""
    text = """
        GPU0 GPU1 mlx5_0 CPU Affinity NUMA Affinity
    GPU0 X NODE PIX 0-15 0
    GPU1 NODE X NODE 16-31 1
    mlx5_0 PIX NODE X
    """
    assert 0 == parse_matrix(text).nics[0].numa
