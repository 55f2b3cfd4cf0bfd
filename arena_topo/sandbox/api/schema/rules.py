"""What objects must satisfy beyond their schema: names, required fields, what may change.

Source of the wording: k8s.io/kubernetes pkg/apis/core/validation and k8s.io/apimachinery validation.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.status_errors import Cause

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_POD_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
    "negative)"
)
MAX_NAME = 253
MAX_LABEL = 63


def _bad(field: str, value: Any, text: str) -> Cause:
    return Cause(field, "FieldValueInvalid", f"Invalid value: {json.dumps(value)}: {text}")


def metadata_errors(meta: Object) -> Iterator[Cause]:
    """Yield what is wrong with a name or with labels."""
    name = meta.get("name", "")
    if not name:
        yield Cause("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")
    elif len(name) > MAX_NAME:
        yield _bad("metadata.name", name, f"must be no more than {MAX_NAME} bytes")
    elif not _SUBDOMAIN.fullmatch(name):
        yield _bad("metadata.name", name, _SUBDOMAIN_TEXT)
    for value in (meta.get("labels") or {}).values():
        if len(value) > MAX_LABEL:
            yield _bad("metadata.labels", value, f"must be no more than {MAX_LABEL} bytes")
        elif not _LABEL_VALUE.fullmatch(value):
            yield _bad("metadata.labels", value, _LABEL_TEXT)


def create_errors(kind: Kind, obj: Object) -> Iterator[Cause]:
    """Yield why a built-in object cannot be created."""
    if kind.plural == "pods":
        yield from _pod_errors(obj.get("spec", {}), "spec")
    elif kind.plural == "daemonsets":
        template = obj.get("spec", {}).get("template", {})
        yield from _pod_errors(template.get("spec", {}), "spec.template.spec")
        chosen = obj.get("spec", {}).get("selector", {}).get("matchLabels", {})
        labels = (template.get("metadata") or {}).get("labels") or {}
        if not chosen.items() <= labels.items():
            yield _bad("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    elif kind.plural == "jobs":
        template = obj.get("spec", {}).get("template", {}).get("spec", {})
        yield from _pod_errors(template, "spec.template.spec")
        # The default for pods is Always, with which a Job would never end.
        if template.get("restartPolicy") not in {"Never", "OnFailure"}:
            text = 'Unsupported value: "Always": supported values: "OnFailure", "Never"'
            yield Cause("spec.template.spec.restartPolicy", "FieldValueNotSupported", text)


def _pod_errors(spec: Object, path: str) -> Iterator[Cause]:
    required = [] if spec.get("containers") else [f"{path}.containers"]
    for index, container in enumerate(spec.get("containers") or []):
        missing = [name for name in ("name", "image") if not container.get(name)]
        required += [f"{path}.containers[{index}].{name}" for name in missing]
    yield from (Cause(field, "FieldValueRequired", "Required value") for field in required)


def update_errors(kind: Kind, before: Object, after: Object) -> Iterator[Cause]:
    """Yield the changes that are not allowed."""
    if kind.plural == "pods":
        yield from _pod_update_errors(before["spec"], after["spec"])
        return
    # The template of a suspended Job may change: queues such as Kueue set its placement before they release it.
    fixed = kind.plural == "jobs" and not before["spec"].get("suspend")
    if fixed and before["spec"].get("template") != after["spec"].get("template"):
        yield _bad("spec.template", after["spec"]["template"], "field is immutable")


def _pod_update_errors(before: Object, after: Object) -> Iterator[Cause]:
    old_gates = [gate["name"] for gate in before.get("schedulingGates") or []]
    new_gates = [gate["name"] for gate in after.get("schedulingGates") or []]
    if added := [gate for gate in new_gates if gate not in old_gates]:
        text = "Forbidden: only deletion is allowed, but found new scheduling gate " + f"'{added[0]}'"
        yield Cause("spec.schedulingGates", "FieldValueForbidden", text)
    old_selector, new_selector = before.get("nodeSelector") or {}, after.get("nodeSelector") or {}
    # A pod without gates is caught by the comparison below, which covers its node selector.
    if old_gates and any(new_selector.get(key) != value for key, value in old_selector.items()):
        text = "additions only; no label removal or modification is allowed"
        yield _bad("spec.nodeSelector", new_selector, text)
    if _fixed(before, gated=bool(old_gates)) != _fixed(after, gated=bool(old_gates)):
        yield Cause("spec", "FieldValueForbidden", f"Forbidden: {_POD_TEXT}")


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
