"""What pods take of their node, computed as kube-scheduler does, and what nodes offer."""

from typing import Any

import pytest

from arena_topo.topology.node_facts import node_facts
from arena_topo.topology.pod_facts import pod_facts
from arena_topo.topology.raw_objects import Malformed
from tests.topology.objects import node, pod


def container(cpu: str = "", gpus: int = 0, *, sidecar: bool = False) -> dict[str, Any]:
    """Return a container that asks for *cpu* and *gpus*."""
    asked = {**({"cpu": cpu} if cpu else {}), **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {"name": "c", "resources": {"requests": asked}, **({"restartPolicy": "Always"} if sidecar else {})}


REQUESTS = {
    "containers add up": ({"containers": [container("1"), container("500m")]}, {"cpu": 1500}),
    "the highest init container counts": (
        {"containers": [container("1")], "initContainers": [container("3"), container("2")]},
        {"cpu": 3000},
    ),
    "init containers run one after another": (
        {"containers": [container("4")], "initContainers": [container("3"), container("3")]},
        {"cpu": 4000},
    ),
    "a sidecar runs beside the containers": (
        {"containers": [container("2")], "initContainers": [container("1", sidecar=True)]},
        {"cpu": 3000},
    ),
    "an init container runs beside the sidecars before it": (
        {
            "containers": [container("1")],
            "initContainers": [container("1", sidecar=True), container("4"), container("1", sidecar=True)],
        },
        {"cpu": 5000},
    ),
    "an init container before the sidecars runs alone": (
        {"containers": [container("1")], "initContainers": [container("4"), container("1", sidecar=True)]},
        {"cpu": 4000},
    ),
    "overhead comes on top": ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
    "requests of the pod take the place of the sum": (
        {
            "containers": [container("1", 2)],
            "resources": {"requests": {"cpu": "8", "nvidia.com/gpu": "4"}},
            "overhead": {"cpu": "1"},
        },
        {"cpu": 9000, "nvidia.com/gpu": 2},
    ),
    "limits stand in for requests": (
        {
            "containers": [
                {
                    "name": "c",
                    "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": "2"}, "requests": {"cpu": "1"}},
                }
            ]
        },
        {"nvidia.com/gpu": 8, "cpu": 1000},
    ),
    "nothing is asked": ({"containers": [{"name": "c"}]}, {}),
}


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


def test_a_node_tells_what_it_offers() -> None:
    """Amounts, taints, readiness and address; of the annotations only those that a reader uses."""
    raw = node(annotations={"hami.io/node-nvidia-register": "[]"})
    raw["spec"] |= {"unschedulable": True, "taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    facts = node_facts(raw)

    assert facts.name == facts.hostname == "gpu-1"
    assert facts.allocatable["cpu"] == 95500
    assert facts.capacity["nvidia.com/gpu"] == 8
    assert (facts.ready, facts.unschedulable, facts.address) == (True, True, "192.168.7.186")
    assert [("gpu", "", "NoSchedule")] == [(taint.key, taint.value, taint.effect) for taint in facts.taints]
    assert {"hami.io/node-nvidia-register": "[]"} == facts.annotations


def test_a_node_without_a_ready_condition_is_not_ready() -> None:
    """What the kubelet never reported is not assumed."""
    raw = node()
    raw["status"]["conditions"] = []

    assert not node_facts(raw).ready


@pytest.mark.parametrize("amount", ["much", "1..5"])
def test_a_quantity_that_is_none_is_refused(amount: str) -> None:
    """In nodes and pods alike, with the key."""
    broken_node, broken_pod = node(), pod("a")
    broken_node["status"]["allocatable"]["cpu"] = amount
    broken_pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = amount

    with pytest.raises(Malformed, match="allocatable: "):
        node_facts(broken_node)
    with pytest.raises(Malformed, match="requests: "):
        pod_facts(broken_pod)
