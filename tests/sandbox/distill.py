"""``python -m tests.sandbox.distill``: take the sandbox's schemas of built-in kinds from a real API server.

Written to ``arena_topo/sandbox/data/schemas.json``: the OpenAPI v3 components of the kinds that the sandbox
serves, without their descriptions, and the CRDs that it comes with.
"""

import json
from pathlib import Path
from typing import Any

from tests.controlplane.components.options import Options
from tests.controlplane.plane import ControlPlane

DATA = Path(__file__).parents[2] / "arena_topo" / "sandbox" / "data"
GROUPS: tuple[str, ...] = (
    "api/v1",
    "apis/apps/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/authentication.k8s.io/v1",
)
GROUPS += (
    "apis/admissionregistration.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/batch/v1",
    "apis/coordination.k8s.io/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/resource.k8s.io/v1",
    "apis/scheduling.k8s.io/v1",
)
KINDS = frozenset(
    {
        *("Pod", "Node", "Namespace", "ConfigMap", "Secret", "Service", "ServiceAccount", "Event", "Job"),
        *("Deployment", "StatefulSet", "PriorityClass", "CustomResourceDefinition", "DeviceClass"),
        *(
            "ResourceSlice",
            "ResourceClaim",
            "ResourceClaimTemplate",
            "DeleteOptions",
            "PersistentVolumeClaim",
        ),
        *("DaemonSet", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("Lease", "ResourceQuota"),
        *("SelfSubjectAccessReview", "SelfSubjectReview", "TokenReview"),
    }
)
CRDS = (
    "mpijobs.kubeflow.org",
    "pytorchjobs.kubeflow.org",
    "tfjobs.kubeflow.org",
    "jobsets.jobset.x-k8s.io",
)
KEPT = frozenset(
    {"$ref", "type", "format", "items", "properties", "additionalProperties", "required", "enum"}
    | {"x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"}
    | {"x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"}
)
_PREFIX = "#/components/schemas/"


def distill(schema: Any) -> Any:
    """Return a schema with the keywords the sandbox reads; ``allOf`` of one becomes the reference."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            kept[key] = {name: distill(field) for name, field in value.items()}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            kept[key] = distill(value)
        elif key == "allOf":
            kept["$ref"] = value[0]["$ref"].removeprefix(_PREFIX)
        elif key == "$ref":
            kept[key] = value.removeprefix(_PREFIX)
        elif key in KEPT:
            kept[key] = value
    return kept


def references(schema: Any) -> set[str]:
    """Return the names that a distilled schema refers to."""
    if isinstance(schema, list):
        return {name for item in schema for name in references(item)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
    return own | {name for value in schema.values() for name in references(value)}


def reachable(schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the served kinds' schemas and all that they refer to."""
    wanted = {name for name in schemas if name.rpartition(".")[2] in KINDS}
    done: set[str] = set()
    while wanted - done:
        name = (wanted - done).pop()
        done.add(name)
        wanted |= references(schemas[name])
    return {name: schemas[name] for name in sorted(done)}


def bare(value: Any) -> Any:
    """Return a CRD without descriptions."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if not (k == "description" and isinstance(v, str))}
    return [bare(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    """Start a control plane, read its schemas, write the sandbox's."""
    schemas: dict[str, Any] = {}
    with ControlPlane(Options(operators=("training-operator", "jobset"))) as plane:
        for group in GROUPS:
            answer = plane.kube.request("GET", f"/openapi/v3/{group}")
            document = json.loads(answer) if isinstance(answer, str) else answer
            for name, schema in document["components"]["schemas"].items():
                schemas[name] = distill(schema)
        definition = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        crds = [plane.kube.get(*definition, name) for name in CRDS]
    (DATA / "crds").mkdir(parents=True, exist_ok=True)
    (DATA / "schemas.json").write_text(json.dumps(reachable(schemas), separators=(",", ":")) + "\n")
    for crd in crds:
        body = {"apiVersion": crd["apiVersion"], "kind": crd["kind"]}
        body |= {"metadata": {"name": crd["metadata"]["name"]}, "spec": bare(crd["spec"])}
        path = DATA / "crds" / f"{crd['metadata']['name']}.json"
        path.write_text(json.dumps(body, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
