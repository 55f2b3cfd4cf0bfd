"""``arena-topo node`` sets the vendor's label, and says what it changes."""

from typing import Any

import pytest

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing

LABEL = "ack.node.gpu.schedule"


def node(name: str, gpus: int = 8, label: str = "") -> dict[str, Any]:
    """Return a node."""
    return {
        "metadata": {"name": name, "labels": {LABEL: label} if label else {}},
        "status": {"capacity": {"nvidia.com/gpu": str(gpus)} if gpus else {}},
    }


NODES = {
    "gpu-1": node("gpu-1"),
    "gpu-2": node("gpu-2", label="topology"),
    "cpu-1": node("cpu-1", gpus=0),
}


def cluster(call: Call) -> Answer:
    """Serve three nodes, one of which is set up already and one of which has no GPU."""
    name = call.path.rpartition("/")[2]
    if name == "nodes":
        return Answer(body={"items": list(NODES.values())})
    return Answer(body=NODES[name]) if name in NODES else missing(name)


def test_named_nodes_are_labelled(invoke: Invoke, serve: Serve) -> None:
    """What is set already is left as it is."""
    transport = serve(cluster)
    outcome = invoke("node", "enable-topology", "gpu-1", "gpu-2")
    patches = [(call.path, call.body) for call in transport.calls if call.method == "PATCH"]

    assert (0, "node/gpu-1 labeled\n") == (outcome.code, outcome.out)
    assert (
        f"node gpu-1: {LABEL} not set -> topology\nnode gpu-2: {LABEL} is already topology\n" == outcome.err
    )
    assert [("/api/v1/nodes/gpu-1", {"metadata": {"labels": {LABEL: "topology"}}})] == patches


def test_all_nodes_are_those_with_gpus(invoke: Invoke, serve: Serve) -> None:
    """Each goes back to the default."""
    serve(cluster)

    assert "node/gpu-1 labeled\nnode/gpu-2 labeled\n" == invoke("node", "disable-topology", "--all").out


@pytest.mark.parametrize(
    ("mode", "queries", "out"),
    [("client", [], ""), ("server", [{"dryRun": "All"}], "node/gpu-1 labeled (server dry run)\n")],
)
def test_a_dry_run_changes_nothing(
    invoke: Invoke, serve: Serve, mode: str, queries: list[dict[str, str]], out: str
) -> None:
    """The client's sends nothing, the server's says so."""
    transport = serve(cluster)
    outcome = invoke("node", "enable-topology", "gpu-1", f"--dry-run={mode}")

    assert (0, out) == (outcome.code, outcome.out)
    patches = [
        {key: value for key, value in call.query.items() if key == "dryRun"}
        for call in transport.calls
        if call.method == "PATCH"
    ]
    assert queries == patches


def test_a_missing_node_is_reported_and_the_others_labelled(invoke: Invoke, serve: Serve) -> None:
    """The exit code tells."""
    serve(cluster)
    outcome = invoke("node", "enable-topology", "gpu-9", "gpu-1")

    assert (1, "node/gpu-1 labeled\n") == (outcome.code, outcome.out)
    assert "error: node gpu-9 does not exist" in outcome.err


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("node", "enable-topology"), 2, "name nodes, or give --all, or give -l"),
        (("node", "enable-topology", "a", "--all"), 2, "name nodes, or give --all, or give -l"),
        (("node", "disable-topology", "--all", "--dry-run=x"), 2, "Invalid dry-run value (x)"),
    ],
)
def test_bad_input_gets_one_clear_error(
    invoke: Invoke, args: tuple[str, ...], code: int, message: str
) -> None:
    """And nothing on stdout."""
    outcome = invoke(*args)

    assert (code, "") == (outcome.code, outcome.out)
    assert message in outcome.err
