"""Permissions: what the API server lets the caller do, and the RBAC objects that grant it.

docs/reference/permissions.md lists the same needs for admins, ``cluster/setup.py`` grants them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena_topo.errors import ApiError
from arena_topo.kube.resources import ACCESS_REVIEWS
from arena_topo.kube.session import Session
from arena_topo.model.gang import AccessReview
from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A verb on a resource, in the job's namespace or all (``cluster_wide``), and who needs it."""

    verb: str
    resource: str
    purpose: str
    group: str = ""
    subresource: str = ""
    cluster_wide: bool = False
    optional: bool = False

    @property
    def what(self) -> str:
        """The need as ``kubectl auth can-i`` takes it."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        subresource = f" --subresource={self.subresource}" if self.subresource else ""
        return f"{self.verb} {name}{subresource}{' -A' if self.cluster_wide else ''}"


_SEE_NODES = Need(verb="list", resource="nodes", purpose="plan, topology", cluster_wide=True)
_SEE_PODS = Need(verb="list", resource="pods", purpose="plan, topology: what is in use", cluster_wide=True)
_SEE_PLANS = Need(
    verb="list",
    group="kubeflow.org",
    resource="mpijobs",
    purpose="plan: what other jobs have reserved",
    cluster_wide=True,
)
_WRITE_PLANS = Need(
    verb="patch", group="kubeflow.org", resource="mpijobs", purpose="submit with a plan, suspend, resume"
)
_RELEASE = Need(verb="patch", resource="pods", purpose="gates", optional=True)

_PLANNING_NEEDS = (_SEE_NODES, _SEE_PODS, _SEE_PLANS, _WRITE_PLANS)
"""What planning a job and reserving its plan need."""
_RELEASING_NEEDS = (*_PLANNING_NEEDS, _RELEASE)
"""What releasing gated workers needs as well."""

_NEEDS = (
    Need(verb="create", group="kubeflow.org", resource="mpijobs", purpose="submit"),
    Need(verb="get", group="kubeflow.org", resource="mpijobs", purpose="submit, get, logs"),
    Need(verb="delete", group="kubeflow.org", resource="mpijobs", purpose="delete"),
    Need(verb="get", resource="pods", purpose="logs"),
    Need(verb="list", resource="pods", purpose="get, logs"),
    Need(verb="get", resource="pods", subresource="log", purpose="logs"),
    *_RELEASING_NEEDS,
    Need(
        verb="list",
        resource="resourcequotas",
        purpose="plan: bounding what other jobs reserve by their quotas",
        cluster_wide=True,
        optional=True,
    ),
    Need(verb="create", resource="configmaps", purpose="--config-file", optional=True),
    Need(
        verb="create",
        group="resource.k8s.io",
        resource="resourceclaims",
        purpose="exact GPUs with DRA",
        optional=True,
    ),
    Need(
        verb="list",
        group="apps",
        resource="deployments",
        purpose="finding out which schedulers run",
        cluster_wide=True,
        optional=True,
    ),
)

_POD_GROUPS = {
    "coscheduling": "scheduling.x-k8s.io",
    "volcano": "scheduling.volcano.sh",
    "native": "scheduling.k8s.io",
}
"""Gang back-ends whose PodGroup is created by the user who submits the job, by the API group of that
PodGroup."""


def _pod_group_need(backend: str) -> Need:
    return Need(
        verb="create",
        group=_POD_GROUPS[backend],
        resource="podgroups",
        purpose=f"{backend} gangs",
        optional=True,
    )


def review_access(
    session: Session, served: frozenset[str], pod_groups: str, namespace: str
) -> tuple[AccessReview, ...]:
    """Return for each need of the commands whether the caller has it in *namespace*, one call for each.

    *served* are the cluster's API versions: needs for anything else are left out. *pod_groups* is the version
    of kube-scheduler's own PodGroup, empty where it is not served: its API group is served in any case.
    """
    # Reviews are answered for resources that are not served as well: asked about those, doctor would report
    # problems that cannot arise on this cluster.
    groups = {version.partition("/")[0] for version in served}
    general = [need for need in _NEEDS if need.group != "resource.k8s.io" or need.group in groups]
    of_gangs = [
        _pod_group_need(backend)
        for backend, group in _POD_GROUPS.items()
        if (pod_groups if backend == "native" else group in groups)
    ]
    return tuple(_access(session, need, namespace) for need in (*general, *of_gangs))


def missing_for_plan(session: Session, namespace: str, *, gates: bool) -> tuple[str, ...]:
    """Return what the caller lacks for a plan in *namespace*, as ``kubectl auth can-i`` takes it.

    One call for each need; only *gates* need the right to patch pods.
    """
    # A server that does not answer the question (None) gets the benefit of the doubt: it refuses later by
    # itself.
    needs = _RELEASING_NEEDS if gates else _PLANNING_NEEDS
    return tuple(need.what for need in needs if _access(session, need, namespace).allowed is False)


def _access(session: Session, need: Need, namespace: str) -> AccessReview:
    """Return whether the caller has *need*; unknown where the server does not answer that."""
    # A review without a namespace asks about all of them.
    attributes = {
        "verb": need.verb,
        "group": need.group,
        "resource": need.resource,
        **({"subresource": need.subresource} if need.subresource else {}),
        **({} if need.cluster_wide else {"namespace": namespace}),
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    allowed: bool | None
    try:
        allowed = bool(session.create(ACCESS_REVIEWS.path(), review)["status"].get("allowed"))
    except ApiError:
        allowed = None  # not even the question is allowed, which does not mean that the answer would be no
    return AccessReview(what=need.what, purpose=need.purpose, allowed=allowed, optional=need.optional)


# RBAC objects, for users, the controller and the agent: rules, roles, bindings and service accounts.
#
# docs/reference/permissions.md says what each rule is for.

RBAC_GROUP = "rbac.authorization.k8s.io"
RBAC_API = f"{RBAC_GROUP}/v1"


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
    return {"apiVersion": RBAC_API, "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(metadata: Object, subject: Object, bound: Object) -> Object:
    """Return the binding that gives *subject* the role *bound*, in the namespace of *metadata* or everywhere.

    A ClusterRole may be bound in one namespace.
    """
    return {
        "apiVersion": RBAC_API,
        "kind": "RoleBinding" if "namespace" in metadata else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": bound["kind"], "name": bound["metadata"]["name"]},
        "subjects": [subject],
    }


def service_account(metadata: Object) -> Object:
    """Return an account whose token only pods get that ask for it, not all that name the account."""
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
