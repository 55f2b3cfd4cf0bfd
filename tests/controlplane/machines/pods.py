"""Steers pods on fake nodes: hold them before they start,
let them finish (stages/pods.yaml does the rest).
"""

from collections.abc import Callable

from tests.controlplane.kube import Kube, Object
from tests.controlplane.polling import eventually

MPIJOB = ("kubeflow.org/v2beta1", "MPIJob")

HOLD = "arena-topo.dev/test-hold"
FINISH = "arena-topo.dev/test-finish"
FINISH_AFTER = "arena-topo.dev/test-finish-after"
EXIT_CODE = "arena-topo.dev/test-exit-code"
REASON = "arena-topo.dev/test-reason"


def annotate(kube: Kube, namespace: str, pod: str, **annotations: str | None) -> Object:
    """Set annotations of a pod, or remove those given as None; keys are this module's constants."""
    return kube.patch("v1", "Pod", pod, {"metadata": {"annotations": annotations}}, namespace)


def release(kube: Kube, namespace: str, pod: str) -> Object:
    """Let a held pod start."""
    return annotate(kube, namespace, pod, **{HOLD: None})


def finish(kube: Kube, namespace: str, pod: str, exit_code: int = 0, reason: str = "") -> Object:
    """End a running pod: Succeeded with exit code 0, else Failed; return it once it has ended."""
    outcome = {FINISH: "failed" if exit_code else "succeeded", EXIT_CODE: str(exit_code)}
    annotate(kube, namespace, pod, **outcome | ({REASON: reason} if reason else {}))
    return kube.wait_for("v1", "Pod", pod, namespace, until=ended)


def ended(pod: Object) -> bool:
    """Tell whether a pod has Succeeded or Failed."""
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def running(pod: Object) -> bool:
    """Tell whether a pod is Running and Ready."""
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    return pod["status"].get("phase") == "Running" and conditions.get("Ready") == "True"


def of_job(kube: Kube, namespace: str, job: str, role: str = "") -> list[Object]:
    """Return the pods of an MPIJob, of one role (``launcher``, ``worker``) if given, by name."""
    selector = f"training.kubeflow.org/job-name={job}"
    if role:
        selector += f",training.kubeflow.org/job-role={role}"
    pods = kube.list("v1", "Pod", namespace, labelSelector=selector)
    return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))


def all_running(kube: Kube, namespace: str, selector: str, count: int, without: str = "") -> list[Object]:
    """Return the pods that *selector* finds by their names,
    once *count* of them run, *without* the one of this uid.
    """

    def found() -> list[Object] | None:
        listed = kube.list("v1", "Pod", namespace, labelSelector=selector)
        whole = len(listed) == count and all(map(running, listed))
        gone = without in [pod["metadata"]["uid"] for pod in listed]
        return sorted(listed, key=lambda pod: str(pod["metadata"]["name"])) if whole and not gone else None

    return eventually(found, f"{count} pods that run")


def replaced(kube: Kube, namespace: str, name: str, until: Callable[[Object], object] = bool) -> Object:
    """Delete a pod at once, and return the one that its
    operator creates for it, once *until* holds for that.
    """
    uid = kube.get("v1", "Pod", name, namespace)["metadata"]["uid"]
    kube.delete("v1", "Pod", name, namespace, gracePeriodSeconds="0")
    return kube.wait_for(
        "v1", "Pod", name, namespace, until=lambda new: new["metadata"]["uid"] != uid and until(new)
    )


def nodes_of(found: list[Object]) -> list[str]:
    """Return the node of each pod that has one."""
    return [pod["spec"]["nodeName"] for pod in found if pod["spec"].get("nodeName")]


def nodes_by_index(kube: Kube, namespace: str, job: str) -> dict[int, str]:
    """Return the node of each worker of an MPIJob that has one, by its index."""
    return {
        int(pod["metadata"]["name"].rpartition("-")[2]): pod["spec"]["nodeName"]
        for pod in of_job(kube, namespace, job, "worker")
        if pod["spec"].get("nodeName")
    }
