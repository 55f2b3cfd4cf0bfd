"""A rendered job with its plan and what enforces it: every change is one value, applied in one copy."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import check_templates, kind_of
from arena_topo.model.keys import (
    CLAIMED_GPUS,
    DRA_GPU,
    GANG_GATE,
    HAMI_USE_GPUS,
    LAUNCHER_OF,
    PIN_CLAIMS,
    PIN_GPUS,
    PIN_NODES,
    PIN_OFFSET,
    PLAN,
    PLANNED,
    PLANNED_JOB,
    PLANNED_KIND,
)
from arena_topo.model.kind import (
    Kind,
    Replicas,
    containers,
    is_planned,
    is_suspended,
    offsets,
    planned_replicas,
)
from arena_topo.model.objects import Object, entries, section
from arena_topo.model.plan_record import plan_text

SHARED_GPU_ENV: tuple[Object, ...] = (
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

    ``plan`` is the text of its annotation, None for a job without a plan. ``new``: the job has no plan yet,
    so that it gets the labels by which planned jobs are found, and its workers request claimed GPUs by
    annotation. ``gated`` puts our scheduling gate before the workers; ``suspended`` True keeps the operator
    from creating pods, False lets it. ``annotations``, ``node_term``, ``spread`` and ``shared_gpus`` are for
    the workers' template.
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
    """Return a copy of *job* with *pins*, on the template of each role that is planned."""
    pinned = deepcopy(job)
    kind = kind_of(pinned)
    check_templates(kind, pinned)
    if pins.plan is not None:
        _metadata(pinned, "annotations")[PLAN] = pins.plan
    if pins.new:
        _metadata(pinned, "labels")[PLANNED] = "true"
        for launcher in launchers(kind, pinned):
            _metadata(launcher.template, "labels").update(launcher_labels(pinned))
    first = offsets(kind, pinned)
    for replicas in planned_replicas(kind, pinned):
        _pin(replicas, pins, labels=_labels(kind, pinned), offset=first[replicas.role])
    suspend(kind, pinned["spec"], suspended=pins.suspended)
    return pinned


def _labels(kind: Kind, job: Object) -> dict[str, str]:
    labels = {PLANNED: "true", PLANNED_JOB: str(job["metadata"]["name"])}
    # Jobs of two kinds may have one name. Those without the label are MPIJobs, which had none to begin with.
    return labels if isinstance(kind, ApiVersion) else {**labels, PLANNED_KIND: kind.kind.lower()}


def launchers(kind: Kind, job: Object) -> list[Replicas]:
    """Return the role of the launcher of *job*, if it is an MPIJob with a template for it."""
    if not isinstance(kind, ApiVersion):
        return []
    return [replicas for replicas in kind.replicas(job) if not is_planned(kind, replicas.role)]


def launcher_labels(job: Object) -> dict[str, str]:
    """Return the labels of the launcher of *job*, by which its pod is known as that of a job of ours."""
    return {LAUNCHER_OF: str(job["metadata"]["name"])}


def _pin(replicas: Replicas, pins: Pins, *, labels: Mapping[str, str], offset: int) -> None:
    """Put *pins* onto the template of *replicas*, which have the numbers from *offset* on."""
    template = replicas.template
    if pins.new:
        _metadata(template, "labels").update(labels)
        if replicas.annotations:
            _metadata(template, "annotations").update(replicas.annotations)
        _request_by_claim(template)
    if pins.annotations:
        # Of a job that was suspended those of an earlier plan may be left.
        _drop_lists(template)
        # The lists are the whole job's, in each template: the policy adds the offset to a pod's own index.
        _metadata(template, "annotations").update(
            {
                **pins.annotations,
                **({PIN_OFFSET: str(offset)} if offset else {}),
            }
        )
    if pins.gated:
        _add_gate(section(template, "spec"))
    if pins.node_term:
        _require(section(template, "spec"), pins.node_term)
    if pins.spread:
        entries(section(template, "spec"), "topologySpreadConstraints").append(pins.spread)
    if pins.shared_gpus:
        _share_gpus(template)


def without_pins(job: Object, pins: Pins) -> Object:
    """Return a copy of *job* whose workers are free again from what *pins* put onto their template.

    Gates and labels stay, as every plan of the job needs them.
    """
    free = deepcopy(job)
    for replicas in planned_replicas(kind_of(free), free):
        _unpin(replicas.template, pins)
    return free


def _drop_lists(template: Object) -> None:
    annotations = _metadata(template, "annotations")
    for key in (PIN_NODES, PIN_GPUS, PIN_CLAIMS, PIN_OFFSET):
        annotations.pop(key, None)


def _unpin(template: Object, pins: Pins) -> None:
    _drop_lists(template)
    spec = section(template, "spec")
    if pins.node_term:
        _drop_term(spec, pins.node_term)
    if pins.spread:
        constraints = [item for item in entries(spec, "topologySpreadConstraints") if item != pins.spread]
        _replace(spec, "topologySpreadConstraints", constraints)


def resized(job: Object, pods: int) -> Object:
    """Return a copy of *job*, of an elastic kind, with as many planned *pods* in all.

    Its elastic role has what the others leave. Raises ``DocumentError`` for a job without that role.
    A PyTorchJob of a master and three workers that gets six pods has five workers.
    """
    kind = kind_of(job)
    if kind.elastic is None:
        raise ValueError(f"the pods of a {kind.kind} stay as many as they are")
    counts = {role.role: role.count for role in planned_replicas(kind, job)}
    if counts.pop(kind.elastic.role, None) is None:
        raise DocumentError(
            f"the job {job['metadata']['name']} has no {kind.elastic.role}s, whose number could change"
        )
    others = sum(counts.values())
    copy = deepcopy(job)
    *above, last = kind.elastic.replicas.strip("/").split("/")
    section_of: Object = copy
    for key in above:
        section_of = section(section_of, key)
    section_of[last] = pods - others
    return copy


def changes(before: Object, after: Object) -> list[Object]:
    """Return the JSON patch from *before*, as the server has it, to *after*.

    It starts with a test for the plan of *before*: the server refuses it once anybody else wrote another
    plan, and where the number of pods changes, once anybody else changed that.
    """
    key = f"/metadata/annotations/{PLAN.replace('/', '~1')}"
    planned = plan_text(before) is not None
    # A job without a plan is distinguished from one of the same name by its uid.
    operations: list[Object] = [
        {"op": "test", "path": key, "value": plan_text(before)}
        if planned
        else {"op": "test", "path": "/metadata/uid", "value": before["metadata"]["uid"]}
    ]
    if plan_text(after) != plan_text(before):
        operations.append({"op": "replace", "path": key, "value": plan_text(after)})
    kind = kind_of(before)
    for old, new in zip(planned_replicas(kind, before), planned_replicas(kind, after), strict=True):
        if old.template != new.template:
            operations.append({"op": "replace", "path": new.path, "value": new.template})
        if old.count != new.count and kind.elastic:
            operations += [
                {"op": "test", "path": kind.elastic.replicas, "value": old.count},
                {"op": "replace", "path": kind.elastic.replicas, "value": new.count},
            ]
    if is_suspended(kind, before) != is_suspended(kind, after):
        operations.append(_suspension(kind, before, suspended=is_suspended(kind, after)))
    return operations


def _suspension(kind: Kind, before: Object, *, suspended: bool) -> Object:
    *above, last = kind.suspend
    # An add replaces a value that is there; a replace fails if there is none, and both without the mapping
    # above.
    if above and before["spec"].get(above[0]) is None:
        return {"op": "add", "path": f"/spec/{above[0]}", "value": {last: suspended}}
    return {"op": "add", "path": f"/spec/{'/'.join(kind.suspend)}", "value": suspended}


def _request_by_claim(worker: Object) -> None:
    """Move the number of GPUs of a DRA driver from the resources into an annotation.

    The name of a device class is no resource that a container may request: the workers get the GPUs from
    their ResourceClaims, and anyone who plans reads the number from the annotation.
    """
    counts = [
        quantities.pop(DRA_GPU)
        for container in containers(worker)
        for quantities in (container.get("resources") or {}).values()
        if DRA_GPU in quantities
    ]
    # Requests and limits of a device are always equal, so that the first one has the number.
    if counts:
        _metadata(worker, "annotations")[CLAIMED_GPUS] = str(counts[0])


def _add_gate(spec: Object) -> None:
    gates = spec.get("schedulingGates") or []
    if GANG_GATE not in [gate["name"] for gate in gates]:
        spec["schedulingGates"] = [*gates, {"name": GANG_GATE}]


def _require(spec: Object, term: Object) -> None:
    affinity = section(section(section(spec, "affinity"), "nodeAffinity"), _REQUIRED)
    # The selector terms are alternatives, each with conditions that must all hold: ours joins every one of
    # them.
    alternatives = affinity.get("nodeSelectorTerms") or [{}]
    affinity["nodeSelectorTerms"] = [
        {**conditions, "matchExpressions": [*(conditions.get("matchExpressions") or ()), term]}
        for conditions in alternatives
    ]


def _share_gpus(worker: Object) -> None:
    """Let a worker see the GPUs of all workers on its node, its own first, and let NCCL know.

    NCCL takes ranks with one ``NCCL_HOSTID`` for ranks of one host and may use the links between their GPUs;
    without ``NCCL_CUMEM_ENABLE=0`` it would not between pods (nccl#1781). What the user set stays.
    """
    for container in containers(worker):
        env = entries(container, "env")
        present = {variable["name"] for variable in env}
        env += [variable for variable in SHARED_GPU_ENV if variable["name"] not in present]


def suspend(kind: Kind, spec: Object, *, suspended: bool | None) -> None:
    """Set the field of *spec* that suspends a job of *kind*; None leaves it as it is."""
    if suspended is None or not kind.suspend:
        return
    *above, last = kind.suspend
    for key in above:
        if spec.get(key) is None and not suspended:
            return
        spec = section(spec, key)
    if suspended or last in spec:
        spec[last] = suspended


def is_shared_gpu_variable(variable: Object) -> bool:
    """Whether an environment variable is one that a plan with shared GPUs sets."""
    return variable in SHARED_GPU_ENV


def _drop_term(spec: Object, term: Object) -> None:
    """Take *term* out of every alternative of the required node affinity, and what is then empty too."""
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
