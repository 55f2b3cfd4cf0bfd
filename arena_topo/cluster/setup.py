"""The admin's one-time part: what a cluster needs for the plans of all its users to hold, made and taken away."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from arena_topo.cluster.capabilities.detect import pod_group_api, policy_api
from arena_topo.cluster.rbac import bindings, roles
from arena_topo.errors import NotFound
from arena_topo.kube.discovery import served_versions
from arena_topo.kube.resources import path_of, resource_of
from arena_topo.kube.session import Session
from arena_topo.model.keys import MANAGED_BY, OWN_NAME
from arena_topo.model.objects import Object
from arena_topo.pin.admission import APIS, policy_objects

_RBAC = "rbac.authorization.k8s.io/v1"
_REMOVED = (
    *((f"admissionregistration.k8s.io/{api}", "MutatingAdmissionPolicyBinding") for api in APIS),
    *((f"admissionregistration.k8s.io/{api}", "MutatingAdmissionPolicy") for api in APIS),
    ("apps/v1", "DaemonSet"),
    (_RBAC, "RoleBinding"),
    (_RBAC, "ClusterRoleBinding"),
    (_RBAC, "ClusterRole"),
    ("v1", "ServiceAccount"),
)
"""Kinds in the order in which they are removed: nothing that is left refers to what is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What decides the form of the admission policy.

    ``policy_api`` is the version of its API, empty where it is not served; ``gangs`` whether pods can be in a group
    of kube-scheduler's.
    """

    policy_api: str = "v1"
    gangs: bool = False


def served(session: Session) -> Served:
    """Return what the cluster of *session* serves."""
    groups = served_versions(session)
    return Served(policy_api=policy_api(session, groups), gangs=bool(pod_group_api(session, groups)))


def setup_objects(by: Served, users: Sequence[str], namespace: str) -> tuple[list[Object], tuple[str, ...]]:
    """Return the objects of the setup, and what the admin should know of them.

    Each of *users* may submit in *namespace*. Raises ``UsageError`` for one that names nobody.
    """
    policy = policy_objects(by.policy_api, gangs=by.gangs) if by.policy_api else ()
    granted = [binding for who in users for binding in bindings(who, namespace)]
    notes = []
    if not by.policy_api:
        notes.append(
            "this cluster does not serve MutatingAdmissionPolicy (Kubernetes 1.36 does): there is no admission policy, "
            "and workers are pinned by gates or node affinity"
        )
    if not users:
        notes.append("nobody is given the roles: --users binds them")
    return [*policy, *roles(), *granted], tuple(notes)


def apply(session: Session, objects: Iterable[Object]) -> Iterator[Object]:
    """Apply *objects* one by one, and yield each once it stands."""
    for item in objects:
        session.apply(path_of(item), item)
        yield item


def installed(session: Session) -> list[Object]:
    """Return the objects of the setup that the cluster has, in the order in which to remove them."""
    found: dict[str, Object] = {}
    for api_version, kind in _REMOVED:
        path = resource_of(api_version, kind).path()
        try:
            items = session.list(path, labelSelector=f"{MANAGED_BY}={OWN_NAME}")
        except NotFound:
            continue
        for item in items:
            if item["metadata"].get("ownerReferences"):
                continue
            named = {"apiVersion": api_version, "kind": kind, "metadata": item["metadata"]}
            found.setdefault(item["metadata"]["uid"], named)
    return list(found.values())


def remove(session: Session, objects: Iterable[Object]) -> Iterator[Object]:
    """Delete *objects* one by one, each only if it is still the one that was seen, and yield it once it is done."""
    for item in objects:
        try:
            session.delete(path_of(item), uid=item["metadata"]["uid"])
        except NotFound:
            continue
        yield item
