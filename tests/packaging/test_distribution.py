"""What is built contains what it must, and runs wherever it is installed.

Dependencies are not fetched again: a fresh environment sees those of this one through a path file.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from build import ProjectBuilder

from tests.paths import ROOT

TEMPLATES = {
    "_pod.yaml.j2",
    "job.v1.yaml.j2",
    "jobset.v1alpha2.yaml.j2",
    "mpijob.v1.yaml.j2",
    "mpijob.v1alpha1.yaml.j2",
    "mpijob.v2beta1.yaml.j2",
    "pytorchjob.v1.yaml.j2",
    "tfjob.v1.yaml.j2",
    "trainjob.v1alpha1.yaml.j2",
}
DRY_RUN = ("submit", "mpi", "--dry-run=client", "-o", "name", "--name=a", "--image=b", "--", "true")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution."""
    return Path(ProjectBuilder(ROOT).build("sdist", tmp_path_factory.mktemp("sdist")))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the checkout."""
    return Path(ProjectBuilder(ROOT).build("wheel", tmp_path_factory.mktemp("wheel")))


def unpacked(sdist: Path, folder: Path) -> Path:
    """Return the source tree in *sdist*."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the one environment into which each test installs what it tries, in place of what was there."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    show = "import sysconfig; print(sysconfig.get_path('purelib'))"
    command = [str(folder / "bin" / "python"), "-c", show]
    site = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    (Path(site) / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


def installed(environment: Path, *what: str) -> Path:
    """Install *what* into *environment* and return its folder of programs."""
    programs = environment / "bin"
    command = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet"]
    command += ["--no-index", "--no-deps", "--no-build-isolation", "--force-reinstall", *what]
    subprocess.run(command, check=True)
    return programs


def works(programs: Path, cwd: Path) -> None:
    """Run the program from elsewhere, by both of its names."""
    env = {
        "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin",
        "HOME": str(cwd),
    }
    done = subprocess.run(
        ["arena-topo", *DRY_RUN], env=env, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert (0, "mpijob.kubeflow.org/a\n") == (done.returncode, done.stdout), done.stderr
    plugin = ["kubectl", "arena-topo", "version", "--client"]
    done = subprocess.run(plugin, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("arena-topo: v"), done.stderr


def test_the_wheel_has_the_templates_in_the_package(wheel: Path) -> None:
    """And nothing of the tests."""
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {f"arena_topo/templates/{name}" for name in TEMPLATES} == {n for n in names if "templates/" in n}
    assert {"arena_topo/py.typed", "arena_topo/__main__.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]


def test_the_sdist_has_the_templates_at_the_top(sdist: Path) -> None:
    """With everything that is needed to test it."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {f"templates/{name}" for name in TEMPLATES} == {n for n in names if n.startswith("templates/")}
    assert {
        "Makefile",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "tests/conftest.py",
        "docs/reference/commands/README.md",
    } <= names


def test_the_wheel_runs(wheel: Path, environment: Path, tmp_path: Path) -> None:
    """Its templates come with it."""
    works(installed(environment, str(wheel)), tmp_path)


def test_the_sdist_makes_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    """As a distributor makes it: what runs from the checkout's wheel runs from theirs."""
    source = unpacked(sdist, tmp_path / "source")
    other = Path(ProjectBuilder(source).build("wheel", tmp_path / "dist"))

    assert contents(wheel) == contents(other)


def contents(wheel: Path) -> dict[str, int]:
    """Return the checksum of each file in *wheel*."""
    return {file.filename: file.CRC for file in zipfile.ZipFile(wheel).infolist()}


def test_an_editable_install_runs(sdist: Path, environment: Path, tmp_path: Path) -> None:
    """With the templates of the checkout."""
    source = unpacked(sdist, tmp_path / "source")
    programs = installed(environment, "--editable", str(source))
    role = '{"template": {"spec": {"containers": [{"name": "from-the-checkout"}]}}}'
    (source / "templates" / "mpijob.v2beta1.yaml.j2").write_text(
        'apiVersion: "kubeflow.org/v2beta1"\nkind: "MPIJob"\nmetadata: {name: "a"}\n'
        f"spec: {{mpiReplicaSpecs: {{Launcher: {role}, Worker: {role}}}}}\n"
    )
    works(programs, tmp_path)
    shown = subprocess.run(
        [programs / "arena-topo", *DRY_RUN[:4], "yaml", *DRY_RUN[5:]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "from-the-checkout" in shown.stdout
