"""Objects of the API: their type, and the shapes of those that the program reads."""

from collections.abc import Mapping
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.model.text.documents import (
    Each,
    Named,
    Part,
    Shape,
    count,
    instant,
    name,
    quantity,
    text,
    truth,
    whole,
)

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON decodes it."""


def section(item: Object, key: str) -> Object:
    """Return the mapping at *key* of *item*, put there if there is none.

    Raises ``DocumentError`` for anything else.
    """
    # Not setdefault: a key without a value, as in a template's "affinity:", reads as None.
    if item.get(key) is None:
        item[key] = {}
    value = item[key]
    if not isinstance(value, dict):
        raise DocumentError(f"{key} is {value!r}, expected a mapping", hint="correct it in the template")
    return value


def entries(item: Object, key: str) -> list[Any]:
    """Return the list at *key* of *item*, put there if there is none.

    Raises ``DocumentError`` for anything else.
    """
    if item.get(key) is None:
        item[key] = []
    value = item[key]
    if not isinstance(value, list):
        raise DocumentError(f"{key} is {value!r}, expected a list", hint="correct it in the template")
    return value


# The shapes of jobs, of their pods and of batch Jobs: what the program reads of objects that others wrote.
#
# Source: the APIs of kubeflow.org v1alpha1, v1 and v2beta1, core/v1 and batch/v1.

_METADATA = Part(
    {
        "name": name,
        "namespace": name,
        "uid": name,
        "creationTimestamp": instant,
        "deletionTimestamp": text,
        "labels": Named(text),
        "annotations": Named(text),
        "managedFields": Each(Part({"time": instant})),
    },
    # The API server sets these on every object.
    {"name": "?", "namespace": "", "uid": "", "creationTimestamp": "1970-01-01T00:00:00Z"},
)


def _object(spec: Mapping[str, Shape], status: Mapping[str, Shape] | None = None, **more: Shape) -> Part:
    """Return the shape of an object that has metadata and a spec in any case."""
    parts = {"metadata": _METADATA, "spec": Part(spec), **({"status": Part(status)} if status else {})}
    return Part({**more, **parts}, {"metadata": {**_METADATA.required}, "spec": {}})


_RESOURCES = Part({"requests": Named(quantity), "limits": Named(quantity)})

_CONTAINER = Part(
    {
        "name": text,
        "image": text,
        "resources": _RESOURCES,
        "restartPolicy": text,
        "env": Each(Part({"name": text}, {"name": ""})),
        "command": Each(text),
        "args": Each(text),
    },
    {"name": ""},
)

_REQUIREMENT = Part({"key": text, "operator": text, "values": Each(text)})

_CLAIMS = Each(Part({"name": text, "resourceClaimName": text}))
_SELECTOR = Part({"matchLabels": Named(text), "matchExpressions": Each(_REQUIREMENT)})

_POD_TERM = Part({"topologyKey": text, "labelSelector": _SELECTOR})

_POD_TERMS = Part(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Each(_POD_TERM),
        "preferredDuringSchedulingIgnoredDuringExecution": Each(Part({"podAffinityTerm": _POD_TERM})),
    }
)

_POD_SPEC = Part(
    {
        "resourceClaims": _CLAIMS,
        "nodeName": text,
        "nodeSelector": Named(text),
        "priorityClassName": text,
        "schedulerName": text,
        "containers": Each(_CONTAINER),
        "initContainers": Each(_CONTAINER),
        "overhead": Named(quantity),
        "resources": _RESOURCES,
        "schedulingGates": Each(Part({"name": text}, {"name": ""})),
        "tolerations": Each(Part({"key": text, "operator": text, "value": text, "effect": text})),
        "topologySpreadConstraints": Each(Part({})),
        "affinity": Part(
            {
                "nodeAffinity": Part(
                    {
                        "requiredDuringSchedulingIgnoredDuringExecution": Part(
                            {
                                "nodeSelectorTerms": Each(
                                    Part(
                                        {
                                            "matchExpressions": Each(_REQUIREMENT),
                                            "matchFields": Each(_REQUIREMENT),
                                        }
                                    )
                                )
                            }
                        )
                    }
                ),
                **dict.fromkeys(("podAffinity", "podAntiAffinity"), _POD_TERMS),
            }
        ),
    }
)

_TEMPLATE = Part(
    {"metadata": Part({"labels": Named(text), "annotations": Named(text)}), "spec": _POD_SPEC},
)

_CONDITIONS = Each(
    Part(
        {
            "type": text,
            "status": text,
            "reason": text,
            "message": text,
            "lastTransitionTime": instant,
            "lastUpdateTime": instant,
        },
        {"type": ""},
    )
)

_REPLICAS = Part({"replicas": count, "template": _TEMPLATE, "restartPolicy": text})

_INDEXED = Part({"parallelism": count, "completions": count, "template": _TEMPLATE})
_REPLICATED = Each(Part({"name": text, "replicas": count, "template": Part({"spec": _INDEXED})}))
_SET_SPEC = Part({"template": Part({"spec": Part({"replicatedJobs": _REPLICATED})})})
"""What a TrainJob's runtime, and a patch of it, say of the JobSet that is made of them."""

TRAINING_RUNTIME = _object({"mlPolicy": Part({"numNodes": count}), **_SET_SPEC.keys})

_REPLICA_SPECS = ("mpiReplicaSpecs", "pytorchReplicaSpecs", "tfReplicaSpecs")

TRAINING_JOB = _object(
    {
        "runPolicy": Part({"suspend": truth}),
        **{specs: Named(_REPLICAS) for specs in _REPLICA_SPECS},
        "replicas": count,
        "template": _TEMPLATE,
        "slotsPerWorker": count,
        "elasticPolicy": Part(
            {
                "minReplicas": count,
                "maxReplicas": count,
                "rdzvHost": text,
                "rdzvBackend": text,
                "metrics": Each(Part({})),
            }
        ),
        "suspend": truth,
        "parallelism": count,
        "completions": count,
        "replicatedJobs": _REPLICATED,
        "trainer": Part({"numNodes": count, "resourcesPerNode": _RESOURCES}),
        "runtimePatches": Each(Part({"manager": text, "trainingRuntimeSpec": _SET_SPEC})),
    },
    {"conditions": _CONDITIONS, "launcherStatus": text, "startTime": instant, "completionTime": instant},
    apiVersion=text,
    kind=text,
)

_STATE = Part(
    {
        "waiting": Part({"reason": text, "message": text}),
        "running": Part({}),
        "terminated": Part(
            {"reason": text, "message": text, "exitCode": whole, "signal": whole, "finishedAt": instant}
        ),
    }
)

_STATUSES = Each(
    Part(
        {
            "name": text,
            "ready": truth,
            "started": truth,
            "restartCount": count,
            "state": _STATE,
            "lastState": _STATE,
        },
        {"name": ""},
    )
)

POD = _object(
    _POD_SPEC.keys,
    {
        "phase": text,
        "reason": text,
        "message": text,
        "podIP": text,
        "hostIP": text,
        "conditions": _CONDITIONS,
        "containerStatuses": _STATUSES,
        "initContainerStatuses": _STATUSES,
        "resourceClaimStatuses": _CLAIMS,
    },
)

NODE = _object(
    {"unschedulable": truth, "taints": Each(Part({"key": text, "value": text, "effect": text}))},
    {
        "capacity": Named(quantity),
        "allocatable": Named(quantity),
        "conditions": _CONDITIONS,
        "addresses": Each(Part({"type": text, "address": text})),
    },
)

EVENT = Part(
    {"metadata": _METADATA, "involvedObject": Part({}), "series": Part({})},
    {"metadata": {**_METADATA.required}},
)

SERVICE = _object(
    {"type": text, "ports": Each(Part({"port": count, "nodePort": count}))},
    {"loadBalancer": Part({"ingress": Each(Part({"ip": text, "hostname": text}))})},
)

DEPLOYMENT = _object({"replicas": count, "template": _TEMPLATE}, {"readyReplicas": count})

OBJECT = _object({})
"""Any other object that is read."""

_OWNER = Part({"apiVersion": text, "kind": text, "name": name, "uid": name, "controller": truth})
_POD_SET = {"name": text, "count": count}

WORKLOAD = Part(
    {
        "metadata": Part({**_METADATA.keys, "ownerReferences": Each(_OWNER)}, _METADATA.required),
        "spec": Part(
            {
                "active": truth,
                "priority": whole,
                "maximumExecutionTimeSeconds": count,
                "podSets": Each(Part({**_POD_SET, "template": _TEMPLATE}, {"name": ""})),
            }
        ),
        "status": Part(
            {
                "conditions": _CONDITIONS,
                "admission": Part(
                    {"podSetAssignments": Each(Part({**_POD_SET, "flavors": Named(text)}, {"name": ""}))}
                ),
                "admissionChecks": Each(
                    Part(
                        {
                            "name": text,
                            "state": text,
                            "message": text,
                            "podSetUpdates": Each(
                                Part({"name": text, "annotations": Named(text)}, {"name": ""})
                            ),
                        },
                        {"name": "", "state": ""},
                    )
                ),
            }
        ),
    },
    {"metadata": {**_METADATA.required}, "spec": {}},
)
"""A Workload of Kueue."""

_DEVICE_REQUEST = Part(
    {
        "selectors": Each(
            Part({"cel": Part({"expression": text}, {"expression": ""})}, {"cel": {"expression": ""}})
        )
    }
)

CONFIG_MAP = Part(
    {"metadata": _METADATA, "data": Named(text), "binaryData": Named(text)},
    {"metadata": {**_METADATA.required}},
)

LEASE = _object(
    {"holderIdentity": text, "acquireTime": instant, "renewTime": instant, "leaseTransitions": count}
)

RESOURCE_CLAIM = Part(
    {
        "metadata": _METADATA,
        "spec": Part(
            {
                "devices": Part(
                    {"requests": Each(Part({**_DEVICE_REQUEST.keys, "exactly": _DEVICE_REQUEST}))},
                    {"requests": []},
                )
            },
            {"devices": {"requests": []}},
        ),
        "status": Part({"reservedFor": Each(Part({}))}),
    },
    {"metadata": {**_METADATA.required}, "spec": {"devices": {"requests": []}}},
)

MUTATING_POLICY = _object(
    {"mutations": Each(Part({"applyConfiguration": Part({"expression": text})}))},
)

IDENTITY = Part({"status": Part({"userInfo": Part({"username": text})})})
"""A SelfSubjectReview."""

OPEN_API = Part({"components": Part({"schemas": Named(Part({}))})})

ACCESS_REVIEW = Part({"status": Part({"allowed": truth, "reason": text})}, {"status": {}})

LIST = Part({"items": Each(Part({})), "metadata": Part({"continue": text})})

VERSION = Part({"gitVersion": text})

GROUPS = Part({"groups": Each(Part({"versions": Each(Part({"groupVersion": text}, {"groupVersion": ""}))}))})

RESOURCES = Part({"resources": Each(Part({"name": text}, {"name": ""}))})

BATCH_JOB = Part(
    {"metadata": _METADATA, "status": Part({"completionTime": instant, "conditions": _CONDITIONS})}
)
