"""Events about objects, as controllers record them."""

import secrets

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.verbs.objects import Api, timestamp


def record(api: Api, about: Object, source: str, reason: str, message: str, *, warning: bool = False) -> None:
    """Write an event about an object; a repeated one is counted, not written again."""
    meta = about["metadata"]
    namespace = meta.get("namespace", "default")
    kind = api.kind("v1", "Event")
    now = timestamp()
    for stored in api.store.scan(kind.key, namespace):
        event = stored.body
        same = event["involvedObject"].get("uid") == meta["uid"] and event["reason"] == reason
        if same and event["message"] == message:
            repeated = {**event, "metadata": dict(event["metadata"]), "lastTimestamp": now}
            api.store.put(kind.key, repeated | {"count": event.get("count", 1) + 1})
            return
    involved = {"kind": about["kind"], "name": meta["name"], "uid": meta["uid"]}
    involved |= {"apiVersion": about["apiVersion"], "resourceVersion": meta["resourceVersion"]}
    involved |= {"namespace": meta["namespace"]} if "namespace" in meta else {}
    body: Object = {"apiVersion": "v1", "kind": "Event"}
    body["metadata"] = {"name": f"{meta['name']}.{secrets.token_hex(8)}", "namespace": namespace}
    body |= {"involvedObject": involved, "reason": reason, "message": message, "count": 1}
    body |= {"type": "Warning" if warning else "Normal", "source": {"component": source}}
    body |= {"reportingComponent": source, "firstTimestamp": now, "lastTimestamp": now}
    if api.find(api.kind("v1", "Namespace"), "", namespace) is not None:
        api.create(kind, namespace, body)
