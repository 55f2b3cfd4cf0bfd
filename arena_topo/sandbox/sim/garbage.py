"""Garbage collection: dependents follow their owner, and a namespace takes what is in it.

Source: the Kubernetes documentation on owners, dependents and finalizers.
"""

import copy

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import FOREGROUND, Api
from arena_topo.sandbox.api.requests import DeleteOptions
from arena_topo.sandbox.sim.objects import delete, is_deleting

_BACKGROUND = DeleteOptions(propagation="Background")
_FOREGROUND = DeleteOptions(propagation="Foreground")
_EVENTS = ("", "events")
_NAMESPACES = ("", "namespaces")


def collect(api: Api) -> None:
    """Delete what has lost its owners, finish deletions in the foreground, and empty ended namespaces.

    An owner that is deleted in the foreground stays, with a finalizer, until its dependents are gone.
    """
    objects = _objects(api)
    alive = {obj["metadata"]["uid"] for obj in objects}
    dependents: dict[str, list[Object]] = {}
    for obj in objects:
        owners = [reference["uid"] for reference in obj["metadata"].get("ownerReferences") or []]
        for uid in owners:
            dependents.setdefault(uid, []).append(obj)
        # One owner that is left is enough: an object with several goes after the last of them.
        if owners and alive.isdisjoint(owners):
            delete(api, obj, _BACKGROUND)
    for obj in objects:
        if is_deleting(obj) and FOREGROUND in (obj["metadata"].get("finalizers") or []):
            below = dependents.get(obj["metadata"]["uid"], [])
            for dependent in below:
                delete(api, dependent, _FOREGROUND)
            if not any(_current(api, dependent) for dependent in below):
                _release(api, obj)
    for namespace in api.store.values(_NAMESPACES):
        if is_deleting(namespace):
            _empty(api, namespace)


def _objects(api: Api) -> list[Object]:
    """Return all objects but events, which nobody owns and of which there are many."""
    served = (key for key in api.store.resources() if key != _EVENTS and api.registry.stored(key))
    return [obj for key in served for obj in api.store.values(key)]


def _current(api: Api, obj: Object) -> Object | None:
    """Return an object as it is now, None where it is gone."""
    kind, meta = api.kind(obj["apiVersion"], obj["kind"]), obj["metadata"]
    current = api.find(kind, meta.get("namespace", ""), meta["name"])
    return current if current is not None and current["metadata"]["uid"] == meta["uid"] else None


def _release(api: Api, obj: Object) -> None:
    """Take the finalizer of foreground deletion away; an object without any is gone."""
    current = _current(api, obj)
    if current is None:
        return
    key = api.kind(obj["apiVersion"], obj["kind"]).key
    body = copy.deepcopy(current)
    body["metadata"]["finalizers"].remove(FOREGROUND)
    if body["metadata"]["finalizers"]:
        api.store.put(key, body)
    else:
        api.store.drop(key, current)


def _empty(api: Api, namespace: Object) -> None:
    """Delete what is in a namespace, and the namespace once it is empty."""
    name = namespace["metadata"]["name"]
    inside = [obj for obj in _objects(api) if obj["metadata"].get("namespace") == name]
    for obj in inside:
        delete(api, obj)
    # Pods stay for their grace period, and with them the namespace; the deletion of each wakes this
    # controller again.
    if not any(_current(api, obj) for obj in inside):
        # Nobody collects events, so they go with the namespace.
        for event in list(api.store.scan(_EVENTS, name)):
            api.store.drop(_EVENTS, event.body)
        api.store.drop(_NAMESPACES, namespace)
