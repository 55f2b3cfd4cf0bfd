"""From a job to a job on the cluster: everything is checked first, and nothing is left half made."""

from dataclasses import dataclass

from arena_topo.errors import ArenaTopoError, Conflict, Forbidden, NotFound, UsageError
from arena_topo.jobs.lookup import look_up
from arena_topo.kube.resources import NODES, PRIORITY_CLASSES, path_of
from arena_topo.kube.session import Session
from arena_topo.manifest.render import Habitat, Manifest, manifest
from arena_topo.model import keys
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.mpijob import ApiVersion, owner_reference
from arena_topo.model.objects import Object

_COMPANIONS = frozenset({"ConfigMap", "PodGroup"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """How a job is submitted; ``version`` None means the one that the cluster serves."""

    version: ApiVersion | None = None
    template: str = ""
    dry_run: bool = False


def prepare(session: Session, job: JobSpec, options: SubmitOptions) -> Manifest:
    """Return what would be created for *job* on this cluster; raises what ``habitat_for`` raises."""
    return manifest(job, habitat_for(session, job, options), template=options.template)


def habitat_for(session: Session, job: JobSpec, options: SubmitOptions) -> Habitat:
    """Return what this cluster serves and hands out GPUs by, once nothing stands in the way of *job*.

    Raises ``Conflict`` when the name is taken, ``UsageError`` for a priority class that does not exist.
    """
    served, existing = look_up(session, job.name)
    if existing is not None:
        raise name_taken(job.name)
    _check_priority(session, job)
    return Habitat(options.version or served, _gpu_resource(session, job))


def offline(job: JobSpec, options: SubmitOptions) -> Manifest:
    """Return what would be created for *job*, without asking any cluster: Arena's resource, today's version."""
    gpu_resource = keys.ACK_GPU if job.topology else keys.NVIDIA_GPU
    return manifest(
        job, Habitat(options.version or ApiVersion.V2BETA1, gpu_resource), template=options.template
    )


def create(session: Session, plan: Manifest, *, dry_run: bool = False) -> tuple[Object, ...]:
    """Create the objects of *plan*, the job first, and return them as the server made them.

    Companions are tried out before the job exists; should one still fail, the job is deleted again.
    Raises the refusal of the API server.
    """
    for companion in plan.companions:
        session.create(_collection(companion), companion, dry_run=True)
    job = _create_job(session, plan.job, dry_run=dry_run)
    if dry_run:
        return (job, *plan.companions)
    try:
        owned = [_owned(companion, job) for companion in plan.companions]
        companions = [session.create(_collection(companion), companion) for companion in owned]
    except BaseException:
        session.delete(_path(job), uid=job["metadata"]["uid"])
        raise
    return (job, *companions)


def name_taken(name: str) -> Conflict:
    """Return what to tell a user whose job's name is taken, in Arena's words."""
    return Conflict(
        f"the job {name} is already exist, please delete it first",
        hint=f"use 'arena-topo delete {name}', or another --name",
        status=409,
    )


def _create_job(session: Session, job: Object, *, dry_run: bool) -> Object:
    try:
        return session.create(_collection(job), job, dry_run=dry_run)
    except Conflict as error:
        if error.reason != "AlreadyExists":
            raise
        raise name_taken(job["metadata"]["name"]) from error
    except NotFound as error:
        if error.details.get("kind") == "namespaces":
            namespace = job["metadata"]["namespace"]
            raise NotFound(
                f"namespace {namespace} does not exist",
                hint=f"choose one with -n, or: kubectl create namespace {namespace}",
                status=404,
            ) from error
        raise


def _check_priority(session: Session, job: JobSpec) -> None:
    if not job.pod.priority:
        return
    try:
        session.get(PRIORITY_CLASSES.path(name=job.pod.priority))
    except NotFound as error:
        raise UsageError(
            f"the priority {job.pod.priority} doesn't exist",
            hint="please check with `kubectl get pc` to get a valid priority",
        ) from error
    except Forbidden:
        return


def _gpu_resource(session: Session, job: JobSpec) -> str:
    """Return the resource by which this cluster hands out GPUs for a placement by topology.

    The vendor's nodes offer ``aliyun.com/gpu`` and not ``nvidia.com/gpu``; asking for it elsewhere would never
    be scheduled. A user who may not list nodes is taken to be on the vendor's cluster, as in Arena.
    """
    if not job.topology:
        return keys.NVIDIA_GPU
    selector = f"{keys.ACK_SCHEDULE}={keys.ACK_SCHEDULE_TOPOLOGY}"
    try:
        nodes = session.get(NODES.path(), labelSelector=selector, limit=1)
    except Forbidden:
        return keys.ACK_GPU
    return keys.ACK_GPU if nodes.get("items") else keys.NVIDIA_GPU


def _owned(companion: Object, job: Object) -> Object:
    return {**companion, "metadata": {**companion["metadata"], "ownerReferences": [owner_reference(job)]}}


def _collection(item: Object) -> str:
    return _path({**item, "metadata": {**item["metadata"], "name": ""}})


def _path(item: Object) -> str:
    """Return the path of one of our objects: the job, or what belongs to it."""
    group, _, version = str(item["apiVersion"]).partition("/")
    known = group == "kubeflow.org" and version in {each.value for each in ApiVersion}
    if item["kind"] not in _COMPANIONS and not known:
        raise ArenaTopoError(
            f"the template renders a {item['kind']} of {item['apiVersion']}, not an MPIJob",
            hint="the first object of a template must be kubeflow.org/v2beta1, v1 or v1alpha1 MPIJob",
        )
    return path_of({**item, "kind": "MPIJob"} if item["kind"] not in _COMPANIONS else item)
