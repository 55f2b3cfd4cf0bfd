"""What is served: the built-in kinds and those of CRDs, their defaults and their schemas."""

import base64
import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from arena_topo.model.keys import JOBSET_NAME
from arena_topo.model.objects import Object
from arena_topo.sandbox.api import rules
from arena_topo.sandbox.api.resources import (
    VERBS,
    Cause,
    Column,
    Kind,
    Registry,
    StatusError,
    bad_request,
)
from arena_topo.sandbox.api.store import Store

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


def _plural(singular: str) -> str:
    """Return the plural as Kubernetes forms it: ``priorityclasses``, ``policies``, ``pods``."""
    if singular.endswith("y"):
        return singular.removesuffix("y") + "ies"
    return singular + ("es" if singular.endswith("s") else "s")


def _built_in(
    group: str,
    name: str,
    short_names: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
) -> Kind:
    """Return a built-in kind, all of which are of version v1."""
    is_review = name in _REVIEWS
    package = f"io.k8s.api.{group.partition('.')[0] or 'core'}"
    if group == _APIEXTENSIONS:
        package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions"
    return Kind(
        group=group,
        version="v1",
        kind=name,
        plural=_plural(name.lower()),
        singular=name.lower(),
        namespaced=name not in _CLUSTER_WIDE,
        schema={"$ref": f"{package}.v1.{name}"},
        short_names=short_names,
        categories=categories,
        subresources=subresources,
        verbs=("create",) if is_review else VERBS,
        virtual=is_review,
    )


BUILT_IN = (
    _built_in("", "Pod", ("po",), ("status", "log", "exec", "attach", "portforward"), ("all",)),
    _built_in("", "Node", ("no",), _STATUS),
    _built_in("", "Namespace", ("ns",), ("status", "finalize")),
    _built_in("", "ConfigMap", ("cm",)),
    _built_in("", "Secret"),
    _built_in("", "Service", ("svc",), _STATUS, ("all",)),
    _built_in("", "ServiceAccount", ("sa",)),
    _built_in("", "Event", ("ev",)),
    _built_in("", "PersistentVolumeClaim", ("pvc",), _STATUS),
    _built_in("apps", "Deployment", ("deploy",), _STATUS, ("all",)),
    _built_in("apps", "DaemonSet", ("ds",), _STATUS, ("all",)),
    _built_in("apps", "StatefulSet", ("sts",), _STATUS, ("all",)),
    _built_in("batch", "Job", (), _STATUS, ("all",)),
    _built_in("coordination.k8s.io", "Lease"),
    _built_in("scheduling.k8s.io", "PriorityClass", ("pc",)),
    _built_in("resource.k8s.io", "DeviceClass"),
    _built_in("resource.k8s.io", "ResourceSlice"),
    _built_in("resource.k8s.io", "ResourceClaim", (), _STATUS),
    _built_in("resource.k8s.io", "ResourceClaimTemplate"),
    _built_in(_APIEXTENSIONS, "CustomResourceDefinition", ("crd", "crds"), _STATUS, ("api-extensions",)),
    # The sandbox has two users and asks neither roles nor policies nor quotas: these are only kept to be
    # read.
    _built_in("", "ResourceQuota", ("quota",), _STATUS),
    _built_in(_RBAC, "Role"),
    _built_in(_RBAC, "RoleBinding"),
    _built_in(_RBAC, "ClusterRole"),
    _built_in(_RBAC, "ClusterRoleBinding"),
    _built_in(_ADMISSION, "ValidatingAdmissionPolicy", (), _STATUS),
    _built_in(_ADMISSION, "ValidatingAdmissionPolicyBinding"),
    _built_in("authorization.k8s.io", "SelfSubjectAccessReview"),
    _built_in("authentication.k8s.io", "SelfSubjectReview"),
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
    spec = owner.get("spec", {})
    template = spec.get("template", {})
    filled = {**template, "spec": _pod_spec(template.get("spec", {}))}
    return {**owner, "spec": {**spec, "template": filled}}


def _daemon_set(daemon_set: Object) -> Object:
    return _templated({**daemon_set, "spec": _DAEMON_SET | daemon_set.get("spec", {})})


def _job(job: Object) -> Object:
    spec = job.get("spec", {})
    # With only a parallelism the pods themselves know when their work is done.
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
_PRUNED = "x-arena-topo-pruned"
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
    return not any(keyword in schema for keyword in ("properties", "additionalProperties", _PRUNED))


def root_schema(kind: Kind) -> Schema:
    """Return the schema of a kind's objects, with the apiVersion, kind and metadata of every object."""
    root = resolve(kind.schema)
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


# CustomResourceDefinitions: what they serve, and their conditions.

CRD_KEY = ("apiextensions.k8s.io", "customresourcedefinitions")


def _kinds_of(crd: Object) -> list[Kind]:
    """Return the kinds that a CustomResourceDefinition serves."""
    spec = crd["spec"]
    names = spec["names"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            # The API server names a singular that a CRD leaves out after the kind.
            singular=names.get("singular") or names["kind"].lower(),
            namespaced=spec.get("scope") == "Namespaced",
            schema=_structural(version.get("schema", {}).get("openAPIV3Schema", {})),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=("status",) if "status" in (version.get("subresources") or {}) else (),
            columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
            custom=True,
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _structural(schema: Schema) -> Schema:
    """Return *schema* marked so that fields it does not name are dropped."""
    marked = dict(schema)
    if marked.get("type") == "object":
        marked[_PRUNED] = True
    if "properties" in marked:
        marked["properties"] = {name: _structural(field) for name, field in marked["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(marked.get(keyword), dict):
            marked[keyword] = _structural(marked[keyword])
    return marked


def _column(column: Object) -> Column:
    return Column(column["name"], column.get("type", "string"), column["jsonPath"], column.get("priority", 0))


def establish(store: Store, registry: Registry, crd: Object, now: str) -> None:
    """Serve what *crd* defines and say so in its status."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    registry.remove(group, plural)
    for kind in _kinds_of(crd):
        registry.add(kind)
    names = {"singular": crd["spec"]["names"]["kind"].lower(), **crd["spec"]["names"]}
    names.setdefault("listKind", crd["spec"]["names"]["kind"] + "List")
    earlier = crd.get("status", {}).get("storedVersions") or []
    storage = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    # Objects may still be stored in a version that is the storage version no longer.
    stored = [*earlier, *(name for name in storage if name not in earlier)]
    conditions = [
        {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
        for type_, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    status = {"acceptedNames": names, "storedVersions": stored, "conditions": conditions}
    # A CRD that was restored with the state is established already; writing it again would be a change.
    if (crd.get("status", {}).get("acceptedNames"), earlier) != (names, stored):
        body = copy.deepcopy(crd)
        body["spec"]["names"] = names
        store.put(CRD_KEY, body | {"status": status})


def withdraw(store: Store, registry: Registry, crd: Object) -> None:
    """Stop serving what *crd* defined, and drop its objects."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    registry.remove(group, plural)
    for stored in list(store.scan((group, plural))):
        store.drop((group, plural), stored.body)
