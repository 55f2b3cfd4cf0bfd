"""The house rules that a machine can hold."""

import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.kube.server import Reply, Seen, serve
from tests.paths import ROOT

PROGRAMS = Path(sys.executable).parent
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
    "textual",
)


SUITES = (
    "tests/contract",
    "tests/controlplane",
    "tests/e2e",
    "tests/harness",
    "tests/hostile",
    "tests/packaging",
    "tests/ranks",
)
"""They hold what no single package does: whole clusters, the tests' own tools, what is shipped."""


def unmirrored(root: Path) -> set[str]:
    """Return the folders of tests of *root* that are named like no
    package of the product or of the repository, nor a suite.
    """
    folders = {path.parent.relative_to(root) for path in (root / "tests").rglob("test_*.py")}
    return {
        str(folder)
        for folder in folders
        if not f"{folder}/".startswith(tuple(f"{suite}/" for suite in SUITES))
        and not any(
            (package / folder.relative_to("tests")).is_dir() for package in (root / "arena_topo", root)
        )
    }


def not_entered(root: Path, patterns: Sequence[str]) -> set[str]:
    """Return the folders of tests that pytest passes by, because their names match its *patterns*."""
    folders = {path.parent.relative_to(root) for path in (root / "tests").rglob("test_*.py")}
    return {
        str(folder) for folder in folders for part in folder.parts if any(fnmatch(part, p) for p in patterns)
    }


def test_every_folder_of_tests_mirrors_a_package() -> None:
    """So that who changes a package finds its tests."""
    assert set() == unmirrored(ROOT)


def test_pytest_enters_every_folder_of_tests(pytestconfig: pytest.Config) -> None:
    """It passes by folders of certain names, such as ``build``, without a word."""
    assert set() == not_entered(ROOT, pytestconfig.getini("norecursedirs"))


def test_these_rules_can_fail(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """A folder whose package has gone is seen, and so is one that pytest passes by."""
    for folder in ("arena_topo/planner", "tests/planner", "tests/gone", "tests/e2e/jobs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "test_it.py").touch()
    assert {"tests/gone"} == unmirrored(tmp_path)

    (tmp_path / "tests" / "build").mkdir()
    (tmp_path / "tests" / "build" / "test_m1.py").touch()
    assert {"tests/build"} == not_entered(tmp_path, pytestconfig.getini("norecursedirs"))


def test_ruff_holds_the_rest() -> None:
    """Private names stay private in tests too; the rule is on, and finds what breaks it."""
    source = "import json\n\njson._default_encoder\n"
    for name in ("tests/e2e/test_any.py", "arena_topo/any.py"):
        command = [str(PROGRAMS / "ruff"), "check", "--select=SLF001", f"--stdin-filename={name}", "-"]
        done = subprocess.run(command, cwd=ROOT, input=source, capture_output=True, text=True, check=False)
        assert "SLF001" in done.stdout, done.stderr


def test_imports_run_one_way() -> None:
    """And third parties live where they are allowed."""
    program = PROGRAMS / "lint-imports"
    if not program.exists():
        pytest.skip("import-linter is not installed: make lint installs and runs it")
    done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout


SPARED = ("yaml", "tempfile", "hashlib", "difflib", "stringprep", "arena_topo.kinds.table")
"""What reading a job goes without: together a fifth of what it would do otherwise.

PyYAML for a plain kubeconfig, a file on a disk for the client's key, checksums for the name of a cache,
click's search for long flags that are like a short one, the tables of international names, and the kinds of
jobs that nobody has named.
"""
SPARED_BY_LOGS = (*SPARED, "arena_topo.model.job_view", "arena_topo.jobs.status")
"""What a log goes without next to these: the view of a
job, whose values take a twentieth of the time to define.
"""


def imported(*args: str, among: tuple[str, ...] = HEAVY) -> set[str]:
    """Return which modules of *among* a command has imported when it is done."""
    script = (
        # Coverage imports much of the standard library itself, before the command begins.
        "import sys\nbefore = set(sys.modules)\n"
        "from arena_topo.cli.errors import run\n"
        f"code = run({list(args)!r})\n"
        f"print('imported:', *(name for name in {among!r} if name in sys.modules.keys() - before))\n"
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


SPARED_OFFLINE = (
    *(name for name in HEAVY if name != "jinja2"),
    "http.client",
    "ssl",
    "arena_topo.kube.session",
    "arena_topo.cluster",
    "arena_topo.topology",
    "arena_topo.prediction",
    "arena_topo.gang",
    "arena_topo.pin",
    "arena_topo.planner.fleet",
    "arena_topo.planner.choice",
    "arena_topo.planner.plan",
    "arena_topo.jobs.lookup",
    "arena_topo.jobs.reserve",
    "arena_topo.jobs.submit",
    "arena_topo.model.cluster",
    "arena_topo.model.job_view",
)
"""What a job goes without that is only printed, where
there is no cluster: all that reads one, plans or creates.
"""


def test_an_offline_dry_run_imports_only_what_renders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jinja and YAML make the objects; reading the cluster,
    planning and creating are for those who have one.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    flags = ["--dry-run=client", "--name=x", "--image=i", "--gpus=1", "--workers=2"]

    assert set() == imported("submit", "mpi", *flags, "train", among=SPARED_OFFLINE)


def test_a_plan_for_a_snapshot_imports_nothing_that_connects() -> None:
    """A committed snapshot is planned against in pipelines, which have no cluster."""
    plan = ["plan", "mpi", "--workers=4", "--gpus=8", "--from", "docs/how-to/python/cluster.json"]

    assert set() == imported(*plan, among=("http.client", "ssl", "arena_topo.kube.session"))


@pytest.mark.parametrize(
    ("args", "spared"), [(["get", "a"], SPARED), (["logs", "a"], SPARED_BY_LOGS)], ids=["get", "logs"]
)
def test_reading_a_job_imports_nothing_heavy(
    tmp_path: Path, args: list[str], spared: tuple[str, ...]
) -> None:
    """With static credentials and a kubeconfig of the usual form a part of the standard library is enough."""
    job = (
        b'{"metadata": {"name": "a", "namespace": "default", "creationTimestamp": "2026-11-21T01:00:00Z"},'
        b' "spec": {"mpiReplicaSpecs": {}}}'
    )

    launcher = (
        b'{"metadata": {"name": "a-launcher", "namespace": "default", "labels": {"training.kubeflow.org/job-role": "launcher"},'
        b' "creationTimestamp": "2026-11-21T01:00:00Z"}, "spec": {"containers": [{"name": "mpi"}]},'
        b' "status": {"phase": "Succeeded", "containerStatuses": [{"name": "mpi", "state": {"terminated": {"exitCode": 0}}}]}}'
    )

    def rule(seen: Seen) -> Reply:
        if "/log" in seen.path:
            return Reply(body=b"done\n")
        return Reply(body=b'{"items": [%s]}' % launcher if "/pods" in seen.path else job)

    with serve(tmp_path, rule) as server:
        pair = server.authority.client("ann")
        config = tmp_path / "config"
        config.write_text(
            f"""apiVersion: v1
clusters:
- cluster:
    certificate-authority: {server.authority.certificate}
    server: {server.url}
  name: kind
contexts:
- context:
    cluster: kind
    user: kind
  name: kind
current-context: kind
kind: Config
users:
- name: kind
  user:
    client-certificate-data: {b64encode(pair.certificate.read_bytes()).decode()}
    client-key-data: {b64encode(pair.key.read_bytes()).decode()}
"""
        )
        assert set() == imported(*args, "-n", "default", f"--kubeconfig={config}", among=(*HEAVY, *spared))


def test_the_tools_that_the_tests_need_are_here() -> None:
    """A test that finds no kubectl would compare nothing."""
    assert shutil.which("kubectl", path=str(PROGRAMS))
