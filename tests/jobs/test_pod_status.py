"""The word for a pod is kubectl's, and a pod that waits says why."""

from typing import Any

import pytest

from arena_topo.jobs.conditions import pod_word, why_waiting


def make(status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a pod with *status*."""
    return {"metadata": {"name": "p"}, "spec": spec, "status": status}


def waiting_container(reason: str, message: str = "") -> dict[str, Any]:
    """Return a container that waits."""
    return {"name": "mpi", "state": {"waiting": {"reason": reason, "message": message}}}


def ended_container(**state: Any) -> dict[str, Any]:
    """Return a container that has ended."""
    return {"name": "mpi", "state": {"terminated": state}}


RUNNING = {"name": "mpi", "ready": True, "state": {"running": {}}}
INIT = {"initContainers": [{"name": "a"}, {"name": "b"}]}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gates"}


@pytest.mark.parametrize(
    ("status", "spec", "word"),
    [
        ({}, {}, "Pending"),
        ({"phase": "Pending"}, {}, "Pending"),
        ({"phase": "Running", "containerStatuses": [RUNNING]}, {}, "Running"),
        ({"phase": "Pending", "conditions": [GATED]}, {}, "SchedulingGated"),
        ({"phase": "Failed", "reason": "Evicted"}, {}, "Evicted"),
        ({"phase": "Pending", "containerStatuses": [waiting_container("ImagePullBackOff")]}, {}, "ImagePullBackOff"),
        ({"phase": "Running", "containerStatuses": [waiting_container("CrashLoopBackOff")]}, {}, "CrashLoopBackOff"),
        ({"phase": "Succeeded", "containerStatuses": [ended_container(reason="Completed", exitCode=0)]}, {}, "Completed"),
        ({"phase": "Failed", "containerStatuses": [ended_container(reason="Error", exitCode=1)]}, {}, "Error"),
        ({"phase": "Failed", "containerStatuses": [ended_container(exitCode=3)]}, {}, "ExitCode:3"),
        ({"phase": "Failed", "containerStatuses": [ended_container(signal=9, exitCode=137)]}, {}, "Signal:9"),
        ({"phase": "Running", "containerStatuses": [RUNNING, ended_container(reason="Completed", exitCode=0)]}, {}, "Running"),
        ({"phase": "Pending", "initContainerStatuses": [waiting_container("PodInitializing")]}, INIT, "Init:0/2"),
        ({"phase": "Pending", "initContainerStatuses": [ended_container(exitCode=0), waiting_container("ErrImagePull")]}, INIT, "Init:ErrImagePull"),
        ({"phase": "Pending", "initContainerStatuses": [ended_container(reason="Error", exitCode=1)]}, INIT, "Init:Error"),
        ({"phase": "Pending", "initContainerStatuses": [ended_container(signal=9)]}, INIT, "Init:Signal:9"),
        (
            {"phase": "Running", "initContainerStatuses": [{"name": "a", "started": True, "state": {"running": {}}}], "containerStatuses": [RUNNING]},
            {"initContainers": [{"name": "a", "restartPolicy": "Always"}]},
            "Running",
        ),
    ],
)  # fmt: skip
def test_the_word_is_kubectls(status: dict[str, Any], spec: dict[str, Any], word: str) -> None:
    """Case by case of printPod."""
    assert word == pod_word(make(status, **spec))


def test_a_pod_that_is_deleted_terminates() -> None:
    """Whatever its containers do."""
    leaving = make({"phase": "Running", "containerStatuses": [RUNNING]})
    leaving["metadata"]["deletionTimestamp"] = "2026-11-21T01:00:00Z"

    assert "Terminating" == pod_word(leaving)
    leaving["status"]["reason"] = "NodeLost"
    assert "Unknown" == pod_word(leaving)


@pytest.mark.parametrize(
    ("status", "spec", "why"),
    [
        ({}, {}, "not scheduled yet"),
        ({"phase": "Running"}, {}, ""),
        ({"phase": "Pending", "conditions": [GATED]}, {}, "SchedulingGated: gates"),
        (
            {"phase": "Pending", "conditions": [GATED]},
            {"schedulingGates": [{"name": "arena-topo.dev/gang"}, {"name": "kueue.x-k8s.io/admission"}]},
            "SchedulingGated: waits at arena-topo.dev/gang, kueue.x-k8s.io/admission",
        ),
        ({"phase": "Pending"}, {"nodeName": "n1"}, "starting on n1"),
        ({"phase": "Pending", "containerStatuses": [waiting_container("ErrImagePull", "no such image")]}, {"nodeName": "n1"}, "ErrImagePull: no such image"),
        ({"phase": "Pending", "containerStatuses": [waiting_container("ContainerCreating")]}, {"nodeName": "n1"}, "ContainerCreating"),
    ],
)  # fmt: skip
def test_a_pod_that_waits_says_why(status: dict[str, Any], spec: dict[str, Any], why: str) -> None:
    """The scheduler first, then the containers, then the node."""
    assert why == why_waiting(make(status, **spec))
