"""Defaults of the built-in kinds that clients and the simulation rely on.

Source: k8s.io/kubernetes pkg/apis/{core,batch}/v1/defaults.go and the admission plugins ServiceAccount and Priority.
"""

import base64
from collections.abc import Callable, Mapping

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind

_POD_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
_POD = {"serviceAccountName": "default", "enableServiceLinks": True, "priority": 0}
_JOB = {
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "completions": 1,
    "parallelism": 1,
}
_DAEMON_SET = {
    "revisionHistoryLimit": 10,
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
}
_SERVICE = {"type": "ClusterIP", "sessionAffinity": "None"}


def _pod_spec(spec: Object) -> Object:
    """Return the spec of a pod, or of a template, with the API's defaults."""
    filled: Object = _POD_SPEC | spec
    for field in ("containers", "initContainers"):
        if field in filled:
            filled[field] = [_container(container) for container in filled[field]]
    return filled


def _container(container: Object) -> Object:
    resources = dict(container.get("resources", {}))
    # A limit without a request is a request of the same amount, which is what the scheduler counts.
    if "limits" in resources:
        resources["requests"] = resources["limits"] | resources.get("requests", {})
    filled: Object = {"imagePullPolicy": "IfNotPresent", **container, "resources": resources}
    return filled | ({"ports": _ports(filled)} if "ports" in filled else {})


def _ports(owner: Object) -> list[Object]:
    return [{"protocol": "TCP", **port} for port in owner["ports"]]


def _pod(pod: Object) -> Object:
    return {**pod, "spec": _POD | _pod_spec(pod.get("spec", {}))}


def _templated(owner: Object) -> Object:
    """Return an owner of pods whose template has the API's defaults."""
    spec = owner.get("spec", {})
    template = spec.get("template", {})
    filled = {**template, "spec": _pod_spec(template.get("spec", {}))}
    return {**owner, "spec": {**spec, "template": filled}}


def _daemon_set(daemon_set: Object) -> Object:
    return _templated({**daemon_set, "spec": _DAEMON_SET | daemon_set.get("spec", {})})


def _job(job: Object) -> Object:
    return _templated({**job, "spec": _JOB | job.get("spec", {})})


def _service(service: Object) -> Object:
    spec: Object = _SERVICE | service.get("spec", {})
    return {**service, "spec": spec | ({"ports": _ports(spec)} if "ports" in spec else {})}


def _secret(secret: Object) -> Object:
    """Return a secret whose ``stringData``, which is write-only, is in its ``data``."""
    plain = secret.get("stringData") or {}
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in plain.items()}
    filled = {name: value for name, value in secret.items() if name != "stringData"}
    # Where both have a key, stringData wins.
    data = {**(secret.get("data") or {}), **encoded}
    return {"type": "Opaque", **filled, **({"data": data} if data else {})}


_DEFAULTS: Mapping[str, Callable[[Object], Object]] = {
    "pods": _pod,
    "daemonsets": _daemon_set,
    "jobs": _job,
    "services": _service,
    "secrets": _secret,
}


def builtin_defaults(kind: Kind, obj: Object) -> Object:
    """Return *obj* with the defaults of its kind."""
    fill = _DEFAULTS.get(kind.plural)
    return fill(obj) if fill else obj
