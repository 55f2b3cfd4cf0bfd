"""What a cluster has for gangs and pins: a handful of calls, none of which has to be allowed.

A submit asks for the facts alone; ``doctor`` asks for the caller's rights too, one small call for each.
"""

from collections.abc import Callable
from itertools import chain
from typing import TypeVar

from arena_topo.cluster.capabilities.permissions import NEEDS, POD_GROUPS, may, pod_group_need
from arena_topo.cluster.capabilities.programs import programs
from arena_topo.cluster.capabilities.worker_schema import worker_fields
from arena_topo.errors import Forbidden, NotFound
from arena_topo.kube.resources import (
    DEPLOYMENTS,
    NODES,
    admission_bindings,
    admission_policies,
    resource_slices,
)
from arena_topo.kube.session import Session
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.keys import ACK_SCHEDULE, ACK_SCHEDULE_TOPOLOGY, NVIDIA_GPU
from arena_topo.model.objects import Object
from arena_topo.model.plan.capabilities import ClusterFacts, Policy, Program, Right
from arena_topo.pin import admission, dra_claims

Value = TypeVar("Value")

_HAMI_REGISTER = "hami.io/node-nvidia-register"
_SAMPLE = 50
_MANY = 500
_NO_PROGRAMS: dict[str, Program] = {}
_NO_DRIVERS: tuple[str, ...] = ()
_POD_GROUPS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")


def detect(session: Session, *, namespace: str = "", rights: bool = False) -> ClusterFacts:
    """Return the facts of the cluster of *session*; with *rights* also what the caller may do in *namespace*."""
    groups = served_groups(session)
    versions = tuple(each for each in ApiVersion if f"kubeflow.org/{each.value}" in groups)
    pod_groups = pod_group_api(session, groups)
    return ClusterFacts(
        kubernetes=str(session.get("/version").get("gitVersion") or ""),
        groups=groups,
        versions=versions,
        worker_fields=worker_fields(session, versions[0]) if versions else frozenset(),
        programs=_tolerant(lambda: programs(session.list(DEPLOYMENTS.path())), _NO_PROGRAMS),
        ack=_tolerant(lambda: _ack(session), default=False),
        hami=_tolerant(lambda: _hami(session), default=False),
        dra_drivers=_dra_drivers(session, groups),
        pod_groups=pod_groups,
        policy=_policy(session, groups, gangs=bool(pod_groups)),
        rights=_rights(session, groups, pod_groups, namespace or session.namespace) if rights else (),
    )


def uses_device_plugin(session: Session) -> bool | None:
    """Whether a node hands out GPUs by NVIDIA's device plugin; None where the caller may not look."""
    pages = session.pages(NODES.path())
    return _tolerant(
        lambda: any(map(_has_plugin, chain.from_iterable(page.get("items") or () for page in pages))),
        default=False,
    )


def _has_plugin(node: Object) -> bool:
    amounts = (node.get("status") or {}).get("allocatable") or {}
    return str(amounts.get(NVIDIA_GPU, "0")) != "0"


def _tolerant(ask: Callable[[], Value], default: Value) -> Value | None:
    """Return what *ask* finds, None where the caller may not look, *default* where there is no such resource."""
    try:
        return ask()
    except Forbidden:
        return None
    except NotFound:
        return default


def served_groups(session: Session) -> frozenset[str]:
    """Return every ``group/version`` that is served."""
    groups = session.get("/apis").get("groups") or []
    return frozenset(str(each["groupVersion"]) for group in groups for each in group.get("versions") or [])


def pod_group_api(session: Session, groups: frozenset[str]) -> str:
    """Return the newest version in which kube-scheduler's own PodGroup is served; the group has older kinds too."""
    return _newest(session, groups, "scheduling.k8s.io", _POD_GROUPS, "podgroups")


def _ack(session: Session) -> bool:
    selector = f"{ACK_SCHEDULE}={ACK_SCHEDULE_TOPOLOGY}"
    return bool(session.get(NODES.path(), labelSelector=selector, limit=1).get("items"))


def _hami(session: Session) -> bool:
    """Whether one of the first nodes is registered with HAMi: an annotation, which no selector finds."""
    nodes = session.get(NODES.path(), limit=_SAMPLE).get("items") or ()
    return any(_HAMI_REGISTER in (node["metadata"].get("annotations") or {}) for node in nodes)


def _dra_drivers(session: Session, groups: frozenset[str]) -> tuple[str, ...] | None:
    api = next((each for each in dra_claims.VERSIONS if f"{dra_claims.GROUP}/{each}" in groups), "")
    if not api:
        return ()
    return _tolerant(lambda: _drivers(session.get(resource_slices(api).path(), limit=_MANY)), _NO_DRIVERS)


def _drivers(slices: Object) -> tuple[str, ...]:
    return tuple(sorted({str(item["spec"].get("driver", "")) for item in slices.get("items") or ()}))


def _policy(session: Session, groups: frozenset[str], *, gangs: bool) -> Policy:
    """Return what is installed of the admission policy; without its binding it does nothing."""
    api = policy_api(session, groups)
    if not api:
        return Policy()
    try:
        installed = session.get(admission_policies(api).path(name=admission.NAME))
        session.get(admission_bindings(api).path(name=admission.NAME))
    except Forbidden:
        return Policy(api=api, version=None)
    except NotFound:
        return Policy(api=api)
    version, hands = admission.installed_version(installed), admission.sets_gangs(installed)
    current = version == admission.VERSION and (hands or not gangs)
    return Policy(api=api, version=version, gangs=hands, current=current)


def policy_api(session: Session, groups: frozenset[str]) -> str:
    """Return the newest version in which MutatingAdmissionPolicies are served, empty where they are not."""
    return _newest(session, groups, admission.GROUP, admission.APIS, "mutatingadmissionpolicies")


def _newest(
    session: Session, groups: frozenset[str], group: str, versions: tuple[str, ...], plural: str
) -> str:
    """Return the first of *versions* of *group* that serves *plural*, empty where none does."""
    for version in versions:
        if f"{group}/{version}" in groups:
            resources = session.get(f"/apis/{group}/{version}").get("resources") or ()
            if any(each["name"] == plural for each in resources):
                return version
    return ""


def _rights(session: Session, groups: frozenset[str], pod_groups: str, namespace: str) -> tuple[Right, ...]:
    served = {each.partition("/")[0] for each in groups}
    needed = [
        pod_group_need(backend)
        for backend, group in POD_GROUPS.items()
        if (pod_groups if backend == "native" else group in served)
    ]
    wanted = [need for need in NEEDS if need.group != "resource.k8s.io" or need.group in served]
    return tuple(may(session, need, namespace) for need in (*wanted, *needed))
