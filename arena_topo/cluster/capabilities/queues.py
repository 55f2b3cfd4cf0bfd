"""Whether a queue of Kueue asks our planner for the places of its jobs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from arena_topo.cluster.capabilities.controller import controller_runs
from arena_topo.errors import Forbidden, NotFound
from arena_topo.kube.discovery import preferred_version
from arena_topo.kube.resources import NODES, Resource
from arena_topo.kube.session import Session, items_of
from arena_topo.model.job.object_shapes import NODE
from arena_topo.model.keys import CHECK_CONTROLLER, GPU_RESOURCES
from arena_topo.model.notation.quantity import parse_quantity
from arena_topo.model.notation.shapes import Each, Part, fitted, quantity, text
from arena_topo.model.objects import Object
from arena_topo.model.plan.capabilities import WaitingRoom

GROUP, VERSIONS = "kueue.x-k8s.io", ("v1beta2",)
"""Kueue's API, and its versions that this program knows."""


def asks_our_planner(session: Session, version: str, namespace: str, queue: str) -> bool | None:
    """Whether the jobs of LocalQueue *queue* wait for an admission check of ours; None where the user may not see it."""
    try:
        local = session.get(Resource(GROUP, version, "localqueues").path(namespace, queue))
        name = str(_spec(local).get("clusterQueue") or "")
        cluster = session.get(Resource(GROUP, version, "clusterqueues", namespaced=False).path(name=name))
        named = names_of_checks(cluster)
        if not named:
            return False
        checks = session.get(Resource(GROUP, version, "admissionchecks", namespaced=False).path())
    except Forbidden:
        return None
    except NotFound:
        # Kueue itself says on the job's Workload that there is no such queue.
        return False
    return any(is_ours(check) and check["metadata"].get("name") in named for check in items_of(checks))


def waiting_room(session: Session, served: frozenset[str]) -> WaitingRoom | None:
    """Return who decides on jobs that wait, None where the user may not see Kueue's queues."""
    runs = controller_runs(session)
    version = preferred_version(served, GROUP, VERSIONS)
    if not version:
        return WaitingRoom(controller=runs)
    try:
        queues = list(session.list(Resource(GROUP, version, "clusterqueues", namespaced=False).path()))
        checks = list(session.list(Resource(GROUP, version, "admissionchecks", namespaced=False).path()))
        ours = {check["metadata"].get("name") for check in checks if is_ours(check)}
        asking = [queue for queue in queues if ours.intersection(names_of_checks(queue))]
        nodes = chain.from_iterable(map(items_of, session.pages(NODES.path()))) if asking else ()
        gpus = _total(_allocatable(nodes))
    except Forbidden:
        return None
    except NotFound:
        return WaitingRoom(controller=runs)
    return WaitingRoom(
        controller=runs,
        kueue=True,
        queues=tuple(sorted(str(queue["metadata"].get("name")) for queue in asking)),
        quota=_total(chain.from_iterable(map(_nominal, asking))),
        gpus=gpus,
    )


_QUEUE = Part(
    {
        "spec": Part(
            {
                "resourceGroups": Each(
                    Part(
                        {
                            "flavors": Each(
                                Part({"resources": Each(Part({"name": text, "nominalQuota": quantity}))})
                            )
                        }
                    )
                )
            }
        )
    }
)


def _nominal(queue: Object) -> Iterator[tuple[str, str]]:
    """Yield each resource of a ClusterQueue with its quota, flavor by flavor."""
    for group in (fitted(queue, _QUEUE).get("spec") or {}).get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for each in flavor.get("resources") or ():
                yield str(each.get("name")), str(each.get("nominalQuota") or 0)


def _allocatable(nodes: Iterable[Object]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        amounts = (fitted(node, NODE).get("status") or {}).get("allocatable") or {}
        yield from ((name, str(amount)) for name, amount in amounts.items())


def _total(amounts: Iterable[tuple[str, str]]) -> int:
    """Return how many GPUs *amounts* are together."""
    counted: Counter[str] = Counter()
    for name, amount in amounts:
        if name in GPU_RESOURCES:
            counted[name] += int(parse_quantity(amount))
    return counted.total()


def names_of_checks(cluster_queue: Object) -> list[str]:
    """Return the names of the checks that a ClusterQueue asks."""
    strategy = _spec(cluster_queue).get("admissionChecksStrategy")
    named = strategy.get("admissionChecks") if isinstance(strategy, dict) else None
    found = named if isinstance(named, list) else []
    return [str(each.get("name")) for each in found if isinstance(each, dict)]


def is_ours(check: Object) -> bool:
    """Whether our controller answers an AdmissionCheck."""
    return bool(_spec(check).get("controllerName") == CHECK_CONTROLLER)


def _spec(item: Object) -> Object:
    spec = item.get("spec")
    return spec if isinstance(spec, dict) else {}
