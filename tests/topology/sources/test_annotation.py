"""Our own annotation: what is written reads back the same, and nothing broken is believed."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Nic
from arena_topo.model.keys import GPU_TOPOLOGY
from arena_topo.model.text.quantity import parse_instant
from arena_topo.topology.files import parse_topology
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from arena_topo.topology.objects import NodeFacts, Reading
from arena_topo.topology.sources.annotation import MOST_BYTES, encode, read_annotation
from tests.topology.formats.test_nvidia_smi import REAL
from tests.topology.machines import Machine, machines, written
from tests.topology.objects import NOW, WRITTEN
from tests.topology.texts import saved


def read(value: str) -> Reading:
    """Return the reading of a node whose annotation is *value*."""
    (reading,) = read_annotation(NodeFacts("gpu-1", annotations={GPU_TOPOLOGY: value}), parse_instant(NOW))
    return reading


@pytest.mark.parametrize("name", REAL)
def test_every_real_machine_reads_back_the_same(name: str) -> None:
    """Links, GPUs, NICs, machine type and users survive, and the value is small."""
    hardware = parse_topology(saved(name), name, REAL[name][0])
    users = {("team-a", "train-worker-0"): (0, 1)}
    value = encode(hardware, users, WRITTEN)
    reading = read(value)

    assert (hardware.links, hardware.gpus, hardware.nics) == (reading.links, reading.gpus, reading.nics)
    assert (hardware.machine, users, 30.0) == (reading.machine, reading.users, reading.age)
    assert len(value) < 2048


@given(machine=machines())
def test_any_machine_reads_back_the_same(machine: Machine) -> None:
    """Whatever matrix a parser accepts, the annotation can carry."""
    devices = [*machine.gpus, *machine.nics]
    hardware = parse_matrix("\n".join(written(machine, devices, devices, "\t")))
    reading = read(encode(hardware, {}, WRITTEN))

    assert (hardware.links, hardware.gpus, hardware.nics) == (reading.links, reading.gpus, reading.nics)


def test_nodes_of_one_type_share_one_graph() -> None:
    """A fleet of thousands of nodes holds a handful of graphs."""
    value = encode(parse_matrix(saved("dgx-a100-mlx5.txt")), {}, WRITTEN)

    assert read(value).links is read(value).links


def test_a_value_too_large_for_an_annotation_is_refused() -> None:
    """All annotations of a node together have 256 KiB; ours takes an eighth at most."""
    nics = tuple(Nic(f"a-network-card-with-a-long-name-{index}") for index in range(1000))
    hardware = replace(parse_matrix(saved("t4-4gpu-one-remote.txt")), nics=nics)

    with pytest.raises(DocumentError, match=f"more than {MOST_BYTES}"):
        encode(hardware, {}, WRITTEN)


GOOD = {"v": 1, "at": WRITTEN, "gpus": [{"u": "GPU-a"}, {"u": "GPU-b"}], "links": ["NV2"]}
BROKEN = {
    "no JSON": ("{", "is not JSON"),
    "no object": ("[]", "must be a mapping"),
    "a later version": (json.dumps({**GOOD, "v": 2}), "has version 2, this release reads version 1"),
    "links too short": (json.dumps({**GOOD, "links": []}), "must be a triangle over 2 GPUs"),
    "links no texts": (json.dumps({**GOOD, "links": [2]}), r"links\[0\] is 2, expected a string"),
    "link unknown": (json.dumps({**GOOD, "links": ["WAT"]}), "'WAT' between GPU0 and GPU1"),
    "GPU in use unknown": (json.dumps({**GOOD, "users": {"a/b": [2]}}), r"'a/b': \[2\]"),
    "user without namespace": (json.dumps({**GOOD, "users": {"b": [1]}}), "expected namespace/pod"),
    "mode unknown": (
        json.dumps({**GOOD, "gpus": [{"mode": "rented"}, {}]}),
        r"gpus\[0\].mode is 'rented', expected whole, mig or shared",
    ),
    "memory no number": (json.dumps({**GOOD, "gpus": [{"m": "16G"}, {}]}), "m is '16G'"),
}


@pytest.mark.parametrize(("value", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_annotation_is_refused(value: str, reason: str) -> None:
    """Nothing of it is used."""
    with pytest.raises(DocumentError, match=reason):
        read(value)
