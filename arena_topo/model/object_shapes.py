"""The shapes of the objects that are read: which fields are texts, numbers, lists or mappings.

An API server keeps these shapes by its schemas; a template, or whatever answers in a server's place, may break them.
Fields that are not read have no shape here, every field may be missing or null, and what is checked once needs no care
afterwards. For example, ``{"labels": Each(str)}`` is met by ``{}`` and ``{"labels": {"a": "b"}}``, and not by
``{"labels": ["a"]}``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_WORDS: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
}


@dataclass(frozen=True, slots=True)
class Each:
    """A mapping from texts to values of one shape."""

    shape: "Shape"


Shape = type | tuple[type, ...] | Mapping[str, "Shape"] | list["Shape"] | Each
"""A type, one of several types, a mapping by its keys, a list of one shape, or a mapping of one shape."""

_AMOUNT = (str, int, float)

METADATA: Shape = {
    "name": str,
    "namespace": str,
    "uid": str,
    "resourceVersion": str,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "labels": Each(str),
    "annotations": Each(str),
    "ownerReferences": [{"kind": str, "name": str, "uid": str, "apiVersion": str}],
}

_CONTAINER: Shape = {
    "name": str,
    "image": str,
    "resources": {"limits": Each(_AMOUNT), "requests": Each(_AMOUNT), "claims": [dict]},
    "env": [{"name": str}],
    "restartPolicy": str,
}

_POD_SPEC: Shape = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "nodeName": str,
    "nodeSelector": Each(str),
    "schedulerName": str,
    "priorityClassName": str,
    "schedulingGates": [{"name": str}],
    "tolerations": [dict],
    "topologySpreadConstraints": [dict],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [{"key": str, "operator": str, "values": [str]}],
                        "matchFields": [dict],
                    }
                ]
            }
        }
    },
    "resources": {"limits": Each(_AMOUNT), "requests": Each(_AMOUNT)},
    "overhead": Each(_AMOUNT),
}

_TEMPLATE: Shape = {"metadata": METADATA, "spec": _POD_SPEC}

_CONDITION: Shape = {"type": str, "status": str, "reason": str, "message": str, "lastTransitionTime": str}

_STATE: Shape = {
    "waiting": {"reason": str, "message": str},
    "running": {"startedAt": str},
    "terminated": {"exitCode": int, "reason": str, "message": str, "startedAt": str, "finishedAt": str},
}

_CONTAINER_STATUS: Shape = {
    "name": str,
    "state": _STATE,
    "lastState": _STATE,
    "restartCount": int,
    "ready": bool,
}

MPIJOB: Shape = {
    "apiVersion": str,
    "kind": str,
    "metadata": METADATA,
    "spec": {
        "template": _TEMPLATE,
        "replicas": int,
        "slotsPerWorker": int,
        "launcherCreationPolicy": str,
        "launcherResources": {"limits": Each(_AMOUNT), "requests": Each(_AMOUNT)},
        "runPolicy": {"suspend": bool, "schedulingPolicy": dict},
        "mpiReplicaSpecs": Each({"replicas": int, "template": _TEMPLATE}),
    },
    "status": {
        "conditions": [_CONDITION],
        "launcherStatus": str,
        "startTime": str,
        "completionTime": str,
        "replicaStatuses": Each({"active": int, "succeeded": int, "failed": int}),
    },
}

POD: Shape = {
    "metadata": METADATA,
    "spec": _POD_SPEC,
    "status": {
        "phase": str,
        "reason": str,
        "message": str,
        "startTime": str,
        "hostIP": str,
        "podIP": str,
        "conditions": [_CONDITION],
        "containerStatuses": [_CONTAINER_STATUS],
        "initContainerStatuses": [_CONTAINER_STATUS],
    },
}


def misshapen(value: Any, shape: Shape, place: str = "") -> str:
    """Return what is wrong with *value*, such as ``metadata.labels is not a mapping``; empty where it has *shape*."""
    # In every field null means that there is no value.
    if value is None:
        return ""
    if isinstance(shape, type | tuple):
        return _mistyped(value, shape, place)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{place} is not a list"
        items = ((item, shape[0], f"{place}[{index}]") for index, item in enumerate(value))
        # A list may have no holes: its readers look at every element.
        return next((fault for each in items if (fault := _present(*each))), "")
    if not isinstance(value, dict):
        return f"{place} is not a mapping"
    if isinstance(shape, Each):
        shapes: Mapping[str, Shape] = dict.fromkeys(value, shape.shape)
    else:
        shapes = {key: inner for key, inner in shape.items() if key in value}
    inside = ((value[key], inner, f"{place}.{key}".lstrip(".")) for key, inner in shapes.items())
    return next((fault for each in inside if (fault := misshapen(*each))), "")


def _present(value: Any, shape: Shape, place: str) -> str:
    return f"{place} is null" if value is None else misshapen(value, shape, place)


def _mistyped(value: Any, shape: type | tuple[type, ...], place: str) -> str:
    types = shape if isinstance(shape, tuple) else (shape,)
    # In Python true is a number as well.
    if isinstance(value, types) and (bool in types or not isinstance(value, bool)):
        return ""
    return f"{place} is not {' or '.join(_WORDS.get(each, 'a number') for each in types)}"
