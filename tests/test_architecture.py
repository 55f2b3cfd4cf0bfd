"""The house rules that a machine can hold."""

import shutil
import subprocess
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
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


MOST_MODULES = 12
SUITES = (
    "tests/contract",
    "tests/controlplane",
    "tests/e2e",
    "tests/harness",
    "tests/hostile",
    "tests/packaging",
    "tests/ranks",
)
"""They hold what no single module does: whole clusters, the tests' own tools, what is shipped."""
UNMIRRORED = {
    "tests/test_architecture.py": "the tree as a whole",
    "tests/test_security.py": "the page on security, against the code",
    "tests/test_repository.py": "the files that hosting, editors and hooks read",
    "tests/cli/test_any_flags.py": "every command, on whatever is typed",
    "tests/gang/test_kinds.py": "every back-end with every kind of job",
    "tests/cli/test_arena.py": "every command and flag of Arena",
    "tests/cli/test_help.py": "the help of every command",
    "tests/cli/test_narrow_terminal.py": "every command, on a terminal of 60 columns",
    "tests/jobs/logs/test_torture.py": "logs of 64 instances at once, over real connections",
    "tests/kube/test_as_kubectl.py": "kubeconfig and transport against kubectl as the oracle",
    "tests/output/test_schemas.py": "the documented shapes of JSON output",
    "tests/planner/test_exactness.py": "the whole planner against brute force",
    "tests/planner/test_worked_examples.py": "the examples in the planner's docstrings",
    "tests/test_hostile_objects.py": "every reader of objects, through planning and every output",
    "tests/output/test_hostile_text.py": "every form of output, on names and texts that act on terminals and pages",
    "tests/topology/test_any_object.py": "all readers of objects, on whatever an API server may hold",
    "tests/topology/test_any_text.py": "all readers of texts, on whatever a file may hold",
    "tests/topology/test_on_api_server.py": "all sources, on a real API server",
    "tests/sandbox/test_command.py": "the running sandbox, as its user types",
    "tests/sandbox/test_gangs.py": "the running sandbox: gangs",
    "tests/sandbox/test_import.py": "the running sandbox: imported clusters",
    "tests/sandbox/test_jobs.py": "the running sandbox: jobs",
    "tests/sandbox/test_kubectl.py": "the running sandbox: kubectl as its client",
    "tests/sandbox/test_nodes.py": "the running sandbox: nodes",
    "tests/sandbox/test_reading.py": "the running sandbox: what clients read",
    "tests/sandbox/test_throughput.py": "the running sandbox: what its jobs print",
}


def crowded(root: Path, *folders: str) -> set[str]:
    """Return the folders below *folders* of *root* that hold more than a dozen modules, tests and their tools apart."""
    modules = [
        path for folder in folders for path in (root / folder).rglob("*.py") if path.name != "__init__.py"
    ]
    count = Counter((path.parent, path.name.startswith("test_")) for path in modules)
    return {str(folder.relative_to(root)) for (folder, _), size in count.items() if size > MOST_MODULES}


def unmirrored(root: Path) -> set[str]:
    """Return the test modules of *root* that are named like no module or package of the product, nor a suite."""
    names = {path.relative_to(root) for path in (root / "tests").rglob("test_*.py")}
    tests = [name for name in names if not str(name).startswith(tuple(f"{suite}/" for suite in SUITES))]
    return {str(name) for name in tests if not any(place.exists() for place in _tested(root, name))}


def not_entered(root: Path, patterns: Sequence[str]) -> set[str]:
    """Return the folders of tests that pytest passes by, because their names match its *patterns*."""
    folders = {path.parent.relative_to(root) for path in (root / "tests").rglob("test_*.py")}
    return {
        str(folder) for folder in folders for part in folder.parts if any(fnmatch(part, p) for p in patterns)
    }


def _tested(root: Path, test: Path) -> Iterator[Path]:
    """Yield the places where what *test* is named after may lie, a module or a package."""
    for package in (root / "arena_topo", root):
        module = package / test.relative_to("tests").with_name(test.name.removeprefix("test_"))
        yield module
        yield module.with_suffix("")


def test_no_folder_is_crowded() -> None:
    """A reader takes in a dozen names at once."""
    assert set() == crowded(ROOT, "arena_topo", "tests", "benchmarks", "tools")


def test_every_test_module_mirrors_a_module() -> None:
    """Or is named above, with what it tests instead."""
    assert UNMIRRORED.keys() == unmirrored(ROOT)


def test_pytest_enters_every_folder_of_tests(pytestconfig: pytest.Config) -> None:
    """It passes by folders of certain names, such as ``build``, without a word."""
    assert set() == not_entered(ROOT, pytestconfig.getini("norecursedirs"))


def test_these_rules_can_fail(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """A thirteenth module is seen, and so are a test whose module has gone and a folder that pytest passes by."""
    (tmp_path / "arena_topo").mkdir()
    (tmp_path / "tests").mkdir()
    for index in range(MOST_MODULES):
        (tmp_path / "arena_topo" / f"m{index}.py").touch()
        (tmp_path / "tests" / f"test_m{index}.py").touch()
    assert (set(), set()) == (crowded(tmp_path, "arena_topo", "tests"), unmirrored(tmp_path))
    (tmp_path / "arena_topo" / "m12.py").touch()
    (tmp_path / "arena_topo" / "m0.py").unlink()
    (tmp_path / "arena_topo" / "m13.py").touch()

    assert {"arena_topo"} == crowded(tmp_path, "arena_topo", "tests")
    assert {"tests/test_m0.py"} == unmirrored(tmp_path)

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

PyYAML for a plain kubeconfig, a file on a disk for the client's key, checksums for the name of a cache, click's search for
long flags that are like a short one, the tables of international names, and the kinds of jobs that nobody has named.
"""
SPARED_BY_LOGS = (*SPARED, "arena_topo.model.job.job_view", "arena_topo.jobs.status.view")
"""What a log goes without beside these: the view of a job, whose values take a twentieth of the time to define."""


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
