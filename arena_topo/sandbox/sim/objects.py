"""What all controllers do to objects: write conditions, own and delete objects, record events."""

import copy
import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import ResourceKey
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.api.requests import DeleteOptions, StatusError

PODS: ResourceKey = ("", "pods")
NODES: ResourceKey = ("", "nodes")
ENDED_PHASES = frozenset({"Succeeded", "Failed"})
_PLAIN_DELETE = DeleteOptions()


def is_deleting(obj: Object) -> bool:
    """Whether an object's deletion has begun."""
    return "deletionTimestamp" in obj["metadata"]


def holds(obj: Object, condition: str) -> bool:
    """Whether a condition of an object's status is True."""
    conditions = obj.get("status", {}).get("conditions", [])
    return any((c["type"], c["status"]) == (condition, "True") for c in conditions)


def set_condition(
    status: Object, condition: str, value: str, reason: str, message: str, *, updated: str = ""
) -> bool:
    """Set a condition in place, with the instant in the field *updated*; return whether it is new.

    The instant of transition stays where only the reason or the message changes.
    """
    conditions = status.setdefault("conditions", [])
    old: Object = next((c for c in conditions if c["type"] == condition), {})
    if (old.get("status"), old.get("reason"), old.get("message")) == (value, reason, message):
        return False
    now = timestamp()
    new: Object = {"type": condition, "status": value, "reason": reason, "message": message}
    new |= {updated: now} if updated else {}
    new["lastTransitionTime"] = old["lastTransitionTime"] if old.get("status") == value else now
    status["conditions"] = [*(c for c in conditions if c["type"] != condition), new]
    return True


def put_status(api: Api, resource: ResourceKey, obj: Object, status: Object) -> Object | None:
    """Store a new status of an object, unless it is gone or has it already; return what is stored."""
    meta = obj["metadata"]
    stored = api.store.get(resource, meta.get("namespace", ""), meta["name"])
    # Another uid is another object that has taken the name meanwhile.
    if stored is None or stored.body["metadata"]["uid"] != meta["uid"]:
        return None
    # Writing the same status again would wake the controllers that wrote it, without end.
    if stored.body.get("status", {}) == status:
        return stored.body
    return api.store.put(resource, copy.deepcopy(stored.body) | {"status": status})


def delete(api: Api, obj: Object, options: DeleteOptions = _PLAIN_DELETE) -> None:
    """Delete an object if it is there and its deletion has not begun."""
    kind, meta = api.kind(obj["apiVersion"], obj["kind"]), obj["metadata"]
    current = api.find(kind, meta.get("namespace", ""), meta["name"])
    # A grace of 0 ends a deletion that has begun, as for pods of a lost node, whose kubelet never will.
    if current is not None and (not is_deleting(current) or options.grace == 0):
        api.delete(kind, meta.get("namespace", ""), meta["name"], options)


def sync_each(api: Api, resource: ResourceKey, sync: Callable[[Object], None]) -> None:
    """Let a controller *sync* every object of its resource whose deletion has not begun."""
    for obj in api.store.values(resource):
        if not is_deleting(obj):
            # An object whose namespace is about to go can create nothing; the other objects do not wait for
            # it.
            with suppress(StatusError):
                sync(obj)


def clean_up(api: Api, job: Object) -> None:
    """Delete the pods of a finished job of Kubeflow by its clean-up policy; the default keeps them."""
    policy = (job["spec"].get("runPolicy") or {}).get("cleanPodPolicy", "None")
    for pod in controlled(api, job, PODS):
        if policy == "All" or (policy == "Running" and pod["status"].get("phase") in {"Running", "Pending"}):
            delete(api, pod)


def owner_reference(obj: Object) -> Object:
    """Return the reference of a controlled object to *obj*."""
    meta = obj["metadata"]
    identity = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
    }
    return identity | {"controller": True, "blockOwnerDeletion": True}


def controlled(api: Api, owner: Object, resource: ResourceKey) -> list[Object]:
    """Return the objects of a resource that *owner* controls, in the order of their names."""
    uid = owner["metadata"]["uid"]
    bodies = [stored.body for stored in api.store.scan(resource, owner["metadata"]["namespace"])]
    return [
        body
        for body in bodies
        if any(
            reference["uid"] == uid and reference.get("controller")
            for reference in body["metadata"].get("ownerReferences") or ()
        )
    ]


def record_event(
    api: Api,
    about: Object,
    source: str,
    reason: str,
    message: str,
    *,
    warning: bool = False,
    action: str = "",
    container: str = "",
) -> None:
    """Write an event about an object, or about a *container* of it; a repeated one is counted.

    With *action* it has the form of the newer API (events.k8s.io), which the scheduler uses: one instant with
    microseconds, no count and no source.
    """
    meta = about["metadata"]
    # Events of cluster-wide objects, such as nodes, live in the namespace default.
    namespace = meta.get("namespace", "default")
    # Events are a courtesy: where a namespace is about to go, the object's controller does its work without
    # them.
    space = api.find(api.kind("v1", "Namespace"), "", namespace)
    if space is None or is_deleting(space):
        return
    kind, now = api.kind("v1", "Event"), datetime.now(UTC)
    for stored in api.store.scan(kind.key, namespace):
        event = stored.body
        recorded = (event["involvedObject"].get("uid"), event["reason"], event["message"])
        if recorded == (meta["uid"], reason, message):
            repeated = {**event, "metadata": dict(event["metadata"])}
            api.store.put(kind.key, repeated | _repetition(event, now))
            return
    involved = {"kind": about["kind"], "name": meta["name"], "uid": meta["uid"]}
    involved |= {"apiVersion": about["apiVersion"], "resourceVersion": meta["resourceVersion"]}
    involved |= {"namespace": meta["namespace"]} if "namespace" in meta else {}
    involved |= {"fieldPath": f"spec.containers{{{container}}}"} if container else {}
    body: Object = {"apiVersion": "v1", "kind": "Event"}
    # As Go's recorder names events: those of one second stand in the order in which they happened.
    body["metadata"] = {"name": f"{meta['name']}.{time.time_ns():x}", "namespace": namespace}
    body |= {"involvedObject": involved, "reason": reason, "message": message}
    body |= {"type": "Warning" if warning else "Normal", "reportingComponent": source}
    if action:
        body |= {"action": action, "reportingInstance": f"{source}-sandbox", "source": {}}
        times: Object = {"eventTime": _micro_time(now), "firstTimestamp": None, "lastTimestamp": None}
    else:
        # A kubelet says on which node it is.
        host = {"host": about["spec"]["nodeName"]} if source == "kubelet" else {}
        body |= {"count": 1, "reportingInstance": host.get("host", "")}
        body |= {"source": {"component": source, **host}}
        stamp = timestamp(now)
        times = {"eventTime": None, "firstTimestamp": stamp, "lastTimestamp": stamp}
    created = api.create(kind, namespace, body)
    # Go writes a time that is not set as null, which the API drops from what clients send.
    api.store.put(kind.key, copy.deepcopy(created) | times)


def _repetition(event: Object, now: datetime) -> Object:
    """Return what the repetition of *event* changes."""
    if event.get("eventTime"):
        count = (event.get("series") or {}).get("count", 1) + 1
        return {"series": {"count": count, "lastObservedTime": _micro_time(now)}}
    return {"count": event.get("count", 1) + 1, "lastTimestamp": timestamp(now)}


def _micro_time(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def address_of(name: str) -> str:
    """Return a node's address: the one in its name (``cn.192.168.16.172``), or one derived from it."""
    parts = [part.rpartition("-")[2] for part in name.split(".")[-4:]]
    if len(parts) == 4 and all(part.isdigit() for part in parts):
        return ".".join(parts)
    digest = hashlib.sha256(name.encode()).digest()
    return f"10.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}"
