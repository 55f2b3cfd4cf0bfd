"""What objects must satisfy beyond their schema: names, required fields, what may change.

Source of the wording: k8s.io/kubernetes pkg/apis/core/validation and k8s.io/apimachinery validation.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.schema import job_rules, object_rules, pod_rules
from arena_topo.sandbox.api.status_errors import Cause, bad_value, missing_value

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
MAX_NAME = 253
MAX_LABEL = 63


def metadata_errors(meta: Object) -> Iterator[Cause]:
    """Yield what is wrong with a name or with labels."""
    name = meta.get("name", "")
    if not name:
        yield missing_value("metadata.name", "name or generateName is required")
    elif len(name) > MAX_NAME:
        yield bad_value("metadata.name", name, f"must be no more than {MAX_NAME} bytes")
    elif not _SUBDOMAIN.fullmatch(name):
        yield bad_value("metadata.name", name, _SUBDOMAIN_TEXT)
    for value in (meta.get("labels") or {}).values():
        if len(value) > MAX_LABEL:
            yield bad_value("metadata.labels", value, f"must be no more than {MAX_LABEL} bytes")
        elif not _LABEL_VALUE.fullmatch(value):
            yield bad_value("metadata.labels", value, _LABEL_TEXT)


def create_errors(kind: Kind, obj: Object) -> Iterator[Cause]:
    """Yield why an object cannot be created."""
    if kind.resource == "pods":
        yield from pod_rules.spec_errors(obj.get("spec", {}), "spec")
    elif kind.resource == "daemonsets.apps":
        template = obj.get("spec", {}).get("template", {})
        yield from pod_rules.spec_errors(template.get("spec", {}), "spec.template.spec")
        chosen = obj.get("spec", {}).get("selector", {}).get("matchLabels", {})
        yield from pod_rules.selection_errors(chosen, template)
    elif kind.resource in _ALWAYS:
        yield from _ALWAYS[kind.resource](obj)


def update_errors(kind: Kind, before: Object, after: Object) -> Iterator[Cause]:
    """Yield the changes that are not allowed, and what is wrong with the changed object."""
    if kind.resource in _ALWAYS:
        yield from _ALWAYS[kind.resource](after)
    if kind.resource in _CHANGES:
        yield from _CHANGES[kind.resource](before, after)


_ALWAYS: Mapping[str, Callable[[Object], Iterator[Cause]]] = {
    "configmaps": object_rules.config_map_errors,
    "events": object_rules.event_errors,
    "jobs.batch": job_rules.job_errors,
    "leases.coordination.k8s.io": object_rules.lease_errors,
    "resourceclaims.resource.k8s.io": object_rules.claim_errors,
}
"""What is wrong with an object, new or changed."""
_CHANGES: Mapping[str, Callable[[Object, Object], Iterator[Cause]]] = {
    "configmaps": object_rules.config_map_changes,
    "jobs.batch": job_rules.job_changes,
    "jobsets.jobset.x-k8s.io": job_rules.job_set_changes,
    "pods": pod_rules.changes,
    "resourceclaims.resource.k8s.io": object_rules.claim_changes,
}
"""What may not change of an object."""
