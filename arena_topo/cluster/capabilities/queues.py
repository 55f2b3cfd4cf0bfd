"""Whether a queue of Kueue asks our planner for the places of its jobs."""

from arena_topo.errors import Forbidden, NotFound
from arena_topo.kube.resources import Resource
from arena_topo.kube.session import Session, items_of
from arena_topo.model.keys import CHECK_CONTROLLER
from arena_topo.model.objects import Object

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
