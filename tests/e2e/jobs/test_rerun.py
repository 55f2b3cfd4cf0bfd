"""A job is run again from the cluster or from a file, on a real API server with the real operator."""

from pathlib import Path

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena


def submit_with_file(arena: Arena, tmp_path: Path) -> None:
    """Submit a planned gang with a file, until all of it runs."""
    file = tmp_path / "train.yaml"
    file.write_text("lr: 1e-3\n")
    flags = ("--gang", "--gputopology", f"--config-file={file}:/etc/train.yaml", "--env=NOTE=$(HOME) 'x'")
    shape = ("--name=job", "--image=train", "--workers=2", "--gpus=2")
    outcome = arena("submit", "mpi", *shape, *flags, "--wait=running,2m", "--", "mpirun", "-np", "4")
    assert 0 == outcome.code, outcome.err


def container(kube: Kube, namespace: str, name: str) -> Object:
    """Return the container of the first worker of a job, once all workers run."""

    def workers() -> list[Object] | None:
        found = pods.of_job(kube, namespace, name, "worker")
        return found if len(found) == 2 and all(map(pods.running, found)) else None

    found: Object = eventually(workers, f"the workers of {name} to run")[0]["spec"]["containers"][0]
    return {key: found[key] for key in ("image", "command", "env", "resources")}


@pytest.mark.usefixtures("gpu_nodes")
def test_a_job_runs_again_beside_the_old_one(
    arena: Arena, kube: Kube, namespace: str, tmp_path: Path
) -> None:
    """Under another name, with its own plan and its own files."""
    submit_with_file(arena, tmp_path)
    taken = arena("rerun", "job")
    assert (1, True) == (taken.code, "already exists" in taken.err)

    again = arena("rerun", "job", "--name=next")
    assert 0 == again.code, again.err
    assert "mpijob.kubeflow.org/next created" in again.out
    assert container(kube, namespace, "job") == container(kube, namespace, "next")
    eventually(
        lambda: "2 of 2 workers where planned" in arena("get", "next").err, "its workers on their nodes"
    )
    files = kube.get("v1", "ConfigMap", "next-files", namespace)
    assert {"file-0": "lr: 1e-3\n"} == files["data"]
    assert ["next"] == [owner["name"] for owner in files["metadata"]["ownerReferences"]]


@pytest.mark.usefixtures("gpu_nodes")
@pytest.mark.parametrize("saved_by", ["get", "submit"])
def test_a_deleted_job_runs_again_from_a_file(
    arena: Arena, kube: Kube, namespace: str, tmp_path: Path, saved_by: str
) -> None:
    """What get and submit print of it is enough; only the
    files must have been saved too, or be there still.
    """
    saved = tmp_path / "saved"
    shape = ("--name=job", "--image=train", "--workers=2", "--gpus=2", "--gang", "--gputopology")
    submitted = arena("submit", "mpi", *shape, "-o", "yaml", "--", "mpirun")
    assert 0 == submitted.code, submitted.err
    before = container(kube, namespace, "job")
    saved.write_text(submitted.out if saved_by == "submit" else arena("get", "job", "-o", "json").out)
    uid = kube.get(*MPIJOB, "job", namespace)["metadata"]["uid"]
    assert 0 == arena("delete", "job").code

    again = arena("rerun", "-f", str(saved))
    assert (0, "mpijob.kubeflow.org/job created\n") == (again.code, again.out), again.err
    assert before == container(kube, namespace, "job")
    assert uid != kube.get(*MPIJOB, "job", namespace)["metadata"]["uid"]
