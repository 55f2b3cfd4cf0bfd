"""What objects must satisfy beyond their schema: names, required fields, what may change.

Source of the wording: k8s.io/kubernetes pkg/apis/core/validation and k8s.io/apimachinery validation.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.resources import Cause, Kind, bad_value, missing_value


def create_errors(kind: Kind, obj: Object) -> Iterator[Cause]:
    """Yield why an object cannot be created."""
    if kind.resource == "pods":
        yield from _spec_errors(obj.get("spec", {}), "spec")
    elif kind.resource == "daemonsets.apps":
        template = obj.get("spec", {}).get("template", {})
        yield from _spec_errors(template.get("spec", {}), "spec.template.spec")
        chosen = obj.get("spec", {}).get("selector", {}).get("matchLabels", {})
        yield from _selection_errors(chosen, template)
    elif kind.resource in _ALWAYS:
        yield from _ALWAYS[kind.resource](obj)


def update_errors(kind: Kind, before: Object, after: Object) -> Iterator[Cause]:
    """Yield the changes that are not allowed, and what is wrong with the changed object."""
    if kind.resource in _ALWAYS:
        yield from _ALWAYS[kind.resource](after)
    if kind.resource in _CHANGES:
        yield from _CHANGES[kind.resource](before, after)


def metadata_errors(meta: Object) -> Iterator[Cause]:
    """Yield what is wrong with a name or with labels."""
    name = meta.get("name", "")
    if not name:
        yield missing_value("metadata.name", "name or generateName is required")
    elif len(name) > _MAX_NAME:
        yield bad_value("metadata.name", name, f"must be no more than {_MAX_NAME} bytes")
    elif not _SUBDOMAIN.fullmatch(name):
        yield bad_value("metadata.name", name, _SUBDOMAIN_TEXT)
    for value in (meta.get("labels") or {}).values():
        if len(value) > _MAX_LABEL:
            yield bad_value("metadata.labels", value, f"must be no more than {_MAX_LABEL} bytes")
        elif not _LABEL_VALUE.fullmatch(value):
            yield bad_value("metadata.labels", value, _LABEL_TEXT)


_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_MAX_NAME = 253
_MAX_LABEL = 63


# Pods, and the pod templates of other kinds.
#
# Source of the wording: k8s.io/kubernetes pkg/apis/core/validation.

_POD_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def _spec_errors(spec: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the *spec* of a pod, or of a template, at *path*."""
    required = [] if spec.get("containers") else [f"{path}.containers"]
    for index, container in enumerate(spec.get("containers") or []):
        missing = [name for name in ("name", "image") if not container.get(name)]
        required += [f"{path}.containers[{index}].{name}" for name in missing]
    yield from map(missing_value, required)


def _selection_errors(chosen: Object, template: Object) -> Iterator[Cause]:
    """Yield that a selector of the labels *chosen* does not find the pods of *template*."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not chosen.items() <= labels.items():
        yield bad_value(
            "spec.template.metadata.labels", labels, "`selector` does not match template `labels`"
        )


def _pod_changes(pod: Object, changed: Object) -> Iterator[Cause]:
    before, after = pod["spec"], changed["spec"]
    old_gates = [gate["name"] for gate in before.get("schedulingGates") or []]
    new_gates = [gate["name"] for gate in after.get("schedulingGates") or []]
    if added := [gate for gate in new_gates if gate not in old_gates]:
        text = f"only deletion is allowed, but found new scheduling gate '{added[0]}'"
        yield _forbidden("spec.schedulingGates", text)
    old_selector, new_selector = before.get("nodeSelector") or {}, after.get("nodeSelector") or {}
    # A pod without gates is caught by the comparison below, which covers its node selector.
    if old_gates and any(new_selector.get(key) != value for key, value in old_selector.items()):
        text = "additions only; no label removal or modification is allowed"
        yield bad_value("spec.nodeSelector", new_selector, text)
    if _fixed(before, gated=bool(old_gates)) != _fixed(after, gated=bool(old_gates)):
        yield _forbidden("spec", _POD_TEXT)


def _fixed(spec: Object, *, gated: bool) -> Object:
    """Return what may not change of a pod's spec; a gated pod may still be given a place."""
    free = {"tolerations", "activeDeadlineSeconds", "schedulingGates", "terminationGracePeriodSeconds"}
    free |= {"nodeSelector", "affinity"} if gated else set()
    fixed = {name: value for name, value in spec.items() if name not in free}
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [
                {k: v for k, v in container.items() if k != "image"} for container in fixed[field]
            ]
    return fixed


# Jobs and JobSets: of their pod templates little may change, and only while they are suspended.
#
# Sources of the wording: k8s.io/kubernetes 1.36 pkg/apis/batch/validation and pkg/registry/batch/job
# (strategy.go), and the webhook of JobSet 0.12 (pkg/webhooks/jobset_webhook.go).

_NONNEGATIVE = (
    *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"),
    *("backoffLimitPerIndex", "maxFailedIndexes"),
)
_MOST_INDEXED = 100_000
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_FIXED = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_IMMUTABLE = "field is immutable"
_LOOSE = ("nodeSelector", "tolerations", "schedulingGates")
"""What of the spec of a template changes while its job is suspended, apart from labels and annotations."""


def _job_errors(job: Object) -> Iterator[Cause]:
    spec, name = job.get("spec", {}), str(job["metadata"].get("name", ""))
    for field in _NONNEGATIVE:
        if (value := spec.get(field)) is not None and value < 0:
            yield bad_value(f"spec.{field}", value, "must be greater than or equal to 0")
    completions = spec.get("completions")
    if spec.get("completionMode") not in ("Indexed", "NonIndexed"):
        text = f'Unsupported value: "{spec.get("completionMode")}": supported values: "NonIndexed", "Indexed"'
        yield Cause("spec.completionMode", "FieldValueNotSupported", text)
    elif spec["completionMode"] == "Indexed" and completions is None:
        yield missing_value("spec.completions", "when completion mode is Indexed")
    if spec.get("completionMode") == "Indexed" and spec.get("parallelism", 1) > _MOST_INDEXED:
        text = f"must be less than or equal to {_MOST_INDEXED} when completion mode is Indexed"
        yield bad_value("spec.parallelism", spec["parallelism"], text)
    template = spec.get("template", {})
    yield from _spec_errors(template.get("spec", {}), "spec.template.spec")
    yield from _selection_errors((spec.get("selector") or {}).get("matchLabels") or {}, template)
    # The default for pods is Always, with which a Job would never end.
    if template.get("spec", {}).get("restartPolicy") not in {"Never", "OnFailure"}:
        yield missing_value("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    # The last index is at the end of a pod's host name.
    host = f"{name}-{completions - 1}" if spec.get("completionMode") == "Indexed" and completions else "a"
    if not _LABEL.fullmatch(host):
        yield bad_value("metadata.name", name, f"will not able to create pod with invalid DNS label: {host}")


def _job_changes(before: Object, after: Object) -> Iterator[Cause]:
    old, new, status = before["spec"], after["spec"], before.get("status", {})
    stops = ("Suspended", "True") in [(c["type"], c["status"]) for c in status.get("conditions", [])]
    is_idle = ("startTime" not in status or stops) and not status.get("active")
    template = old["template"]
    if old.get("suspend") and is_idle:
        template = _loosened(template, new["template"], affinity=True, resources=True)
    if template != new["template"]:
        yield bad_value("spec.template", new["template"], _IMMUTABLE)
    for field in _FIXED:
        if old.get(field) != new.get(field):
            yield bad_value(f"spec.{field}", new.get(field), _IMMUTABLE)
    if old.get("completions") == new.get("completions"):
        return
    if new.get("completionMode") != "Indexed":
        yield bad_value("spec.completions", new.get("completions"), _IMMUTABLE)
    elif new["completions"] != new.get("parallelism"):
        text = "can only be modified in tandem with spec.parallelism"
        yield bad_value("spec.completions", new["completions"], text)


def _job_set_changes(before: Object, after: Object) -> Iterator[Cause]:
    old, new = before["spec"].get("replicatedJobs") or [], after["spec"].get("replicatedJobs") or []
    if before["spec"].get("suspend") or after["spec"].get("suspend"):
        by_name = {role["name"]: _template(role) for role in new}
        old = [_with_template(role, by_name.get(role["name"])) for role in old]
    if old != new:
        yield bad_value("spec.replicatedJobs", new, _IMMUTABLE)


def _template(role: Object) -> Object:
    template: Object = role["template"]["spec"]["template"]
    return template


def _with_template(role: Object, changed: Object | None) -> Object:
    if changed is None:
        return role
    loosened = copy.deepcopy(role)
    loosened["template"]["spec"]["template"] = _loosened(_template(role), changed)
    return loosened


def _loosened(
    template: Object, changed: Object, *, affinity: bool = False, resources: bool = False
) -> Object:
    """Return *template* with what a suspended job may take of *changed*: equal where nothing else differs.

    Jobs take *affinity* to nodes, and *resources*, too.
    """
    loosened = copy.deepcopy(template)
    meta, other = loosened.get("metadata") or {}, changed.get("metadata") or {}
    kept = {name: value for name, value in meta.items() if name not in ("labels", "annotations")}
    taken = {name: other[name] for name in ("labels", "annotations") if name in other}
    if "metadata" in changed or kept:
        loosened["metadata"] = kept | taken
    else:
        loosened.pop("metadata", None)
    fields = (*_LOOSE, "affinity") if affinity else _LOOSE
    spec, new = loosened["spec"], changed["spec"]
    for field in fields:
        spec.pop(field, None)
        spec |= {field: new[field]} if field in new else {}
    if resources:
        by_name = {container["name"]: container for container in new.get("containers") or ()}
        for container in spec.get("containers") or ():
            container["resources"] = by_name.get(container["name"], container).get("resources", {})
    return loosened


# The small objects that arena-topo writes next to jobs: Leases, ConfigMaps, events, claims of GPUs.
#
# Sources of the wording: k8s.io/kubernetes 1.36 pkg/apis/{coordination,core,resource}/validation.

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  "
    "or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MAX_KEY = 253
_MAX_BYTES = 1024 * 1024
_MAX_NOTE = 1024
_MAX_EVENT_WORD = 128  # characters of an event's reason, action and reporting instance
_FIXED_TEXT = "field is immutable when `immutable` is set"


def _lease_errors(lease: Object) -> Iterator[Cause]:
    spec = lease.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield bad_value("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield bad_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def _config_map_errors(config_map: Object) -> Iterator[Cause]:
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    for bag, values in (("data", data), ("binaryData", binary)):
        for key in values:
            if len(key) > _MAX_KEY:
                yield bad_value(f"{bag}[{key}]", key, f"must be no more than {_MAX_KEY} characters")
            if not _KEY.fullmatch(key):
                yield bad_value(f"{bag}[{key}]", key, _KEY_TEXT)
            if key in (".", ".."):
                yield bad_value(f"{bag}[{key}]", key, f"must not be '{key}'")
            elif key.startswith(".."):
                yield bad_value(f"{bag}[{key}]", key, "must not start with '..'")
    for key in data.keys() & binary.keys():
        yield bad_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    # What is in base64 has four characters for three bytes.
    size = sum(len(value.encode()) for value in data.values())
    size += sum(len(value) * 3 // 4 for value in binary.values())
    if size > _MAX_BYTES:
        yield Cause("[]", "FieldValueTooLong", f"Too long: may not be more than {_MAX_BYTES} bytes")


def _config_map_changes(before: Object, after: Object) -> Iterator[Cause]:
    if not before.get("immutable"):
        return
    if not after.get("immutable"):
        yield _forbidden("immutable", _FIXED_TEXT)
    for bag in ("data", "binaryData"):
        if before.get(bag) != after.get(bag):
            yield _forbidden(bag, _FIXED_TEXT)


def _event_errors(event: Object) -> Iterator[Cause]:
    """Yield what is wrong with an event; the newer API's, with an ``eventTime``, has to say more."""
    involved, namespace = (
        (event.get("involvedObject") or {}).get("namespace", ""),
        event["metadata"]["namespace"],
    )
    if not event.get("eventTime"):
        # Events about cluster-wide objects are in the namespace default.
        if namespace not in ((involved,) if involved else ("default",)):
            yield bad_value("involvedObject.namespace", involved, "does not match event.namespace")
        return
    if not involved and namespace not in ("default", "kube-system"):
        yield bad_value("involvedObject.namespace", involved, "does not match event.namespace")
    for field in ("reportingComponent", "reportingInstance", "action", "reason"):
        value = event.get(field) or ""
        if not value:
            yield missing_value(field)
        if field != "reportingComponent" and len(value) > _MAX_EVENT_WORD:
            yield bad_value(field, "", f"can have at most {_MAX_EVENT_WORD} characters")
    if len((event.get("message") or "").encode()) > _MAX_NOTE:
        yield bad_value("message", "", f"can have at most {_MAX_NOTE} characters")


def _claim_errors(claim: Object) -> Iterator[Cause]:
    """Yield what is wrong with the requests of a ResourceClaim; its CEL expressions are not compiled here."""
    requests = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
    for index, request in enumerate(requests):
        path = f"spec.devices.requests[{index}]"
        if not request.get("name"):
            yield missing_value(f"{path}.name")
        exactly = request.get("exactly")
        if not exactly and not request.get("firstAvailable"):
            yield missing_value(path, "exactly one of `exactly` or `firstAvailable` is required")
        if exactly:
            yield from _exact_request_errors(exactly, f"{path}.exactly")


def _exact_request_errors(request: Object, path: str) -> Iterator[Cause]:
    if not request.get("deviceClassName"):
        yield missing_value(f"{path}.deviceClassName")
    mode, count = request.get("allocationMode", "ExactCount"), request.get("count")
    if mode == "All" and count:
        yield bad_value(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    # Nothing said is one.
    elif mode == "ExactCount" and count is not None and count <= 0:
        yield bad_value(f"{path}.count", count, "must be greater than zero")


def _claim_changes(before: Object, after: Object) -> Iterator[Cause]:
    if before.get("spec") != after.get("spec"):
        yield bad_value("spec", after.get("spec"), "field is immutable")


def _forbidden(path: str, why: str) -> Cause:
    return Cause(path, "FieldValueForbidden", f"Forbidden: {why}")


_ALWAYS: Mapping[str, Callable[[Object], Iterator[Cause]]] = {
    "configmaps": _config_map_errors,
    "events": _event_errors,
    "jobs.batch": _job_errors,
    "leases.coordination.k8s.io": _lease_errors,
    "resourceclaims.resource.k8s.io": _claim_errors,
}
"""What is wrong with an object, new or changed."""
_CHANGES: Mapping[str, Callable[[Object, Object], Iterator[Cause]]] = {
    "configmaps": _config_map_changes,
    "jobs.batch": _job_changes,
    "jobsets.jobset.x-k8s.io": _job_set_changes,
    "pods": _pod_changes,
    "resourceclaims.resource.k8s.io": _claim_changes,
}
"""What may not change of an object."""


# Instants as Go reads them: to the second, with or without fractions, or to exactly the microsecond.
#
# Source: k8s.io/apimachinery pkg/apis/meta/v1 (time.go, micro_time.go), and Go's package time (format.go),
# whose words these are.

SECONDS = "2006-01-02T15:04:05Z07:00"
MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"
_ELEMENTS = {
    "2006": r"\d{4}",
    "-": "-",
    "01": r"\d{2}",
    "02": r"\d{2}",
    "T": "T",
    "15": r"\d{2}",
    ":": ":",
    "04": r"\d{2}",
    # Fractions may follow the seconds where the layout names none.
    "05": r"\d{2}",
    ".000000": r"\.\d{6}(?!\d)",
    "Z07:00": r"Z|[+-]\d{2}:\d{2}",
}
_ELEMENT = re.compile("|".join(re.escape(each) for each in sorted(_ELEMENTS, key=len, reverse=True)))


def misfit(text: str, layout: str) -> str:
    """Return why *text* is no instant of *layout*, empty where it is one.

    Example: in ``2026-01-02T03:04:05Z`` an instant with microseconds finds ``Z`` where ``.000000`` should be.
    """
    rest, head = text, f'parsing time "{text}" as "{layout}": cannot parse '
    for element in _ELEMENT.findall(layout):
        found = re.match(_ELEMENTS[element], rest)
        if found is None:
            return f'{head}"{rest}" as "{element}"'
        rest = rest[found.end() :]
        if element == "05" and layout == SECONDS:
            rest = re.sub(r"^[.,]\d+", "", rest)
    if rest:
        return f'parsing time "{text}": extra text: "{rest}"'
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        return f'parsing time "{text}": {_out_of_range(str(error))}'
    return ""


def _out_of_range(error: str) -> str:
    """Return which part of an instant is too great, from Python's word for it."""
    part = next((part for part in ("month", "day", "hour", "minute", "second") if part in error), "day")
    return f"{part} out of range"
