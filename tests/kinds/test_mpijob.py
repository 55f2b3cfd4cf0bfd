"""The anatomy of an MPIJob: versions, templates, and names of pods."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.kinds.mpijob import (
    ApiVersion,
    Role,
    WorkerName,
    is_launcher,
    parse_worker_name,
    pod_templates,
    replicas,
    version_of,
    worker_count,
    worker_name,
)
from arena_topo.model.kind import pod_selector
from tests.objects import mpijob


@pytest.mark.parametrize("version", ApiVersion)
def test_a_job_tells_its_version(version: ApiVersion) -> None:
    """In its apiVersion."""
    assert version is version_of(mpijob("job", version))


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        ("batch/v1", "Job", "a Job of batch/v1, not an MPIJob"),
        ("kubeflow.org/v1", "TFJob", "a TFJob of kubeflow.org/v1, not an MPIJob"),
        ("kubeflow.org/v9", "MPIJob", "an MPIJob of the unknown version v9"),
    ],
)
def test_something_else_is_refused(api_version: str, kind: str, message: str) -> None:
    """By its group, its kind, or a version that is not known."""
    with pytest.raises(DocumentError, match=message):
        version_of({"apiVersion": api_version, "kind": kind})


@pytest.mark.parametrize(
    ("version", "roles"),
    [
        (ApiVersion.V2BETA1, [Role.WORKER, Role.LAUNCHER]),
        (ApiVersion.V1, [Role.WORKER, Role.LAUNCHER]),
        (ApiVersion.V1ALPHA1, [Role.WORKER]),
    ],
)
def test_each_role_has_its_template(version: ApiVersion, roles: list[Role]) -> None:
    """Those of both readers are the same objects; v1alpha1 has one template for both roles."""
    job = mpijob("job", version)

    templates = pod_templates(job)

    assert roles == list(templates)
    assert list(templates.values()) == [pods.template for pods in replicas(job)]
    assert worker_count(job) == replicas(job)[0].count


def test_a_job_of_ours_without_a_launcher_is_refused() -> None:
    """A user's template forgot it; a job of somebody else is read for what it has."""
    job = mpijob("job")
    del job["spec"]["mpiReplicaSpecs"]["Launcher"]

    assert 1 == len(replicas(job))
    with pytest.raises(DocumentError, match="without a pod template for launcher and workers"):
        pod_templates(job)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ("job-worker-12", WorkerName("job", 12)),
        ("my-worker-0-worker-3", WorkerName("my-worker-0", 3)),
        ("job-launcher-x7k2p", None),
        ("job-worker-x", None),
        ("job-worker-", None),
    ],
)
def test_a_workers_name_tells_its_job_and_index(pod: str, expected: WorkerName | None) -> None:
    """The last marker counts, since a job's own name may contain it."""
    assert expected == parse_worker_name(pod)


def test_a_workers_name_is_read_back_as_it_was_built() -> None:
    """Builder and parser agree."""
    assert WorkerName("job", 7) == parse_worker_name(worker_name("job", 7))


def test_pods_are_selected_by_the_operators_label() -> None:
    """v1alpha1 has its own."""
    assert "training.kubeflow.org/job-name=job" == pod_selector(ApiVersion.V2BETA1, "job")
    assert "mpi_job_name=job" == pod_selector(ApiVersion.V1ALPHA1, "job")


@pytest.mark.parametrize(
    ("label", "value", "expected"),
    [
        ("training.kubeflow.org/job-role", "launcher", True),
        ("training.kubeflow.org/replica-type", "master", True),
        ("mpi_role_type", "launcher", True),
        ("mpi_role_type", "worker", False),
    ],
)
def test_a_launcher_is_known_by_its_role(label: str, value: str, *, expected: bool) -> None:
    """Each operator has a label of its own for it."""
    assert expected is is_launcher({"metadata": {"labels": {label: value}}})
