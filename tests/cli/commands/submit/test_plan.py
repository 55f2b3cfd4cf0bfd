"""``arena-topo plan mpi`` on saved topologies, without a cluster."""

import json
import re
from pathlib import Path

import pytest

from arena_topo.model.cluster.snapshot import Fabric, Snapshot
from arena_topo.model.notation.yaml_documents import load
from arena_topo.output.documents import compact
from arena_topo.topology.snapshot_file import snapshot_document
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
    assert "WAITS FOR" in outcome.out
    assert "job team-a/bert" in outcome.out
    assert "blind, any node: expected" in outcome.out


@pytest.mark.parametrize("asked", [("mpi",), ("jobset",), ("tf",), ("mpi", "--when")], ids=" ".join)
def test_gpus_are_named_of_a_matrix_alone(invoke: Invoke, asked: tuple[str, ...]) -> None:
    """A cluster says by itself which it has."""
    outcome = invoke("plan", *asked, "--workers=2", "--gpus=4", "--product=NVIDIA H200")
    assert 2 == outcome.code
    assert "--product names the GPUs of a matrix: it goes with --from" in outcome.err


@pytest.mark.parametrize("kind", ["pytorch", "pytorchjob", "py", "jobset"])
def test_pods_of_other_kinds_are_planned_alike(invoke: Invoke, saved: str, kind: str) -> None:
    """Where pods go depends on what they request, and not on who makes them."""
    flags = ("-f", saved, "--workers=2", "--gpus=4", "-o", "json")
    expected, found = (invoke("plan", word, *flags) for word in ("mpi", kind))
    assert (0, expected.out) == (found.code, found.out), found.err


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
    """An error before anything is read."""
    outcome = invoke("plan", "mpi", "-f", "/nowhere", "--compare", "-o", "svg")

    assert 2 == outcome.code
    assert "--compare is a table" in outcome.err


@pytest.mark.parametrize(
    ("form", "beginning"),
    [("text", "job  "), ("json", "{"), ("yaml", "apiversion:"), ("svg", "<svg"), ("html", "<!doctype html>")],
)
def test_a_plan_is_printed_in_every_form(invoke: Invoke, saved: str, form: str, beginning: str) -> None:
    """From a saved snapshot, without a cluster."""
    outcome = invoke("plan", "mpi", "-f", saved, "--workers=4", "--gpus=1", "-o", form)

    assert 0 == outcome.code, outcome.err
    assert outcome.out.lower().startswith(beginning)


def test_the_objective_decides_between_machines(invoke: Invoke, tmp_path: Path) -> None:
    """Four GPUs at their fastest on the empty machine, or those that are left on another one."""
    file = tmp_path / "two.json"
    nodes = (machine("empty"), machine("half", gpt=(1, 3, 4, 7)))
    file.write_text(compact(snapshot_document(Snapshot(nodes))))
    fastest, packed = (
        json.loads(
            invoke("plan", "mpi", "-f", str(file), "--workers=1", "--gpus=4", *flags, "-o", "json").out
        )
        for flags in ((), ("--objective=pack",))
    )

    assert ("empty", "half") == (fastest["domain"], packed["domain"])
    assert packed["why"][-1]["runner_up"].endswith("on empty, 4 GPUs left over, with --objective=bandwidth")


@pytest.mark.parametrize("form", ["text", "json", "yaml", "svg"])
def test_a_gang_that_does_not_fit_exits_with_3(invoke: Invoke, saved: str, form: str) -> None:
    """And is told why on stdout, in the form that was asked for."""
    outcome = invoke("plan", "mpi", "-f", saved, "--workers=20", "--gpus=1", "-o", form)

    assert 3 == outcome.code
    assert "17 of 20" in outcome.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--require-topology=zone",), "--require-topology: the fabric has no level 'zone'"),
        (("--nccl-version=new",), "--nccl-version: 'new' is not a version"),
        (("--topology-policy=strict",), "'strict' is not one of"),
        (("--topology-levels=a",), "--topology-levels names labels of a cluster"),
        (("--workers=4", "--parallel=tp=2"), "tp = 2, and the job has 4 workers of 1 rank, 4 in all"),
        (("--workers=4", "--parallel=tp=4", "--topology-policy=none"), "--topology-policy=none ignores it"),
        (("--parallel=4",), "--parallel: '4' is no axis with its size"),
    ],
    ids=["level", "nccl", "policy", "labels", "ranks", "unaware", "axes"],
)
def test_bad_flags_are_one_clear_error(
    invoke: Invoke, saved: str, flags: tuple[str, ...], message: str
) -> None:
    """With exit code 2."""
    outcome = invoke("plan", "mpi", "-f", saved, "--gpus=1", *flags)

    assert 2 == outcome.code
    assert message in outcome.err


@pytest.mark.parametrize("flag", ["--coalesce", "--coalesce=true"])
def test_ranks_are_coalesced_where_asked(invoke: Invoke, saved: str, flag: str) -> None:
    """Eight workers become one pod of eight GPUs."""
    outcome = invoke("plan", "mpi", "-f", saved, "--workers=8", "--gpus=1", flag)

    assert "1 worker of 8 GPUs, coalesced on node b0" in outcome.out


def test_a_restricted_gang_waits(invoke: Invoke, saved: str) -> None:
    """Two racks have the places, one would have them when empty."""
    flags = ("plan", "mpi", "-f", saved, "--workers=16", "--gpus=1")

    assert 0 == invoke(*flags).code
    assert 3 == invoke(*flags, "--topology-policy=restricted").code


def test_groups_of_ranks_are_shown_beside_the_rules_of_others(invoke: Invoke, saved: str) -> None:
    """As a table of the plan, and as a column of the comparison."""
    flags = ("plan", "mpi", "-f", saved, "--workers=8", "--gpus=1", "--parallel=tp=2,dp=4")

    assert re.search(r"^tp +2 +4 +node +1 +1 +1$", invoke(*flags).out, re.MULTILINE)
    assert "tp 1, dp 1" in invoke(*flags, "--compare").out


@pytest.mark.parametrize(
    ("flags", "other"),
    [(("-f", "/nowhere"), "--from"), (("--compare",), "--compare"), (("-o", "svg"), "-o svg")],
)
def test_when_is_asked_of_a_cluster_alone(invoke: Invoke, flags: tuple[str, ...], other: str) -> None:
    """A file has no jobs that end, and no drawing or comparison shows a time."""
    outcome = invoke("plan", "mpi", "--gpus=1", "--when", *flags)
    assert 2 == outcome.code
    assert f"does not go with {other}" in outcome.err
