"""Submitting a job again, from what the cluster or a file has of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arena_topo.errors import DocumentError, NotFound, UsageError
from arena_topo.jobs.lookup import find_job
from arena_topo.jobs.placement.enforcement import pins_of
from arena_topo.jobs.placement.options import options_from_annotation
from arena_topo.jobs.submit.choose import choose, without_plan
from arena_topo.jobs.submit.look import look, missing_rights
from arena_topo.jobs.submit.manifest_file import spec_of
from arena_topo.jobs.submit.options import PlaceOptions, SubmitOptions
from arena_topo.jobs.submit.submit import PreparedJob, with_gang
from arena_topo.kinds.mpijob import version_of, worker_count
from arena_topo.kinds.names import check_pod_names
from arena_topo.kube.resources import CONFIG_MAPS
from arena_topo.kube.session import Session
from arena_topo.manifest.fresh import FreshJob, fresh
from arena_topo.manifest.render import Manifest
from arena_topo.model.job.validation import check_job_name
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord, Stage, UnreadablePlan, decode, plan_text


@dataclass(frozen=True, slots=True)
class Source:
    """A job that was submitted before, and the objects that were saved with it."""

    job: Object
    others: tuple[Object, ...] = ()


def source_from_cluster(session: Session, name: str) -> Source:
    """Return the job *name* as the cluster has it. Raises ``NotFound``."""
    try:
        return Source(find_job(session, name).job)
    except NotFound as error:
        raise NotFound(
            error.message,
            hint="a job that is gone can be run again from a file: arena-topo rerun -f FILE, with what "
            "arena-topo get -o json, kubectl get mpijob -o yaml or arena-topo submit -o yaml printed of it",
            status=404,
        ) from error


def source_from_documents(documents: Sequence[object], file: str) -> Source:
    """Return the one job among *documents*, which were read from *file*. Raises ``DocumentError``."""
    objects = [item for document in documents for item in _objects(document, file)]
    jobs = [item for item in objects if item.get("kind") == "MPIJob"]
    if len(jobs) != 1:
        raise DocumentError(
            f"{file} has {len(jobs)} MPIJobs, and rerun takes one",
            hint="save one with: arena-topo get NAME -o json",
        )
    version_of(jobs[0])
    if not isinstance(jobs[0].get("metadata"), dict) or not jobs[0]["metadata"].get("name"):
        raise DocumentError(f"{file}: the MPIJob has no name")
    if not isinstance(jobs[0].get("spec"), dict):
        raise DocumentError(f"{file}: the MPIJob has no spec")
    return Source(jobs[0], tuple(item for item in objects if item is not jobs[0]))


def _objects(document: object, file: str) -> list[Object]:
    if not isinstance(document, dict):
        raise DocumentError(f"{file} holds something that is not a Kubernetes object")
    if document.get("kind") == "List":
        return [item for item in document.get("items") or () if isinstance(item, dict)]
    # What arena-topo get -o json prints has Arena's keys, and the job itself under one of ours.
    manifest = document.get("manifest")
    return [manifest if isinstance(manifest, dict) else document]


def prepare_rerun(session: Session, source: Source, name: str, place: PlaceOptions) -> PreparedJob:
    """Return the job of *source* as it would be created under *name*, empty for its own; nothing is created.

    Raises what ``prepare`` raises, and ``NotFound`` where the files of the job are gone.
    """
    version = version_of(source.job)
    new_name = name or str(source.job["metadata"]["name"])
    check_job_name(new_name)
    record = record_of(source.job)
    again = fresh(source.job, new_name, pins_of(source.job, record) if record else None)
    job = {**again.job, "metadata": {**again.job["metadata"], "namespace": session.namespace}}
    check_pod_names(new_name, worker_count(job), version)
    spec = spec_of(job, gang=again.gang, topology=again.topology)
    place = _with_options(place, record, again)
    cluster = look(session, spec, SubmitOptions(), place)
    if cluster.context.kind is not version:
        raise UsageError(
            f"the job is an MPIJob of {version.value}, and this cluster serves {cluster.context.kind.version}",
            hint="submit it anew: arena-topo submit mpi",
        )
    choice = choose(spec, cluster, place)
    if choice.enforcement and (missing := missing_rights(session, choice.enforcement, session.namespace)):
        choice = without_plan(choice, missing, place)
    manifest = Manifest(job=job, kind=version, companions=_files(session, source, again))
    return with_gang(spec, manifest, cluster, choice, place)


def record_of(job: Object) -> PlanRecord | None:
    """Return the plan of *job* as one that is in force, None where there is none or it cannot be read."""
    text = plan_text(job)
    try:
        record = decode(text) if text is not None else None
    except UnreadablePlan:
        # The plan is dropped either way: only what it put onto the template is not known then.
        return None
    return replace(record, stage=Stage.CONFIRMED) if record else None


def _with_options(place: PlaceOptions, record: PlanRecord | None, again: FreshJob) -> PlaceOptions:
    """Return *place* with what the job was submitted with."""
    # A gang without a plan has its level from its scheduler alone; whichever keeps it together now gets the same.
    plan = (
        options_from_annotation(record.requested_options)
        if record
        else replace(place.plan, required_level=again.required_level, preferred_level=again.preferred_level)
    )
    gang = replace(
        place.gang,
        queue=place.gang.queue or again.queue,
        level=plan.required_level or plan.preferred_level,
        required=bool(plan.required_level),
    )
    # A job that had a plan gets one again, whichever flag had asked for it.
    return replace(place, plan=plan, gang=gang, requested=bool(record) and not again.gang)


def _files(session: Session, source: Source, again: FreshJob) -> tuple[Object, ...]:
    """Return the ConfigMap with the job's files, for the new job."""
    if not again.files:
        return ()
    saved = next(
        (
            item
            for item in source.others
            if item.get("kind") == "ConfigMap" and (item.get("metadata") or {}).get("name") == again.files
        ),
        None,
    )
    if saved is None:
        try:
            saved = session.get(CONFIG_MAPS.path(session.namespace, again.files))
        except NotFound as error:
            raise NotFound(
                f"the files of the job are gone: its ConfigMap {again.files} does not exist any more",
                hint="submit it anew with --config-file, or from a file that has the ConfigMap beside the job",
                status=404,
            ) from error
    name = again.job["metadata"]["name"]
    metadata = {
        "name": f"{name}-files",
        "namespace": session.namespace,
        "labels": again.job["metadata"].get("labels") or {},
    }
    content = {key: saved[key] for key in ("data", "binaryData") if saved.get(key)}
    return ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content},)
