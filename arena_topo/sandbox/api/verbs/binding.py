"""The subresources that act on a pod: binding and eviction."""

import copy

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import refusals
from arena_topo.sandbox.api.options import DeleteOptions
from arena_topo.sandbox.api.targets import Target
from arena_topo.sandbox.api.verbs.objects import Api, timestamp


def bind(api: Api, pod: Object, node: str) -> Object:
    """Assign *pod* to *node*; raises Refusal when it already has one or is gated."""
    kind = api.kind("v1", "Pod")
    name = pod["metadata"]["name"]
    if pod["spec"].get("nodeName"):
        raise refusals.conflict(
            kind, name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        )
    if pod["spec"].get("schedulingGates"):
        raise refusals.conflict(kind, name, f"pod {name} has non-empty .spec.schedulingGates")
    bound = copy.deepcopy(pod)
    bound["spec"]["nodeName"] = node
    conditions = [c for c in bound["status"].get("conditions", []) if c["type"] != "PodScheduled"]
    now = timestamp()
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    bound["status"]["conditions"] = [*conditions, scheduled]
    return api.store.put(kind.key, bound)


def answer(api: Api, target: Target, body: Object) -> Object:
    """Carry out a POST on ``binding`` or ``eviction``."""
    pod = api.get(target.kind, target.namespace, target.name)
    if target.subresource == "binding":
        bind(api, pod, body.get("target", {}).get("name", ""))
    else:
        options = DeleteOptions.read(body.get("deleteOptions") or {}, {})
        api.delete(target.kind, target.namespace, target.name, options)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
