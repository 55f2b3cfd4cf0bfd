"""Garbage collection: dependents follow their owner, namespaces and nodes take what is in them.

Source: the Kubernetes documentation on owners, dependents and finalizers.
"""

import copy

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.options import DeleteOptions
from arena_topo.sandbox.api.verbs import deletion
from arena_topo.sandbox.api.verbs.objects import Api

_BACKGROUND = DeleteOptions(propagation="Background")


def collect(api: Api) -> None:
    """Delete what has lost its owners, finish foreground and orphan deletions, empty ended namespaces."""
    objects = list(_objects(api))
    alive = {obj["metadata"]["uid"]: obj for _, obj in objects}
    dependents: dict[str, list[tuple[Kind, Object]]] = {}
    for kind, obj in objects:
        for owner in obj["metadata"].get("ownerReferences") or []:
            dependents.setdefault(owner["uid"], []).append((kind, obj))
    for kind, obj in objects:
        finalizers = obj["metadata"].get("finalizers") or []
        below = dependents.get(obj["metadata"]["uid"], [])
        if "deletionTimestamp" not in obj["metadata"]:
            _collect_orphaned(api, kind, obj, alive)
        elif deletion.FOREGROUND in finalizers:
            _foreground(api, kind, obj, below)
        elif deletion.ORPHAN in finalizers:
            _orphan(api, kind, obj, below)
    _namespaces(api)


def _objects(api: Api) -> list[tuple[Kind, Object]]:
    found = []
    for key in api.store.resources():
        kind = api.registry.stored(key)
        if kind is not None and key != ("", "events"):
            found += [(kind, obj) for obj in api.store.values(key)]
    return found


def _delete(api: Api, kind: Kind, obj: Object, options: DeleteOptions = _BACKGROUND) -> None:
    meta = obj["metadata"]
    if api.find(kind, meta.get("namespace", ""), meta["name"]) is not None:
        api.delete(kind, meta.get("namespace", ""), meta["name"], options)


def _collect_orphaned(api: Api, kind: Kind, obj: Object, alive: dict[str, Object]) -> None:
    owners = obj["metadata"].get("ownerReferences") or []
    if owners and not any(owner["uid"] in alive for owner in owners):
        _delete(api, kind, obj)


def _foreground(api: Api, kind: Kind, obj: Object, below: list[tuple[Kind, Object]]) -> None:
    waiting = False
    for each, dependent in below:
        if "deletionTimestamp" not in dependent["metadata"]:
            _delete(api, each, dependent, DeleteOptions(propagation="Foreground"))
        current = api.find(each, dependent["metadata"].get("namespace", ""), dependent["metadata"]["name"])
        waiting |= current is not None and current["metadata"]["uid"] == dependent["metadata"]["uid"]
    if not waiting:
        _release(api, kind, obj, deletion.FOREGROUND)


def _orphan(api: Api, kind: Kind, obj: Object, below: list[tuple[Kind, Object]]) -> None:
    for each, dependent in below:
        freed = copy.deepcopy(dependent)
        owners = [o for o in freed["metadata"]["ownerReferences"] if o["uid"] != obj["metadata"]["uid"]]
        freed["metadata"]["ownerReferences"] = owners
        if not owners:
            del freed["metadata"]["ownerReferences"]
        api.store.put(each.key, freed)
    _release(api, kind, obj, deletion.ORPHAN)


def _release(api: Api, kind: Kind, obj: Object, finalizer: str) -> None:
    """Take a finalizer away; an object without any is gone."""
    meta = obj["metadata"]
    current = api.find(kind, meta.get("namespace", ""), meta["name"])
    if current is None or current["metadata"]["uid"] != meta["uid"]:
        return
    freed = copy.deepcopy(current)
    left = [each for each in freed["metadata"].get("finalizers") or [] if each != finalizer]
    freed["metadata"]["finalizers"] = left
    if left:
        api.store.put(kind.key, freed)
    else:
        deletion.finish(api.store, kind, current)


def _namespaces(api: Api) -> None:
    kind = api.kind("v1", "Namespace")
    for namespace in api.store.values(kind.key):
        if "deletionTimestamp" not in namespace["metadata"]:
            continue
        name = namespace["metadata"]["name"]
        inside = [(k, o) for k, o in _objects(api) if k.namespaced and o["metadata"].get("namespace") == name]
        for each, obj in inside:
            if "deletionTimestamp" not in obj["metadata"]:
                _delete(api, each, obj)
        if not any(api.find(k, name, o["metadata"]["name"]) for k, o in inside):
            for event in list(api.store.scan(("", "events"), name)):
                api.store.drop(("", "events"), name, event.body["metadata"]["name"])
            deletion.finish(api.store, kind, namespace)
