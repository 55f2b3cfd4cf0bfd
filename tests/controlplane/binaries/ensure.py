"""Builds the components once into the user's cache, keyed by everything that can change the result."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from tests.controlplane.binaries.locks import locked
from tests.controlplane.binaries.pins import pinned_version
from tests.controlplane.binaries.toolchain import Go, find_go
from tests.controlplane.binaries.tools import COSCHEDULING, EXTRAS, TOOLS, Binary, Patch, Tool
from tests.controlplane.errors import BuildFailed
from tests.controlplane.paths import SOURCES, cache_root

_FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false")


@dataclass(frozen=True, slots=True)
class Built:
    """Folders of the cache in which the binaries and the manifests of all tools lie."""

    folders: tuple[Path, ...]

    def __or__(self, other: Self) -> Self:
        """Return what is in either."""
        return type(self)((*self.folders, *other.folders))

    def binary(self, name: str) -> Path:
        """Return the executable called ``name``."""
        return self._find(Path("bin") / name)

    def manifest(self, name: str) -> Path:
        """Return the YAML file called ``name``."""
        return self._find(Path("manifests") / name)

    def manifests(self, pattern: str) -> list[Path]:
        """Return the YAML files whose names match ``pattern``, sorted."""
        return sorted(path for folder in self.folders for path in (folder / "manifests").glob(pattern))

    def _find(self, relative: Path) -> Path:
        return next(folder / relative for folder in self.folders if (folder / relative).exists())


def ensure_extras(names: Iterable[str], progress: IO[str] | None = None) -> Built:
    """Build what is missing of ``EXTRAS`` by *names*, and
    return where they lie; raises as ``ensure_built`` does.
    """
    progress = progress or sys.stderr
    go = find_go(progress)
    return Built(tuple(ensure_tool(EXTRAS[name], go, progress) for name in names))


def ensure_built(*, coscheduling: bool = False, progress: IO[str] | None = None) -> Built:
    """Build whatever is missing and return where it lies; seconds when all is there.

    Where nothing is, that takes five minutes on two cores.

    Raises ToolchainMissing without a Go compiler, BuildFailed when a build fails.
    """
    progress = progress or sys.stderr
    go = find_go(progress)
    tools = (*TOOLS, COSCHEDULING) if coscheduling else TOOLS
    return Built(tuple(ensure_tool(tool, go, progress) for tool in tools))


def cache_key(tool: Tool, go_version: str) -> str:
    """Return what names a tool's folder in the cache: a digest of its pins, flags, compiler and platform."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((SOURCES / tool.folder / name).read_bytes())
    recipe = [repr(tool), *_FLAGS, go_version, platform.system(), platform.machine()]
    digest.update("\n".join(recipe).encode())
    return digest.hexdigest()[:16]


def ensure_tool(tool: Tool, go: Go, progress: IO[str]) -> Path:
    """Return the folder in which the binaries and manifests of
    *tool* lie, built by *go* if they are missing.
    """
    home = cache_root() / f"{tool.folder}-{cache_key(tool, go.version)}"
    if home.exists():
        return home
    with locked(home):
        if not home.exists():
            _build_tool(tool, go, home, progress)
    return home


def _build_tool(tool: Tool, go: Go, home: Path, progress: IO[str]) -> None:
    """Build into a folder next to ``home`` and rename it: a half-built tool is never seen."""
    scratch = home.with_name(f"{home.name}.building")
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "bin").mkdir(parents=True)
    (scratch / "manifests").mkdir()
    extra = _patched(tool.patch, go, tool, scratch / "patched") if tool.patch else []
    if tool.binaries:
        began = time.monotonic()
        names = ", ".join(binary.name for binary in tool.binaries)
        print(f"controlplane: building {names} (once; minutes) ...", file=progress, flush=True)
        _go(go, tool, _build_arguments(tool.binaries, scratch / "bin", extra))
        for binary in tool.binaries:
            (scratch / "bin" / binary.default_name).rename(scratch / "bin" / binary.name)
        print(f"controlplane: built {names} in {time.monotonic() - began:.0f} s", file=progress, flush=True)
    for manifests in tool.manifests:
        module = _module_folder(go, tool, manifests.module)
        for name, path in manifests.files.items():
            _copy(module / path, scratch / "manifests" / name)
    shutil.rmtree(scratch / "patched", ignore_errors=True)
    scratch.rename(home)


def _build_arguments(binaries: Iterable[Binary], folder: Path, extra: list[str]) -> list[str]:
    """Name all binaries to one command: while one is linked, by one thread, others are still compiled."""
    ldflags = [f"-ldflags={binary.package}={' '.join(binary.ldflags)}" for binary in binaries]
    packages = [binary.package for binary in binaries]
    return ["build", *_FLAGS, *extra, *ldflags, "-o", f"{folder}{os.sep}", *packages]


def _patched(patch: Patch, go: Go, tool: Tool, folder: Path) -> list[str]:
    """Change a copy of the module, and return the build flag that makes Go use the copy."""
    copy = folder / "module"
    _copy(_module_folder(go, tool, patch.module), copy)
    text = (copy / patch.file).read_text()
    if text.count(patch.old) != 1:
        raise BuildFailed(f"{patch.file} of {patch.module} does not hold {patch.old!r} once: {patch.why}")
    (copy / patch.file).write_text(text.replace(patch.old, patch.new))
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(SOURCES / tool.folder / name, folder / name)
    _go(go, tool, ["mod", "edit", f"-replace={patch.module}={copy}", str(folder / "go.mod")])
    return [f"-modfile={folder / 'go.mod'}"]


def _copy(source: Path, target: Path) -> None:
    """Copy a file, or a folder with all that is in it, of Go's module cache."""
    if source.is_file():
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, target)
        return
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*/")):
        path.chmod(0o755)  # folders of Go's module cache are read-only


def _module_folder(go: Go, tool: Tool, module: str) -> Path:
    """Download the pinned version of ``module``; Go itself checks it against go.sum."""
    answer = json.loads(
        _go(go, tool, ["mod", "download", "-json", f"{module}@{pinned_version(tool.folder, module)}"])
    )
    return Path(answer["Dir"])


def _go(go: Go, tool: Tool, arguments: Iterable[str]) -> str:
    command = [str(go.executable), *arguments]
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(
        command, cwd=SOURCES / tool.folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise BuildFailed(f"`{' '.join(command)}` in {tool.folder} failed:\n{last}")
    return done.stdout
