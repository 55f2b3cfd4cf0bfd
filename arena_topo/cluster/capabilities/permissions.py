"""What the caller may do, asked of the API server itself with SelfSubjectAccessReviews."""

from dataclasses import dataclass

from arena_topo.errors import ApiError
from arena_topo.kube.resources import ACCESS_REVIEWS
from arena_topo.kube.session import Session
from arena_topo.model.plan.capabilities import Right


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A verb on a resource, in the job's namespace or in the whole cluster, and what needs it."""

    verb: str
    resource: str
    purpose: str
    group: str = ""
    subresource: str = ""
    everywhere: bool = False
    optional: bool = False

    @property
    def what(self) -> str:
        """The need as ``kubectl auth can-i`` takes it."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        sub = f" --subresource={self.subresource}" if self.subresource else ""
        return f"{self.verb} {name}{sub}{' -A' if self.everywhere else ''}"


_SEE_NODES = Need(verb="list", resource="nodes", purpose="plan, topology", everywhere=True)
_SEE_PODS = Need(verb="list", resource="pods", purpose="plan, topology: what is in use", everywhere=True)
_SEE_PLANS = Need(
    verb="list",
    group="kubeflow.org",
    resource="mpijobs",
    purpose="plan: what others were promised",
    everywhere=True,
)
_WRITE_PLANS = Need(
    verb="patch", group="kubeflow.org", resource="mpijobs", purpose="submit with a plan, resume"
)
_RELEASE = Need(verb="patch", resource="pods", purpose="gates", optional=True)

PLANNING = (_SEE_NODES, _SEE_PODS, _SEE_PLANS, _WRITE_PLANS)
"""What it takes to plan a job and to reserve what was planned."""
RELEASING = (*PLANNING, _RELEASE)
"""What it takes to release gated workers as well."""

NEEDS = (
    Need(verb="create", group="kubeflow.org", resource="mpijobs", purpose="submit"),
    Need(verb="get", group="kubeflow.org", resource="mpijobs", purpose="submit, get, logs"),
    Need(verb="delete", group="kubeflow.org", resource="mpijobs", purpose="delete"),
    Need(verb="get", resource="pods", purpose="logs"),
    Need(verb="list", resource="pods", purpose="get, logs"),
    Need(verb="get", resource="pods", subresource="log", purpose="logs"),
    *RELEASING,
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
        purpose="seeing which schedulers run",
        everywhere=True,
        optional=True,
    ),
)

POD_GROUPS = {
    "coscheduling": "scheduling.x-k8s.io",
    "volcano": "scheduling.volcano.sh",
    "native": "scheduling.k8s.io",
}
"""Back-ends whose PodGroup is made by who submits, by its group."""


def pod_group_need(backend: str) -> Need:
    """Return the need of a back-end that takes a PodGroup."""
    return Need(
        verb="create",
        group=POD_GROUPS[backend],
        resource="podgroups",
        purpose=f"{backend} gangs",
        optional=True,
    )


def may(session: Session, need: Need, namespace: str) -> Right:
    """Return whether the caller has *need*; unknown where the server does not answer that."""
    attributes = {
        "verb": need.verb,
        "group": need.group,
        "resource": need.resource,
        **({"subresource": need.subresource} if need.subresource else {}),
        **({} if need.everywhere else {"namespace": namespace}),
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    try:
        allowed = bool(session.create(ACCESS_REVIEWS.path(), review)["status"].get("allowed"))
    except ApiError:
        return Right(what=need.what, purpose=need.purpose, allowed=None, optional=need.optional)
    return Right(what=need.what, purpose=need.purpose, allowed=allowed, optional=need.optional)
