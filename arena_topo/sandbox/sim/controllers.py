"""Simulated time, the loop of a controller, and what all controllers do to objects."""

import asyncio
import copy
import sys
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from arena_topo.model.objects import Object
from arena_topo.model.plan_record import MOST_WORKERS
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.api.resources import DeleteOptions, ResourceKey, StatusError
from arena_topo.sandbox.api.store import Change, Store

_EVENTS: ResourceKey = ("", "events")
_SETTLE_SECONDS = 0.01
_RETRY_SECONDS = 1.0

_Step = Callable[[], float | None]
"""A step does what is due and returns after how many real seconds to call it again, None: at a change."""


@dataclass(slots=True)
class Clock:
    """``speed`` simulated seconds pass in a real one; instants in objects are real ones."""

    speed: float = 1.0

    async def sleep(self, seconds: float) -> None:
        """Let *seconds* of the simulation pass."""
        await asyncio.sleep(seconds / self.speed)


class Loop:
    """One controller, woken by changes of *resources*; by None, of all but events."""

    def __init__(self, store: Store, resources: Collection[ResourceKey] | None, step: _Step) -> None:
        self._resources = None if resources is None else frozenset(resources)
        self._step = step
        self._wake = asyncio.Event()
        # The first step looks at what was there before the loop listened.
        self._wake.set()
        self._stop = store.listen(self._notice)

    def _notice(self, change: Change) -> None:
        watched = (
            change.resource != _EVENTS if self._resources is None else change.resource in self._resources
        )
        if watched:
            self._wake.set()

    async def run(self) -> None:
        """Step whenever something has changed, until cancelled."""
        delay: float | None = None
        try:
            while True:
                try:
                    await asyncio.wait_for(self._wake.wait(), delay)
                    # Changes come in bursts: one step looks at all of a burst.
                    await asyncio.sleep(_SETTLE_SECONDS)
                # The time that the last step asked for has passed: it is due without a change.
                except TimeoutError:
                    pass
                # Cleared before the step, so that the step's own changes, and later ones, wake the loop
                # again.
                self._wake.clear()
                delay = self._guarded_step()
        finally:
            self._stop()

    def _guarded_step(self) -> float | None:
        try:
            return self._step()
        except Exception:  # noqa: BLE001  # one object must not end the cluster
            traceback.print_exc(file=sys.stderr)
            return _RETRY_SECONDS


# What all controllers do to objects: write conditions, own and delete objects, record events.

PODS: ResourceKey = ("", "pods")
NODES: ResourceKey = ("", "nodes")
_PLAIN_DELETE = DeleteOptions()


def is_deleting(obj: Object) -> bool:
    """Whether an object's deletion has begun."""
    return "deletionTimestamp" in obj["metadata"]


def has_ended(pod: Object) -> bool:
    """Whether no container of a pod runs again."""
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


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


def current(api: Api, resource: ResourceKey, obj: Object) -> Object | None:
    """Return an object as it is now, None if it is gone."""
    meta = obj["metadata"]
    stored = api.store.get(resource, meta.get("namespace", ""), meta["name"])
    # Another uid is another object that has taken the name meanwhile.
    return stored.body if stored is not None and stored.body["metadata"]["uid"] == meta["uid"] else None


def put_status(api: Api, resource: ResourceKey, obj: Object, status: Object) -> None:
    """Store a new status of an object, unless it is gone or has it already."""
    found = current(api, resource, obj)
    # Writing the same status again would wake the controllers that wrote it, without end.
    if found is not None and found.get("status", {}) != status:
        api.store.put(resource, copy.deepcopy(found) | {"status": status})


def delete(api: Api, obj: Object, options: DeleteOptions = _PLAIN_DELETE) -> None:
    """Delete an object if it is there and its deletion has not begun."""
    kind, meta = api.kind(obj["apiVersion"], obj["kind"]), obj["metadata"]
    found = current(api, kind.key, obj)
    # A grace of 0 ends a deletion that has begun, as for pods of a lost node, whose kubelet never will.
    if found is not None and (not is_deleting(found) or options.grace == 0):
        api.delete(kind, meta.get("namespace", ""), meta["name"], options)


def sync_each(api: Api, resource: ResourceKey, sync: Callable[[Object], None]) -> None:
    """Let a controller *sync* every object of its resource whose deletion has not begun."""
    for obj in api.store.values(resource):
        if not is_deleting(obj):
            # In a namespace that is being deleted nothing can be created; other objects must not wait for it.
            with suppress(StatusError):
                sync(obj)


def owned(owner: Object, name: str, labels: Mapping[str, str] | None = None) -> Object:
    """Return the metadata of an object that *owner* controls, in its namespace."""
    of = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": of["name"],
        "uid": of["uid"],
    }
    reference |= {"controller": True, "blockOwnerDeletion": True}
    meta: Object = {"name": name, "namespace": of["namespace"], "ownerReferences": [reference]}
    return meta | ({"labels": dict(labels)} if labels else {})


def pod_of(owner: Object, template: Object, name: str, labels: Mapping[str, str]) -> Object:
    """Return a pod of *owner* by a *template*, with further *labels*."""
    given = template.get("metadata") or {}
    meta = owned(owner, name, {**(given.get("labels") or {}), **labels})
    meta |= {field: given[field] for field in ("annotations", "finalizers") if given.get(field)}
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
    return copy.deepcopy(pod)


def headless_service(meta: Object, selector: Mapping[str, str], **fields: object) -> Object:
    """Return a Service by which pods find each other by name; *fields* are added to its spec."""
    spec = {"clusterIP": "None", "clusterIPs": ["None"], "selector": dict(selector), **fields}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def numbers(count: int) -> range:
    """Return the numbers of the pods, or Jobs, of a role that asks for *count*.

    There are no more than are planned for a job: a real operator begins with any number, and this one would
    take the memory of its user's machine.
    """
    return range(min(count, MOST_WORKERS))


def create(api: Api, body: Object) -> Object:
    """Create an object and return it."""
    return api.create(api.kind(body["apiVersion"], body["kind"]), body["metadata"]["namespace"], body)


def create_missing(api: Api, owner: Object, kind: str, name: str, body: Callable[[], Object]) -> None:
    """Create the object of a core *kind* that *owner* needs, unless there is one of that name."""
    if api.find(api.kind("v1", kind), owner["metadata"]["namespace"], name) is None:
        create(api, body())


def controlled(api: Api, owner: Object, resource: ResourceKey) -> list[Object]:
    """Return the objects of a resource that *owner* controls, in the order of their names."""
    return api.store.controlled(resource, owner["metadata"]["namespace"], owner["metadata"]["uid"])


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
    # In a namespace that is being deleted nothing can be created; controllers work on without events.
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
    created = create(api, body)
    # Go writes a time that is not set as null, which the API drops from what clients send.
    api.store.put(kind.key, copy.deepcopy(created) | times)


def _repetition(event: Object, now: datetime) -> Object:
    if event.get("eventTime"):
        count = (event.get("series") or {}).get("count", 1) + 1
        return {"series": {"count": count, "lastObservedTime": _micro_time(now)}}
    return {"count": event.get("count", 1) + 1, "lastTimestamp": timestamp(now)}


def _micro_time(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
