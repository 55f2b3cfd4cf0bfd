"""Defaults of the built-in kinds that readers rely on.

Source: k8s.io/kubernetes pkg/apis/{core,batch}/v1/defaults.go and the admission plugins ServiceAccount,
DefaultTolerationSeconds and Priority.
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
}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def pod_spec(spec: Object) -> Object:
    """Return a pod's spec (or a template's) with the API's defaults."""
    filled = {**spec, **{name: value for name, value in _POD_SPEC.items() if name not in spec}}
    filled.setdefault("securityContext", {})
    for field in ("containers", "initContainers"):
        if field in filled:
            filled[field] = [_container(container) for container in filled[field]]
    return filled


def _container(container: Object) -> Object:
    filled = {**container, **{name: value for name, value in _CONTAINER.items() if name not in container}}
    image = str(filled.get("image", ""))
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    filled.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = dict(filled.get("resources", {}))
    if "limits" in resources:
        resources["requests"] = resources["limits"] | resources.get("requests", {})
    filled["resources"] = resources
    if "ports" in filled:
        filled["ports"] = [{**port, "protocol": port.get("protocol", "TCP")} for port in filled["ports"]]
    return filled


def _pod(pod: Object) -> Object:
    spec = pod_spec(pod.get("spec", {}))
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("priority", 0)
    tolerations = list(spec.get("tolerations", []))
    for key in _NOT_READY:
        if not any(
            each.get("key") in (None, "", key) and each.get("effect") in (None, "", "NoExecute")
            for each in tolerations
        ):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )
    spec["tolerations"] = tolerations
    return {**pod, "spec": spec}


def _job(job: Object) -> Object:
    spec = {"backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False, **job.get("spec", {})}
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    template = spec.get("template", {})
    spec["template"] = {**template, "spec": pod_spec(template.get("spec", {}))}
    return {**job, "spec": spec}


def _service(service: Object) -> Object:
    spec: Object = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
    spec |= service.get("spec", {})
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if "ports" in spec:
        spec["ports"] = [
            {
                **port,
                "protocol": port.get("protocol", "TCP"),
                "targetPort": port.get("targetPort", port["port"]),
            }
            for port in spec["ports"]
        ]
    return {**service, "spec": spec}


def _secret(secret: Object) -> Object:
    plain = secret.get("stringData") or {}
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in plain.items()}
    filled = {name: value for name, value in secret.items() if name != "stringData"}
    if encoded:
        filled["data"] = {**(secret.get("data") or {}), **encoded}
    filled.setdefault("type", "Opaque")
    return filled


def _namespace(namespace: Object) -> Object:
    meta = namespace["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta.get("name", "")}
    spec = {"finalizers": ["kubernetes"], **namespace.get("spec", {})}
    return {**namespace, "metadata": {**meta, "labels": labels}, "spec": spec}


_DEFAULTS: Mapping[str, Callable[[Object], Object]] = {
    "pods": _pod,
    "jobs": _job,
    "services": _service,
    "secrets": _secret,
    "namespaces": _namespace,
}


def builtin_defaults(kind: Kind, obj: Object) -> Object:
    """Return *obj* with the defaults of its kind."""
    fill = _DEFAULTS.get(kind.plural)
    return fill(obj) if fill and not kind.custom else obj
