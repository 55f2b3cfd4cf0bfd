"""Kubeflow/arena 0.15.5 itself and arena-topo on one API server: each reads and deletes the other's jobs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.availability import require_built, require_extra
from tests.controlplane.components import install
from tests.controlplane.components.options import Options
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import create_nodes, two_v100
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.arena_help import recorded, surface
from tests.e2e.controller.replicas import pass_second
from tests.e2e.real_arena import RealArena, real_arena

pytestmark = [pytest.mark.controlplane("arena"), pytest.mark.full("kubeflow/arena itself is built, and runs")]

MPIJOB = ("kubeflow.org/v1alpha1", "MPIJob")
SUBMIT = ("submit", "mpi", "--workers=2", "--gpus=1", "--image=busybox")
COMMAND = "mpirun -np 2 echo done"


@pytest.fixture(scope="module")
def arenas_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run a cluster that serves the one version of MPIJob that Arena knows; its operator is the test."""
    require_built(pytestconfig)
    require_extra(pytestconfig, "arena")
    with ControlPlane(Options(mpijob="v1alpha1", operator=False)) as plane:
        plane.kube.create(install.namespace("arena-system"))
        plane.kube.wait_for("v1", "ServiceAccount", "default", "default")
        create_nodes(plane.kube, two_v100())
        yield plane


@pytest.fixture
def theirs(pytestconfig: pytest.Config, arenas_plane: ControlPlane, tmp_path: Path) -> RealArena:
    """Return the original."""
    return real_arena(require_extra(pytestconfig, "arena"), arenas_plane.admin_kubeconfig, tmp_path)


@pytest.fixture
def ours(arenas_plane: ControlPlane) -> Arena:
    """Return the tool on the same cluster."""
    return Arena(arenas_plane.admin_kubeconfig)


@pytest.fixture(params=["theirs", "ours"])
def made_by(request: pytest.FixtureRequest) -> str:
    """Who submits the job that both look at."""
    return str(request.param)


@pytest.fixture
def job(arenas_plane: ControlPlane, theirs: RealArena, ours: Arena, made_by: str) -> Iterator[str]:
    """Name of a job that one of the two has submitted."""
    submitter = {"theirs": theirs, "ours": ours}[made_by]
    name = f"by-{made_by}"
    outcome = submitter(*SUBMIT, f"--name={name}", COMMAND)
    assert (0, f"mpijob.kubeflow.org/{name} created\n") == (outcome.code, outcome.out), outcome.err
    yield name
    kube = arenas_plane.kube
    kube.delete(*MPIJOB, name, "default")
    eventually(lambda: not remaining(kube, name), "the end of what belongs to the job")


def remaining(kube: Kube, name: str) -> list[str]:
    """Return what is left of job *name*: itself, its record, its pods."""
    kinds = (MPIJOB, ("v1", "ConfigMap"), ("v1", "Pod"))
    found = [item["metadata"]["name"] for kind in kinds for item in kube.list(*kind, "default")]
    return [item for item in found if item.startswith(name)]


def run_pods(kube: Kube, name: str) -> str:
    """Create the pods of job *name* as Arena's operator does; return the launcher once it runs."""
    job = kube.get(*MPIJOB, name, "default")
    owner = {"apiVersion": MPIJOB[0], "kind": "MPIJob", "name": name, "uid": job["metadata"]["uid"]}
    template = job["spec"]["template"]
    launcher = f"{name}-launcher"
    labels = {"group_name": "kubeflow.org", "mpi_job_name": name}
    kube.create(batch_job(launcher, owner, labels), "default")
    for pod, role in [(launcher, "launcher"), (f"{name}-worker-0", "worker"), (f"{name}-worker-1", "worker")]:
        spec = {**template["spec"], "containers": [dict(template["spec"]["containers"][0])]}
        if role == "launcher":
            spec["containers"][0].pop("resources", None)
        metadata = {
            "name": pod,
            "labels": {**template["metadata"]["labels"], **labels, "mpi_role_type": role},
            "ownerReferences": [owner],
        }
        kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, "default")
        kube.wait_for("v1", "Pod", pod, "default", until=pods.running)
    return launcher


def batch_job(name: str, owner: Object, labels: Object) -> Object:
    """Return the launcher's Job, suspended: the test creates its pod itself."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "mpi", "image": "busybox"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }


def test_each_shows_and_follows_the_others_job(
    arenas_plane: ControlPlane, theirs: RealArena, ours: Arena, job: str, tmp_path: Path
) -> None:
    """The same status, the same pods, the same log."""
    launcher = run_pods(arenas_plane.kube, job)
    log = FakeLog.of_pod(arenas_plane.kube, tmp_path, "default", launcher)
    log.write("total images/sec: 991.92")
    log.wait_served(arenas_plane.kube, "default", launcher)

    for tool in (theirs, ours):
        shown = tool("get", job, "--type", "mpijob")
        lines = {tuple(line.split()[:2]) for line in shown.out.splitlines()}
        assert {("Status:", "RUNNING"), (launcher, "Running"), (f"{job}-worker-1", "Running")} <= lines, (
            shown.err
        )
        assert "total images/sec: 991.92\n" == tool("logs", job, "--tail=1").out
        listed = tool("list", "--type", "mpijob").out.splitlines()
        assert [job, "RUNNING", "MPIJOB"] == listed[1].split()[:3]
    with ours.running("logs", "-f", job) as following:
        eventually(lambda: "".join(following.out) == "total images/sec: 991.92\n", "the line")


def untimed(text: str) -> str:
    """Return *text* with every duration written alike, in
    as many columns: the two are asked one after the other.
    """
    return re.sub(r"\b\d+[smh]\b( *)", lambda found: "T".ljust(len(found[0]) if found[1] else 1), text)


def alike(theirs: RealArena, ours: Arena, job: str) -> None:
    """Assert that both print the same bytes about *job*."""
    for asked, of_us in [
        (("list",), ("list",)),
        (("ls", "-A", "--type", "mpijob"), ("ls", "-A", "--type", "mpijob")),
        (("get", job, "--type", "mpijob"), ("get", job, "--type", "mpijob", "-o", "wide")),
    ]:
        original = theirs(*asked)
        assert 0 == original.code, original.err
        # Arena counts the GPUs that pods request: of a job without pods it knows none.
        expected = re.sub(r"(PENDING +MPIJOB +T +)0", r"\g<1>2", untimed(original.out))
        assert expected == untimed(ours(*of_us).out)


def test_tables_are_arenas_to_the_byte(
    arenas_plane: ControlPlane, theirs: RealArena, ours: Arena, job: str
) -> None:
    """Of either's job while it waits, runs and has failed; the newest job comes first."""
    kube = arenas_plane.kube
    older = f"older-than-{job}"
    # Of two jobs of the same second neither is the newer one.
    pass_second(kube, "default")
    assert 0 == ours(*SUBMIT, f"--name={older}", COMMAND).code
    alike(theirs, ours, job)
    launcher = run_pods(kube, job)
    alike(theirs, ours, job)
    kube.patch("v1", "Pod", launcher, {"status": {"phase": "Failed"}}, "default", sub="status")
    kube.patch(*MPIJOB, job, {"status": {"launcherStatus": "Failed"}}, "default")
    alike(theirs, ours, job)
    assert 0 == ours("delete", older).code


def test_documents_have_arenas_keys_and_values(
    arenas_plane: ControlPlane, theirs: RealArena, ours: Arena, job: str
) -> None:
    """What a script reads from ``-o json``, the times apart; keys of our own come after them."""
    run_pods(arenas_plane.kube, job)
    found, expected = (
        json.loads(tool("get", job, "-T", "mpijob", "-o", "json").out) for tool in (ours, theirs)
    )

    for timed in (expected, found, *expected["instances"], *found["instances"]):
        timed.pop("duration", None)
        timed.pop("age", None)
    for one in found["instances"]:
        one.pop("reason")
    assert expected == {key: found[key] for key in expected}
    assert list(expected) == list(found)[: len(expected)]


def test_each_deletes_the_others_job(
    arenas_plane: ControlPlane, theirs: RealArena, ours: Arena, job: str, made_by: str
) -> None:
    """With its record, so that either can submit the name again."""
    other = {"theirs": ours, "ours": theirs}[made_by]
    outcome = other("delete", job)

    assert 0 == outcome.code, outcome.err
    assert f"The training job {job} has been deleted successfully" in outcome.out + outcome.err
    eventually(lambda: not remaining(arenas_plane.kube, job), "job and record to go")
    again = theirs(*SUBMIT, f"--name={job}", COMMAND)
    assert 0 == again.code, again.err


def test_a_record_that_an_older_arena_left_is_deleted_with_its_job(
    arenas_plane: ControlPlane, theirs: RealArena, ours: Arena
) -> None:
    """Before 0.15.5 it did not belong to the job."""
    kube = arenas_plane.kube
    assert 0 == theirs(*SUBMIT, "--name=older", COMMAND).code
    kube.patch("v1", "ConfigMap", "older-mpijob", {"metadata": {"ownerReferences": None}}, "default")

    assert 0 == ours("delete", "older").code
    assert [] == remaining(kube, "older")


def test_the_recorded_surface_is_arenas(pytestconfig: pytest.Config) -> None:
    """What the guide's tables are compared with is what Arena's own help lists."""
    assert surface(require_extra(pytestconfig, "arena").binary("arena")) == recorded()
