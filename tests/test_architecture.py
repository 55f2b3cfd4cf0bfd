"""The house rules that a machine can hold."""

import ast
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kube.server import Reply, Seen, serve
from tests.paths import ROOT

SOURCES = sorted((ROOT / "arena_topo").rglob("*.py"))
HEAVY = (
    "kubernetes",
    "urllib3",
    "requests",
    "networkx",
    "rich",
    "asyncio",
    "aiohttp",
    "pydantic",
    "msgspec",
    "jinja2",
)


def lines(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text().splitlines())


def functions(path: Path) -> list[tuple[str, int]]:
    """Return the functions of a file with their lines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))
    return [
        (f"{path.relative_to(ROOT)}:{node.name}", (node.end_lineno or 0) - node.lineno + 1) for node in found
    ]


def test_files_are_small() -> None:
    """None above 400 lines, half of them at most 150."""
    sizes = {str(path.relative_to(ROOT)): lines(path) for path in SOURCES}

    assert {} == {path: size for path, size in sizes.items() if size > 400}
    assert statistics.median(sizes.values()) <= 150


def test_functions_are_small() -> None:
    """None above 60 lines, nine of ten at most 25."""
    sizes = [size for path in SOURCES for size in functions(path)]

    assert [] == [each for each in sizes if each[1] > 60]
    assert statistics.quantiles([size for _, size in sizes], n=10)[-1] <= 25


def test_imports_run_one_way() -> None:
    """And third parties live where they are allowed."""
    program = Path(sys.executable).parent / "lint-imports"
    if not program.exists():
        pytest.skip("import-linter is not installed: make lint installs and runs it")
    done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout


def imported(*args: str) -> set[str]:
    """Return the heavy packages that a command has imported when it is done."""
    script = (
        "import sys\n"
        "from arena_topo.cli.errors import run\n"
        f"code = run({list(args)!r})\n"
        f"print('imported:', *(name for name in {HEAVY!r} if name in sys.modules))\n"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert 0 == done.returncode, done.stderr
    return set(done.stdout.rpartition("imported:")[2].split())


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["version", "--client"],
        ["submit", "mpi", "--help"],
        ["get", "--help"],
        ["logs", "-h"],
    ],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    """Start-up decides how a command line feels."""
    assert set() == imported(*args)


def test_reading_a_job_imports_nothing_heavy(tmp_path: Path) -> None:
    """With static credentials the standard library is enough."""
    job = (
        b'{"metadata": {"name": "a", "namespace": "default", "creationTimestamp": "2026-11-21T01:00:00Z"},'
        b' "spec": {"mpiReplicaSpecs": {}}}'
    )

    def rule(seen: Seen) -> Reply:
        return Reply(body=b'{"items": []}' if "/pods" in seen.path else job)

    with serve(tmp_path, rule) as server:
        config = tmp_path / "config"
        config.write_text("{}")
        flags = [
            f"--kubeconfig={config}",
            f"--server={server.url}",
            f"--certificate-authority={server.authority.certificate}",
        ]
        assert set() == imported("get", "a", "--token=t", *flags)


def test_the_tools_that_the_tests_need_are_here() -> None:
    """A test that finds no kubectl would compare nothing."""
    assert shutil.which("kubectl", path=str(Path(sys.executable).parent))
