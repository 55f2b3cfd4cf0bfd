"""What real ranks need of a machine, and whether this one has it."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.ranks.images import MPICH, OPEN_MPI_4, OPEN_MPI_5, TORCHRUN

PACKAGES = "make mpi-packages"
PY_SPY = str(Path(sys.prefix) / "bin/py-spy")
_PROGRAMS = (
    OPEN_MPI_4,
    OPEN_MPI_5,
    MPICH,
    PY_SPY,
    "mpirun",
    "sshd",
    "ssh",
    "ssh-keygen",
    "ip",
    "tc",
    "nsenter",
    "unshare",
)
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_TRIAL = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
ip link add trial type bridge
tc qdisc add dev trial root tbf rate 1mbit burst 128kb latency 100ms
"""


@cache
def why_unavailable() -> str:
    """Return why no rank can run on this machine and what would help, or nothing."""
    if sys.platform != "linux":
        return "real ranks need Linux: its namespaces stand in for machines"
    if os.geteuid() != 0:
        return "real ranks need root, for network namespaces and overlay mounts"
    missing = [program for program in _PROGRAMS if shutil.which(program, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} missing here; as root: {PACKAGES}"
    trial = ["unshare", "--mount", "--net", "--pid", "--fork", "bash", "-c", _TRIAL]
    tried = subprocess.run(
        trial, capture_output=True, text=True, check=False, env={**os.environ, "PATH": _PATH}
    )
    if tried.returncode:
        return f"this machine refuses what real ranks need: {tried.stderr.strip()}"
    return ""


def why_no_torch() -> str:
    """Return why no rank of torch can run on this machine and what would help, or nothing."""
    return "" if TORCHRUN.exists() else "torch is missing here: make torch"
