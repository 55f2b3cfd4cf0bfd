"""What is served: the built-in kinds, their defaults and schemas, discovery, and selectors."""

import base64
import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from arena_topo.model.keys import JOBSET_NAME
from arena_topo.model.objects import Object
from arena_topo.model.scheduling import Requirement
from arena_topo.sandbox.api import rules
from arena_topo.sandbox.api.kinds import VERBS, Kind, Registry
from arena_topo.sandbox.api.requests import Cause, StatusError, bad_request, no_such_resource

# The built-in kinds, and the CRDs that a sandbox starts with.

_REVIEWS = ("SelfSubjectAccessReview", "SelfSubjectReview")
_CLUSTER_WIDE = frozenset(
    {
        "Node",
        "Namespace",
        "PriorityClass",
        "CustomResourceDefinition",
        "DeviceClass",
        "ResourceSlice",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        *_REVIEWS,
    }
)
_STATUS = ("status",)
_APIEXTENSIONS = "apiextensions.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """What differs between the built-in kinds, all of which are of version v1."""

    group: str
    kind: str
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


_KINDS = (
    _BuiltIn("", "Pod", ("po",), ("status", "log", "exec", "attach", "portforward"), ("all",)),
    _BuiltIn("", "Node", ("no",), _STATUS),
    _BuiltIn("", "Namespace", ("ns",), ("status", "finalize")),
    _BuiltIn("", "ConfigMap", ("cm",)),
    _BuiltIn("", "Secret"),
    _BuiltIn("", "Service", ("svc",), _STATUS, ("all",)),
    _BuiltIn("", "ServiceAccount", ("sa",)),
    _BuiltIn("", "Event", ("ev",)),
    _BuiltIn("", "PersistentVolumeClaim", ("pvc",), _STATUS),
    _BuiltIn("apps", "Deployment", ("deploy",), _STATUS, ("all",)),
    _BuiltIn("apps", "DaemonSet", ("ds",), _STATUS, ("all",)),
    _BuiltIn("apps", "StatefulSet", ("sts",), _STATUS, ("all",)),
    _BuiltIn("batch", "Job", (), _STATUS, ("all",)),
    _BuiltIn("coordination.k8s.io", "Lease"),
    _BuiltIn("scheduling.k8s.io", "PriorityClass", ("pc",)),
    _BuiltIn("resource.k8s.io", "DeviceClass"),
    _BuiltIn("resource.k8s.io", "ResourceSlice"),
    _BuiltIn("resource.k8s.io", "ResourceClaim", (), _STATUS),
    _BuiltIn("resource.k8s.io", "ResourceClaimTemplate"),
    _BuiltIn(_APIEXTENSIONS, "CustomResourceDefinition", ("crd", "crds"), _STATUS, ("api-extensions",)),
    # The sandbox has two users and asks neither roles nor policies nor quotas: these are only kept to be
    # read.
    _BuiltIn("", "ResourceQuota", ("quota",), _STATUS),
    _BuiltIn(_RBAC, "Role"),
    _BuiltIn(_RBAC, "RoleBinding"),
    _BuiltIn(_RBAC, "ClusterRole"),
    _BuiltIn(_RBAC, "ClusterRoleBinding"),
    _BuiltIn(_ADMISSION, "ValidatingAdmissionPolicy", (), _STATUS),
    _BuiltIn(_ADMISSION, "ValidatingAdmissionPolicyBinding"),
    _BuiltIn("authorization.k8s.io", "SelfSubjectAccessReview"),
    _BuiltIn("authentication.k8s.io", "SelfSubjectReview"),
)


@cache
def _components() -> dict[str, Any]:
    """Return the schemas of the built-in kinds by their OpenAPI names (from kube-apiserver 1.36.3)."""
    text = files("arena_topo.sandbox").joinpath("data/schemas.json").read_text("utf-8")
    schemas: dict[str, Any] = json.loads(text)
    # OpenAPI calls both a date-time.
    for name, layout in (("Time", rules.SECONDS), ("MicroTime", rules.MICROSECONDS)):
        schemas[f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"]["layout"] = layout
    return schemas


def initial_crds() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of a new sandbox."""
    folder = files("arena_topo.sandbox").joinpath("data/crds")
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda p: p.name)
    return [json.loads(path.read_text("utf-8")) for path in paths]


def _component(group: str, kind: str) -> str:
    if group == _APIEXTENSIONS:
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{kind}"
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.v1.{kind}"


def _plural(singular: str) -> str:
    """Return the plural as Kubernetes forms it: ``priorityclasses``, ``policies``, ``pods``."""
    if singular.endswith("y"):
        return singular.removesuffix("y") + "ies"
    return singular + ("es" if singular.endswith("s") else "s")


def builtin_kinds() -> list[Kind]:
    """Return the built-in kinds."""
    return [
        Kind(
            group=row.group,
            version="v1",
            kind=row.kind,
            plural=_plural(row.kind.lower()),
            singular=row.kind.lower(),
            namespaced=row.kind not in _CLUSTER_WIDE,
            schema={"$ref": _component(row.group, row.kind)},
            short_names=row.short_names,
            categories=row.categories,
            subresources=row.subresources,
            verbs=("create",) if row.kind in _REVIEWS else VERBS,
            virtual=row.kind in _REVIEWS,
        )
        for row in _KINDS
    ]


# Defaults of kinds that clients and the simulation rely on.
#
# Source: k8s.io/kubernetes pkg/apis/{core,batch}/v1/defaults.go, pkg/registry/batch/job/strategy.go and the
# admission plugins ServiceAccount and Priority.

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
_JOB_SET = {"successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"}}
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
    # The webhook of JobSet (pkg/webhooks/pod_webhook.go) lets pods that want a place for themselves know each
    # other's rank.
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
    return {**role, "template": {**template, "spec": {**spec, "template": {**pod, "spec": pod_spec}}}}


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
"""What fills in the defaults of a kind, next to those of its schema."""


def kind_defaults(kind: Kind, obj: Object) -> Object:
    """Return *obj* with the defaults of its kind."""
    fill = DEFAULTS.get(kind.resource)
    return fill(obj) if fill else obj


# Structural schemas: following references, dropping unknown fields, filling defaults, checking values.
#
# Rules: the Kubernetes documentation on structural schemas, and k8s.io/apiextensions-apiserver/pkg/apiserver
# (schema/pruning, schema/defaulting, validation), whose wording the errors have.

Schema = dict[str, Any]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
PRUNED = "x-arena-topo-pruned"
"""Mark of an object's schema in a CRD, even one that names no fields: all others are dropped."""
_META = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_STRING = {"type": "string"}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_GO_TYPES = {"object": "map[string]interface {}", "array": "[]interface {}", "boolean": "bool"}


def resolve(schema: Schema | None) -> Schema:
    """Return *schema* with its reference followed; its own keywords take precedence."""
    if not schema:
        return {}
    reference = schema.get("$ref")
    if reference is None:
        return schema
    # A reference without other keywords is by far the most frequent case: it needs no copy.
    target = _components().get(reference, {})
    return target if len(schema) == 1 else {**target, **schema}


def child(schema: Schema, name: str) -> Schema | None:
    """Return the schema of field *name*, or None if the schema does not know it."""
    properties = schema.get("properties")
    # Named fields take precedence over additionalProperties, as in every JSON schema.
    if properties is not None and name in properties:
        return resolve(properties[name])
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return resolve(extra)
    return {} if extra is True or _is_open(schema) else None


def _is_open(schema: Schema) -> bool:
    """Whether any field is accepted: explicitly, or because the schema does not speak of fields."""
    if schema.get(_PRESERVE):
        return True
    return not any(keyword in schema for keyword in ("properties", "additionalProperties", PRUNED))


def root_schema(schema: Schema) -> Schema:
    """Return an object's schema whose apiVersion, kind and metadata are those of every object."""
    root = resolve(schema)
    fields = {"apiVersion": _STRING, "kind": _STRING, "metadata": _META}
    return {**root, "properties": {**root.get("properties", {}), **fields}}


def prune(value: Any, schema: Schema, path: str = "") -> tuple[Any, list[str]]:
    """Return *value* without the fields that *schema* does not know, and those fields' paths."""
    if isinstance(value, list):
        items = resolve(schema.get("items"))
        results = [prune(item, items, f"{path}[{index}]") for index, item in enumerate(value)]
        return [item for item, _ in results], [name for _, unknown in results for name in unknown]
    if not isinstance(value, dict):
        return value, []
    kept, unknown = {}, []
    for name, field in value.items():
        field_path = f"{path}.{name}" if path else name
        below = child(schema, name)
        if below is None:
            unknown.append(field_path)
        else:
            kept[name], dropped = prune(field, below, field_path)
            unknown += dropped
    return kept, unknown


def fill_defaults(value: Any, schema: Schema) -> Any:
    """Return *value* with the schema's defaults where fields are absent (and null where not nullable)."""
    if isinstance(value, list):
        items = resolve(schema.get("items"))
        return [fill_defaults(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for name, field in schema.get("properties", {}).items():
        below = resolve(field)
        absent = name not in filled or (filled[name] is None and not below.get("nullable"))
        if absent and "default" in below:
            filled[name] = copy.deepcopy(below["default"])
    return {name: fill_defaults(field, child(schema, name) or {}) for name, field in filled.items()}


def without_nulls(value: Any) -> Any:
    """Return *value* without fields that are null, as decoding into typed structures leaves them."""
    if isinstance(value, dict):
        return {name: without_nulls(field) for name, field in value.items() if field is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _walk(value: Any, schema: Schema, path: str = "") -> Iterator[tuple[str, Any, Schema]]:
    """Yield every value with its path and schema, from the root down."""
    yield path, value, schema
    if isinstance(value, dict):
        for name, field in value.items():
            below = child(schema, name)
            if below is not None:
                yield from _walk(field, below, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        items = resolve(schema.get("items"))
        for index, item in enumerate(value):
            yield from _walk(item, items, f"{path}[{index}]")


def _has_type(value: Any, name: str) -> bool:
    # A Python bool is an int, a JSON boolean is not a number.
    if name in {"integer", "number"} and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES.get(name, (object,)))


def _type_name(value: Any) -> str:
    # Booleans come first, because they are integers to Python.
    order = ("boolean", "integer", "number", "string", "array", "object")
    return next((name for name in order if isinstance(value, _TYPES[name])), "null")


def schema_errors(obj: Any, schema: Schema) -> list[Cause]:
    """Return how a custom resource violates its schema."""
    return [cause for path, value, below in _walk(obj, schema) for cause in _errors(path, value, below)]


def _errors(path: str, value: Any, schema: Schema) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    expected = schema.get("type")
    if expected and not schema.get("x-kubernetes-int-or-string") and not _has_type(value, expected):
        got = _type_name(value)
        text = f'Invalid value: "{got}": {path} in body must be of type {expected}: "{got}"'
        yield Cause(path, "FieldValueTypeInvalid", text)
        # The other rules assume the type: they would only repeat the complaint.
        return
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield Cause(f"{path}.{name}" if path else name, "FieldValueRequired", "Required value")
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(json.dumps(item) for item in schema["enum"])
        text = f"Unsupported value: {json.dumps(value)}: supported values: {allowed}"
        yield Cause(path, "FieldValueNotSupported", text)
    # As JSON schema has it, a pattern may match anywhere in the value.
    pattern = schema.get("pattern")
    if pattern and isinstance(value, str) and not re.search(pattern, value):
        text = f"Invalid value: {json.dumps(value)}: {path} in body should match '{pattern}'"
        yield Cause(path, "FieldValueInvalid", text)


def check_types(obj: Any, schema: Schema, kind: Kind) -> None:
    """Raise StatusError where a built-in object cannot be decoded into its Go type."""
    if mismatch := type_mismatch(obj, schema):
        path, got, go = mismatch
        raise undecodable(kind, f"json: cannot unmarshal {got} into Go struct field .{path} of type {go}")
    if why := _unreadable_time(obj, schema):
        raise undecodable(kind, why)


def _unreadable_time(obj: Any, schema: Schema) -> str:
    """Return why an instant in *obj* cannot be read, in Go's words; empty where all can."""
    for _, value, below in _walk(obj, schema):
        layout = below.get("layout", "")
        if layout and isinstance(value, str) and (why := rules.misfit(value, layout)):
            return why
    return ""


def type_mismatch(obj: Any, schema: Schema) -> tuple[str, str, str] | None:
    """Return where *obj* cannot be decoded into its Go type: the path, and both types in Go's words."""
    for path, value, below in _walk(obj, schema):
        expected = below.get("type")
        if expected and value is not None and not _has_type(value, expected):
            got = {"boolean": "bool", "integer": "number"}.get(_type_name(value), _type_name(value))
            # Go's decoder names the field by the struct's path, which has no indices.
            field = re.sub(r"\[\d+\]", "", path)
            go = below.get("format", "int32") if expected == "integer" else _GO_TYPES.get(expected, expected)
            return field, str(got), str(go)
    return None


def undecodable(kind: Kind, why: str) -> StatusError:
    """Return the error for a body that does not decode into *kind*."""
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


# Discovery: ``/api``, ``/apis`` and below, and the OpenAPI v3 documents.
#
# Sources: k8s.io/apimachinery/pkg/apis/meta/v1 and k8s.io/kube-openapi. kubectl discovers group by group
# where the aggregated form is not served.

_CONNECT_VERBS = ["create", "get"]
_SUBRESOURCE_VERBS = {
    "status": ["get", "patch", "update"],
    "log": ["get"],
    "finalize": ["update"],
    "exec": _CONNECT_VERBS,
    "attach": _CONNECT_VERBS,
    "portforward": _CONNECT_VERBS,
}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def document(registry: Registry, parts: list[str]) -> Object:
    """Return the discovery document at the parts of a path; raises StatusError where nothing is served."""
    match parts:
        # The core group, which is older than API groups, has a document of its own.
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(registry, name) for name in registry.groups() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", name]:
            return {"kind": "APIGroup", "apiVersion": "v1"} | _group(registry, name)
        case _:
            return _resources(registry, "/".join(parts))


def _group(registry: Registry, name: str) -> Object:
    served = registry.groups().get(name)
    if not served:
        raise no_such_resource()
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in served]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resources(registry: Registry, root: str) -> Object:
    kinds = _kinds_at(registry, root)
    if not kinds:
        raise no_such_resource()
    entries = [entry for kind in kinds for entry in _entries(kind)]
    head = {"groupVersion": kinds[0].api_version, "resources": entries}
    return {"kind": "APIResourceList", "apiVersion": "v1"} | head


def _entries(kind: Kind) -> list[Object]:
    """Return the entries of a resource and of its subresources."""
    entry: Object = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced}
    entry |= {"kind": kind.kind, "verbs": list(kind.verbs)}
    entry |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    entry |= {"categories": list(kind.categories)} if kind.categories else {}
    below: Object = {"singularName": "", "namespaced": kind.namespaced, "kind": kind.kind}
    names = kind.subresources
    return [
        entry,
        *({**below, "name": f"{kind.plural}/{name}", "verbs": _SUBRESOURCE_VERBS[name]} for name in names),
    ]


def _kinds_at(registry: Registry, root: str) -> list[Kind]:
    return [kind for kind in registry if kind.root == root]


def openapi(registry: Registry, root: str) -> Object:
    """Return the OpenAPI v3 document of ``api/v1`` or ``apis/GROUP/VERSION``, or their list.

    It has what is read of it here: that writes validate fields, for which ``kubectl apply`` looks, and the
    schemas of custom resources, in which ``doctor`` looks for fields of pods.
    """
    if not root:
        roots = dict.fromkeys(kind.root for kind in registry)
        return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}}
    paths, schemas = {}, {}
    for kind in _kinds_at(registry, root):
        identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        parameters = [{"name": name, "in": "query"} for name in _WRITE_PARAMETERS]
        patch = {"parameters": parameters, "x-kubernetes-group-version-kind": identity, "responses": {}}
        base = f"/{root}/namespaces/{{namespace}}" if kind.namespaced else f"/{root}"
        paths[f"{base}/{kind.plural}/{{name}}"] = {"patch": patch}
        if kind.custom:
            # Such as org.kubeflow.v2beta1.MPIJob.
            name = ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))
            schemas[name] = kind.schema | {"x-kubernetes-group-version-kind": [identity]}
    info = {"title": "arena-topo sandbox", "version": "v1.36.3"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


# Label and field selectors of lists, watches and deletions.

Matcher = Callable[[Object], bool]

_SET = re.compile(r"(?P<key>[\w./-]+)\s+(?P<sign>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUALITY = re.compile(r"(?P<key>[\w./-]+)\s*(?P<sign>==|!=|=|>|<)\s*(?P<values>[\w.-]*)")
_PRESENCE = re.compile(r"(?P<sign>!?)\s*(?P<key>[\w./-]+)")
_SEPARATOR = re.compile(r",(?![^(]*\))")  # a comma that is not inside of parentheses
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Mapping[str, frozenset[str]] = {
    "pods": frozenset({"spec.nodeName", "spec.schedulerName", "status.phase"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "events": frozenset({"reason", "type"} | {f"involvedObject.{key}" for key in _INVOLVED}),
}
"""The fields by which lists of a resource can be narrowed, next to name and namespace."""


def _label_selector(text: str) -> list[Requirement]:
    """Return the requirements of a label selector; raises StatusError when it is malformed.

    Example: ``tier in (gold, iron),!own`` is ``tier In gold, iron`` and ``own DoesNotExist``.
    """
    return [_label_term(term.strip()) for term in _SEPARATOR.split(text) if term.strip()]


def _label_term(term: str) -> Requirement:
    if match := _SET.fullmatch(term) or _EQUALITY.fullmatch(term):
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(match["key"], _OPERATORS[match["sign"]], values)
    if match := _PRESENCE.fullmatch(term):
        return Requirement(match["key"], "DoesNotExist" if match["sign"] else "Exists")
    raise bad_request(f'unable to parse requirement: found "{term}"')


def _field_term(term: str, kind: Kind) -> Matcher:
    match = re.fullmatch(r"([\w.]+)\s*(==|!=|=)\s*(.*)", term)
    if match is None:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    path, sign, value = match.groups()
    if path not in _FIELDS.get(kind.plural, frozenset()) | {"metadata.name", "metadata.namespace"}:
        # Kinds with conversions of field labels word it otherwise than those with the two common fields.
        if kind.plural in _FIELDS or kind.custom:
            raise bad_request(f"field label not supported: {path}")
        common = '"metadata.name", "metadata.namespace"'
        raise bad_request(f'"{path}" is not a known field selector: only {common}')
    return lambda obj: (_field(obj, path) == value) != (sign == "!=")


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    # An absent boolean of a built-in object is false for selectors, any other absent field the empty text.
    if value is None:
        return "false" if path == "spec.unschedulable" else ""
    return str(value)


def matcher(labels: str, fields: str, kind: Kind) -> Matcher:
    """Return the test of a request's selectors; an empty selector matches everything. Raises StatusError."""
    requirements = _label_selector(labels)
    field_tests = [_field_term(term.strip(), kind) for term in fields.split(",") if term.strip()]

    def matches(obj: Object) -> bool:
        own = obj["metadata"].get("labels") or {}
        labelled = all(requirement.holds(own) for requirement in requirements)
        return labelled and all(test(obj) for test in field_tests)

    return matches
