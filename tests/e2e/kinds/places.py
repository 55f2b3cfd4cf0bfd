"""The pods of a job of any kind: where they are planned, where they run, and how they end."""

import json

import yaml

from tests.controlplane.kube import Kube, Object, suppress_missing
from tests.controlplane.machines import pods


def plan_on(kube: Kube, namespace: str, kind: tuple[str, str], name: str = "bert") -> Object:
    """Return the plan on a job of *kind*, its API version and its kind."""
    job = kube.get(*kind, name, namespace)
    plan: Object = json.loads(job["metadata"]["annotations"]["arena-topo.dev/plan"])
    return plan


def nodes_of(plan: Object) -> list[str]:
    """Return the node of each pod of a *plan*, by number."""
    return [node for node, count in plan["nodes"] for _ in range(count)]


def end(kube: Kube, namespace: str, found: list[Object], exit_code: int = 0) -> None:
    """Have each pod end with *exit_code*; those that go because another one has failed are left to that."""
    ending = {pods.FINISH: "failed" if exit_code else "succeeded", pods.EXIT_CODE: str(exit_code)}
    for pod in found:
        with suppress_missing():
            pods.annotate(kube, namespace, pod["metadata"]["name"], **ending)


def tried(kube: Kube, namespace: str, printed: str) -> dict[str, Object]:
    """Return the objects in *printed*, as YAML, as the server
    would store them, by kind, under strict validation.
    """
    stored = {}
    for item in yaml.safe_load_all(printed):
        stored[item["kind"]] = kube.request(
            "POST",
            kube.path(item["apiVersion"], item["kind"], namespace),
            {**item, "metadata": {**item["metadata"], "namespace": namespace}},
            query={"dryRun": "All", "fieldValidation": "Strict"},
        )
    return stored
