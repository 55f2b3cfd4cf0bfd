"""``arena-topo version`` names the versions of arena-topo and of the cluster."""

import pytest

from arena_topo import __version__
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer


@pytest.mark.parametrize("args", [["--version"], ["version", "--client"]])
def test_the_version_is_printed(invoke: Invoke, args: list[str]) -> None:
    """Without a cluster."""
    assert f"arena-topo: v{__version__}\n" == invoke(*args).out


def test_the_clusters_version_is_printed(invoke: Invoke, serve: Serve) -> None:
    """Below that of arena-topo."""
    serve(lambda _: Answer(body={"gitVersion": "v1.36.0"}))

    assert f"arena-topo: v{__version__}\nServer: v1.36.0\n" == invoke("version").out


def test_the_number_alone_is_printed(invoke: Invoke) -> None:
    """For scripts."""
    assert f"v{__version__}\n" == invoke("version", "--short").out


def test_what_it_runs_on_is_printed_too(invoke: Invoke) -> None:
    """As Arena prints it of itself; templates stand where its charts do."""
    out = invoke("version", "-v", "--client").out

    assert out.startswith(f"arena-topo: v{__version__}\n  Python: 3.")
    assert "    mpijob.v2beta1.yaml.j2\n" in out
