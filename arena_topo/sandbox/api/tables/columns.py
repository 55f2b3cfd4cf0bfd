"""The columns of ``kubectl get`` for the built-in kinds.

Source: k8s.io/kubernetes pkg/printers/internalversion/printers.go.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.tables.ages import age, span

Cell = str | int


@dataclass(frozen=True, slots=True)
class Header:
    """One column; ``wide`` ones show with ``-o wide`` only."""

    name: str
    wide: bool = False
    type: str = "string"


def _headers(names: str) -> tuple[Header, ...]:
    """Return the columns of a comma list; a star marks wide ones, a hash integers."""
    return tuple(
        Header(n.strip("*#"), "*" in n, "integer" if "#" in n else "string") for n in names.split(",")
    )


def _created(obj: Object) -> str:
    return age(obj["metadata"].get("creationTimestamp", ""))


def _pod(pod: Object) -> list[Cell]:
    spec, status = pod["spec"], pod.get("status", {})
    containers = status.get("containerStatuses", [])
    ready = sum(1 for each in containers if each.get("ready"))
    restarts = sum(each.get("restartCount", 0) for each in containers)
    gates = "<none>"
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers', []))}",
        pod_status(pod),
        str(restarts),
        _created(pod),
        status.get("podIP", "<none>"),
        spec.get("nodeName", "<none>"),
        status.get("nominatedNodeName", "<none>"),
        gates,
    ]


def pod_status(pod: Object) -> str:
    """Return the STATUS word of a pod."""
    status = pod.get("status", {})
    word = str(status.get("reason") or status.get("phase", "Pending"))
    for each in status.get("conditions", []):
        if each["type"] == "PodScheduled" and each.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    for each in status.get("containerStatuses", []):
        state = each.get("state", {})
        waiting, ended = state.get("waiting", {}), state.get("terminated", {})
        word = waiting.get("reason") or ended.get("reason") or word
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    return word


def _node(node: Object) -> list[Cell]:
    meta, status = node["metadata"], node.get("status", {})
    ready = next((c["status"] for c in status.get("conditions", []) if c["type"] == "Ready"), "Unknown")
    word = {"True": "Ready", "False": "NotReady"}.get(ready, "NotReady")
    if node.get("spec", {}).get("unschedulable"):
        word += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in meta.get("labels") or {} if key.startswith(prefix))
    info = status.get("nodeInfo", {})
    address = {each["type"]: each["address"] for each in status.get("addresses", [])}
    return [
        meta["name"],
        word,
        ",".join(roles) or "<none>",
        _created(node),
        info.get("kubeletVersion", ""),
        address.get("InternalIP", "<none>"),
        address.get("ExternalIP", "<none>"),
        info.get("osImage", "<unknown>"),
        info.get("kernelVersion", "<unknown>"),
        info.get("containerRuntimeVersion", "<unknown>"),
    ]


def _job(job: Object) -> list[Cell]:
    spec, status = job["spec"], job.get("status", {})
    done = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    word = next((each for each in ("Complete", "Failed", "Suspended") if each in done), "Running")
    containers = spec["template"]["spec"].get("containers", [])
    selector = (spec.get("selector") or {}).get("matchLabels", {})
    return [
        job["metadata"]["name"],
        word,
        f"{status.get('succeeded', 0)}/{spec.get('completions', 1)}",
        span(status.get("startTime", ""), status.get("completionTime", "")),
        _created(job),
        ",".join(each["name"] for each in containers),
        ",".join(each.get("image", "") for each in containers),
        ",".join(f"{key}={value}" for key, value in selector.items()),
    ]


def _event(event: Object) -> list[Cell]:
    about, series = event["involvedObject"], event.get("count", 1)
    last = event.get("lastTimestamp") or event.get("eventTime") or ""
    source = event.get("source", {}).get("component", "") or event.get("reportingComponent", "")
    return [
        age(last),
        event.get("type", ""),
        event.get("reason", ""),
        f"{about['kind'].lower()}/{about['name']}",
        about.get("fieldPath", ""),
        source,
        event.get("message", ""),
        age(event.get("firstTimestamp") or last),
        series,
        event["metadata"]["name"],
    ]


def _service(service: Object) -> list[Cell]:
    spec = service["spec"]
    ports = ",".join(f"{p['port']}/{p.get('protocol', 'TCP')}" for p in spec.get("ports", []))
    selector = ",".join(f"{key}={value}" for key, value in (spec.get("selector") or {}).items())
    address = spec.get("clusterIP") or "<none>"
    return [
        service["metadata"]["name"],
        spec.get("type", "ClusterIP"),
        address,
        "<none>",
        ports or "<none>",
        _created(service),
        selector or "<none>",
    ]


def _deployment(deployment: Object) -> list[Cell]:
    status, wanted = deployment.get("status", {}), deployment["spec"].get("replicas", 1)
    ready, current = status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    name = deployment["metadata"]["name"]
    return [name, f"{ready}/{wanted}", current, status.get("availableReplicas", 0), _created(deployment)]


def _named(*values: Callable[[Object], Cell]) -> Callable[[Object], list[Cell]]:
    return lambda obj: [obj["metadata"]["name"], *(value(obj) for value in values), _created(obj)]


_TABLES: Mapping[str, tuple[tuple[Header, ...], Callable[[Object], list[Cell]]]] = {
    "pods": (_headers("Name,Ready,Status,Restarts,Age,IP*,Node*,Nominated Node*,Readiness Gates*"), _pod),
    "nodes": (
        _headers(
            "Name,Status,Roles,Age,Version,Internal-IP*,External-IP*,OS-Image*,Kernel-Version*,Container-Runtime*"
        ),
        _node,
    ),
    "jobs": (_headers("Name,Status,Completions,Duration,Age,Containers*,Images*,Selector*"), _job),
    "events": (
        _headers("Last Seen,Type,Reason,Object,Subobject*,Source*,Message,First Seen*,Count*#,Name*"),
        _event,
    ),
    "services": (_headers("Name,Type,Cluster-IP,External-IP,Port(s),Age,Selector*"), _service),
    "deployments": (_headers("Name,Ready,Up-to-date#,Available#,Age"), _deployment),
    "namespaces": (_headers("Name,Status,Age"), _named(lambda o: o.get("status", {}).get("phase", "Active"))),
    "configmaps": (
        _headers("Name,Data#,Age"),
        _named(lambda o: len(o.get("data") or {}) + len(o.get("binaryData") or {})),
    ),
    "secrets": (
        _headers("Name,Type,Data#,Age"),
        _named(lambda o: str(o.get("type", "Opaque")), lambda o: len(o.get("data") or {})),
    ),
    "customresourcedefinitions": (
        _headers("Name,Created At"),
        lambda o: [o["metadata"]["name"], o["metadata"]["creationTimestamp"]],
    ),
}
_PLAIN = (_headers("Name,Age"), _named())


def table_of(plural: str) -> tuple[tuple[Header, ...], Callable[[Object], list[Cell]]]:
    """Return the columns of a built-in resource and the function that fills a row."""
    return _TABLES.get(plural, _PLAIN)
