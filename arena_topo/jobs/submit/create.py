"""Creating a job and the objects that belong to it: nothing is left half created."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.errors import Conflict, NotFound
from arena_topo.jobs.arena_record import write_arena_record
from arena_topo.kube.resources import jobs_of, path_of
from arena_topo.kube.session import Session
from arena_topo.manifest.render import Manifest
from arena_topo.model.job.kind import owner_reference
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    # It is defined beside what places jobs: at run time a job without a plan would import the planner for it.
    from arena_topo.jobs.placement.place import PlacedJob


@dataclass(frozen=True, slots=True)
class CreatedJob:
    """The objects of a job as the server has them, the job first, and what the user should know about them."""

    objects: tuple[Object, ...]
    notes: tuple[str, ...] = ()


Report = Callable[[CreatedJob], None]
"""Hears of a job as soon as it exists, whatever becomes of the rest of the submit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """What was created: the objects, and the placement where the job has a plan."""

    objects: tuple[Object, ...]
    placed: "PlacedJob | None" = None


def create(session: Session, manifest: Manifest, *, dry_run: bool = False) -> CreatedJob:
    """Create the objects of *manifest*, the job first and Arena's record of it last.

    Raises the refusal of the API server.
    """
    # A companion needs the job's uid as its owner, so the job must come first. Trying the companions out before that
    # finds nearly every reason for which the server would refuse them.
    for companion in manifest.companions:
        session.create(_collection(companion), companion, dry_run=True)
    job = _create_job(session, manifest, dry_run=dry_run)
    if dry_run:
        return CreatedJob((job, *manifest.companions))
    try:
        owned = [_owned(companion, job) for companion in manifest.companions]
        companions = [session.create(_collection(companion), companion) for companion in owned]
        note = write_arena_record(session, job)
    except BaseException:
        # Also when the user interrupts: a job without its files would never start. By its uid, so that a job that
        # somebody else created under the name meanwhile stays.
        meta = job["metadata"]
        path = jobs_of(manifest.kind).path(meta["namespace"], meta["name"])
        session.delete(path, uid=meta["uid"])
        raise
    return CreatedJob((job, *companions), (note,) if note else ())


def name_taken(name: str) -> Conflict:
    """Return the error for a job whose name is taken."""
    return Conflict(
        f"the job {name} already exists, please delete it first",
        hint=f"use 'arena-topo delete {name}', or another --name",
        status=409,
    )


def _create_job(session: Session, manifest: Manifest, *, dry_run: bool) -> Object:
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
    # A server in between may answer with an object that does not say what it is.
    return {**answer, "apiVersion": manifest.job["apiVersion"], "kind": manifest.job["kind"]}


def _owned(companion: Object, job: Object) -> Object:
    return {**companion, "metadata": {**companion["metadata"], "ownerReferences": [owner_reference(job)]}}


def _collection(item: Object) -> str:
    # The path of an object without a name is that of its collection.
    return path_of({**item, "metadata": {**item["metadata"], "name": ""}})
