"""The pods of a job of any kind: where they are planned, where they run, and that they end with it."""

import json
import re

import yaml

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena

POD_FLAGS = (
    *("--env=A=1", "--cpu=2", "--memory=4Gi", "--share-memory=1Gi", "--rdma"),
    *("--label=team=x", "--annotation=note=y", "--selector=a=b", "--toleration=all"),
)
"""What ``submit`` takes for the pods of all kinds."""


def plan_on(kube: Kube, namespace: str, kind: tuple[str, str], name: str = "bert") -> Object:
    """Return the plan on a job of *kind*, its API version and its kind."""
    job = kube.get(*kind, name, namespace)
    plan: Object = json.loads(job["metadata"]["annotations"]["arena-topo.dev/plan"])
    return plan


def nodes_of(plan: Object) -> list[str]:
    """Return the node of each pod of a *plan*, by number."""
    return [node for node, count in plan["nodes"] for _ in range(count)]


def running_pods(
    kube: Kube, namespace: str, count: int = 3, *, selector: str, without: str = ""
) -> list[Object]:
    """Return the pods that *selector* finds by their names, once *count* of them run, *without* the one of this uid."""

    def found() -> list[Object] | None:
        listed = kube.list("v1", "Pod", namespace, labelSelector=selector)
        whole = len(listed) == count and all(map(pods.running, listed))
        gone = without in [pod["metadata"]["uid"] for pod in listed]
        return sorted(listed, key=lambda pod: str(pod["metadata"]["name"])) if whole and not gone else None

    return eventually(found, f"{count} pods that run")


def after_a_loss(kube: Kube, namespace: str, lost: Object, count: int = 3, *, selector: str) -> list[Object]:
    """Delete the pod *lost*; return the pods of its job as ``running_pods`` does, once all of them run again."""
    meta = lost["metadata"]
    kube.delete("v1", "Pod", meta["name"], namespace, gracePeriodSeconds="0")
    return running_pods(kube, namespace, count, selector=selector, without=meta["uid"])


def assert_deleted(arena: Arena, kube: Kube, namespace: str, name: str = "bert") -> None:
    """Delete the job, which the user reads, and nothing of it is left."""
    outcome = arena("delete", name)
    assert (0, f"The training job {name} has been deleted successfully\n") == (outcome.code, outcome.out)
    eventually(lambda: not kube.list("v1", "Pod", namespace), "the end of the job's pods")


def places(found: list[Object]) -> list[str]:
    """Return the node of each pod."""
    return [pod["spec"]["nodeName"] for pod in found]


def assert_in_places(kube: Kube, namespace: str, kind: tuple[str, str], *, selector: str) -> None:
    """Fail unless the three pods of the job run, each where it is planned."""
    found = running_pods(kube, namespace, selector=selector)
    assert nodes_of(plan_on(kube, namespace, kind)) == places(found)


def suspend_and_resume(arena: Arena, kube: Kube, namespace: str, name: str = "bert") -> None:
    """Suspend the job, which then has no pods and says so, and resume it."""
    outcome = arena("suspend", name)
    assert 0 == outcome.code, outcome.err
    assert [] == kube.list("v1", "Pod", namespace)
    assert re.search(r"^Status: +SUSPENDED", arena("get", name).out, re.MULTILINE)
    outcome = arena("resume", name)
    assert 0 == outcome.code, outcome.err


def end(kube: Kube, namespace: str, found: list[Object], exit_code: int = 0) -> None:
    """Have each pod end with *exit_code*."""
    ending = {pods.FINISH: "failed" if exit_code else "succeeded", pods.EXIT_CODE: str(exit_code)}
    for pod in found:
        pods.annotate(kube, namespace, pod["metadata"]["name"], **ending)


def places_by_name(found: list[Object]) -> dict[str, str]:
    """Return the node of each pod, by the pod's name."""
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in found}


def tried(kube: Kube, namespace: str, printed: str) -> dict[str, Object]:
    """Return the objects in *printed*, as YAML, as the server would store them, by kind, under strict validation."""
    stored = {}
    for item in yaml.safe_load_all(printed):
        stored[item["kind"]] = kube.request(
            "POST",
            kube.path(item["apiVersion"], item["kind"], namespace),
            {**item, "metadata": {**item["metadata"], "namespace": namespace}},
            query={"dryRun": "All", "fieldValidation": "Strict"},
        )
    return stored
