"""What Jobs must satisfy, and what may change of Jobs and JobSets: of their pod templates, little, while they are suspended.

Sources of the wording: k8s.io/kubernetes 1.36 pkg/apis/batch/validation and pkg/registry/batch/job (strategy.go), and the
webhook of JobSet 0.12 (pkg/webhooks/jobset_webhook.go).
"""

import copy
import re
from collections.abc import Iterator

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.schema import pod_rules
from arena_topo.sandbox.api.status_errors import Cause, bad_value, missing_value

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
_FIXED_TEXT = "field is immutable"
_LOOSE = ("nodeSelector", "tolerations", "schedulingGates")
"""What of the spec of a template changes while its job is suspended, beside labels and annotations."""


def job_errors(job: Object) -> Iterator[Cause]:
    """Yield what is wrong with a Job."""
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
    yield from pod_rules.spec_errors(template.get("spec", {}), "spec.template.spec")
    yield from pod_rules.selection_errors((spec.get("selector") or {}).get("matchLabels") or {}, template)
    # The default for pods is Always, with which a Job would never end.
    if template.get("spec", {}).get("restartPolicy") not in {"Never", "OnFailure"}:
        yield missing_value("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    # The last index is at the end of a pod's host name.
    host = f"{name}-{completions - 1}" if spec.get("completionMode") == "Indexed" and completions else "a"
    if not _LABEL.fullmatch(host):
        yield bad_value("metadata.name", name, f"will not able to create pod with invalid DNS label: {host}")


def job_changes(before: Object, after: Object) -> Iterator[Cause]:
    """Yield what may not change of a Job."""
    old, new, status = before["spec"], after["spec"], before.get("status", {})
    stops = ("Suspended", "True") in [(c["type"], c["status"]) for c in status.get("conditions", [])]
    is_idle = ("startTime" not in status or stops) and not status.get("active")
    template = old["template"]
    if old.get("suspend") and is_idle:
        template = _loosened(template, new["template"], affinity=True, resources=True)
    if template != new["template"]:
        yield bad_value("spec.template", new["template"], _FIXED_TEXT)
    for field in _FIXED:
        if old.get(field) != new.get(field):
            yield bad_value(f"spec.{field}", new.get(field), _FIXED_TEXT)
    if old.get("completions") == new.get("completions"):
        return
    if new.get("completionMode") != "Indexed":
        yield bad_value("spec.completions", new.get("completions"), _FIXED_TEXT)
    elif new["completions"] != new.get("parallelism"):
        text = "can only be modified in tandem with spec.parallelism"
        yield bad_value("spec.completions", new["completions"], text)


def job_set_changes(before: Object, after: Object) -> Iterator[Cause]:
    """Yield what may not change of a JobSet."""
    old, new = before["spec"].get("replicatedJobs") or [], after["spec"].get("replicatedJobs") or []
    if before["spec"].get("suspend") or after["spec"].get("suspend"):
        by_name = {role["name"]: _template(role) for role in new}
        old = [_with_template(role, by_name.get(role["name"])) for role in old]
    if old != new:
        yield bad_value("spec.replicatedJobs", new, _FIXED_TEXT)


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
    """Return *template* with what of *changed* a suspended job may take over: equal to that where nothing else differs.

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
