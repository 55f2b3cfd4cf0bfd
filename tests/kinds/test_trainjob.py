"""The anatomy of a TrainJob: what it says of its pods itself, and where our patch of its runtime lies."""

import pytest

from arena_topo.kinds.trainjob import TRAINJOB, with_patch
from arena_topo.model.objects import Object


def trainjob(annotations: dict[str, str] | None = None, **trainer: object) -> Object:
    """Return a TrainJob that another manager patches too."""
    return {
        "metadata": {"name": "job", "annotations": annotations or {}},
        "spec": {"runtimeRef": {"name": "r"}, "trainer": trainer, "runtimePatches": [{"manager": "a.b/c"}]},
    }


def test_our_patch_comes_after_those_of_others() -> None:
    """Trainer applies them in order; a second one is not added."""
    job = with_patch(trainjob(numNodes=2))
    (node,) = TRAINJOB.replicas(job)

    assert ["a.b/c", "arena-topo.dev/planner"] == [
        patch["manager"] for patch in job["spec"]["runtimePatches"]
    ]
    assert ("node", 2) == (node.role, node.count)
    assert node.path.startswith("/spec/runtimePatches/1/trainingRuntimeSpec/template/spec/replicatedJobs/0/")
    assert job is with_patch(job)


@pytest.mark.parametrize(
    ("annotation", "gpus"),
    [
        ("", "2"),
        ('{"nvidia.com/gpu":"4"}', "4"),
        ("{", None),
        ('{"nvidia.com/gpu":"x"}', None),
        ("[1]", None),
    ],
)
def test_a_pod_requests_what_was_written_down_or_what_the_job_says(annotation: str, gpus: str | None) -> None:
    """Anybody may write an annotation: what is no quantity counts for nothing."""
    noted = {"arena-topo.dev/pod-requests": annotation} if annotation else {}
    job = trainjob(noted, resourcesPerNode={"limits": {"nvidia.com/gpu": "2"}})
    (node,) = TRAINJOB.replicas(job)

    assert gpus == node.pods["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu")


@pytest.mark.parametrize(
    ("trainer", "annotation", "count"), [({"numNodes": 3}, "5", 3), ({}, "5", 5), ({}, "x", 1), ({}, "", 1)]
)
def test_the_runtime_says_how_many_pods_there_are_where_the_job_does_not(
    trainer: dict[str, int], annotation: str, count: int
) -> None:
    """Written down when it was submitted."""
    (node,) = TRAINJOB.replicas(trainjob({"arena-topo.dev/pod-count": annotation}, **trainer))

    assert count == node.count
