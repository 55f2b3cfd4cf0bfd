"""Rights for a test's users, granted once the API server says so."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from arena_topo.controller.manifests import CLUSTER_RULES, NAMESPACE_RULES
from arena_topo.model.keys import CONTROLLER_NAMESPACE
from tests.controlplane.kube import Kube, Object
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena

GROUP = "rbac.authorization.k8s.io"
Rule = dict[str, Any]


def grant(kube: Kube, user: str, rules: Sequence[Rule], namespace: str | None = None) -> None:
    """Give *user* a role with *rules* in *namespace*, or in the whole cluster; return once all of them have
    effect.

    The authorizer learns of each new role and binding after a moment of its own.
    """
    kind = "Role" if namespace else "ClusterRole"
    api, metadata = f"{GROUP}/v1", {"name": user}
    kube.create({"apiVersion": api, "kind": kind, "metadata": metadata, "rules": list(rules)}, namespace)
    binding = {
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": user},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }
    kube.create({"apiVersion": api, "kind": f"{kind}Binding", "metadata": metadata, **binding}, namespace)
    for attributes in _attributes(rules, namespace):
        eventually(lambda attributes=attributes: _may(kube, user, attributes), f"{user} to have {attributes}")  # type: ignore[misc]  # a default that binds


@contextmanager
def controller_account(plane: ControlPlane, user: str) -> Iterator[Arena]:
    """Yield the tool as *user* runs it, who has the rights of the controller's account for that time."""
    grant(plane.kube, user, CLUSTER_RULES)
    grant(plane.kube, user, NAMESPACE_RULES, CONTROLLER_NAMESPACE)
    yield Arena(plane.kubeconfig(user, namespace="default"))
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        plane.kube.delete(f"{GROUP}/v1", kind, user)
    for kind in ("Role", "RoleBinding"):
        plane.kube.delete(f"{GROUP}/v1", kind, user, CONTROLLER_NAMESPACE)


def _attributes(rules: Sequence[Rule], namespace: str | None) -> Iterator[Object]:
    """Yield what each of *rules* allows, as a review asks for it."""
    for rule in rules:
        for group in rule.get("apiGroups", ()):
            for resource, _, sub in (name.partition("/") for name in rule["resources"]):
                for verb in rule["verbs"]:
                    which = {"group": group, "resource": resource, "subresource": sub, "verb": verb}
                    yield which | ({"namespace": namespace} if namespace else {}) | _named(rule)


def _named(rule: Rule) -> Object:
    return {"name": rule["resourceNames"][0]} if rule.get("resourceNames") else {}


def _may(kube: Kube, user: str, attributes: Object) -> bool:
    review = kube.create(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {"user": user, "resourceAttributes": attributes},
        }
    )
    return bool(review["status"]["allowed"])
