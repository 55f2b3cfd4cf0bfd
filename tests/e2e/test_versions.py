"""The older versions of MPIJob: rendered, accepted with strict validation, read and deleted on a real API server."""

from collections.abc import Iterator
from typing import Literal

import pytest

from tests.controlplane.availability import require_built
from tests.controlplane.components.options import api_only
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob
from tests.e2e.arena import Arena
from tests.objects import condition

Old = Literal["v1", "v1alpha1"]


@pytest.fixture(scope="module", params=["v1", "v1alpha1"])
def old(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[tuple[Old, ControlPlane]]:
    """Run an API server that serves one older version and nothing that acts on it."""
    require_built(pytestconfig)
    with ControlPlane(api_only(request.param)) as plane:
        yield request.param, plane


def test_the_definition_of_each_is_that_of_its_project(old: tuple[Old, ControlPlane]) -> None:
    """Arena's and the training operator's MPIJob, with the field that only it has."""
    version, plane = old
    crd = plane.kube.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "mpijobs.kubeflow.org")
    schema = next(one["schema"] for one in crd["spec"]["versions"] if one["name"] == version)

    field = {"v1": "mpiReplicaSpecs", "v1alpha1": "backoffLimit"}[version]
    assert field in schema["openAPIV3Schema"]["properties"]["spec"]["properties"]


@pytest.mark.parametrize("documented", DOCUMENTED_JOBS, ids=lambda documented: documented.name)
def test_a_documented_job_is_accepted(old: tuple[Old, ControlPlane], documented: DocumentedJob) -> None:
    """Found out which version is served, rendered for it, and stored without a field lost."""
    version, plane = old
    arena = Arena(plane.admin_kubeconfig)
    # The cluster has no nodes at all.
    command = documented.command.replace("arena submit mpi", "arena-topo submit mpi --expect-nodes", 1)
    outcome = arena.shell(command)

    assert (0, f"mpijob.kubeflow.org/{documented.name} created\n") == (outcome.code, outcome.out), outcome.err
    stored = plane.kube.get(f"kubeflow.org/{version}", "MPIJob", documented.name, "default")
    assert f"kubeflow.org/{version}" == stored["apiVersion"]
    assert "Status:    PENDING" in arena("get", documented.name).out
    assert 0 == arena("delete", documented.name, "--wait=false").code


def test_every_flag_is_accepted(old: tuple[Old, ControlPlane]) -> None:
    """All that the version can say."""
    version, plane = old
    newer = [
        "--ttl-after-finished=1h",
        "--running-timeout=2h",
        "--launcher-selector=a=b",
        "--slots-per-worker=2",
    ]
    outcome = Arena(plane.admin_kubeconfig)(
        "submit", "mpi", "--name=job", "--image=i", "--workers=2", "--gpus=1", "--cpu=1", "--memory=1Gi", "--gang",
        "--gputopology=true", "--rdma", "--device=example.com/x=1", "--env=A=#b", "--env-from=secret/s",
        "--data=claim:/data", "--data-dir=/mnt:/m", "--label=team=x", "--selector=pool=p", "--toleration=all",
        "--scheduler=other", "--image-pull-secret=r", "--hostPID", "--hostNetwork", "--launcher-cpu=1",
        "--mounts-on-launcher", "--retry=1", "--clean-task-policy=Running", "--dry-run=server",
        *(newer if version == "v1" else []), "c",
    )  # fmt: skip

    assert (0, "mpijob.kubeflow.org/job created (server dry run)\n") == (outcome.code, outcome.out), (
        outcome.err
    )


def test_what_comes_beside_a_job_is_accepted_and_goes_with_it(old: tuple[Old, ControlPlane]) -> None:
    """Code from git, TensorBoard with its Service, and a model's name."""
    _, plane = old
    arena = Arena(plane.admin_kubeconfig)
    outcome = arena(
        "submit", "mpi", "--name=extras", "--image=i", "--sync-mode=git", "--sync-source=https://git.example.com/a",
        "--tensorboard", "--model-name=m", "--model-source=pvc://ml/m", "c",
    )  # fmt: skip

    names = (
        "mpijob.kubeflow.org/extras",
        "service/extras-tensorboard",
        "deployment.apps/extras-tensorboard",
    )
    created = "".join(f"{name} created\n" for name in names)
    assert (0, created) == (outcome.code, outcome.out), outcome.err
    owners = [
        plane.kube.get(*kind, "extras-tensorboard", "default")["metadata"]["ownerReferences"][0]["name"]
        for kind in (("v1", "Service"), ("apps/v1", "Deployment"))
    ]
    assert ["extras", "extras"] == owners
    assert 0 == arena("delete", "extras", "--wait=false").code


def test_jobs_are_listed_and_watched(old: tuple[Old, ControlPlane]) -> None:
    """A new state is a new line of ``list -w``, and ``wait`` sees it."""
    version, plane = old
    arena, kind = Arena(plane.admin_kubeconfig), (f"kubeflow.org/{version}", "MPIJob")
    assert 0 == arena("submit", "mpi", "--name=watched", "--image=i", "c").code
    ended = {"v1": {"conditions": [condition("Succeeded")]}, "v1alpha1": {"launcherStatus": "Succeeded"}}[
        version
    ]

    def shown() -> list[str]:
        # The columns are as wide as the other jobs of the namespace make them.
        return [words[1] for line in watching.out if (words := line.split())[:1] == ["watched"]]

    with arena.running("list", "-w") as watching:
        eventually(lambda: shown() == ["PENDING"], "the first line")
        plane.kube.patch(*kind, "watched", {"status": ended}, "default", sub="status")
        eventually(lambda: shown() == ["PENDING", "SUCCEEDED"], "its new state")
        assert 0 == arena("wait", "watched").code


def test_a_cluster_without_the_resource_is_told() -> None:
    """With what to install."""
    with ControlPlane(api_only(None)) as bare:
        outcome = Arena(bare.admin_kubeconfig)("submit", "mpi", "--name=job", "--image=i", "--workers=1", "c")

    assert (1, "") == (outcome.code, outcome.out)
    assert "error: this cluster has no MPIJob resource" in outcome.err
    assert "hint: ask the cluster's admin to install the Kubeflow MPI operator" in outcome.err
