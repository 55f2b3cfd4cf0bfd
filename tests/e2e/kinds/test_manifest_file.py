"""Manifests of every kind that somebody has: planned, pinned
and created on real operators, and else as they were written.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.jobs.manifests import MANIFESTS, container

_OURS = "arena-topo.dev/"


pytestmark = pytest.mark.usefixtures("policy")


def running(kube: Kube, namespace: str, count: int, without: str = "") -> dict[str, str]:
    """Return the nodes of the planned pods by their numbers in their role, once *count* of them run."""
    found = pods.all_running(kube, namespace, "arena-topo.dev/job=bert", count, without)
    return {place(pod): pod["spec"]["nodeName"] for pod in found}


def place(pod: Object) -> str:
    """Return the role and the index of a pod: its name without what is random in it."""
    name = str(pod["metadata"]["name"])
    return name.rpartition("-")[0] if "batch.kubernetes.io/job-name" in pod["metadata"]["labels"] else name


@pytest.mark.usefixtures("gpu_nodes")
@pytest.mark.parametrize("kind", ["MPIJob.v2beta1", "PyTorchJob", "TFJob", "TrainJob", "JobSet", "Job"])
def test_a_manifest_is_planned_pinned_and_created(
    arena: Arena, kube: Kube, namespace: str, tmp_path: Path, kind: str
) -> None:
    """Every pod runs where it was planned, a lost one again; and all commands know the job by its name."""
    manifest = MANIFESTS[kind]
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(manifest))
    outcome = arena("submit", "-f", str(file))
    assert 0 == outcome.code, outcome.err
    assert outcome.out.startswith(
        f"{manifest['kind'].lower()}.{manifest['apiVersion'].partition('/')[0]}/bert"
    )

    found = running(kube, namespace, 3)
    job = kube.get(manifest["apiVersion"], manifest["kind"], "bert", namespace)
    plan = json.loads(job["metadata"]["annotations"]["arena-topo.dev/plan"])
    assert ("confirmed", "admission") == (plan["stage"], plan["means"])
    planned = [node for node, count in plan["nodes"] for _ in range(count)]
    assert sorted(planned) == sorted(found.values())
    lost = kube.list("v1", "Pod", namespace, labelSelector="arena-topo.dev/job=bert")[1]
    kube.delete("v1", "Pod", lost["metadata"]["name"], namespace, gracePeriodSeconds="0")
    assert found == running(kube, namespace, 3, without=lost["metadata"]["uid"])

    assert f"{outcome.out.split()[0]}\n" == arena("list", "-o", "name").out
    assert (
        f"3 of 3 {'pods' if plan.get('roles') else 'workers'} where planned"
        in arena("get", "bert", "-o", "json").out
    )
    assert 0 == arena("delete", "bert").code
    eventually(lambda: not kube.list("v1", "Pod", namespace), "the end of the job's pods")


@pytest.mark.usefixtures("gpu_nodes")
@pytest.mark.parametrize("kind", ["MPIJob.v2beta1", "PyTorchJob", "TFJob", "TrainJob", "JobSet", "Job"])
def test_the_server_takes_what_is_written(arena: Arena, tmp_path: Path, kind: str) -> None:
    """Under strict validation, pins and all; what the manifest says is what it said."""
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(MANIFESTS[kind]))
    outcome = arena("submit", "-f", str(file), "--dry-run=server", "--plan", "-o", "json")

    assert 0 == outcome.code, outcome.err
    assert contains(json.loads(outcome.out), MANIFESTS[kind])


def contains(whole: Any, part: Any) -> bool:
    """Whether *whole* has all that *part* has; what a server fills in does not count."""
    match part:
        case dict():
            return isinstance(whole, dict) and all(
                contains(whole.get(key), value) for key, value in part.items()
            )
        case list():
            return len(part) <= len(whole) and all(map(contains, whole, part))
        case _:
            return bool(whole == part)


@pytest.mark.usefixtures("gpu_nodes")
def test_a_plan_of_a_manifest_creates_nothing(
    arena: Arena, kube: Kube, namespace: str, tmp_path: Path
) -> None:
    """It is read from stdin as well."""
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(MANIFESTS["JobSet"]))
    outcome = arena.shell(f"arena-topo plan -f - < {file}")

    assert 0 == outcome.code, outcome.err
    assert "3 workers" in outcome.out or "bert" in outcome.out
    assert kube.find("jobset.x-k8s.io/v1alpha2", "JobSet", "bert", namespace) is None


@pytest.mark.usefixtures("gpu_nodes")
def test_names_of_other_kinds_are_told(arena: Arena, tmp_path: Path) -> None:
    """A second job of one name is created where the pods have
    other names, and refused where they would have the same.
    """
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(MANIFESTS["PyTorchJob"]))
    assert 0 == arena("submit", "-f", str(file), "--pin=none").code

    refused = arena("submit", "mpi", "--name=bert", "--image=i", "c")
    assert 1 == refused.code
    assert "there is a PyTorchJob bert already, and pods of both would be called bert-worker-0" in refused.err
    file.write_text(yaml.safe_dump(MANIFESTS["JobSet"]))
    told = arena("submit", "-f", str(file), "--pin=none")
    assert 0 == told.code, told.err
    assert "there is a PyTorchJob bert too" in told.err
    again = arena("submit", "-f", str(file), "--pin=none")
    assert (1, True) == (again.code, "the job bert already exists" in again.err)


@pytest.mark.usefixtures("gpu_nodes")
def test_a_batch_job_of_somebody_else_is_none_of_ours(arena: Arena, kube: Kube, namespace: str) -> None:
    """Neither listed nor deleted; with the label of a training job it is."""
    job: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "nightly"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container("c")]}}},
    }
    kube.create(job, namespace)
    assert "nightly" not in arena("list").out
    assert 1 == arena("delete", "nightly").code
    assert 1 == arena("get", "nightly").code

    labels: Mapping[str, str] = {"arena-topo.dev/training-job": "true"}
    kube.patch("batch/v1", "Job", "nightly", {"metadata": {"labels": labels}}, namespace)
    assert "nightly" in arena("list").out
    assert 0 == arena("delete", "nightly").code
