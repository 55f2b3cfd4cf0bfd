"""A cluster as the planner sees it, from what its API server publishes at one moment."""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache

from arena_topo.errors import DocumentError, Forbidden
from arena_topo.kube.bulk_read import Container, Pod, PodSpec, RawCluster, read_cluster
from arena_topo.kube.session import Session
from arena_topo.model.cluster import Snapshot
from arena_topo.model.pods import ContainerRequests, effective_requests
from arena_topo.model.text.quantity import Resources, resources
from arena_topo.topology.assemble import ClusterObjects, assemble
from arena_topo.topology.objects import (
    POD_ANNOTATIONS,
    NodeFacts,
    PodFacts,
    RawObject,
    identity,
    job_of,
    node_facts,
    skipped,
)


def take_snapshot(
    session: Session,
    *,
    levels: Sequence[str] = (),
    of_jobs: list[PodFacts] | None = None,
    needs_pods: bool = False,
) -> Snapshot:
    """Return the cluster of *session* as it is now.

    *levels* are label keys, coarse to fine, in place of the tiers that the cluster shows. The pods that
    belong to a job and hold something are added to *of_jobs*. The snapshot's warnings name the resources that
    the user cannot list and the objects that could not be read. Raises ``Forbidden`` when the user cannot
    list the nodes; with *needs_pods* also where the pods cannot be listed, without which everything seems to
    be free.
    """
    # assemble() reads the pods while they arrive, page by page: no list of all of them is ever held.
    with _without_garbage_collection():
        raw = read_cluster(session)
        warnings: list[str] = []
        snapshot = assemble(
            _objects(raw, warnings, of_jobs),
            taken=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            levels=levels,
        )
    if needs_pods and "pods" in raw.forbidden:
        raise Forbidden("you cannot list pods in all namespaces")
    forbidden = [f"you cannot list {plural}: data from them is missing" for plural in raw.forbidden]
    return Snapshot(
        nodes=snapshot.nodes,
        fabric=snapshot.fabric,
        cluster=snapshot.cluster,
        taken=snapshot.taken,
        warnings=(*forbidden, *warnings, *snapshot.warnings),
    )


def _objects(raw: RawCluster, warnings: list[str], of_jobs: list[PodFacts] | None) -> ClusterObjects:
    optional = raw.optional
    topologies = [
        item for key in ("kueue", "kai", "koordinator", "volcano") for item in optional.get(key, [])
    ]
    return ClusterObjects(
        nodes=list(_nodes(raw.nodes, warnings)),
        pods=_noted(_pods(raw.pods, warnings), of_jobs),
        config_maps=raw.config_maps,
        devices=optional.get("devices", []),
        slices=optional.get("slices", []),
        claims=optional.get("claims", []),
        zones=optional.get("zones", []),
        topologies=topologies,
    )


def _nodes(raw: Iterable[RawObject], warnings: list[str]) -> Iterator[NodeFacts]:
    seen: set[str] = set()
    for node in raw:
        try:
            facts = node_facts(node)
            # No API server has two nodes of one name, and every source would be read for each of them.
            if facts.name not in seen:
                seen.add(facts.name)
                yield facts
        except DocumentError as error:
            # One malformed object must not hide the rest of the cluster.
            warnings.append(skipped(identity(node, "Node"), error))


def _pods(pods: Iterable[Pod], warnings: list[str]) -> Iterator[PodFacts]:
    for pod in pods:
        try:
            yield _pod(pod)
        except ValueError as error:
            warnings.append(skipped(f"Pod {pod.metadata.namespace}/{pod.metadata.name}", error))


def _noted(pods: Iterator[PodFacts], of_jobs: list[PodFacts] | None) -> Iterator[PodFacts]:
    for pod in pods:
        if of_jobs is not None and pod.job and pod.occupies:
            of_jobs.append(pod)
        yield pod


def _pod(pod: Pod) -> PodFacts:
    meta, spec = pod.metadata, pod.spec
    annotations = meta.annotations or {}
    return PodFacts(
        namespace=meta.namespace,
        name=meta.name,
        node=spec.node_name or "",
        phase=pod.status.phase,
        requests=_requests(spec),
        annotations={key: annotations[key] for key in POD_ANNOTATIONS if key in annotations},
        job=job_of(meta.labels or {}),
    )


def _requests(spec: PodSpec) -> Resources:
    """Return what a pod requests; pods of one container with equal requests share one answer."""
    containers = spec.containers or []
    if len(containers) == 1 and not (spec.init_containers or spec.resources or spec.overhead):
        return _shared(tuple((containers[0].resources.requests or {}).items()))
    return effective_requests(
        map(_container, containers),
        map(_container, spec.init_containers or ()),
        resources(spec.resources.requests) if spec.resources else None,
        resources(spec.overhead) if spec.overhead else None,
    )


@lru_cache(maxsize=4096)
def _shared(requests: tuple[tuple[str, str | int | float], ...]) -> Resources:
    return resources(dict(requests))


def _container(container: Container) -> ContainerRequests:
    requirements = container.resources
    return ContainerRequests(resources(requirements.requests), sidecar=container.restart_policy == "Always")


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector out of decoding a large cluster, where it takes half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
