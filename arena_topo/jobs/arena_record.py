"""The record by which Arena knows a job: without it, ``arena delete`` says that the job does not exist.

Arena keeps one ConfigMap for each job, ``<job>-mpijob``, whose key ``app`` names the objects that ``arena delete``
deletes. Source: kubeflow/arena 0.15.5, pkg/workflow/workflow.go and pkg/util/kubeclient/configmap.go.
"""

from arena_topo import __version__
from arena_topo.errors import Conflict, Forbidden, NotFound
from arena_topo.kube.resources import CONFIG_MAPS
from arena_topo.kube.session import Session
from arena_topo.model.job.kind import owner_reference
from arena_topo.model.keys import ARENA_CREATED_BY, MANAGED_BY, OWN_NAME
from arena_topo.model.objects import Object

_KIND = "mpijob"
_ARENA = "arena"


def record_name(job: str) -> str:
    """Return the name of the record of *job*."""
    return f"{job}-{_KIND}"


def arena_record(job: Object) -> Object:
    """Return the record of *job*, an MPIJob as the server has it, which is deleted with the job."""
    meta = job["metadata"]
    # The job alone: whatever else belongs to it is deleted with it.
    data = {
        "app": f"mpijob.kubeflow.org/{meta['name']}",
        # Arena puts the version of its chart and the chart's values here, and never reads them.
        _KIND: f"{OWN_NAME} {__version__}",
        "values": f"# submitted by {OWN_NAME}; the MPIJob itself says how\n",
    }
    metadata = {
        "name": record_name(meta["name"]),
        "namespace": meta["namespace"],
        "labels": {ARENA_CREATED_BY: _ARENA, MANAGED_BY: OWN_NAME},
        "ownerReferences": [owner_reference(job)],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def is_arena_record(config_map: Object) -> bool:
    """Whether *config_map* is a record, of Arena's own or of ours, and not a user's own of that name."""
    labels = config_map["metadata"].get("labels") or {}
    return labels.get(ARENA_CREATED_BY) == _ARENA and "app" in (config_map.get("data") or {})


def write_arena_record(session: Session, job: Object) -> str:
    """Record *job* for Arena, and return what the user should know of a job that could not be recorded.

    Raises what the server says, except that the user may not do it: a job is worth more than its record.
    """
    record = arena_record(job)
    name, namespace = record["metadata"]["name"], record["metadata"]["namespace"]
    try:
        try:
            session.create(CONFIG_MAPS.path(namespace), record)
        except Conflict:
            _make_room(session, CONFIG_MAPS.path(namespace, name))
            session.create(CONFIG_MAPS.path(namespace), record)
    except (Forbidden, Conflict) as error:
        return f"'arena delete' will not find the job: its record, ConfigMap {name}, was not written: {error.message}"
    return ""


def _make_room(session: Session, path: str) -> None:
    """Delete a record at *path* of a job that is gone; what is no record stays, and the next attempt says so.

    Arena before 0.15.5 leaves records behind, and the garbage collector takes its time.
    """
    try:
        left = session.get(path)
        if is_arena_record(left):
            session.delete(path, uid=left["metadata"]["uid"])
    except NotFound:
        return
