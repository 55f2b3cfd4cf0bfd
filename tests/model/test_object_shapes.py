"""Objects have the shape that their readers rely on, or a fault that names the place."""

from typing import Any

import pytest

from arena_topo.model.object_shapes import MPIJOB, POD, misshapen


@pytest.mark.parametrize(
    "pod", [{}, {"metadata": None, "spec": {}}, {"spec": {"containers": []}, "unknown": [1]}, None]
)
def test_what_is_missing_null_or_unknown_is_no_fault(pod: Any) -> None:
    """Every field may be; what is not read may have any shape."""
    assert "" == misshapen(pod, POD)


@pytest.mark.parametrize(
    ("pod", "fault"),
    [
        ([], " is not a mapping"),
        ({"metadata": []}, "metadata is not a mapping"),
        ({"metadata": {"labels": {"a": None, "b": 1}}}, "metadata.labels.b is not a text"),
        ({"spec": {"containers": {}}}, "spec.containers is not a list"),
        ({"spec": {"containers": [{}, None]}}, "spec.containers[1] is null"),
        (
            {"spec": {"containers": [{"resources": {"limits": {"cpu": []}}}]}},
            "spec.containers[0].resources.limits.cpu is not a text or a whole number or a number",
        ),
        (
            {"status": {"containerStatuses": [{"restartCount": True}]}},
            "status.containerStatuses[0].restartCount is not a whole number",
        ),
    ],
)
def test_a_fault_names_its_place(pod: Any, fault: str) -> None:
    """The first one."""
    assert fault == misshapen(pod, POD)


def test_a_job_of_every_version_has_one_shape() -> None:
    """Fields of other versions are missing in it."""
    assert "" == misshapen({"spec": {"template": {"spec": {}}, "replicas": 2}}, MPIJOB)
    assert "spec.mpiReplicaSpecs.Worker is not a mapping" == misshapen(
        {"spec": {"mpiReplicaSpecs": {"Worker": 1}}}, MPIJOB
    )
