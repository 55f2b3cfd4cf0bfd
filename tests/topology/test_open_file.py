"""A file in place of a cluster: a snapshot as JSON or YAML, or the text of one machine."""

import json

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.text.yaml import dump
from arena_topo.topology.files import open_topology, snapshot_document
from tests.topology.clusters import PRODUCT, cluster
from tests.topology.objects import node
from tests.topology.texts import saved


@pytest.mark.parametrize("write", [json.dumps, dump], ids=["json", "yaml"])
def test_a_saved_snapshot_is_opened(write: object) -> None:
    """In either form it is the snapshot that was saved."""
    snapshot = cluster([node(labels=PRODUCT)])
    assert callable(write)

    assert snapshot == open_topology(write(snapshot_document(snapshot)), "cluster.yaml")


@pytest.mark.parametrize(
    ("name", "product", "resource", "assumed"),
    [
        ("h200-hgx-8gpu-12nic.txt", "NVIDIA H200", "nvidia.com/gpu", False),
        ("v100-sxm2-8gpu-driver580.txt", "", "nvidia.com/gpu", True),
        ("mi308x-8gpu-rocm-smi-showtopo.txt", "AMD Instinct MI308X", "amd.com/gpu", False),
        ("nccl-xml/aws-p4d-24xl-topo.xml", "", "nvidia.com/gpu", True),
    ],
)
def test_the_text_of_a_machine_is_a_cluster_of_one_node(
    name: str, product: str, resource: str, assumed: bool
) -> None:
    """All its GPUs are free, and what had to be assumed is said."""
    (only,) = open_topology(saved(name), f"dir/{name}", product).nodes

    assert (8, 8, resource, frozenset()) == (only.gpu_total, only.gpu_free, only.gpu_resource, only.used)
    assert name.rpartition("/")[2].rpartition(".")[0] == only.name
    assert assumed is only.facts[0].assumed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "c.json is not valid JSON"),
        ('{"kind": "Pod", "apiVersion": "v1"}', "c.json is Pod of v1"),
        ("apiVersion: v1\nkind: List\n", "c.json is List of v1"),
        ("hello", "c.json: neither a topology matrix"),
    ],
)
def test_any_other_file_is_refused(text: str, reason: str) -> None:
    """The file and the reason are named."""
    with pytest.raises(DocumentError, match=reason):
        open_topology(text, "c.json")


@pytest.mark.parametrize("text", ['{"a":' * 200_000, '{"a": ' + "[" * 200_000, '{"a": ' + "9" * 5000 + "}"])
def test_a_document_that_is_nested_without_end_is_refused(text: str) -> None:
    """With the file's name, and without Python's own error."""
    with pytest.raises(DocumentError, match=r"cluster\.json is not valid JSON"):
        open_topology(text, "cluster.json")
