"""Pack arena-topo and what it depends on into one file, and krew's manifest of it.

::

    python -m tools.single_file dist/arena_topo-1.0-py3-none-any.whl            # for this Python
    python -m tools.single_file WHEEL --python 3.11 --python 3.12 --python 3.13  # for several
    python -m tools.single_file WHEEL --url https://example.com/releases         # and krew's manifest

The file is a zip that Python runs. Compiled modules cannot be imported from a zip, so its first start unpacks
it into the user's cache, in a folder named after its content, and every start runs from there. It is for one
system and machine, and for the versions of Python that it was packed for: what is compiled is in it once for
each.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

NAME = "arena-topo"
PROGRAM = "kubectl-arena_topo"
"""What krew's link and kubectl call it."""

_MAIN = '''"""Unpack this file once, and run what is in it."""
import os, sys, zipfile
NAME, IDENTITY, VERSIONS = {name!r}, {identity!r}, {versions!r}
version = "%d.%d" % sys.version_info[:2]
if version not in VERSIONS:
    sys.exit("error: this file is for Python " + ", ".join(VERSIONS) + ", and python3 is " + version)
cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
folder = os.path.join(cache, NAME, "app", IDENTITY)
if not os.path.isdir(folder):
    import shutil, tempfile
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    unpacked = tempfile.mkdtemp(dir=os.path.dirname(folder))
    with zipfile.ZipFile(os.path.dirname(os.path.abspath(__file__))) as archive:
        archive.extractall(unpacked)
    try:
        os.rename(unpacked, folder)
    except OSError:
        # Another process was quicker.
        shutil.rmtree(unpacked, ignore_errors=True)
sys.path[:0] = [os.path.join(folder, "lib"), os.path.join(folder, "lib-" + version)]
from arena_topo.__main__ import main
main()
'''


def pack(wheel: Path, target: Path, versions: Sequence[str] = (), pip: Sequence[str] = ()) -> Path:
    """Write the file of *wheel* to *target* and return it.

    *versions* of Python such as 3.12, this one's by default; *pip* are further arguments, such as an index.
    Raises ``CalledProcessError`` where a dependency has no wheel for a version.
    """
    here = "{}.{}".format(*sys.version_info[:2])
    wanted = tuple(versions) or (here,)
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        for version in wanted:
            apart = tree / f"lib-{version}"
            command = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-compile",
                "--target",
                str(apart),
            ]
            # pip refuses the wheels of another Python unless it is to build nothing.
            other = [] if version == here else ["--python-version", version, "--only-binary=:all:"]
            subprocess.run([*command, *other, *pip, str(wheel)], check=True)
            shutil.rmtree(apart / "bin", ignore_errors=True)
            for package in sorted(apart.iterdir()):
                _shared(package, tree / "lib")
        identity = _identity(tree)
        main = _MAIN.format(name=NAME, identity=identity, versions=wanted)
        _write(target, tree, main)
    return target


def _shared(package: Path, lib: Path) -> None:
    """Move *package* to *lib*, where all versions find it, unless something in it is compiled."""
    is_compiled = package.suffix == ".so" or any(package.rglob("*.so"))
    if is_compiled:
        return
    lib.mkdir(exist_ok=True)
    if (lib / package.name).exists():
        shutil.rmtree(package) if package.is_dir() else package.unlink()
    else:
        package.rename(lib / package.name)


def _files(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*") if path.is_file())


def _identity(tree: Path) -> str:
    digest = hashlib.sha256()
    for path in _files(tree):
        digest.update(f"{path.relative_to(tree)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _write(target: Path, tree: Path, main: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in _files(tree):
                # Without their times, so that the same wheel makes the same file.
                archive.writestr(
                    zipfile.ZipInfo(str(path.relative_to(tree))), path.read_bytes(), zipfile.ZIP_DEFLATED
                )
            archive.writestr(zipfile.ZipInfo("__main__.py"), main)
    target.chmod(0o755)


# krew: an archive of the file, and a manifest that names its checksum.

_MANIFEST = """apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: {name}
spec:
  version: "v{version}"
  shortDescription: Submit topology-aware gang jobs
  description: |
    Submits gang-scheduled, topology-aware training jobs to any Kubernetes
    cluster, and says before where they will run, why, and how fast.
  caveats: |
    It needs Python {pythons} as python3.
  platforms:
    - selector:
        matchLabels:
          os: {system}
          arch: {machine}
      uri: {url}/{archive}
      sha256: {checksum}
      bin: {program}
"""

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Go's words for machines, which krew takes."""


def krew(file: Path, folder: Path, *, version: str, url: str, versions: Sequence[str]) -> tuple[Path, Path]:
    """Write krew's archive of *file* and its manifest into *folder*, and return both; they go to *url*."""
    import platform

    system, machine = platform.system().lower(), platform.machine()
    archive = folder / f"{NAME}-{version}-{system}-{machine}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(file, PROGRAM)
        packed.add(Path(__file__).parent.parent / "LICENSE", "LICENSE")
    manifest = folder / f"{NAME}.yaml"
    text = _MANIFEST.format(
        name=NAME,
        version=version,
        pythons=", ".join(versions),
        system=system,
        machine=_MACHINES.get(machine, machine),
        url=url.rstrip("/"),
        archive=archive.name,
        checksum=hashlib.sha256(archive.read_bytes()).hexdigest(),
        program=PROGRAM,
    )
    manifest.write_text(text, "utf-8")
    return archive, manifest


def main(arguments: Iterable[str] | None = None) -> int:
    """Write the files next to the wheel and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.single_file", description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument(
        "--python", action="append", default=[], help="a version such as 3.12; this one by default"
    )
    parser.add_argument("--url", default="", help="where the archive will be: writes krew's manifest, too")
    given = parser.parse_args(None if arguments is None else list(arguments))
    version = given.wheel.name.split("-")[1]
    versions = given.python or ["{}.{}".format(*sys.version_info[:2])]
    written = [pack(given.wheel, given.wheel.parent / f"{NAME}-{version}.pyz", versions)]
    if given.url:
        written += krew(written[0], given.wheel.parent, version=version, url=given.url, versions=versions)
    print("written:", *written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
