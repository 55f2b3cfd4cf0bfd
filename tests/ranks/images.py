"""The images of the tests: layers of files over this machine's
own file system, by the Dockerfile of the documentation.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.paths import ROOT
from tests.ranks.dockerfile import build, stages

DOCKERFILE = ROOT / "docs/how-to/image/Dockerfile"
_PROGRAMS = Path(__file__).parent / "programs"
# More ranks than cores: one that polls without pause would take the core of the one that it waits for.
_OPEN_MPI = "mpi_yield_when_idle = 1\n"

RANKS = "/opt/ranks/ranks"
"""The program of ``programs/ranks.c`` in every image, for the MPI that the image has."""
FAULTY = "/opt/ranks/faulty.py"
"""The ranks of ``programs/faulty.py``, in the image with
Open MPI 5; pods do not see the checkout if it is in /tmp.
"""
_PYTHON = "usr/local/sbin/python"
_TENSORFLOW = (
    "registry.cn-hangzhou.aliyuncs.com/kubernetes-image-hub/tensorflow-benchmark:tf2.3.0-py3.7-cuda10.1"
)
"""The image of one of the guides, in which ``programs/ranks.py`` takes the place of the benchmark."""

_ENVIRONMENT = Path(sys.prefix) / "bin"
"""Where Open MPI 5 and mpi4py lie, from PyPI."""
_PATH = f"{_ENVIRONMENT}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TORCHRUN = _ENVIRONMENT.parent / "torch" / "bin" / "torchrun"
"""That of torch itself; the image ``torch`` has a small program in its place."""
OPEN_MPI_4 = "/usr/bin/mpicc.openmpi"
OPEN_MPI_5 = str(_ENVIRONMENT / "mpicc")
MPICH = "/usr/bin/mpicc.mpich"
"""The compilers by which the tests know that an MPI is here."""


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """An image as the agent's configuration names it."""

    layer: str
    hidden: tuple[str, ...] = ()
    user: tuple[int, int] = (0, 0)
    environment: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the image as JSON values."""
        return asdict(self)


def build_images(folder: Path) -> dict[str, ImageSpec]:
    """Make the images' layers below *folder* and return the
    images by name; the one without a name is any other.
    """
    built = stages(DOCKERFILE.read_text("utf-8"))
    base, users = folder / "base", folder / "user"
    for stage, layer in (("root", base), ("user", users)):
        build(built[stage], layer)
        _write(layer, "etc/openmpi/openmpi-mca-params.conf", _OPEN_MPI)
        (layer / "opt/ranks").mkdir(parents=True)
        _compile(OPEN_MPI_4, layer)
    # The guides' jobs start python with a benchmark that takes GPUs: the small program takes its place.
    _write(base, _PYTHON, f'#!/bin/sh\nexec {RANKS} "$@"\n', mode=0o755)
    newer, mpich, tensorflow = folder / "openmpi5", folder / "mpich", folder / "tensorflow"
    for layer in (newer, mpich, tensorflow):
        subprocess.run(["cp", "-a", str(base), str(layer)], check=True)
    _compile(OPEN_MPI_5, newer)
    _compile(MPICH, mpich)
    # What the name mpirun means differs by image, as it does by distribution.
    _write(mpich, "usr/local/bin/mpirun", '#!/bin/sh\nexec /usr/bin/mpirun.mpich "$@"\n', mode=0o755)
    shutil.copy(_PROGRAMS / "ranks.py", tensorflow / "opt/ranks/ranks.py")
    for program in ("faulty.py", "faults.py"):
        shutil.copy(_PROGRAMS / program, newer / "opt/ranks" / program)
    _write(tensorflow, _PYTHON, _mpi4py(), mode=0o755)
    torch = folder / "torch"
    subprocess.run(["cp", "-a", str(base), str(torch)], check=True)
    for program in ("torchrun", "meeting"):
        text = f"#!{sys.prefix}/bin/python\n{(_PROGRAMS / f'{program}.py').read_text('utf-8')}"
        _write(torch, f"usr/local/bin/{program}", text, mode=0o755)
    genuine = folder / "genuine-torch"
    subprocess.run(["cp", "-a", str(torch), str(genuine)], check=True)
    _write(genuine, "usr/local/bin/torchrun", f'#!/bin/sh\nexec {TORCHRUN} "$@"\n', mode=0o755)
    # The operator's init container asks for the master by it, and here names are in the hosts file.
    _write(base, "usr/local/bin/nslookup", '#!/bin/sh\nexec getent hosts "$1"\n', mode=0o755)
    launchers = tuple(f"/usr/bin/{name}" for name in ("mpirun", "mpiexec", "orterun"))
    return {
        "": ImageSpec(str(base)),
        "openmpi5": ImageSpec(str(newer), environment={"PATH": _PATH}),
        "mpich": ImageSpec(str(mpich)),
        "torch": ImageSpec(str(torch)),
        "genuine-torch": ImageSpec(str(genuine)),
        _TENSORFLOW: ImageSpec(str(tensorflow)),
        "user": _of_user(built["user"].user, users),
        "without-mpirun": ImageSpec(str(base), hidden=launchers),
        "without-sshd": ImageSpec(str(base), hidden=("/usr/sbin/sshd",)),
    }


def _mpi4py() -> str:
    """Return the script that starts Python with mpi4py, which takes the Open MPI that the image has."""
    show = subprocess.run([OPEN_MPI_4, "--showme:libdirs"], capture_output=True, text=True, check=True)
    library = Path(show.stdout.split()[0]) / "libmpi.so"
    return f'#!/bin/sh\nMPI4PY_LIBMPI={library} exec {sys.prefix}/bin/python /opt/ranks/ranks.py "$@"\n'


def _of_user(name: str, layer: Path) -> ImageSpec:
    lines = (line.split(":") for line in (layer / "etc/passwd").read_text("utf-8").splitlines())
    user, group, home = next((int(words[2]), int(words[3]), words[5]) for words in lines if words[0] == name)
    return ImageSpec(str(layer), user=(user, group), environment={"HOME": home})


def _compile(compiler: str, layer: Path) -> None:
    program = layer / RANKS.lstrip("/")
    plain = {**os.environ, "PATH": "/usr/bin:/bin"}
    subprocess.run([compiler, "-O2", "-o", str(program), str(_PROGRAMS / "ranks.c")], check=True, env=plain)


def _write(layer: Path, name: str, text: str, mode: int = 0o644) -> None:
    path = layer / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)
