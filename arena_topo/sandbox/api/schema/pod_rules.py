"""What pods, and the pod templates of other kinds, must satisfy, and what may change of a pod.

Source of the wording: k8s.io/kubernetes pkg/apis/core/validation.
"""

from collections.abc import Iterator

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.status_errors import Cause, bad_value, missing_value

_POD_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
    "negative)"
)


def spec_errors(spec: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the *spec* of a pod, or of a template, at *path*."""
    required = [] if spec.get("containers") else [f"{path}.containers"]
    for index, container in enumerate(spec.get("containers") or []):
        missing = [name for name in ("name", "image") if not container.get(name)]
        required += [f"{path}.containers[{index}].{name}" for name in missing]
    yield from map(missing_value, required)


def selection_errors(chosen: Object, template: Object) -> Iterator[Cause]:
    """Yield that a selector of the labels *chosen* does not find the pods of *template*."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not chosen.items() <= labels.items():
        yield bad_value(
            "spec.template.metadata.labels", labels, "`selector` does not match template `labels`"
        )


def changes(pod: Object, changed: Object) -> Iterator[Cause]:
    """Yield what may not change of a *pod*."""
    before, after = pod["spec"], changed["spec"]
    old_gates = [gate["name"] for gate in before.get("schedulingGates") or []]
    new_gates = [gate["name"] for gate in after.get("schedulingGates") or []]
    if added := [gate for gate in new_gates if gate not in old_gates]:
        text = "Forbidden: only deletion is allowed, but found new scheduling gate " + f"'{added[0]}'"
        yield Cause("spec.schedulingGates", "FieldValueForbidden", text)
    old_selector, new_selector = before.get("nodeSelector") or {}, after.get("nodeSelector") or {}
    # A pod without gates is caught by the comparison below, which covers its node selector.
    if old_gates and any(new_selector.get(key) != value for key, value in old_selector.items()):
        text = "additions only; no label removal or modification is allowed"
        yield bad_value("spec.nodeSelector", new_selector, text)
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
