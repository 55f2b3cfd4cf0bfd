"""The gang is read from the rendered job, whichever template rendered it."""

import pytest

from arena_topo.kinds.mpijob import ApiVersion, Role, pod_templates
from arena_topo.manifest.gang import gang_of
from tests.gang.jobs import ALPHA, V1, V2, job_of_four_workers


@pytest.mark.parametrize(
    ("version", "policy", "waits"),
    [(V2, "WaitForWorkersReady", True), (V2, "AtStartup", False), (V1, "", False), (ALPHA, "", True)],
)
def test_whether_the_launcher_waits_is_read_from_the_job(
    version: ApiVersion, policy: str, waits: bool
) -> None:
    """By the operator's own rules: always under v1alpha1, never under v1, as it says under v2beta1."""
    rendered = job_of_four_workers(version, waits=False)
    if policy:
        rendered["spec"]["launcherCreationPolicy"] = policy

    assert waits is gang_of(rendered).launcher_waits


@pytest.mark.parametrize("version", ApiVersion)
def test_the_gang_is_read_from_any_rendered_job(version: ApiVersion) -> None:
    """So that a template of the user's is a gang too."""
    rendered = job_of_four_workers(version)
    spec = pod_templates(rendered)[Role.WORKER]["spec"]
    spec["nodeSelector"] = {"pool": "a"}
    spec["containers"] = [
        {
            "name": "mpi",
            "resources": {"limits": {"nvidia.com/gpu": 2, "cpu": "1500m"}, "requests": {"cpu": "1"}},
        },
        {"name": "side", "resources": {"requests": {"cpu": "500m"}}},
    ]
    gang = gang_of(rendered)

    assert ("job", "default", version, 4) == (gang.job, gang.namespace, gang.kind, gang.workers)
    assert {"nvidia.com/gpu": "2", "cpu": "1.5"} == gang.requests
    assert {"nodeSelector": {"pool": "a"}} == gang.placement


def test_the_launchers_requests_of_the_oldest_version_are_its_own() -> None:
    """It shares the template, and not the resources."""
    rendered = job_of_four_workers(ALPHA)
    rendered["spec"]["launcherResources"] = {"limits": {"cpu": 1}}

    assert {"cpu": "1"} == gang_of(rendered).launcher_requests


def test_sidecars_are_a_part_of_what_a_worker_requests() -> None:
    """They run next to the containers for as long as those, so that kube-scheduler reserves both."""
    rendered = job_of_four_workers()
    spec = pod_templates(rendered)[Role.WORKER]["spec"]
    sidecar = {"restartPolicy": "Always", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}
    spec["initContainers"] = [{"name": "proxy", **sidecar}]

    assert {"nvidia.com/gpu": "1", "cpu": "0.25", "memory": str(2**30)} == gang_of(rendered).requests
