"""Defaults of kinds that clients and the simulation rely on.

Source: k8s.io/kubernetes pkg/apis/{core,batch}/v1/defaults.go, pkg/registry/batch/job/strategy.go and the admission plugins
ServiceAccount and Priority.
"""

import base64
from collections.abc import Callable, Mapping

from arena_topo.model.keys import JOBSET_NAME
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
    "parallelism": 1,
    "podReplacementPolicy": "TerminatingOrFailed",
    "manualSelector": False,
}
_JOB_SET = {
    "successPolicy": {"operator": "All"},
    "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
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
    filled = {**pod, "spec": _POD | _pod_spec(pod.get("spec", {}))}
    labels = (pod.get("metadata") or {}).get("labels") or {}
    if JOBSET_NAME not in labels:
        return filled
    # The webhook of JobSet (pkg/webhooks/pod_webhook.go) lets pods that want a place for themselves know each other's rank.
    marked = {**labels, "jobset.sigs.k8s.io/priority": str(filled["spec"]["priority"])}
    return {**filled, "metadata": {**pod["metadata"], "labels": marked}}


def _templated(owner: Object) -> Object:
    """Return an owner of pods whose template has the API's defaults."""
    spec = owner.get("spec", {})
    template = spec.get("template", {})
    filled = {**template, "spec": _pod_spec(template.get("spec", {}))}
    return {**owner, "spec": {**spec, "template": filled}}


def _daemon_set(daemon_set: Object) -> Object:
    return _templated({**daemon_set, "spec": _DAEMON_SET | daemon_set.get("spec", {})})


def _job(job: Object) -> Object:
    spec = job.get("spec", {})
    # With a parallelism alone the pods themselves know when their work is done.
    once = {} if "parallelism" in spec else {"completions": 1}
    return _templated({**job, "spec": _JOB | once | spec})


def selecting_its_pods(job: Object) -> Object:
    """Return a new Job with the selector and the labels of pods by which it finds them again."""
    spec, meta = job["spec"], job["metadata"]
    if spec.get("manualSelector") or spec.get("selector"):
        return job
    uid, name = meta["uid"], meta["name"]
    labels = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
    labels |= {"controller-uid": uid, "job-name": name}
    template = spec.get("template") or {}
    given = template.get("metadata") or {}
    marked = {**template, "metadata": {**given, "labels": {**(given.get("labels") or {}), **labels}}}
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    return {**job, "spec": {**spec, "selector": selector, "template": marked}}


def _job_set(job_set: Object) -> Object:
    """Return a JobSet with the defaults of its webhook (pkg/webhooks/jobset_webhook.go)."""
    spec: Object = _JOB_SET | (job_set.get("spec") or {})
    network = {"enableDNSHostnames": True, "publishNotReadyAddresses": True} | (spec.get("network") or {})
    roles = [_replicated_job(role) for role in spec.get("replicatedJobs") or ()]
    return {**job_set, "spec": {**spec, "network": network, "replicatedJobs": roles}}


def _replicated_job(role: Object) -> Object:
    template = role.get("template") or {}
    spec: Object = {"completionMode": "Indexed"} | (template.get("spec") or {})
    pod = spec.get("template") or {}
    pod_spec = {"restartPolicy": "OnFailure"} | (pod.get("spec") or {})
    return {
        **role,
        "template": {**template, "spec": {**spec, "template": {**pod, "spec": pod_spec}}},
    }


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


DEFAULTS: Mapping[str, Callable[[Object], Object]] = {
    "pods": _pod,
    "daemonsets.apps": _daemon_set,
    "jobs.batch": _job,
    "services": _service,
    "secrets": _secret,
    "jobsets.jobset.x-k8s.io": _job_set,
}
"""What fills in the defaults of a kind, beside those of its schema."""


def kind_defaults(kind: Kind, obj: Object) -> Object:
    """Return *obj* with the defaults of its kind."""
    fill = DEFAULTS.get(kind.resource)
    return fill(obj) if fill else obj
