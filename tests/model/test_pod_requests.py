"""What pods reserve, computed as kube-scheduler does."""

from typing import Any

import pytest

from arena_topo.model.pods import aligned_requests, pod_spec_requests


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
    "a sidecar runs next to the containers": (
        {"containers": [container("2")], "initContainers": [container("1", sidecar=True)]},
        {"cpu": 3000},
    ),
    "an init container runs next to the sidecars before it": (
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
    assert expected == pod_spec_requests(spec)


def test_a_malformed_quantity_is_an_error() -> None:
    """Nothing is reserved for what nobody can read."""
    with pytest.raises(ValueError, match="'much' is not a quantity"):
        pod_spec_requests({"containers": [container("much")]})


def limited(cpu: str, memory: str = "1Gi", gpus: int = 0, asks: str = "") -> dict[str, Any]:
    """Return a container with limits; *asks* is the cpu that it requests, where that is another amount."""
    limits = {"cpu": cpu, "memory": memory, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {"name": "c", "resources": {"limits": limits, **({"requests": {"cpu": asks}} if asks else {})}}


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [limited("4", gpus=2)]}, ({GPU: 2, "cpu": 4000},)),
        ({"containers": [limited("4", gpus=2, asks="4000m")]}, ({GPU: 2, "cpu": 4000},)),
        ({"containers": [limited("4", gpus=2, asks="3")]}, ({GPU: 2},)),
        ({"containers": [limited("1500m", gpus=2)]}, ({GPU: 2},)),
        ({"containers": [container("4", gpus=2)]}, ({GPU: 2},)),
        ({"containers": [limited("4", gpus=2), container("1")]}, ({GPU: 2}, {})),
        ({"containers": [limited("4")], "initContainers": [container("1")]}, ({},)),
        (
            {
                "containers": [limited("4")],
                "initContainers": [{**limited("1"), "restartPolicy": "Always"}, limited("2")],
            },
            ({"cpu": 1000}, {"cpu": 4000}),
        ),
        ({"containers": [limited("4")], "resources": {"limits": {"cpu": "8"}}}, ({},)),
        ({}, ()),
    ],
    ids=[
        "guaranteed", "the same in words", "burstable", "half a core", "no limits", "another one burstable",
        "an init container burstable", "a sidecar", "as a whole", "no containers",
    ],
)  # fmt: skip
def test_whole_cores_are_aligned_for_guaranteed_pods_alone(
    spec: dict[str, Any], expected: tuple[dict[str, int], ...]
) -> None:
    """Devices are in any case; sidecars come first, and init containers that end not at all."""
    assert expected == aligned_requests(spec)
