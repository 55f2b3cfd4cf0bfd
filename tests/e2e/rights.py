"""Rights for a test's users, granted once the API server says so."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from arena_topo.controller.manifests import CLUSTER_RULES, NAMESPACE_RULES, controller_objects
from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE
from tests.controlplane.kube import Kube, KubeError, Object
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
    _wait_for(kube, user, rules, namespace)


def _wait_for(kube: Kube, user: str, rules: Sequence[Rule], namespace: str | None) -> None:
    for attributes in _attributes(rules, namespace):
        eventually(lambda attributes=attributes: _may(kube, user, attributes), f"{user} to have {attributes}")  # type: ignore[misc]  # a default that binds


def token(kube: Kube, namespace: str, account: str, pod: Object | None = None) -> str:
    """Return a token of *account*, bound to a pod as a kubelet asks for it, or to nothing."""
    meta = pod["metadata"] if pod else {}
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]} if pod else None
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [], **({"boundObjectRef": bound} if bound else {})},
    }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return str(kube.request("POST", path, request)["status"]["token"])


def with_token(plane: ControlPlane, secret: str, folder: Path) -> Arena:
    """Return the tool with nothing but a token."""
    site = plane.site
    folder.mkdir()
    config = folder / "kubeconfig"
    config.write_text(f"""apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{site.url}", certificate-authority: "{site.authority}"}}}}]
users: [{{name: u, user: {{token: "{secret}"}}}}]
""")
    return Arena(config)


@contextmanager
def controller_token(plane: ControlPlane) -> Iterator[str]:
    """Yield a token of the controller's account, with its roles and its admission policy, which acts."""
    apart = ("Namespace", "Deployment", "PodDisruptionBudget")
    made = [item for item in controller_objects("i") if item["kind"] not in apart]
    for item in made:
        plane.kube.apply(item)
    user = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"
    _wait_for(plane.kube, user, CLUSTER_RULES, None)
    _wait_for(plane.kube, user, NAMESPACE_RULES, CONTROLLER_NAMESPACE)
    secret = token(plane.kube, CONTROLLER_NAMESPACE, CONTROLLER)
    eventually(lambda: _is_limited(token_client(plane, secret)), "the policy to act")
    yield secret
    for item in reversed(made):
        meta = item["metadata"]
        plane.kube.delete(item["apiVersion"], item["kind"], meta["name"], meta.get("namespace"))


def token_client(plane: ControlPlane, secret: str) -> Kube:
    """Return the tests' client with a token."""
    return Kube(plane.site.url, plane.site.authority, None, secret)


def _is_limited(client: Kube) -> bool:
    """Whether the policy acts: the API server learns of a new one after a moment."""
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-nobody"}}
    path = f"/api/v1/namespaces/{CONTROLLER_NAMESPACE}/configmaps"
    try:
        client.request("POST", path, item, query={"dryRun": "All"})
    except KubeError as error:
        return "the controller of arena-topo may" in str(error)
    return False


@contextmanager
def controller_account(plane: ControlPlane, folder: Path) -> Iterator[Arena]:
    """Yield the tool as the controller runs it, by its token in a kubeconfig in *folder*, which is made."""
    with controller_token(plane) as secret:
        yield with_token(plane, secret, folder)


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
