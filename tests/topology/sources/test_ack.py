"""ACK's ConfigMap and pod annotations."""

import json

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.text.quantity import parse_instant
from arena_topo.topology.sources.ack import pod_gpus, read_config_map
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels
from tests.topology.objects import NOW, config_map


def test_the_config_map_tells_links_health_and_rates() -> None:
    """Words become classes, half of the published figure is the rate of one direction, the age is known."""
    (reading,) = read_config_map(config_map(), parse_instant(NOW), "Tesla-V100-SXM2-16GB")
    assert reading.links is not None

    assert reading.node == "gpu-1"
    assert reading.machine == "8xV100-cubemesh"
    assert reading.age == 30.0
    assert reading.source == "ConfigMap kube-system/gpu-1-gputopo-report data.linkType"
    assert CUBE_MESH == labels(reading.links)
    assert [48.2, 24.2, 7.9] == [reading.links.between(0, other).bandwidth for other in (3, 1, 5)]
    assert reading.measured[0][0] == 750.48


def test_an_unhealthy_gpu_is_marked() -> None:
    """Every word but Healthy means that the GPU cannot be used."""
    health = json.dumps({str(index): "Unhealthy" if index == 5 else "Healthy" for index in range(8)})
    (reading,) = read_config_map(config_map(devices=health))

    assert [5] == [gpu.index for gpu in reading.gpus if not gpu.healthy]


def test_bandwidths_may_be_absent() -> None:
    """Without figures the rates are the nominal ones."""
    raw = config_map()
    del raw["data"]["bandwidth"]
    (reading,) = read_config_map(raw)
    assert reading.links is not None

    assert (50.0, ()) == (reading.links.between(0, 3).bandwidth, reading.measured)


def test_the_spelling_that_arena_reads_is_read_too() -> None:
    """Arena 0.15.5 looks for ``bandwith``."""
    raw = config_map()
    raw["data"]["bandwith"] = raw["data"].pop("bandwidth")
    (reading,) = read_config_map(raw)

    assert reading.measured[0][3] == 96.44


BROKEN = {
    "no devices": ({"devices": ""}, "devices is empty"),
    "devices no JSON": ({"devices": "{"}, "devices is not JSON"),
    "devices with a hole": ({"devices": '{"0":"Healthy","2":"Healthy"}'}, "expected the health of GPUs 0, 1"),
    "links of another size": ({"linkType": '[["N-A"]]'}, "data.linkType must be a matrix of 8 by 8 cells"),
    "links ragged": (
        {"linkType": "[[],[],[],[],[],[],[],[]]"},
        "data.linkType must be a matrix of 8 by 8 cells",
    ),
    "link unknown": ({"linkType": json.dumps([["WAT"] * 8] * 8)}, "'WAT', which is not a link class"),
    "links not symmetric": (
        {
            "linkType": json.dumps(
                [["N-A" if a == b else f"NV{1 + (a < b)}" for b in range(8)] for a in range(8)]
            )
        },
        "GPU0 reaches GPU1 by NV2, GPU1 reaches GPU0 by NV1",
    ),
    "bandwidth no number": ({"bandwidth": json.dumps([["fast"] * 8] * 8)}, "'fast', expected GB/s"),
    "bandwidth negative": ({"bandwidth": json.dumps([[-1] * 8] * 8)}, "-1, expected GB/s"),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_config_map_is_refused_by_key(data: dict[str, str], reason: str) -> None:
    """Nothing of it is used."""
    with pytest.raises(DocumentError, match=reason):
        list(read_config_map(config_map(**data)))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, None),
        ({"topology.kubernetes.io/gpu-group": ""}, None),
        (
            {"topology.kubernetes.io/gpu-group": "0,3", "topology.kubernetes.io/gpu-visible": "0,3,4,7"},
            (0, 3),
        ),
        (
            {
                "gputopology.alibabacloud.com/allocation": '{"allocatedGPUs":{"0":["4","5"]},"visibleGPUs":["4","7"]}'
            },
            (4, 5),
        ),
        ({"topology.scheduling.koordinator.sh/gpu": '{"allocatedGPUs":{"0":["7"],"1":["6"]}}'}, (6, 7)),
    ],
    ids=["none", "not yet assigned", "older generation", "newer generation", "the proposal's"],
)
def test_pod_annotations_of_every_generation_tell_the_gpus(
    annotations: dict[str, str], expected: tuple[int, ...] | None
) -> None:
    """The visible GPUs are those of the whole group; the pod's own are what it holds."""
    assert expected == pod_gpus(annotations)


@pytest.mark.parametrize(
    "annotations",
    [
        {"topology.kubernetes.io/gpu-group": "0;3"},
        {"gputopology.alibabacloud.com/allocation": "[]"},
        {"gputopology.alibabacloud.com/allocation": '{"allocatedGPUs":{"0":"4"}}'},
    ],
)
def test_a_broken_pod_annotation_is_refused_by_key(annotations: dict[str, str]) -> None:
    """The key is named."""
    with pytest.raises(DocumentError, match=next(iter(annotations))):
        pod_gpus(annotations)
