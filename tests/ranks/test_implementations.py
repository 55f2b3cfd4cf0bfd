"""Ranks of each MPI find their hosts: none is started where the launcher is, unless that was asked for."""

import sys

import pytest

from tests.ranks.images import MPI4PY_RANKS
from tests.ranks.jobs import Jobs, mpirun, places_of, ranks_in

pytestmark = pytest.mark.usefixtures("nodes")

_GANG = ("--gang", "--gputopology=true")


@pytest.mark.parametrize(("shape", "slots"), [((), 1), (("--coalesce",), 4)], ids=["apart", "coalesced"])
def test_open_mpi_5_starts_its_ranks_in_the_workers(jobs: Jobs, shape: tuple[str, ...], slots: int) -> None:
    """It reads other variables than the operator sets, and would start all of them in the launcher."""
    jobs.submit("newer", *_GANG, *shape, image="openmpi5", workers=4, command=mpirun(4))
    ranks = jobs.ranks("newer")

    assert jobs.places("newer", slots) == places_of(ranks)
    assert "SUCCEEDED" in jobs.wait("newer", "SUCCEEDED")


def test_mpich_starts_its_ranks_in_the_workers(jobs: Jobs) -> None:
    """The operator writes its hostfile in the form that --mpi-implementation names."""
    jobs.submit(
        "mpich", *_GANG, "--mpi-implementation=MPICH", image="mpich", command="mpirun -np 4 /opt/ranks/ranks"
    )

    assert jobs.places("mpich") == places_of(jobs.ranks("mpich"))


def test_ranks_in_python_compute(jobs: Jobs) -> None:
    """By mpi4py, which takes the Open MPI that the image has."""
    python = f"{sys.prefix}/bin/python {MPI4PY_RANKS} MODEL"
    flags = ("-e", "MPI4PY_LIBMPI=/usr/lib/x86_64-linux-gnu/libmpi.so.40", "-e", "MODEL=vgg16")
    command = mpirun(4).replace("/opt/ranks/ranks", python)
    jobs.submit("python", *_GANG, *flags, command=command)
    ranks = ranks_in(jobs.log("python"))

    assert jobs.places("python") == places_of(ranks)
    assert [{"MODEL": "vgg16"}] * 4 == [rank.env for rank in ranks]
