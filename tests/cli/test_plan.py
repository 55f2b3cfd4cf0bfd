"""``arena-topo plan mpi`` on saved topologies, without a cluster."""

import json
from pathlib import Path

import pytest

from arena_topo.model.documents import load
from arena_topo.model.snapshot import Fabric, Snapshot
from arena_topo.output.document import compact
from arena_topo.topology.savefile import snapshot_document
from tests.cli.conftest import Invoke
from tests.output.clusters import machine


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """Return a file with three V100 machines in two racks; one is empty, two have jobs."""
    nodes = (machine("a0", bert=(0, 3)), machine("a1", gpt=(0, 1, 2, 3, 4)), machine("b0"))
    paths = {"a0": ("a",), "a1": ("a",), "b0": ("b",)}
    file = tmp_path / "cluster.json"
    file.write_text(compact(snapshot_document(Snapshot(nodes, Fabric(("rack",), paths)))))
    return str(file)


def test_the_comparison_is_printed_as_a_table(invoke: Invoke, saved: str) -> None:
    """With a row for each way and two for each blind scheduler."""
    outcome = invoke("plan", "mpi", "-f", saved, "--workers=10", "--gpus=1", "--compare")

    assert 0 == outcome.code, outcome.err
    assert "waits for job team-a/bert" in outcome.out
    assert "blind, any node: expected" in outcome.out


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_comparison_is_a_document(invoke: Invoke, saved: str, form: str) -> None:
    """In both forms, with the level that was required."""
    flags = ("--workers=3", "--gpus=1", "--require-topology=rack", "--compare", "-o", form)
    printed = invoke("plan", "mpi", "-f", saved, *flags).out
    found = json.loads(printed) if form == "json" else load(printed, name="plan")

    assert ["", "", "rack", "rack"] == [way["required"] for way in found["ways"]]


def test_a_comparison_in_which_nothing_fits_exits_with_3(invoke: Invoke, saved: str) -> None:
    """It is printed all the same."""
    outcome = invoke("plan", "mpi", "-f", saved, "--workers=20", "--gpus=1", "--compare")

    assert 3 == outcome.code
    assert "starts 17 of 20" in outcome.out


def test_a_comparison_is_no_picture(invoke: Invoke) -> None:
    """Which is told before anything is read."""
    outcome = invoke("plan", "mpi", "-f", "/nowhere", "--compare", "-o", "svg")

    assert 2 == outcome.code
    assert "--compare is a table" in outcome.err
