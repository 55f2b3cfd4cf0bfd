"""Whatever stands in a text or document, it is read whole
or refused: no crash, no graph that contradicts itself.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Hardware
from arena_topo.topology.files import parse_topology, read_snapshot, snapshot_document
from tests.topology.formats.test_nccl_xml import DUMP, P4D
from tests.topology.formats.test_nvidia_smi import REAL
from tests.topology.formats.test_p2p_bandwidth import CUDA_SAMPLE, P2P
from tests.topology.formats.test_rocm_smi import MI308X
from tests.topology.test_any_object import JUNK, paths_in, replaced
from tests.topology.test_snapshot_file import rich_snapshot
from tests.topology.texts import saved

Value = TypeVar("Value")

TEXTS = {
    **{name: saved(name) for name in (*REAL, MI308X, P2P, P4D, "nccl-xml/azure-ndv4-topo.xml")},
    "dump": DUMP,
    "sample": CUDA_SAMPLE,
}
DOCUMENT = snapshot_document(rich_snapshot())


def whole(hardware: Hardware) -> bool:
    """Whether every pair of GPUs has one link, the same both ways."""
    graph = hardware.links
    if graph is None:
        return False
    size = range(graph.size)
    return len(hardware.gpus) == graph.size and all(
        graph.between(a, b) == graph.between(b, a) for a in size for b in size
    )


def attempt(read: Callable[[], Value]) -> tuple[Value | None, str]:
    """Return what *read* returns, or None and the message of its refusal."""
    try:
        return read(), ""
    except DocumentError as error:
        return None, error.message


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Real texts with lines lost, repeated or exchanged, and words changed."""
    lines = TEXTS[draw(st.sampled_from(sorted(TEXTS)))].split("\n")
    for _ in range(draw(st.integers(1, 3))):
        i, other = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        words = lines[i].split("\t")
        match draw(st.sampled_from(["lose", "repeat", "exchange", "cut", "word"])):
            case "lose":
                lines[i] = ""
            case "repeat":
                lines.insert(other, lines[i])
            case "exchange":
                lines[i], lines[other] = lines[other], lines[i]
            case "cut":
                lines[i] = lines[i][: draw(st.integers(0, len(lines[i])))]
            case _:
                words[draw(st.integers(0, len(words) - 1))] = draw(
                    st.sampled_from(["NV2", "NV99", "X", "SYS", "GPU0", "", "-1", "0-", "9" * 30, "<a/>"])
                )
                lines[i] = "\t".join(words)
    return "\n".join(lines)


@given(text=damaged())
def test_a_damaged_text_is_read_whole_or_refused(text: str) -> None:
    """A refusal is a ``DocumentError``; a graph is complete and symmetric."""
    hardware, refusal = attempt(lambda: parse_topology(text, "damaged.txt"))

    assert refusal.startswith("damaged.txt") if hardware is None else whole(hardware)


@given(junk=JUNK, data=st.data())
def test_a_damaged_snapshot_is_read_or_refused(junk: Any, data: st.DataObject) -> None:
    """Junk at any place is refused by its place, or is a
    value that may stand there and reads back the same.
    """
    path = data.draw(st.sampled_from([place for place in paths_in(DOCUMENT) if place]))
    document = replaced(deepcopy(DOCUMENT), path, junk)
    snapshot, refusal = attempt(lambda: read_snapshot(document, "cluster.json"))

    if snapshot is None:
        assert refusal.startswith("cluster.json")
    else:
        assert snapshot == read_snapshot(json.loads(json.dumps(snapshot_document(snapshot))))


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_texts_are_good_to_begin_with(name: str) -> None:
    """Undamaged each is read whole."""
    assert whole(parse_topology(TEXTS[name], name))
