"""A rendered job with its plan, held back until the plan is confirmed, and let go with its pins."""

from collections.abc import Mapping
from copy import deepcopy

from arena_topo.errors import UsageError
from arena_topo.model.job.mpijob import ApiVersion, Role, containers, pod_templates, version_of
from arena_topo.model.keys import CLAIMED_GPUS, DRA_GPU, HAMI_USE_GPUS, PLAN, PLANNED, PLANNED_JOB
from arena_topo.model.objects import Object

_SHARING: tuple[Object, ...] = (
    {
        "name": "CUDA_VISIBLE_DEVICES",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{HAMI_USE_GPUS}']"}},
    },
    {"name": "NCCL_HOSTID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "NCCL_CUMEM_ENABLE", "value": "0"},
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def planned(job: Object, plan: str) -> Object:
    """Return *job* with *plan* as its annotation, and labels by which it and its workers are found."""
    made = deepcopy(job)
    _values(made, "annotations")[PLAN] = plan
    _values(made, "labels")[PLANNED] = "true"
    own = {PLANNED: "true", PLANNED_JOB: str(job["metadata"]["name"])}
    _values(pod_templates(made)[Role.WORKER], "labels").update(own)
    return made


def suspended(job: Object) -> Object:
    """Return *job* so that its operator makes no pods yet. Raises ``UsageError`` for v1alpha1, which cannot."""
    if version_of(job) is ApiVersion.V1ALPHA1:
        raise UsageError(
            "MPIJob v1alpha1 cannot be held back until a plan is confirmed",
            hint="use --pin=none, or ask the cluster's admin for mpi-operator 0.5 or later (v2beta1)",
        )
    made = deepcopy(job)
    made["spec"].setdefault("runPolicy", {})["suspend"] = True
    return made


def gated(job: Object, gate: str) -> Object:
    """Return *job* with *gate* before its workers."""
    made = deepcopy(job)
    spec = pod_templates(made)[Role.WORKER]["spec"]
    gates = spec.get("schedulingGates") or []
    if gate not in [each["name"] for each in gates]:
        spec["schedulingGates"] = [*gates, {"name": gate}]
    return made


def with_claimed_gpus(job: Object) -> Object:
    """Return *job* whose workers ask for their GPUs by claim: the number goes from their resources into an annotation."""
    made = deepcopy(job)
    template = pod_templates(made)[Role.WORKER]
    counts = [
        amounts.pop(DRA_GPU)
        for container in containers(template)
        for amounts in (container.get("resources") or {}).values()
        if DRA_GPU in amounts
    ]
    if counts:
        _values(template, "annotations")[CLAIMED_GPUS] = str(counts[0])
    return made


def with_shared_gpus(job: Object) -> Object:
    """Return *job* whose workers see the GPUs of all on their node, their own first, and know that they share it.

    NCCL then takes them for ranks of one host (its ``NCCL_HOSTID``) and may use their links; without
    ``NCCL_CUMEM_ENABLE=0`` it would not between pods (nccl#1781). What the user set stays.
    """
    made = deepcopy(job)
    for container in containers(pod_templates(made)[Role.WORKER]):
        env = container.setdefault("env", [])
        have = {each["name"] for each in env}
        env += [each for each in _SHARING if each["name"] not in have]
    return made


def with_annotations(job: Object, annotations: Mapping[str, str]) -> Object:
    """Return *job* with *annotations* on its workers."""
    made = deepcopy(job)
    _values(pod_templates(made)[Role.WORKER], "annotations").update(annotations)
    return made


def with_affinity(job: Object, term: Object, spread: Object | None) -> Object:
    """Return *job* whose workers need the node *term* besides what they needed, and follow *spread*."""
    made = deepcopy(job)
    spec = pod_templates(made)[Role.WORKER]["spec"]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {}).setdefault(_REQUIRED, {})
    terms = affinity.get("nodeSelectorTerms") or [{}]
    affinity["nodeSelectorTerms"] = [
        {**each, "matchExpressions": [*(each.get("matchExpressions") or ()), term]} for each in terms
    ]
    if spread:
        spec["topologySpreadConstraints"] = [*(spec.get("topologySpreadConstraints") or ()), spread]
    return made


def changes(before: Object, after: Object) -> list[Object]:
    """Return the JSON patch from *before*, as the server has it, to *after*; it holds for that very plan alone."""
    key = f"/metadata/annotations/{PLAN.replace('/', '~1')}"
    path = (
        "/spec/template"
        if version_of(before) is ApiVersion.V1ALPHA1
        else "/spec/mpiReplicaSpecs/Worker/template"
    )
    operations: list[Object] = [{"op": "test", "path": key, "value": _plan(before)}]
    if _plan(after) != _plan(before):
        operations.append({"op": "replace", "path": key, "value": _plan(after)})
    if pod_templates(after)[Role.WORKER] != pod_templates(before)[Role.WORKER]:
        operations.append({"op": "replace", "path": path, "value": pod_templates(after)[Role.WORKER]})
    was, now = ((each["spec"].get("runPolicy") or {}).get("suspend") for each in (before, after))
    if was != now:
        operations.append({"op": "add", "path": "/spec/runPolicy/suspend", "value": bool(now)})
    return operations


def resumed(job: Object) -> Object:
    """Return *job* so that its operator makes its pods."""
    made = deepcopy(job)
    if "suspend" in (made["spec"].get("runPolicy") or {}):
        made["spec"]["runPolicy"]["suspend"] = False
    return made


def with_plan(job: Object, plan: str) -> Object:
    """Return *job* with another plan."""
    made = deepcopy(job)
    _values(made, "annotations")[PLAN] = plan
    return made


def _plan(job: Object) -> str:
    return str((job["metadata"].get("annotations") or {}).get(PLAN, ""))


def _values(item: Object, field: str) -> dict[str, str]:
    if not item.get("metadata"):
        item["metadata"] = {}
    if not item["metadata"].get(field):
        item["metadata"][field] = {}
    values: dict[str, str] = item["metadata"][field]
    return values
