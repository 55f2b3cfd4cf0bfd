"""The test control plane is what it claims to be."""

import sys
from typing import Any

import pytest

from tests.controlplane import pods
from tests.controlplane.kube import Kube
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually

MPIJOB = ("kubeflow.org/v2beta1", "MPIJob")


def _mpijob(workers: int, gpus: int, **annotations: str) -> dict[str, Any]:
    def replica(count: int, limits: dict[str, int]) -> dict[str, Any]:
        container = {"name": "mpi", "image": "busybox", "resources": {"limits": limits}}
        return {
            "replicas": count,
            "template": {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}},
        }

    replicas = {"Launcher": replica(1, {}), "Worker": replica(workers, {"nvidia.com/gpu": gpus})}
    return {
        "apiVersion": MPIJOB[0],
        "kind": MPIJOB[1],
        "metadata": {"name": "job"},
        "spec": {"mpiReplicaSpecs": replicas},
    }


def _all_running(kube: Kube, namespace: str, count: int) -> list[dict[str, Any]]:
    def running() -> list[dict[str, Any]] | None:
        found = pods.of_job(kube, namespace, "job")
        return found if len(found) == count and all(map(pods.running, found)) else None

    return eventually(running, f"{count} running pods")


def _conditions(job: dict[str, Any]) -> set[str]:
    return {one["type"] for one in job.get("status", {}).get("conditions", ()) if one["status"] == "True"}


@pytest.mark.parametrize(("exit_code", "outcome"), [(0, "Succeeded"), (3, "Failed")])
def test_the_operator_runs_a_job_until_its_launcher_ends(
    kube: Kube, namespace: str, gpu_nodes: list[str], exit_code: int, outcome: str
) -> None:
    """An MPIJob gets launcher and workers on the GPU nodes and ends as its launcher ends."""
    job = _mpijob(workers=4, gpus=1)
    job["spec"]["runPolicy"] = {"backoffLimit": 0}
    kube.create(job, namespace)
    members = _all_running(kube, namespace, 5)
    assert {pod["spec"]["nodeName"] for pod in members} <= set(gpu_nodes)
    launcher = next(pod for pod in members if "launcher" in pod["metadata"]["name"])
    pods.finish(kube, namespace, launcher["metadata"]["name"], exit_code)
    ended = kube.wait_for(*MPIJOB, "job", namespace, until=lambda job: {outcome} <= _conditions(job))
    assert "Running" not in _conditions(ended)


def test_it_starts_in_seconds(plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole control plane is ready in well under a minute, on a loaded machine too."""
    with capsys.disabled():
        sys.stderr.write(f"\ncontrol plane ready in {plane.startup_seconds:.1f} s\n")
    assert plane.startup_seconds < 60
