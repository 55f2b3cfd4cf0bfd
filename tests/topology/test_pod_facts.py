"""What a Pod object says of its place, its job and its GPUs."""

from typing import Any

import pytest

from arena_topo.errors import DocumentError
from arena_topo.topology.objects import pod_facts
from tests.model.test_pod_requests import REQUESTS
from tests.topology.objects import pod


@pytest.mark.parametrize(("spec", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_requests_are_those_of_kube_scheduler(spec: dict[str, Any], expected: dict[str, int]) -> None:
    """Amounts: cpu in millicores, devices by count."""
    raw = pod("a")
    raw["spec"] = {"nodeName": "gpu-1", **spec}

    assert expected == pod_facts(raw).requests


@pytest.mark.parametrize(
    ("node_name", "phase", "expected"),
    [
        ("gpu-1", "Running", True),
        ("gpu-1", "Pending", True),
        ("", "Pending", False),
        ("gpu-1", "Succeeded", False),
        ("gpu-1", "Failed", False),
    ],
)
def test_only_bound_and_unfinished_pods_take_room(node_name: str, phase: str, expected: bool) -> None:
    """A bound pod that still pulls its image has its place already."""
    raw = pod("a", node_name=node_name)
    raw["status"]["phase"] = phase

    assert expected == pod_facts(raw).occupies


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"training.kubeflow.org/job-name": "vgg", "app": "mpijob", "release": "other"}, "vgg"),
        ({"mpi_job_name": "vgg-mpijob"}, "vgg-mpijob"),
        ({"app": "mpijob", "release": "vgg"}, "vgg"),
        ({"app": "nginx", "release": "web"}, ""),
        ({}, ""),
    ],
    ids=["operator", "v1alpha1", "Arena", "another chart's release", "none"],
)
def test_labels_tell_the_job(labels: dict[str, str], expected: str) -> None:
    """A release label alone is any Helm chart's."""
    assert expected == pod_facts(pod("a", labels=labels)).job


def test_only_annotations_that_a_reader_uses_are_kept() -> None:
    """Annotations may hold anything, also what nobody should see."""
    facts = pod_facts(pod("a", annotations={"topology.kubernetes.io/gpu-group": "0", "secret": "s3cr3t"}))

    assert {"topology.kubernetes.io/gpu-group": "0"} == facts.annotations


@pytest.mark.parametrize("amount", ["much", "1..5"])
def test_a_malformed_quantity_is_refused(amount: str) -> None:
    """The key is named."""
    broken = pod("a")
    broken["spec"]["containers"][0]["resources"]["requests"]["cpu"] = amount

    with pytest.raises(DocumentError, match="requests: "):
        pod_facts(broken)
