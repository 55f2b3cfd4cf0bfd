"""Kubeflow/arena 0.15.5 itself where MPIJob is newer than it knows.

A module of its own, as it runs on the shared plane: test_arena.py starts one that serves what Arena knows.
"""

from pathlib import Path

import pytest

from tests.controlplane.availability import require_extra
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.real_arena import real_arena

pytestmark = [pytest.mark.controlplane("arena"), pytest.mark.full("kubeflow/arena itself is built, and runs")]

SUBMIT = ("submit", "mpi", "--workers=2", "--gpus=1", "--image=busybox")
COMMAND = "mpirun -np 2 echo done"


def test_where_arena_does_not_know_the_version_it_deletes_our_jobs_all_the_same(
    pytestconfig: pytest.Config, plane: ControlPlane, arena: Arena, namespace: str, tmp_path: Path
) -> None:
    """On v2beta1 Arena lists nothing and finds nothing to show, but its record is enough to delete a job."""
    original = real_arena(require_extra(pytestconfig, "arena"), arena.kubeconfig, tmp_path)
    assert 0 == arena(*SUBMIT, "--name=job", COMMAND).code

    assert "job" not in original("list").out
    assert 0 != original("get", "job").code
    assert 0 == original("delete", "job").code
    eventually(
        lambda: plane.kube.find("kubeflow.org/v2beta1", "MPIJob", "job", namespace) is None, "the job to go"
    )
