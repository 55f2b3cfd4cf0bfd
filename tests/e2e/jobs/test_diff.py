"""A job that runs is compared with flags, on a real API server with the real operator."""

from pathlib import Path

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena

SHAPE = (
    "--name=job",
    "--image=train",
    "--workers=2",
    "--gpus=2",
    "--gang",
    "--gputopology",
    "-e",
    "API_TOKEN=t",
)


@pytest.mark.usefixtures("gpu_nodes")
def test_only_what_the_user_changed_is_a_difference(
    arena: Arena, kube: Kube, namespace: str, tmp_path: Path
) -> None:
    """Exit codes as kubectl diff has them; nothing is created, and nothing secret is shown."""
    file = tmp_path / "job.yaml"
    assert 0 == arena("submit", "mpi", *SHAPE, f"--save={file}", "--", "mpirun").code
    assert 0 == arena("submit", "mpi", "-f", str(file)).code
    eventually(lambda: 2 == len(pods.of_job(kube, namespace, "job", "worker")), "the workers")

    same = arena("diff", "mpi", "-f", str(file))
    assert (0, "") == (same.code, same.out), same.out + same.err
    other = arena("diff", "mpi", "-f", str(file), "--workers=1", "-e", "API_TOKEN=u")
    assert 1 == other.code, other.err
    assert "-      replicas: 2\n+      replicas: 1\n" in other.out
    assert '"*** (before)"' in other.out
    assert '"t"' not in other.out
    assert 2 == arena("diff", "mpi", "-f", str(file), "-n", "nowhere").code
    assert ["job"] == [
        job["metadata"]["name"] for job in kube.list("kubeflow.org/v2beta1", "MPIJob", namespace)
    ]
