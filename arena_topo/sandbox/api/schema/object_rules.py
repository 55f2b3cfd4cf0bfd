"""What the small objects that arena-topo writes beside jobs must satisfy: Leases, ConfigMaps, events, claims of GPUs.

Sources of the wording: k8s.io/kubernetes 1.36 pkg/apis/{coordination,core,resource}/validation.
"""

import re
from collections.abc import Iterator

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.status_errors import Cause, bad_value, missing_value

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MAX_KEY = 253
_MAX_BYTES = 1024 * 1024
_MAX_NOTE = 1024
_MAX_EVENT_WORD = 128  # characters of an event's reason, action and reporting instance
_FIXED_TEXT = "field is immutable when `immutable` is set"


def _forbidden(path: str, why: str) -> Cause:
    return Cause(path, "FieldValueForbidden", f"Forbidden: {why}")


def lease_errors(lease: Object) -> Iterator[Cause]:
    """Yield what is wrong with a Lease, whose instants its type has checked."""
    spec = lease.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield bad_value("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield bad_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def config_map_errors(config_map: Object) -> Iterator[Cause]:
    """Yield what is wrong with a ConfigMap."""
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


def config_map_changes(before: Object, after: Object) -> Iterator[Cause]:
    """Yield what may not change of a ConfigMap."""
    if not before.get("immutable"):
        return
    if not after.get("immutable"):
        yield _forbidden("immutable", _FIXED_TEXT)
    for bag in ("data", "binaryData"):
        if before.get(bag) != after.get(bag):
            yield _forbidden(bag, _FIXED_TEXT)


def event_errors(event: Object) -> Iterator[Cause]:
    """Yield what is wrong with an event; one with an ``eventTime`` is of the newer API, which asks for more."""
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


def claim_errors(claim: Object) -> Iterator[Cause]:
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


def claim_changes(before: Object, after: Object) -> Iterator[Cause]:
    """Yield that the spec of a claim may not change."""
    if before.get("spec") != after.get("spec"):
        yield bad_value("spec", after.get("spec"), "field is immutable")
