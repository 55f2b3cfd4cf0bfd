"""The DaemonSet controller: one pod on every node that the template selects and whose taints it tolerates.

Source: k8s.io/kubernetes pkg/controller/daemon.
"""

import copy
import hashlib
import json
from functools import partial

from arena_topo.model.objects import Object
from arena_topo.model.scheduling import untolerated
from arena_topo.sandbox.api.admission import random_suffix
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.sim.objects import (
    ENDED_PHASES,
    NODES,
    PODS,
    controlled,
    delete,
    holds,
    is_deleting,
    owner_reference,
    put_status,
    record_event,
    sync_each,
)
from arena_topo.sandbox.sim.scheduler import SchedulerNode, is_selected, node_state, tolerations_of

DAEMON_SETS = ("apps", "daemonsets")
_COMPONENT = "daemonset-controller"
_HASH = "controller-revision-hash"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""Taints of ``node.kubernetes.io`` that every daemon tolerates."""


def step(api: Api) -> None:
    """Bring every DaemonSet to where it should be."""
    nodes = [node_state(node) for node in api.store.values(NODES)]
    sync_each(api, DAEMON_SETS, partial(_sync, api, nodes))


def _sync(api: Api, nodes: list[SchedulerNode], daemon_set: Object) -> None:
    spec, revision = _pod_spec(daemon_set), _revision(daemon_set)
    wanted = [node.name for node in nodes if _runs_on(spec, node)]
    pods = controlled(api, daemon_set, PODS)
    for pod in pods:
        if _node_of(pod) not in wanted or pod["status"].get("phase") in ENDED_PHASES:
            delete(api, pod)
    daemons = [pod for pod in pods if _node_of(pod) in wanted and not is_deleting(pod)]
    outdated = [pod for pod in daemons if pod["metadata"]["labels"].get(_HASH) != revision]
    available = [pod for pod in daemons if holds(pod, "Ready")]
    # By the default of one that may be unavailable, the next daemon is replaced when the others work.
    if outdated and len(available) == len(wanted):
        delete(api, outdated[0])
    # A pod that is being deleted is replaced only when it is gone.
    for node in sorted(set(wanted) - {_node_of(pod) for pod in pods}):
        _create_pod(api, daemon_set, spec, node, revision)
    status = {
        "currentNumberScheduled": len(daemons),
        "desiredNumberScheduled": len(wanted),
        "numberMisscheduled": 0,
        "numberReady": len(available),
        "observedGeneration": daemon_set["metadata"]["generation"],
        "updatedNumberScheduled": len(daemons) - len(outdated),
    }
    status |= {"numberAvailable": len(available)} if available else {}
    missing = len(wanted) - len(available)
    put_status(api, DAEMON_SETS, daemon_set, status | ({"numberUnavailable": missing} if missing else {}))


def _pod_spec(daemon_set: Object) -> Object:
    """Return the template's spec with the tolerations of every daemon."""
    spec: Object = copy.deepcopy(daemon_set["spec"]["template"]["spec"])
    own = spec.setdefault("tolerations", [])
    for name, effect in _TOLERATED:
        added = {"effect": effect, "key": f"node.kubernetes.io/{name}", "operator": "Exists"}
        own += [] if added in own else [added]
    return spec


def _runs_on(spec: Object, node: SchedulerNode) -> bool:
    return is_selected(spec, node) and not untolerated(node.taints, tolerations_of(spec))


def _revision(daemon_set: Object) -> str:
    text = json.dumps(daemon_set["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _node_of(pod: Object) -> str:
    """Return the node that a daemon is for, which it names before it is bound."""
    terms = pod["spec"]["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


def _create_pod(api: Api, daemon_set: Object, spec: Object, node: str, revision: str) -> None:
    meta, template = daemon_set["metadata"], daemon_set["spec"]["template"].get("metadata") or {}
    name = f"{meta['name']}-{random_suffix()}"
    # The controller has judged the node by the template's own terms, and replaces them by the node's name.
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    affinity = {**(spec.get("affinity") or {}), "nodeAffinity": required}
    labels = {
        **(template.get("labels") or {}),
        _HASH: revision,
        "pod-template-generation": str(meta["generation"]),
    }
    head = {
        "name": name,
        "generateName": f"{meta['name']}-",
        "labels": labels,
        "ownerReferences": [owner_reference(daemon_set)],
    }
    head |= {"annotations": template["annotations"]} if template.get("annotations") else {}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": {**spec, "affinity": affinity}}
    api.create(api.kind("v1", "Pod"), meta["namespace"], body)
    record_event(api, daemon_set, _COMPONENT, "SuccessfulCreate", f"Created pod: {name}")
