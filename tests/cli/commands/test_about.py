"""What ``version``, ``completion`` and ``whoami`` print."""

import json

import pytest

from arena_topo import __version__
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing

# ``arena-topo version`` names the versions of arena-topo and of the cluster.


@pytest.mark.parametrize("args", [["--version"], ["version", "--client"]])
def test_the_version_is_printed(invoke: Invoke, args: list[str]) -> None:
    """Without a cluster."""
    assert f"arena-topo: v{__version__}\n" == invoke(*args).out


def test_the_clusters_version_is_printed(invoke: Invoke, serve: Serve) -> None:
    """Below that of arena-topo."""
    serve(lambda _: Answer(body={"gitVersion": "v1.36.0"}))

    assert f"arena-topo: v{__version__}\nServer: v1.36.0\n" == invoke("version").out


@pytest.mark.parametrize(("args", "server"), [([], "v1.36.0"), (["--client"], None)])
def test_versions_are_a_document_too(
    invoke: Invoke, serve: Serve, args: list[str], server: str | None
) -> None:
    """For scripts; null where the cluster was not asked."""
    serve(lambda _: Answer(body={"gitVersion": "v1.36.0"}))
    outcome = invoke("version", "-o", "json", *args)

    assert {"client": f"v{__version__}", "server": server} == json.loads(outcome.out)


def test_the_number_alone_is_printed(invoke: Invoke) -> None:
    """For scripts."""
    assert f"v{__version__}\n" == invoke("version", "--short").out


def test_what_it_runs_on_is_printed_too(invoke: Invoke) -> None:
    """As Arena prints it of itself; templates stand where its charts do."""
    out = invoke("version", "-v", "--client").out

    assert out.startswith(f"arena-topo: v{__version__}\n  Python: 3.")
    assert "    mpijob.v2beta1.yaml.j2\n" in out


# ``arena-topo completion`` prints a script for each shell.


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(invoke: Invoke, shell: str) -> None:
    """For each shell, without running one."""
    assert "_ARENA_TOPO_COMPLETE" in invoke("completion", shell).out


# `whoami` prints Arena's document.


def test_the_document_is_arenas(invoke: Invoke, serve: Serve) -> None:
    """On one line, in Arena's order; the namespace of its configuration is a flag."""

    def script(call: Call) -> Answer:
        if call.method == "POST":
            return Answer(body={"status": {"userInfo": {"username": "ann"}}})
        return Answer(body={"data": {"adminUsers": "ann"}}) if "/mine/" in call.path else missing("c")

    serve(script)

    assert (
        invoke("whoami").out == '{"Name":"ann","Id":"7e0d7f8a5d96c24ffcc840f31bce72b2","IsAdminUser":false}\n'
    )
    assert '"IsAdminUser":true' in invoke("whoami", "--arena-namespace=mine").out
