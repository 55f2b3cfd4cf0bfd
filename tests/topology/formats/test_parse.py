"""Which kind of text a file holds."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.topology.files import parse_topology
from tests.topology.formats.test_nccl_xml import P4D
from tests.topology.formats.test_nvidia_smi import REAL
from tests.topology.formats.test_p2p_bandwidth import P2P
from tests.topology.formats.test_rocm_smi import MI308X
from tests.topology.texts import saved


@pytest.mark.parametrize("name", [*REAL, MI308X, P2P, P4D])
def test_the_kind_of_a_text_is_detected(name: str) -> None:
    """Every real text finds its parser."""
    hardware = parse_topology(saved(name), name)

    assert hardware.links is not None
    assert len(hardware.gpus) == hardware.links.size


def test_a_text_of_no_known_kind_is_refused_with_advice() -> None:
    """The error says what to give instead."""
    with pytest.raises(DocumentError) as caught:
        parse_topology("hello", "notes.txt")

    assert "notes.txt: neither" in caught.value.message
    assert "nvidia-smi topo -m" in caught.value.hint


@pytest.mark.parametrize("count", [257, 1000])
@pytest.mark.parametrize("form", ["nvidia", "rocm", "p2p", "nccl"])
def test_more_gpus_than_a_machine_has_are_refused(form: str, count: int) -> None:
    """Before anything is done for each pair of them, which took a minute for a thousand."""
    names = [f"GPU{index}" for index in range(count)]
    texts = {
        "nvidia": [
            "\t".join(["", *names]),
            *(f"{a}\t" + "\t".join("X" if a == b else "SYS" for b in names) for a in names),
        ],
        "rocm": [
            "==== Link Type between two GPUs ====",
            " ".join(names),
            *(f"{name} " + "PCIE " * count for name in names),
        ],
        "p2p": ["gpu_0 bandwidth matrix", *(f"gpu_{index} " + "1.0 " * count for index in range(count))],
        "nccl": [
            '<system version="1"><cpu numaid="0">',
            *(
                f'<pci busid="{index:04x}:00:00.0" class="0x030200"><gpu dev="{index}"/></pci>'
                for index in range(count)
            ),
            "</cpu></system>",
        ],
    }
    with pytest.raises(DocumentError, match=rf"the text: {count} devices, and a machine has \d+ at the most"):
        parse_topology("\n".join(texts[form]))
