"""Every documented way to install arena-topo, from nothing but a local index, to the first plan."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from build import ProjectBuilder

from arena_topo.controller.manifests import controller_objects
from tests.paths import ROOT
from tools.single_file import PROGRAM, krew, pack
from tools.wheels import index, requirements

PLAN = ("plan", "mpi", "--workers=4", "--gpus=8", "--from", str(ROOT / "docs/how-to/python/cluster.json"))
VERSION = "{}.{}".format(*sys.version_info[:2])
TOOLS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def tool(name: str) -> str:
    """Return the program *name*; skip the test where it is not installed."""
    if found := shutil.which(name, path=TOOLS):
        return found
    pytest.skip(
        f"{name} is not installed: pip install --group test brings uv and pipx, and krew is krew's own"
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    return Path(ProjectBuilder(ROOT).build("wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def simple(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of an index with the wheel and everything that the README's way of installing needs."""
    return index(tmp_path_factory.mktemp("index"), [wheel], requirements())


@pytest.fixture
def root(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user who has nothing."""
    return {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PYTHON": sys.executable,
    }


def run(*command: str | Path, env: dict[str, str], cwd: Path) -> str:
    """Run *command* far from the checkout and return what it printed."""
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def plans(printed: str) -> bool:
    """Whether a plan was printed."""
    return "4 workers of 8 GPUs on 4 nodes" in printed


@pytest.mark.full("ten seconds of pip: what the wheel has is tested in test_distribution.py")
def test_pip_installs_the_wheel_and_its_dependencies(
    simple: str, root: dict[str, str], tmp_path: Path
) -> None:
    """In an environment of its own, with the sandbox and the live view; nothing is missing or contradicts."""
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    run(programs / "pip", "install", "--index-url", simple, "arena-topo[sandbox]", env=root, cwd=tmp_path)
    run(programs / "pip", "check", env=root, cwd=tmp_path)

    assert plans(run(programs / "arena-topo", *PLAN, env=root, cwd=tmp_path))
    run(
        programs / "python",
        "-c",
        "import arena_topo.live.app, arena_topo.sandbox.server",
        env=root,
        cwd=tmp_path,
    )


def test_uv_installs_a_tool(simple: str, root: dict[str, str], tmp_path: Path) -> None:
    """Both of its names are on the path."""
    uv = tool("uv")
    run(uv, "tool", "install", "--default-index", simple, "arena-topo[sandbox]", env=root, cwd=tmp_path)

    assert plans(run(tmp_path / "bin" / "arena-topo", *PLAN, env=root, cwd=tmp_path))
    assert (tmp_path / "bin" / PROGRAM).exists()


@pytest.mark.full("five seconds: uvx resolves as uv does")
def test_uvx_runs_without_installing(simple: str, root: dict[str, str], tmp_path: Path) -> None:
    """The package is called as its program."""
    uvx = tool("uvx")

    assert plans(run(uvx, "--default-index", simple, "arena-topo", *PLAN, env=root, cwd=tmp_path))


@pytest.mark.full("ten seconds of pip, by pipx")
def test_pipx_installs_an_application(simple: str, root: dict[str, str], tmp_path: Path) -> None:
    """And nothing of what it depends on can be seen."""
    pipx = tool("pipx")
    run(pipx, "install", "--python", sys.executable, f"--pip-args=--index-url={simple}", "arena-topo", env=root, cwd=tmp_path)  # fmt: skip

    assert plans(run(tmp_path / "bin" / "arena-topo", *PLAN, env=root, cwd=tmp_path))


@pytest.fixture(scope="module")
def single(wheel: Path, simple: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack the single file."""
    return pack(wheel, tmp_path_factory.mktemp("single") / PROGRAM, pip=["--index-url", simple])


@pytest.mark.full("five seconds of pip and of zip")
def test_the_single_file_runs_anywhere(single: Path, root: dict[str, str], tmp_path: Path) -> None:
    """Unpacked once, by any number of processes, also as kubectl's plugin."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    shutil.copy(single, tmp_path / "bin" / PROGRAM)
    many = [
        subprocess.Popen([tmp_path / "bin" / PROGRAM, *PLAN], env=root, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]  # fmt: skip
    printed = [process.communicate()[0] for process in many]
    assert all(map(plans, printed))
    assert 1 == len(list((tmp_path / "cache" / "arena-topo" / "app").iterdir()))
    kubectl = Path(sys.executable).parent / "kubectl"
    assert plans(run(kubectl, "arena-topo", *PLAN, env=root, cwd=tmp_path))

    with zipfile.ZipFile(single) as archive:
        names = set(archive.namelist())
    assert "lib/arena_topo/templates/mpijob.v2beta1.yaml.j2" in names
    assert any(name.startswith(f"lib-{VERSION}/msgspec/") for name in names)


@pytest.mark.full("as the single file")
def test_a_single_file_of_another_python_says_so(single: Path, tmp_path: Path) -> None:
    """In place of an import that fails."""
    with zipfile.ZipFile(single) as archive:
        main = archive.read("__main__.py").decode().replace(VERSION, "2.7")
    (tmp_path / "__main__.py").write_text(main)
    done = subprocess.run([sys.executable, tmp_path], capture_output=True, text=True, check=False)

    assert (1, f"error: this file is for Python 2.7, and python3 is {VERSION}\n") == (
        done.returncode,
        done.stderr,
    )


@pytest.mark.full("as the single file")
def test_krews_manifest_names_its_archive(single: Path, root: dict[str, str], tmp_path: Path) -> None:
    """By its checksum; krew itself installs both, where it is installed."""
    archive, manifest = krew(
        single, tmp_path, version="1.0.0", url="https://example.com/r", versions=[VERSION]
    )
    document = yaml.safe_load(manifest.read_text())
    (platform,) = document["spec"]["platforms"]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    assert f"https://example.com/r/{archive.name}" == platform["uri"]
    assert PROGRAM == platform["bin"]

    program = tool("krew")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    env = {**root, "KREW_ROOT": str(tmp_path / "krew")}
    (tmp_path / "krew" / "index" / "default" / "plugins").mkdir(parents=True)
    run(program, "install", f"--manifest={manifest}", f"--archive={archive}", env=env, cwd=tmp_path)
    env["PATH"] = f"{tmp_path / 'krew' / 'bin'}:{env['PATH']}"
    kubectl = Path(sys.executable).parent / "kubectl"
    assert plans(run(kubectl, "arena-topo", *PLAN, env=env, cwd=tmp_path))


@pytest.fixture
def kustomized(tmp_path: Path) -> list[dict[str, object]]:
    """Return what ``kubectl apply -k`` would apply."""
    kubectl = Path(sys.executable).parent / "kubectl"
    command = [str(kubectl), "kustomize", str(ROOT / "docs" / "how-to" / "kustomize")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    return list(yaml.safe_load_all(done.stdout))


def test_the_controller_is_applied_by_kustomize(kustomized: list[dict[str, object]]) -> None:
    """The same objects as ``controller manifest`` prints, with the image that the kustomization names."""
    printed = controller_objects("registry.example.com/arena-topo:1.0")

    def ordered(objects: list[dict[str, object]]) -> list[str]:
        return sorted(json.dumps(one, sort_keys=True) for one in objects)

    assert ordered(printed) == ordered(kustomized)
