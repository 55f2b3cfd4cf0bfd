"""The older versions of MPIJob: rendered, accepted with
strict validation, read and deleted on a real API server.
"""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
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

_AWAY = "; trying again for up to 5m"


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


def _connections(pid: int) -> int:
    """Return how many TCP connections a process has: a watch has one of its own."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    established = {f"socket:[{words[9]}]" for words in map(str.split, lines) if words[3] == "01"}
    found = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found += str(file.readlink()) in established
    return found


@pytest.mark.parametrize("old", ["v1"], indirect=True)
def test_what_waits_outlasts_a_restart_of_the_api_server(old: tuple[Old, ControlPlane]) -> None:
    """As in an upgrade: nobody answers at its address for a while, and what happened is seen in the end."""
    _, plane = old
    # The server reads the rights of users other than its own again, for a while after it answers.
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
    role = {**subject, "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "ann"},
        "roleRef": role,
        "subjects": [subject],
    }
    plane.kube.create({"apiVersion": "rbac.authorization.k8s.io/v1", **binding})
    arena, name = Arena(plane.kubeconfig("ann")), "outlasting"
    submit = ("submit", "mpi", f"--name={name}", "--image=i", "--wait=succeeded", "c")
    kind = ("kubeflow.org/v1", "MPIJob", name, "default")
    with ExitStack() as stack:
        started = [stack.enter_context(arena.running(*submit))]
        eventually(lambda: plane.kube.find(*kind), "the job")
        others = (("wait", name), ("get", name, "-w"), ("list", "-w"))
        started += [stack.enter_context(arena.running(*words)) for words in others]
        eventually(lambda: all("PENDING" in "".join(each.out) for each in started[2:]), "the tables")
        eventually(lambda: "waiting for" in "".join(started[0].err), "the submit to wait")
        # A command that has yet to connect ends at once where nobody answers, and wait prints nothing: it
        # watches its job and the pods of that.
        eventually(lambda: _connections(started[1].process.pid) > 1, "wait to watch")
        with plane.without_api_server():
            eventually(lambda: all(_AWAY in "".join(each.err) for each in started), "a word from each")
        plane.kube.patch(
            *kind[:3], {"status": {"conditions": [condition("Succeeded")]}}, kind[3], sub="status"
        )
        eventually(lambda: "SUCCEEDED" in "".join(started[3].out), "the line of list -w")
        ended = [each.wait() for each in started[:3]]
        said = [each.err for each in ended] + ["".join(started[3].err)]

    assert [0, 0, 0] == [each.code for each in ended], said
    assert [(1, 1)] * 4 == [(text.count(_AWAY), text.count("answers again")) for text in said], said


def test_a_cluster_without_the_resource_is_told() -> None:
    """With what to install."""
    with ControlPlane(api_only(None)) as bare:
        outcome = Arena(bare.admin_kubeconfig)("submit", "mpi", "--name=job", "--image=i", "--workers=1", "c")

    assert (1, "") == (outcome.code, outcome.out)
    assert "error: this cluster has no MPIJob resource" in outcome.err
    assert "hint: ask the cluster's admin to install the Kubeflow MPI operator" in outcome.err
