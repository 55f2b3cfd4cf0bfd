"""Ranks of each MPI find their hosts: none is started where the launcher is, unless that was asked for."""

import pytest

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


def test_ranks_of_another_user_than_root(jobs: Jobs) -> None:
    """In the image that the Dockerfile's stage ``user`` makes:
    server and ranks are mpiuser's, on a port of their own.
    """
    command = "mpirun --bind-to none --map-by slot -np 4 sh -c 'echo I am $(id -un); exec /opt/ranks/ranks'"
    jobs.submit("user", *_GANG, "--ssh-auth-mount-path=/home/mpiuser/.ssh", image="user", command=command)
    log = jobs.log("user")

    assert 4 == log.count("I am mpiuser\n")
    assert jobs.places("user") == places_of(ranks_in(log))
