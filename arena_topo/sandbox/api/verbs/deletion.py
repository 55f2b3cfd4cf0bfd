"""Deleting: grace for pods, finalizers, and who follows their owner.

Source: k8s.io/apiserver pkg/registry/rest/delete.go and registry/generic/registry/store.go.
"""

import copy
from datetime import datetime, timedelta

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.options import DeleteOptions
from arena_topo.sandbox.api.store import Store

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_OWN = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


def begin(store: Store, kind: Kind, live: Object, options: DeleteOptions, now: str) -> tuple[Object, bool]:
    """Delete *live* or mark it; return its last state and whether it is gone."""
    meta = live["metadata"]
    grace = _grace(kind, live, options)
    finalizers = [each for each in meta.get("finalizers") or [] if each not in (FOREGROUND, ORPHAN)]
    if options.propagation in _OWN:
        finalizers.append(_OWN[options.propagation])
    elif options.propagation is None:
        finalizers = list(meta.get("finalizers") or [])
    if kind.plural == "namespaces" and not kind.group:
        return _terminate_namespace(store, kind, live, now), False
    if not finalizers and grace == 0:
        return finish(store, kind, live), True
    pending = meta.get("deletionGracePeriodSeconds")
    if (
        "deletionTimestamp" in meta
        and (pending is None or grace >= pending)
        and finalizers == meta.get("finalizers", [])
    ):
        return live, False
    marked = copy.deepcopy(live)
    begun = datetime.strptime(now, "%Y-%m-%dT%H:%M:%S%z") + timedelta(seconds=grace)
    marked["metadata"] |= {"deletionTimestamp": begun.strftime("%Y-%m-%dT%H:%M:%SZ")}
    marked["metadata"]["deletionGracePeriodSeconds"] = grace
    if finalizers:
        marked["metadata"]["finalizers"] = finalizers
    if "generation" in marked["metadata"] and "deletionTimestamp" not in meta:
        marked["metadata"]["generation"] += 1
    return store.put(kind.key, marked), False


def _grace(kind: Kind, live: Object, options: DeleteOptions) -> int:
    """Return the seconds a pod is given to end; everything else ends at once."""
    if kind.plural != "pods" or kind.group:
        return 0
    if not live["spec"].get("nodeName") or live["status"].get("phase") in {"Succeeded", "Failed"}:
        return 0
    if options.grace is not None:
        return max(options.grace, 0)
    return int(live["spec"].get("terminationGracePeriodSeconds", 30))


def _terminate_namespace(store: Store, kind: Kind, live: Object, now: str) -> Object:
    if "deletionTimestamp" in live["metadata"]:
        return live
    marked = copy.deepcopy(live)
    marked["metadata"]["deletionTimestamp"] = now
    marked["status"] = {"phase": "Terminating"}
    return store.put(kind.key, marked)


def finish(store: Store, kind: Kind, live: Object) -> Object:
    """Remove *live* from the store."""
    meta = live["metadata"]
    return store.drop(kind.key, meta.get("namespace", ""), meta["name"]) or live
