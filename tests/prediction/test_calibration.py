"""Calibrations: the shipped one, a user's over it, and what is wrong with one said by its place."""

from copy import deepcopy
from typing import Any

import pytest

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.plan import Range
from arena_topo.prediction.forecast import read_calibration, shipped_calibration
from tests.topology.test_snapshot_file import put

HEAD = {"apiVersion": "arena-topo.dev/v1alpha1", "kind": "Calibration"}


def whole() -> dict[str, Any]:
    """Return a calibration with one of everything."""
    some = {"low": 1, "likely": 1.5, "high": 2}
    keys = ("nvlinkShare", "pcie", "podIsolatedSocket", "tcp", "rdmaShare", "rdmaCard", "twoNodesShare")
    return {
        **HEAD,
        "bandwidths": {key: dict(some) for key in keys},
        "frameworks": [{"name": "jax", "exchange": "ddp", "overlap": {"low": 0, "likely": 0.3, "high": 0.5}}],
        "speeds": [{"framework": "jax", "model": "vgg16", "gpu": "A100", "imagesPerSecond": 700}],
    }


def test_the_shipped_calibration_knows_the_published_machine() -> None:
    """Both frameworks and both models on V100, and says so as its source."""
    found = shipped_calibration()

    assert {"pytorch", "tensorflow"} == found.frameworks.keys()
    assert 4 == len(found.speeds)
    assert "calibration.yaml" in found.source


def test_a_users_entries_count_and_the_others_stay() -> None:
    """One bandwidth and one speed are replaced, all else is as shipped."""
    base = shipped_calibration()
    own = {
        **HEAD,
        "bandwidths": {"tcp": {"low": 1, "likely": 2, "high": 3}},
        "speeds": [{"framework": "pytorch", "model": "vgg16", "gpu": "V100", "imagesPerSecond": 300}],
    }
    found = read_calibration(own, "mine.yaml", base)

    assert Range(1, 2, 3) == found.bandwidths.tcp
    assert base.bandwidths.isolated == found.bandwidths.isolated
    assert 300 == found.speed("pytorch", "vgg16", "V100")
    assert base.speed("pytorch", "resnet50", "V100") == found.speed("pytorch", "resnet50", "V100")
    assert f"mine.yaml over {base.source}" == found.source


def test_a_speed_is_found_by_a_word_of_the_product() -> None:
    """The longest one that fits."""
    document = whole()
    pcie = {"framework": "jax", "model": "vgg16", "gpu": "A100-PCIE", "imagesPerSecond": 600}
    document["speeds"].append(pcie)
    found = read_calibration(document, "a.yaml")

    assert 600 == found.speed("jax", "vgg16", "NVIDIA-A100-PCIE-40GB")
    assert 700 == found.speed("jax", "vgg16", "NVIDIA-A100-SXM4-80GB")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("mxnet", "vgg16", "V100"), "how fast one V100 trains vgg16 with mxnet is not known"),
        (("pytorch", "vgg16", "NVIDIA-H200"), "how fast one NVIDIA-H200 trains vgg16"),
    ],
    ids=["framework", "gpu"],
)
def test_a_speed_that_is_not_known_is_not_guessed(asked: tuple[str, str, str], message: str) -> None:
    """The error says what to measure."""
    with pytest.raises(UsageError, match=message) as caught:
        shipped_calibration().speed(*asked)

    assert "--images-per-second" in caught.value.hint


BROKEN = {
    "another kind": (put("kind", "Snapshot"), "a.yaml is Snapshot of arena-topo.dev/v1alpha1, expected Cal"),
    "a key misspelt": (put("speedz", []), "a.yaml.speedz is an unknown key"),
    "a bandwidth misspelt": (put("bandwidths", "tpc", {}), "a.yaml.bandwidths.tpc is an unknown key"),
    "a bandwidth missing": (put("bandwidths", "tcp", None), "a.yaml.bandwidths.tcp must be a mapping"),
    "a bandwidth of zero": (put("bandwidths", "tcp", "low", 0), "tcp.low is 0, expected a number above 0"),
    "a bandwidth without end": (put("bandwidths", "tcp", "high", float("inf")), "tcp.high is inf, expected"),
    "a range that falls": (put("bandwidths", "tcp", "likely", 9), "bandwidths.tcp is not in order"),
    "a range without an end": (put("bandwidths", "tcp", "high", None), "tcp.high is missing, expected a num"),
    "an overlap above one": (
        put("frameworks", 0, "overlap", "high", 1.1),
        "overlap.high is 1.1, expected a number from 0 to 1",
    ),
    "an exchange unknown": (
        put("frameworks", 0, "exchange", "nccl"),
        "exchange is 'nccl', expected horovod or ddp",
    ),
    "a model unknown": (put("speeds", 0, "model", "bert"), "model is 'bert', expected vgg16 or resnet50"),
    "a speed below zero": (
        put("speeds", 0, "imagesPerSecond", -1),
        r"speeds\[0\].imagesPerSecond is -1, expected a number above 0",
    ),
}


@pytest.mark.parametrize(("change", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_calibration_is_refused_by_place(change: Any, reason: str) -> None:
    """Whatever is wrong, the error says where."""
    document = deepcopy(whole())
    change(document)
    with pytest.raises(DocumentError, match=reason):
        read_calibration(document, "a.yaml")


@pytest.mark.parametrize("document", [None, [], "text", {}], ids=repr)
def test_a_document_of_another_kind_is_refused(document: object) -> None:
    """An empty file is no calibration."""
    with pytest.raises(DocumentError, match=r"a\.yaml"):
        read_calibration(document, "a.yaml")
