"""``arena-topo top node`` shows the nodes that are asked for."""

import json

import pytest

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call

CPUS = {"cpu": "8", "pods": "110"}
GPUS = {**CPUS, "nvidia.com/gpu": "8"}


def cluster(call: Call) -> Answer:
    """Serve a node with eight GPUs, which another team uses one of, and a node without."""
    plural = call.path.rpartition("/")[2]
    if plural == "apis":
        return Answer(body={"groups": []})
    if plural == "pods":
        container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
        pod = {
            "metadata": {"name": "p", "namespace": "ml"},
            "spec": {"nodeName": "gpu-1", "containers": [container]},
            "status": {"phase": "Running"},
        }
        return Answer(body={"items": [pod]})
    nodes = [
        {
            "metadata": {"name": name},
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for name, resources in (("gpu-1", GPUS), ("cpu-1", CPUS))
    ]
    return Answer(body={"items": nodes if plural == "nodes" else []})


def names(invoke: Invoke, *args: str) -> list[str]:
    """Return the names of the nodes that are shown."""
    by_mode = json.loads(invoke("top", "node", "-o", "json", *args).out)
    return [node["name"] for nodes in by_mode.values() for node in nodes]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), {"gpu-1", "cpu-1"}),
        (("gpu-1",), {"gpu-1"}),
        (("-m", "e"), {"gpu-1"}),
        (("-m", "exclusive"), {"gpu-1"}),
        (("-m", "none"), {"cpu-1"}),
        (("-m", "t"), set()),
    ],
    ids=["all", "by name", "by a letter", "by a word", "without GPUs", "none of that mode"],
)
def test_nodes_are_chosen(invoke: Invoke, serve: Serve, args: tuple[str, ...], expected: set[str]) -> None:
    """By name, or by Arena's mode."""
    serve(cluster)

    assert expected == set(names(invoke, *args))


def test_a_node_that_does_not_exist_is_an_error(invoke: Invoke, serve: Serve) -> None:
    """And nothing is shown."""
    serve(cluster)
    outcome = invoke("top", "node", "gpu-1", "gpu-9")

    assert (1, "") == (outcome.code, outcome.out)
    assert "error: node gpu-9 does not exist" in outcome.err


def test_details_show_pods(invoke: Invoke, serve: Serve) -> None:
    """The table does not."""
    serve(cluster)

    assert "ml/p" not in invoke("top", "node").out
    assert "ml" in invoke("top", "node", "-d").out


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("top", "node"), 1, "no cluster is configured"),
        (("top", "node", "-m", "x"), 2, "--gpu-mode: 'x' is not a mode"),
    ],
)
def test_bad_input_gets_one_clear_error(
    invoke: Invoke, args: tuple[str, ...], code: int, message: str
) -> None:
    """And nothing on stdout."""
    outcome = invoke(*args)

    assert (code, "") == (outcome.code, outcome.out)
    assert message in outcome.err


def test_refresh_shows_it_again(invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until Ctrl-C, which ends it as it ends every command."""
    serve(lambda _: Answer(body={"items": []}))
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("arena_topo.cli.terminal.time.sleep", wait)
    outcome = invoke("top", "node", "-r")

    assert (130, [2.0, 2.0]) == (outcome.code, waited)
    assert 2 == outcome.out.count("NAME")


def test_refresh_is_for_tables(invoke: Invoke) -> None:
    """A document that never ends is none."""
    assert 2 == invoke("top", "node", "-r", "-o", "json").code
