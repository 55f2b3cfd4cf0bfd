"""Creating a job with everything that belongs to it, and deleting it again: nothing is left half created."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo import __version__
from arena_topo.errors import Conflict, Forbidden, NotFound, WaitTimeout
from arena_topo.jobs.lookup import find_job, name_taken
from arena_topo.kube.resources import CONFIG_MAPS, jobs_of, path_of
from arena_topo.kube.session import Session
from arena_topo.model.keys import ARENA_CREATED_BY, ARENA_CREATED_BY_VALUE, MANAGED_BY, OWN_NAME
from arena_topo.model.kind import owner_reference
from arena_topo.model.objects import Object
from arena_topo.model.text.words import written_duration

if TYPE_CHECKING:
    from arena_topo.manifest.render import Manifest


@dataclass(frozen=True, slots=True)
class CreatedJob:
    """The objects of a job as the server has them, the job first, and what the user should know of them."""

    objects: tuple[Object, ...]
    notes: tuple[str, ...] = ()


Report = Callable[[CreatedJob], None]
"""Called as soon as the job exists, even if a later step fails."""


def create(session: Session, manifest: "Manifest", *, dry_run: bool = False) -> CreatedJob:
    """Create the objects of *manifest*, the job first and Arena's record of it last.

    Raises the refusal of the API server.
    """
    # A companion needs the job's uid as its owner, so the job must come first. Trying the companions out
    # before that finds nearly every reason for which the server would refuse them.
    for companion in manifest.companions:
        session.create(_collection(companion), companion, dry_run=True)
    job = _create_job(session, manifest, dry_run=dry_run)
    if dry_run:
        return CreatedJob((job, *manifest.companions))
    try:
        owned = [_owned(companion, job) for companion in manifest.companions]
        companions = [
            _typed(session.create(_collection(companion), companion), companion) for companion in owned
        ]
        note = write_arena_record(session, job)
    except BaseException:
        # Also when the user interrupts: a job without its files would never start. By its uid, so that a job
        # that somebody else created under the name meanwhile stays.
        meta = job["metadata"]
        path = jobs_of(manifest.kind).path(meta["namespace"], meta["name"])
        session.delete(path, uid=meta["uid"])
        raise
    return CreatedJob((job, *companions), (note,) if note else ())


def _create_job(session: Session, manifest: "Manifest", *, dry_run: bool) -> Object:
    name, namespace = manifest.job["metadata"]["name"], manifest.job["metadata"]["namespace"]
    try:
        answer = session.create(jobs_of(manifest.kind).path(namespace), manifest.job, dry_run=dry_run)
    except Conflict as error:
        # A quota that two requests change at once is a 409 too: the name is free, and trying again helps.
        if error.reason != "AlreadyExists":
            raise
        raise name_taken(name) from error
    except NotFound as error:
        # A missing namespace and a version that is not served are both 404; the details tell them apart.
        if error.details.get("kind") == "namespaces":
            raise NotFound(
                f"namespace {namespace} does not exist",
                hint=f"choose one with -n, or: kubectl create namespace {namespace}",
                status=404,
            ) from error
        raise
    return _typed(answer, manifest.job)


def _typed(answer: Object, sent: Object) -> Object:
    # A server in between may answer with an object that does not say what it is.
    return {**answer, "apiVersion": sent["apiVersion"], "kind": sent["kind"]}


def _owned(companion: Object, job: Object) -> Object:
    return {**companion, "metadata": {**companion["metadata"], "ownerReferences": [owner_reference(job)]}}


def _collection(item: Object) -> str:
    # The path of an object without a name is that of its collection.
    return path_of({**item, "metadata": {**item["metadata"], "name": ""}})


# The record by which Arena knows a job: without it, ``arena delete`` says that the job does not exist.
#
# Arena keeps one ConfigMap for each job, ``<job>-mpijob``, whose key ``app`` names the objects that ``arena
# delete`` deletes. Source: kubeflow/arena 0.15.5, pkg/workflow/workflow.go and
# pkg/util/kubeclient/configmap.go.

_KIND = "mpijob"
_ARENA = "arena"


def record_name(job: str) -> str:
    """Return the name of the record of *job*."""
    return f"{job}-{_KIND}"


def _arena_record(job: Object) -> Object:
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
    record = _arena_record(job)
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


# Deleting a job: the server deletes what belongs to it.

_PERIOD = 0.2
"""Seconds between two looks at a job that is being deleted."""


def delete_job(session: Session, name: str, *, namespace: str = "", uid: str = "") -> Callable[[], bool]:
    """Delete job *name*, and return a function that asks whether it is gone.

    It is that of the session's namespace unless another *namespace* is given, and where a *uid* is given,
    that very job. The server deletes the pods and all else that belongs to the job before the job itself
    (foreground deletion), so that the names of all of them are free once the job is gone. Raises
    ``NotFound``.
    """
    if namespace and namespace != session.namespace:
        session = session.within(namespace)
    served = find_job(session, name)
    path = jobs_of(served.kind).path(session.namespace, name)
    # By its uid, so that a job that somebody else created under the name meanwhile stays.
    found = str(served.job["metadata"]["uid"])
    if uid and found != uid:
        raise NotFound(f"training job {name} was created again meanwhile", status=404)
    uid = found
    session.delete(path, propagation="Foreground", uid=uid)
    if _is_arenas(served.job):
        _delete_record(session, name)

    def is_gone() -> bool:
        # A job with another uid was created after ours was gone.
        try:
            return bool(session.get(path)["metadata"]["uid"] != uid)
        except NotFound:
            return True

    return is_gone


def _is_arenas(job: Object) -> bool:
    labels = job["metadata"].get("labels") or {}
    return labels.get(ARENA_CREATED_BY) == ARENA_CREATED_BY_VALUE and MANAGED_BY not in labels


def _delete_record(session: Session, name: str) -> None:
    """Delete the record of a job that Arena made, which before 0.15.5 does not belong to the job.

    With a record that is left behind, Arena refuses to submit a job of that name again.
    """
    path = CONFIG_MAPS.path(session.namespace, record_name(name))
    try:
        record = session.get(path)
        if is_arena_record(record):
            session.delete(path, uid=record["metadata"]["uid"])
    # The job is deleted, which is what was asked for; the record may have gone with it.
    except (NotFound, Forbidden):
        return


def wait_until_gone(
    is_gone: Callable[[], bool], name: str, *, timeout: float, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return once *is_gone* says so, asking every 0.2 s; *timeout* in seconds, 0 for no limit.

    Raises ``WaitTimeout``.
    """
    deadline = time.monotonic() + timeout
    while not is_gone():
        if timeout and time.monotonic() >= deadline:
            raise WaitTimeout(
                f"job {name} is still being deleted after {written_duration(timeout)}",
                hint="its pods may take their time to stop: kubectl get pods shows them",
            )
        sleep(_PERIOD)
