"""The documented image of arena-topo, built as documented by a real builder, and run.

buildah builds it. The base image would come from a registry, which tests do not ask: its place takes Debian
with its packages of that Python, under the same name. What ``docker build`` would do otherwise is to pull.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.paths import ROOT

DOCKERFILE = ROOT / "docs/how-to/image/arena-topo.Dockerfile"
SNAPSHOT = ROOT / "docs/how-to/python/cluster.json"
PACKAGES = ("buildah", "mmdebstrap")
DEBIAN = {"3.13": "trixie", "3.11": "bookworm"}
"""The release of Debian that has a version of Python."""
CERTIFICATES = "/etc/ssl/certs:/etc/ssl/certs:ro"
"""What this machine trusts, the base as well: it may reach its package index through a proxy."""

Buildah = Callable[..., str]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Buildah:
    """Return a function that runs buildah with a storage of the test's own, and returns what it printed."""
    if missing := [name for name in PACKAGES if not shutil.which(name)]:
        pytest.skip(f"nothing builds images here: make image-packages installs {' and '.join(missing)}")
    if os.geteuid():
        pytest.skip("only root can build an image here")
    folder = tmp_path_factory.mktemp("storage")
    # Mounts end with the namespace, so that nothing holds the folder afterwards.
    start = [
        "unshare",
        "--mount",
        "buildah",
        "--root",
        str(folder / "root"),
        "--runroot",
        str(folder / "run"),
    ]

    def run(*arguments: str | Path) -> str:
        env = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        done = subprocess.run([*start, *arguments], env=env, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def image(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the base and, by the documented Dockerfile, the image; return a container of it."""
    folder = tmp_path_factory.mktemp("base")
    base = DOCKERFILE.read_text("utf-8").split("FROM ")[1].split()[0]
    version = base.removeprefix("python:").removesuffix("-slim")
    packages = "python3-venv,python-is-python3,ca-certificates"
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={packages}", DEBIAN[version]]
    made = subprocess.run([*command, folder / "base.tar"], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"Debian cannot be fetched: {made.stderr.strip().splitlines()[-1]}")
    (folder / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n")
    buildah("bud", "--tag", f"docker.io/library/{base}", folder)
    (folder / "base.tar").unlink()
    local = ["--pull-never", "--volume", CERTIFICATES]
    buildah("bud", *local, "--tag", "arena-topo:1.0", "--file", DOCKERFILE, ROOT)
    return buildah("from", "--pull-never", "arena-topo:1.0").strip()


@pytest.mark.full("a minute: Debian and all packages are installed into an image")
def test_the_image_runs_as_documented(buildah: Buildah, image: str) -> None:
    """Its entrypoint plans a job, has what controller and agent need, and may write nowhere it runs from."""
    config = json.loads(buildah("inspect", image))["OCIv1"]["config"]
    (program,) = config["Entrypoint"]

    def run(*command: str) -> str:
        return buildah("run", "--volume", f"{SNAPSHOT}:/cluster.json:ro", image, "--", *command)

    planned = run(program, "plan", "mpi", "--workers=4", "--gpus=8", "--from=/cluster.json")
    assert "4 workers of 8 GPUs on 4 nodes" in planned
    assert "65532 65532\n" == run("sh", "-c", "echo $(id -u) $(id -g)")
    python = str(Path(program).parent / "python")
    run(python, "-c", "import grpc, prometheus_client, pynvml")
    assert "" == run("sh", "-c", f"find {Path(program).parents[1]} -writable -not -type l")
