"""What a cluster has for gangs and pins: a dozen small calls, none of which has to be allowed.

A submit asks for the facts alone; ``doctor`` also reviews the caller's access, with one small call for each need.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import TypeVar

from arena_topo.cluster.capabilities.permissions import review_access
from arena_topo.cluster.capabilities.programs import find_programs
from arena_topo.cluster.capabilities.queues import waiting_room
from arena_topo.cluster.capabilities.worker_schema import worker_fields
from arena_topo.errors import Forbidden, NotFound
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.discovery import preferred_version, served_versions, version_of_resource
from arena_topo.kube.resources import (
    DEPLOYMENTS,
    KAI_API,
    KAI_TOPOLOGIES,
    NODES,
    admission_bindings,
    admission_policies,
    resource_slices,
)
from arena_topo.kube.session import Session, items_of
from arena_topo.model.job.kind import Kind
from arena_topo.model.keys import ACK_SCHEDULE, ACK_SCHEDULE_TOPOLOGY, NVIDIA_GPU
from arena_topo.model.notation.shapes import Each, Named, Part, fitted, name, quantity, text
from arena_topo.model.objects import Object
from arena_topo.model.plan.capabilities import ClusterFacts, Policy, Program
from arena_topo.pin import admission, dra_claims

Value = TypeVar("Value")

_HAMI_REGISTER = "hami.io/node-nvidia-register"
_SAMPLE = 50
"""Nodes among which HAMi is looked for where its scheduler is not seen to run: a page of them is one short call."""

_MOST_SLICES = 500
"""ResourceSlices that are looked through for drivers: one page, as every node's slices have the same ones."""

_NODE = Part(
    {"metadata": Part({"annotations": Named(text)}), "status": Part({"allocatable": Named(quantity)})},
    {"metadata": {}},
)
_SLICE = Part({"spec": Part({"driver": text})})
_KAI_TOPOLOGY = Part(
    {
        "metadata": Part({"name": name}, {"name": ""}),
        "spec": Part({"levels": Each(Part({"nodeLabel": text}))}),
    },
    {"metadata": {"name": ""}},
)
"""What is read of nodes, of ResourceSlices and of KAI's Topologies here."""

_NO_PROGRAMS: dict[str, Program] = {}
_NO_DRIVERS: tuple[str, ...] = ()
_NO_OBJECTS: list[Object] = []
_POD_GROUP_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")
"""Versions of kube-scheduler's own PodGroup, best first."""


def detect(
    session: Session, *, kind: Kind | None = None, namespace: str = "", access: bool = False
) -> ClusterFacts:
    """Return the facts about the cluster of *session*; with *access* also what the caller may do in *namespace*.

    They are those for jobs of *kind*, the newest MPIJob where it is not given. A fact that the caller may not read is None.
    """
    served = served_versions(session)
    programs = _none_if_forbidden(
        lambda: find_programs(session.list(DEPLOYMENTS.path())), default=_NO_PROGRAMS
    )
    versions = tuple(version for version in ApiVersion if _serves(session, served, version))
    pod_groups = pod_group_api(session, served)
    return ClusterFacts(
        kubernetes=str(session.get("/version").get("gitVersion") or ""),
        groups=served,
        versions=versions,
        # Jobs are submitted in the newest version, and its template decides what reaches a worker.
        worker_fields=worker_fields(session, kind or versions[0]) if kind or versions else frozenset(),
        programs=programs,
        ack=_none_if_forbidden(lambda: has_ack(session), default=False),
        hami=_none_if_forbidden(lambda: _has_hami(session, programs), default=False),
        dra_drivers=_dra_drivers(session, served),
        pod_groups=pod_groups,
        kai_topologies=_kai_topologies(session, served),
        policy=_policy(session, served, gangs=bool(pod_groups)),
        waiting=waiting_room(session, served) if access else None,
        access=review_access(session, served, pod_groups, namespace or session.namespace) if access else (),
    )


def uses_device_plugin(session: Session) -> bool | None:
    """Whether a node offers GPUs by NVIDIA's device plugin; None where the caller may not list nodes."""
    pages = session.pages(NODES.path())
    # The first node that offers GPUs ends the search, and the pages after its own are not fetched.
    nodes = chain.from_iterable(map(items_of, pages))
    return _none_if_forbidden(lambda: any(map(_offers_gpus, nodes)), default=False)


def has_ack(session: Session) -> bool:
    """Whether any node is set up for ACK's scheduler. Raises ``Forbidden`` where the caller may not list nodes."""
    selector = f"{ACK_SCHEDULE}={ACK_SCHEDULE_TOPOLOGY}"
    # One node is proof enough, so the server need not send the others.
    return bool(session.get(NODES.path(), labelSelector=selector, limit=1).get("items"))


def _serves(session: Session, served: frozenset[str], version: ApiVersion) -> bool:
    """Whether MPIJobs of *version* are served."""
    if f"{version.group}/{version.value}" not in served:
        return False
    try:
        # The kinds of the training operator share a version, and a cluster may serve some of them alone.
        return bool(version_of_resource(session, served, version.group, (version.value,), version.plural))
    except (Forbidden, NotFound):
        # A proxy may list the groups, and nothing of their resources.
        return True


def pod_group_api(session: Session, served: frozenset[str]) -> str:
    """Return the best version in which kube-scheduler's own PodGroup is served, empty where it is not.

    Its API group has had other resources for longer, so that a served version of the group says nothing.
    """
    return version_of_resource(session, served, "scheduling.k8s.io", _POD_GROUP_VERSIONS, "podgroups")


def policy_api(session: Session, served: frozenset[str]) -> str:
    """Return the best version in which MutatingAdmissionPolicies are served, empty where they are not."""
    return version_of_resource(session, served, admission.GROUP, admission.APIS, "mutatingadmissionpolicies")


def _none_if_forbidden(read: Callable[[], Value], *, default: Value) -> Value | None:
    """Return what *read* finds, None where the caller may not look, *default* where there is no such resource."""
    try:
        return read()
    except Forbidden:
        return None
    except NotFound:
        return default


def _offers_gpus(node: Object) -> bool:
    amounts = (fitted(node, _NODE).get("status") or {}).get("allocatable") or {}
    return str(amounts.get(NVIDIA_GPU, "0")) != "0"


def _has_hami(session: Session, programs: Mapping[str, Program] | None) -> bool:
    """Whether HAMi has registered a node; *programs* are those that the cluster runs, None where they are not seen."""
    # HAMi marks nodes with an annotation, which no selector finds. Nodes without GPUs have none, and may come first.
    if programs is None or "hami" in programs:
        nodes = chain.from_iterable(map(items_of, session.pages(NODES.path())))
        return any(map(_is_registered, nodes))
    return any(map(_is_registered, items_of(session.get(NODES.path(), limit=_SAMPLE))))


def _is_registered(node: Object) -> bool:
    return _HAMI_REGISTER in (fitted(node, _NODE)["metadata"].get("annotations") or {})


def _kai_topologies(session: Session, served: frozenset[str]) -> dict[str, str]:
    """Return the levels of KAI's Topologies, each with the first Topology by name that has it."""
    if KAI_API not in served:
        return {}
    topologies = _none_if_forbidden(lambda: list(session.list(KAI_TOPOLOGIES.path())), default=_NO_OBJECTS)
    levels: dict[str, str] = {}
    read = (fitted(topology, _KAI_TOPOLOGY) for topology in topologies or ())
    for topology in sorted(read, key=lambda item: str(item["metadata"]["name"])):
        for level in (topology.get("spec") or {}).get("levels") or ():
            levels.setdefault(str(level.get("nodeLabel")), str(topology["metadata"]["name"]))
    return levels


def _dra_drivers(session: Session, served: frozenset[str]) -> tuple[str, ...] | None:
    api = preferred_version(served, dra_claims.GROUP, dra_claims.VERSIONS)
    if not api:
        return ()
    path = resource_slices(api).path()
    return _none_if_forbidden(lambda: _drivers(session.get(path, limit=_MOST_SLICES)), default=_NO_DRIVERS)


def _drivers(slices: Object) -> tuple[str, ...]:
    specs = (fitted(item, _SLICE).get("spec") or {} for item in items_of(slices))
    return tuple(sorted({spec["driver"] for spec in specs if spec.get("driver")}))


def _policy(session: Session, served: frozenset[str], *, gangs: bool) -> Policy:
    """Return what is installed of the admission policy; without its binding it does nothing."""
    api = policy_api(session, served)
    if not api:
        return Policy()
    try:
        installed = session.get(admission_policies(api).path(name=admission.NAME))
        session.get(admission_bindings(api).path(name=admission.NAME))
    except Forbidden:
        # Version None: it may be installed, but no job can rely on what the user cannot see.
        return Policy(api=api, version=None)
    except NotFound:
        return Policy(api=api)
    version, sets_gangs = admission.installed_version(installed), admission.sets_gangs(installed)
    # A policy from before the cluster served PodGroups lacks the part that hands workers to them.
    whole = sets_gangs or not gangs
    return Policy(
        api=api,
        version=version,
        gangs=sets_gangs,
        mpijobs=whole and version >= admission.MPIJOBS_SINCE,
        current=whole and version >= admission.VERSION,
    )
