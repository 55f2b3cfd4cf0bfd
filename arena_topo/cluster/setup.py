"""What an admin sets up once, so that the plans of all users can be enforced: printed, applied and removed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from arena_topo.cluster.capabilities.detect import pod_group_api, policy_api
from arena_topo.cluster.capabilities.queues import GROUP as KUEUE
from arena_topo.cluster.capabilities.queues import VERSIONS
from arena_topo.cluster.rbac import bindings, roles
from arena_topo.errors import NotFound
from arena_topo.kube.discovery import preferred_version, served_versions, version_of_resource
from arena_topo.kube.resources import path_of, resource_of
from arena_topo.kube.session import Session
from arena_topo.model.keys import MANAGED_BY, OWN_NAME
from arena_topo.model.objects import Object
from arena_topo.pin.admission import APIS, GROUP, policy_objects

_RBAC = "rbac.authorization.k8s.io/v1"
_REMOVED = (
    *((f"admissionregistration.k8s.io/{api}", "MutatingAdmissionPolicyBinding") for api in APIS),
    *((f"admissionregistration.k8s.io/{api}", "MutatingAdmissionPolicy") for api in APIS),
    *((f"{KUEUE}/{version}", "AdmissionCheck") for version in VERSIONS),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apps/v1", "DaemonSet"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    (_RBAC, "RoleBinding"),
    (_RBAC, "ClusterRoleBinding"),
    (_RBAC, "ClusterRole"),
    ("v1", "ServiceAccount"),
)
"""Kinds in the order in which they are removed: nothing that is left refers to what is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApis:
    """What a cluster serves that decides the form of the admission policy.

    ``policy_api`` is the version of the policy's API, empty where it is not served; ``gangs`` says whether pods can
    belong to kube-scheduler's own PodGroups. ``validates`` says whether a policy can keep agents to their own nodes.
    ``kueue`` is the version of Kueue's API.
    """

    policy_api: str = "v1"
    gangs: bool = False
    validates: bool = True
    kueue: str = VERSIONS[0]


def served_apis(session: Session) -> ServedApis:
    """Return what the cluster of *session* serves."""
    served = served_versions(session)
    validating = version_of_resource(session, served, GROUP, ("v1",), "validatingadmissionpolicies")
    return ServedApis(
        policy_api=policy_api(session, served),
        gangs=bool(pod_group_api(session, served)),
        validates=bool(validating),
        kueue=preferred_version(served, KUEUE, VERSIONS),
    )


def setup_objects(
    apis: ServedApis, users: Sequence[str], namespace: str
) -> tuple[list[Object], tuple[str, ...]]:
    """Return the objects of the setup, and notes on them for the admin.

    Each of *users* (see ``bindings``) may submit in *namespace*. Raises ``UsageError`` for a text that names nobody.
    """
    policy = policy_objects(apis.policy_api, gangs=apis.gangs) if apis.policy_api else ()
    user_bindings = [binding for user in users for binding in bindings(user, namespace)]
    notes = []
    if not apis.policy_api:
        notes.append(
            "this cluster does not serve MutatingAdmissionPolicy (Kubernetes 1.36 does): the admission policy is left "
            "out, and workers are pinned by gates or node affinity"
        )
    if not users:
        notes.append("the roles are not bound to anyone: --users binds them")
    return [*policy, *roles(), *user_bindings], tuple(notes)


def apply(session: Session, objects: Iterable[Object]) -> Iterator[Object]:
    """Apply *objects* one by one, and yield each once the server has it."""
    for item in objects:
        session.apply(path_of(item), item)
        yield item


def installed_objects(session: Session) -> list[Object]:
    """Return the objects of the setup that the cluster has, in the order in which to remove them."""
    objects: dict[str, Object] = {}
    for api_version, kind in _REMOVED:
        path = resource_of(api_version, kind).path()
        try:
            items = session.list(path, labelSelector=f"{MANAGED_BY}={OWN_NAME}")
        except NotFound:
            # Of the versions of the policy's API a cluster serves some, or none.
            continue
        for item in items:
            # What another object owns goes with that one.
            if item["metadata"].get("ownerReferences"):
                continue
            # The policy is listed in each version that is served; items of a list do not say their kind.
            typed = {"apiVersion": api_version, "kind": kind, "metadata": item["metadata"]}
            objects.setdefault(item["metadata"]["uid"], typed)
    return list(objects.values())


def remove(session: Session, objects: Iterable[Object]) -> Iterator[Object]:
    """Delete *objects* one by one, each only if it still has its uid, and yield it once it is deleted."""
    for item in objects:
        try:
            session.delete(path_of(item), uid=item["metadata"]["uid"])
        except NotFound:
            continue
        yield item
