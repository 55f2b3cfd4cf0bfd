"""A rendered job with its plan and what enforces it: every change is one value, applied in one copy."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from arena_topo.kinds.mpijob import Role, pod_templates, version_of, worker_template_path
from arena_topo.model.job.kind import containers
from arena_topo.model.keys import (
    CLAIMED_GPUS,
    DRA_GPU,
    GANG_GATE,
    HAMI_USE_GPUS,
    PIN_CLAIMS,
    PIN_GPUS,
    PIN_NODES,
    PLAN,
    PLANNED,
    PLANNED_JOB,
)
from arena_topo.model.objects import Object, entries, section
from arena_topo.model.plan.plan_record import plan_text

_SHARED_GPU_ENV: tuple[Object, ...] = (
    {
        "name": "CUDA_VISIBLE_DEVICES",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{HAMI_USE_GPUS}']"}},
    },
    {"name": "NCCL_HOSTID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "NCCL_CUMEM_ENABLE", "value": "0"},
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """What a plan puts onto a job; what is not given stays as the job has it.

    ``plan`` is the text of its annotation, None for a job without a plan. ``new``: the job has no plan yet, so that it gets the labels by which planned
    jobs are found, and its workers request claimed GPUs by annotation. ``gated`` puts our scheduling gate before the
    workers; ``suspended`` True keeps the operator from creating pods, False lets it. ``annotations``, ``node_term``,
    ``spread`` and ``shared_gpus`` are for the workers' template.
    """

    plan: str | None
    new: bool = False
    gated: bool = False
    suspended: bool | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_term: Object | None = None
    spread: Object | None = None
    shared_gpus: bool = False


def with_pins(job: Object, pins: Pins) -> Object:
    """Return a copy of *job* with *pins*."""
    pinned = deepcopy(job)
    worker = pod_templates(pinned)[Role.WORKER]
    if pins.plan is not None:
        _metadata(pinned, "annotations")[PLAN] = pins.plan
    if pins.new:
        _metadata(pinned, "labels")[PLANNED] = "true"
        _metadata(worker, "labels").update({PLANNED: "true", PLANNED_JOB: str(job["metadata"]["name"])})
        _request_by_claim(worker)
    if pins.annotations:
        _metadata(worker, "annotations").update(pins.annotations)
    if pins.gated:
        _add_gate(section(worker, "spec"))
    if pins.node_term:
        _require(section(worker, "spec"), pins.node_term)
    if pins.spread:
        entries(section(worker, "spec"), "topologySpreadConstraints").append(pins.spread)
    if pins.shared_gpus:
        _share_gpus(worker)
    _suspend(pinned["spec"], pins.suspended)
    return pinned


def without_pins(job: Object, pins: Pins) -> Object:
    """Return a copy of *job* whose workers are free again from what *pins* put onto their template.

    Gates and labels stay, as every plan of the job needs them.
    """
    free = deepcopy(job)
    worker = pod_templates(free)[Role.WORKER]
    annotations = _metadata(worker, "annotations")
    for key in (PIN_NODES, PIN_GPUS, PIN_CLAIMS):
        annotations.pop(key, None)
    spec = section(worker, "spec")
    if pins.node_term:
        _drop_term(spec, pins.node_term)
    if pins.spread:
        constraints = [item for item in entries(spec, "topologySpreadConstraints") if item != pins.spread]
        _replace(spec, "topologySpreadConstraints", constraints)
    return free


def changes(before: Object, after: Object) -> list[Object]:
    """Return the JSON patch from *before*, as the server has it, to *after*.

    It starts with a test for the plan of *before*: the server refuses it once anybody else wrote another plan.
    """
    key = f"/metadata/annotations/{PLAN.replace('/', '~1')}"
    planned = plan_text(before) is not None
    # A job without a plan is told from one of the same name by its uid.
    operations: list[Object] = [
        {"op": "test", "path": key, "value": plan_text(before)}
        if planned
        else {"op": "test", "path": "/metadata/uid", "value": before["metadata"]["uid"]}
    ]
    if plan_text(after) != plan_text(before):
        operations.append({"op": "replace", "path": key, "value": plan_text(after)})
    template = pod_templates(after)[Role.WORKER]
    if template != pod_templates(before)[Role.WORKER]:
        path = worker_template_path(version_of(before))
        operations.append({"op": "replace", "path": path, "value": template})
    if is_suspended(before) != is_suspended(after):
        suspended = is_suspended(after)
        # An add replaces a value that is there; a replace fails where there is none, and both without the mapping.
        if before["spec"].get("runPolicy") is None:
            operations.append({"op": "add", "path": "/spec/runPolicy", "value": {"suspend": suspended}})
        else:
            operations.append({"op": "add", "path": "/spec/runPolicy/suspend", "value": suspended})
    return operations


def _request_by_claim(worker: Object) -> None:
    """Move the number of GPUs of a DRA driver from the resources into an annotation.

    The name of a device class is no resource that a container may request: the workers get the GPUs from their
    ResourceClaims, and whoever plans reads the number from the annotation.
    """
    counts = [
        quantities.pop(DRA_GPU)
        for container in containers(worker)
        for quantities in (container.get("resources") or {}).values()
        if DRA_GPU in quantities
    ]
    # Requests and limits of a device are always equal, so that the first one tells the number.
    if counts:
        _metadata(worker, "annotations")[CLAIMED_GPUS] = str(counts[0])


def _add_gate(spec: Object) -> None:
    gates = spec.get("schedulingGates") or []
    if GANG_GATE not in [gate["name"] for gate in gates]:
        spec["schedulingGates"] = [*gates, {"name": GANG_GATE}]


def _require(spec: Object, term: Object) -> None:
    affinity = section(section(section(spec, "affinity"), "nodeAffinity"), _REQUIRED)
    # The selector terms are alternatives, each with conditions that must all hold: ours joins every one of them.
    alternatives = affinity.get("nodeSelectorTerms") or [{}]
    affinity["nodeSelectorTerms"] = [
        {**conditions, "matchExpressions": [*(conditions.get("matchExpressions") or ()), term]}
        for conditions in alternatives
    ]


def _share_gpus(worker: Object) -> None:
    """Let a worker see the GPUs of all workers on its node, its own first, and NCCL know that they share the node.

    NCCL takes ranks with one ``NCCL_HOSTID`` for ranks of one host and may use the links between their GPUs; without
    ``NCCL_CUMEM_ENABLE=0`` it would not between pods (nccl#1781). What the user set stays.
    """
    for container in containers(worker):
        env = entries(container, "env")
        present = {variable["name"] for variable in env}
        env += [variable for variable in _SHARED_GPU_ENV if variable["name"] not in present]


def _suspend(spec: Object, suspended: bool | None) -> None:
    """Set ``suspend`` in the run policy of *spec*; None leaves it as it is."""
    if suspended:
        section(spec, "runPolicy")["suspend"] = True
    elif suspended is False and "suspend" in (spec.get("runPolicy") or {}):
        spec["runPolicy"]["suspend"] = False


def is_shared_gpu_variable(variable: Object) -> bool:
    """Whether an environment variable is one that a plan with shared GPUs sets."""
    return variable in _SHARED_GPU_ENV


def is_suspended(job: Object) -> bool:
    """Whether the run policy of *job* keeps its operator from creating pods."""
    return bool((job["spec"].get("runPolicy") or {}).get("suspend"))


def _drop_term(spec: Object, term: Object) -> None:
    """Take *term* out of every alternative of the required node affinity, and what is empty then out of *spec*."""
    affinity = spec.get("affinity") or {}
    nodes = affinity.get("nodeAffinity") or {}
    required = nodes.get(_REQUIRED) or {}
    alternatives = [
        {
            **conditions,
            "matchExpressions": [item for item in conditions.get("matchExpressions") or () if item != term],
        }
        for conditions in required.get("nodeSelectorTerms") or ()
    ]
    # An alternative without conditions matches no node at all, so that empty parts must not stay.
    kept = [{key: value for key, value in conditions.items() if value} for conditions in alternatives]
    _replace(required, "nodeSelectorTerms", [conditions for conditions in kept if conditions])
    _replace(nodes, _REQUIRED, required)
    _replace(affinity, "nodeAffinity", nodes)
    _replace(spec, "affinity", affinity)


def _replace(item: Object, key: str, value: Any) -> None:
    """Set *key* of *item*, or leave it out where *value* is empty."""
    if value:
        item[key] = value
    else:
        item.pop(key, None)


def _metadata(item: Object, field_name: str) -> dict[str, str]:
    """Return the labels or annotations of *item*, put there where it has none."""
    return section(section(item, "metadata"), field_name)
