"""RBAC objects, for users, the controller and the agent: rules, roles, bindings and service accounts.

docs/reference/permissions.md says what each rule is for.
"""

from collections.abc import Mapping, Sequence

from arena_topo.model.objects import Object

GROUP = "rbac.authorization.k8s.io"
API_VERSION = f"{GROUP}/v1"


def rule(groups: str, resources: str, verbs: str, *names: str) -> Object:
    """Return a rule; words are separated by spaces, and ``core`` is the group without a name.

    *names* are the only objects that it is about, where there are any.
    """
    api_groups = ["" if group == "core" else group for group in groups.split()]
    found: Object = {"apiGroups": api_groups, "resources": resources.split(), "verbs": verbs.split()}
    return {**found, "resourceNames": list(names)} if names else found


def named(name: str, labels: Mapping[str, str], namespace: str = "") -> Object:
    """Return the metadata of an object, of the whole cluster without a *namespace*."""
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": {**labels}}


def role(metadata: Object, rules: Sequence[Object]) -> Object:
    """Return the Role, or without a namespace the ClusterRole, that *metadata* names."""
    kind = "Role" if "namespace" in metadata else "ClusterRole"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(metadata: Object, subject: Object, bound: Object) -> Object:
    """Return the binding that gives *subject* the role *bound*, in the namespace of *metadata* or everywhere.

    A ClusterRole may be bound in one namespace.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "RoleBinding" if "namespace" in metadata else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": bound["kind"], "name": bound["metadata"]["name"]},
        "subjects": [subject],
    }


def service_account(metadata: Object) -> Object:
    """Return an account whose token only those pods get that ask for it, and no other pod by naming the account."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": False,
    }


def account_subject(account: Object) -> Object:
    """Return a service account as the subject of a binding."""
    meta = account["metadata"]
    return {"kind": "ServiceAccount", "name": meta["name"], "namespace": meta["namespace"]}
