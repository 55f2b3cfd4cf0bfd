"""HAMi's node and pod annotations."""

import json

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import ShareMode
from arena_topo.model.keys import HAMI_ALLOCATED, HAMI_REGISTER, HAMI_SCORE
from arena_topo.topology.objects import NodeFacts, Reading
from arena_topo.topology.sources.hami import pod_gpus, read_node
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels, uniform
from tests.topology.objects import UUIDS, hami_register, hami_scores


def read(**annotations: str) -> Reading:
    """Return the reading of a node with the annotations ``register`` and ``score``."""
    keys = {"register": HAMI_REGISTER, "score": HAMI_SCORE}
    (reading,) = read_node(
        NodeFacts("gpu-1", annotations={keys[name]: text for name, text in annotations.items()})
    )
    return reading


def test_scores_tell_the_links() -> None:
    """A score of 210 is two NVLinks over a path across the sockets."""
    reading = read(register=hami_register(), score=hami_scores())

    assert reading.machine == "8xV100-cubemesh"
    assert CUBE_MESH == labels(reading.links)
    assert UUIDS == [gpu.uuid for gpu in reading.gpus]
    assert [0, 0, 0, 0, 1, 1, 1, 1] == [gpu.numa for gpu in reading.gpus]
    assert {16384} == {gpu.memory for gpu in reading.gpus}


@pytest.mark.parametrize(
    ("score", "expected"), [(10, "SYS"), (20, "NODE"), (30, "PHB"), (40, "PXB"), (50, "PIX"), (0, "?")]
)
def test_pcie_scores_tell_the_class(score: int, expected: str) -> None:
    """Without NVLinks the score is that of the PCIe path; 0 is not known."""
    reading = read(register=hami_register(), score=hami_scores(uniform("SYS", 8), pcie=score))

    assert uniform(expected, 8) == labels(reading.links)


def test_switched_boxes_that_hami_shows_as_pcie_get_their_usual_links() -> None:
    """HAMi before 2.10 does not see NVSwitches; for an
    H100 board the links are known, and marked as assumed.
    """
    register = hami_register().replace("Tesla V100-SXM2-16GB", "NVIDIA H100 80GB HBM3")
    reading = read(register=register, score=hami_scores(uniform("SYS", 8)))

    assert uniform("NV18", 8) == labels(reading.links)
    assert reading.assumptions == ("NVLinks as usual for the product",)


def test_the_text_form_up_to_2_7_reads_the_same() -> None:
    """Entries apart by colons, fields by commas."""
    entries = [
        f"{UUIDS[index]},10,16384,100,NVIDIA-Tesla V100-SXM2-16GB,{index // 4},{str(index != 2).lower()}:"
        for index in range(8)
    ]
    old = read(register="".join(entries))

    assert [2] == [gpu.index for gpu in old.gpus if not gpu.healthy]
    assert [gpu.uuid for gpu in read(register=hami_register()).gpus] == [gpu.uuid for gpu in old.gpus]
    assert {ShareMode.SHARED} == {gpu.mode for gpu in old.gpus}
    assert old.links is None


BROKEN = {
    "no JSON": ({"register": "[{"}, "is not JSON"),
    "empty": ({"register": "[]"}, "names no GPU"),
    "numbers repeat": (
        {"register": json.dumps([{"id": "GPU-a"}, {"id": "GPU-b"}])},
        r"numbers its GPUs \[0, 0\]",
    ),
    "no id": ({"register": json.dumps([{"index": 0}])}, "id is missing"),
    "text cut": ({"register": "GPU-a,10,16384:"}, "expected UUID,count"),
    "score of other GPUs": ({"register": hami_register(), "score": "[]"}, "lacks GPU-00000000"),
    "score impossible": ({"register": hami_register(), "score": hami_scores(pcie=15)}, "the score 115,"),
}


@pytest.mark.parametrize(("annotations", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_node_annotation_is_refused_by_key(annotations: dict[str, str], reason: str) -> None:
    """Nothing of it is used."""
    with pytest.raises(DocumentError, match=reason):
        read(**annotations)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("GPU-a,NVIDIA,3000,30:;", ("GPU-a",)),
        ("GPU-a,NVIDIA,16384,0:GPU-b,NVIDIA,16384,0:;", ("GPU-a", "GPU-b")),
        (";GPU-a,NVIDIA,16384,0:;GPU-c,NVIDIA,16384,0:;", ("GPU-a", "GPU-c")),
    ],
    ids=["none", "one", "two of one container", "two containers and one without"],
)
def test_the_pod_annotation_tells_the_uuids(text: str, expected: tuple[str, ...] | None) -> None:
    """Colons end devices, semicolons containers."""
    assert expected == pod_gpus({HAMI_ALLOCATED: text})


def test_a_broken_pod_annotation_is_refused() -> None:
    """The part that is not understood is named."""
    with pytest.raises(DocumentError, match="'nonsense'"):
        pod_gpus({HAMI_ALLOCATED: "nonsense:;"})
