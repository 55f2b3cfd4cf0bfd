"""The topology of a saved machine or cluster is shown in every form, without a cluster."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.paths import DATA

TOPOLOGIES = DATA / "topologies"
V100 = TOPOLOGIES / "v100-sxm2-8gpu-driver580.txt"


def test_a_saved_matrix_is_shown_as_a_machine(invoke: Invoke) -> None:
    """With its links, and what is assumed about them."""
    outcome = invoke("topology", "--from", str(V100), "--product", "Tesla V100-SXM2-16GB")

    assert 0 == outcome.code, outcome.err
    assert "8xV100-cubemesh" in outcome.out
    assert "NV2" in outcome.out
    assert "\x1b" not in outcome.out


@pytest.mark.parametrize(
    ("form", "beginning"),
    [
        ("json", "{"),
        ("yaml", "apiVersion"),
        ("dot", "graph "),
        ("graphml", "<?xml"),
        ("svg", "<svg"),
        ("html", "<!doctype html>"),
    ],
)
def test_every_form_is_printed(invoke: Invoke, form: str, beginning: str) -> None:
    """On stdout alone."""
    outcome = invoke("topology", "--from", str(V100), "-o", form)

    assert 0 == outcome.code, outcome.err
    assert outcome.out.lower().startswith(beginning.lower())


def test_a_snapshot_is_saved_and_shown_again(invoke: Invoke, tmp_path: Path) -> None:
    """As JSON or YAML, by the file's name."""
    shown = invoke("topology", "--from", str(V100)).out
    for name in ("a.json", "a.yaml"):
        file = tmp_path / name
        assert 0 == invoke("topology", "save", str(file), "--from", str(V100)).code
        again = invoke("topology", "--from", str(file))
        assert shown == again.out, again.err
    assert "Snapshot" == json.loads((tmp_path / "a.json").read_text())["kind"]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("topology", "--from", "/nowhere"), 2, "--from: /nowhere cannot be read"),
        (("topology", "--from", str(V100), "nothing"), 2, "there is no node nothing"),
        (("topology", "--product", "x"), 2, "--product names the GPUs of a matrix"),
        (
            ("topology", "--from", str(V100), "--topology-levels=a"),
            2,
            "--topology-levels names labels of a cluster",
        ),
        (("topology", "save"), 2, "topology save takes one FILE"),
        (("topology", "save", "/nowhere/x", "--from", str(V100)), 2, "/nowhere/x cannot be written"),
        (("topology", "-o", "png"), 2, "Invalid value for '-o'"),
        (("topology",), 1, "no cluster is configured"),
    ],
)
def test_bad_input_gets_one_clear_error(
    invoke: Invoke, args: tuple[str, ...], code: int, message: str
) -> None:
    """And nothing on stdout."""
    outcome = invoke(*args)

    assert (code, "") == (outcome.code, outcome.out)
    assert message in outcome.err


def test_a_text_that_is_no_topology_is_told_with_its_place(invoke: Invoke, tmp_path: Path) -> None:
    """The file's name, and no traceback."""
    file = tmp_path / "notes.txt"
    file.write_text("nothing of the kind\n")
    outcome = invoke("topology", "--from", str(file))

    assert (1, "") == (outcome.code, outcome.out)
    assert "notes.txt" in outcome.err
    file.write_bytes(b"\xff\xfe\xff")
    assert "is not a text" in invoke("topology", "--from", str(file)).err


@pytest.mark.parametrize(
    ("form", "beginning"), [("text", "8 of 8 GPUs are free"), ("json", "{"), ("yaml", "free: 8")]
)
def test_fragmentation_is_printed(invoke: Invoke, form: str, beginning: str) -> None:
    """In the forms that hold tables."""
    outcome = invoke("topology", "--from", str(V100), "--fragmentation", "-o", form)

    assert 0 == outcome.code, outcome.err
    assert outcome.out.startswith(beginning)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("node-1",), "--fragmentation covers the whole cluster"),
        (("save", "file"), "--fragmentation covers the whole cluster"),
        (("-o", "svg"), "--fragmentation is a table"),
    ],
    ids=["node", "save", "picture"],
)
def test_fragmentation_takes_no_node_and_makes_no_picture(
    invoke: Invoke, args: tuple[str, ...], message: str
) -> None:
    """An error before anything is read."""
    outcome = invoke("topology", "--from", "/nowhere", "--fragmentation", *args)

    assert 2 == outcome.code
    assert message in outcome.err
