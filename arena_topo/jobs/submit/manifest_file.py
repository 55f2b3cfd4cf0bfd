"""Submitting a job from a manifest that somebody has: it is planned and pinned, and else stays as it was written.

What would contradict a plan, or could not be planned, is refused before anything is asked of the cluster.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

from arena_topo.errors import DocumentError, UsageError
from arena_topo.jobs.submit.choose import choose, without_plan
from arena_topo.jobs.submit.look import look, missing_rights
from arena_topo.jobs.submit.options import PlaceOptions, SubmitOptions
from arena_topo.jobs.submit.submit import PreparedJob, with_gang, with_runtime_facts
from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.kinds.table import check_templates, kind_of
from arena_topo.kinds.trainjob import TRAINJOB, with_patch
from arena_topo.kube.session import Session
from arena_topo.manifest.render import Manifest
from arena_topo.model import keys
from arena_topo.model.cluster.pod_requests import pod_spec_requests
from arena_topo.model.job.job_spec import JobSpec, PodOptions
from arena_topo.model.job.kind import Kind, Replicas, is_suspended, planned_replicas, title
from arena_topo.model.job.object_shapes import TRAINING_JOB
from arena_topo.model.job.validation import check_object_name
from arena_topo.model.notation.quantity import amount
from arena_topo.model.notation.shapes import misfit
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import Pin

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp")
_PINS = (keys.PIN_NODES, keys.PIN_GPUS, keys.PIN_CLAIMS)


def is_manifest(document: object) -> bool:
    """Whether *document* says itself that it is an object of Kubernetes; a file of flags has none of these keys."""
    return isinstance(document, dict) and ("apiVersion" in document or "kind" in document)


def job_in(documents: Sequence[object], file: str) -> Object:
    """Return the one job in *documents*, which were read from *file*. Raises ``DocumentError`` for one that cannot be planned."""
    if not documents:
        raise DocumentError(f"{file} is empty")
    if len(documents) != 1:
        raise DocumentError(
            f"{file} has {len(documents)} documents, and a job is submitted from one",
            hint="kubectl create -f creates the others; a job's own files can be given to it with --config-file",
        )
    (job,) = documents
    if not isinstance(job, dict) or not is_manifest(job):
        raise DocumentError(
            f"{file} is no manifest: it has no apiVersion and no kind",
            hint="a file of flags names its kind of job on the command line: arena-topo submit mpi -f FILE",
        )
    if job.get("kind") == "List":
        raise DocumentError(f"{file} is a List, and a job is submitted from its own manifest")
    kind = kind_of(job)
    if fault := misfit(job, TRAINING_JOB):
        raise DocumentError(
            f"{file}: {fault}", hint=f"kubectl explain {kind.plural} says what a {kind.kind} has"
        )
    for fault, hint in _faults(kind, job):
        raise DocumentError(f"{file}: {fault}", hint=hint)
    return job


def _faults(kind: Kind, job: Object) -> Iterator[tuple[str, str]]:
    """Yield what of *job* cannot be submitted, and what to do about it."""
    metadata = job.get("metadata") or {}
    if not metadata.get("name"):
        generated = "generateName" in metadata
        yield (
            f"the {kind.kind} has {'generateName in place of a name' if generated else 'no name'}",
            "give it a metadata.name: its pods, its plan and all commands know it by that",
        )
    # Raises where the name would become another path.
    check_object_name("metadata.name", str(metadata["name"]))
    if not isinstance(job.get("spec"), dict):
        yield f"the {kind.kind} has no spec", f"kubectl explain {kind.plural}.spec says what it needs"
    if any(metadata.get(key) for key in _OF_THE_SERVER):
        yield (
            f"the {kind.kind} comes from a cluster, as its metadata says",
            "arena-topo rerun -f FILE submits an MPIJob again; of others delete status, uid, resourceVersion and creationTimestamp",
        )
    if keys.PLAN in (metadata.get("annotations") or {}):
        yield (f"the {kind.kind} has a plan already", f"delete the annotation {keys.PLAN} from it")
    if is_suspended(kind, job):
        queue = (metadata.get("labels") or {}).get(keys.KUEUE_QUEUE)
        waits = f" and waits in queue {queue} of Kueue, which starts it" if queue else ""
        yield (
            f"the {kind.kind} is suspended{waits}",
            "leave suspend out to have it planned and started; kubectl create -f creates it as it is",
        )
    yield from _faults_of_kind(kind, job)
    roles = kind.replicas(job)
    if not roles or not all(each.template for each in roles):
        yield f"the {kind.kind} has a role without a pod template", f"kubectl explain {kind.plural}.spec"
    for role in roles:
        yield from _faults_of_pods(role)


def _faults_of_kind(kind: Kind, job: Object) -> Iterator[tuple[str, str]]:
    spec = job["spec"]
    if kind is INDEXED_JOB:
        if spec.get("completionMode") != "Indexed":
            yield (
                "the Job is not indexed, so that its pods cannot be told apart",
                "set spec.completionMode: Indexed; kubectl create -f creates it as it is",
            )
        if spec.get("completions") != spec.get("parallelism", 1):
            yield (
                "the Job does not run all of its pods at once, so that they are no gang",
                "set spec.completions and spec.parallelism to the same number",
            )
    metadata = job["metadata"].get("annotations") or {}
    if _EXCLUSIVE in metadata:
        yield (
            f"the annotation {_EXCLUSIVE} places the pods of this JobSet by itself",
            "leave it out: --require-topology asks for a level that holds all pods",
        )


def _faults_of_pods(role: Replicas) -> Iterator[tuple[str, str]]:
    spec, metadata = role.pods.get("spec") or {}, role.pods.get("metadata") or {}
    whose = f"the pods of role {role.role}"
    by_themselves = "leave it out: a plan chooses the nodes; kubectl create -f creates the job as it is"
    if spec.get("nodeName"):
        yield f"{whose} name their node by nodeName", by_themselves
    if keys.HOSTNAME in (spec.get("nodeSelector") or {}):
        yield f"{whose} select their node by {keys.HOSTNAME}", by_themselves
    if any(key in (metadata.get("annotations") or {}) for key in _PINS):
        yield f"{whose} are pinned by an annotation of {keys.OUR_DOMAIN} already", by_themselves


def _check_plannable(job: Object) -> None:
    """Raise ``DocumentError`` where nothing says what the pods of *job* need."""
    kind = kind_of(job)
    check_templates(kind, job)
    roles = [role for role in planned_replicas(kind, job) if role.count]
    if not any(pod_spec_requests(role.pods.get("spec") or {}) for role in roles):
        raise DocumentError(
            f"the pods of the {kind.kind} request nothing, so that any place would do",
            hint="set resources of their containers, or submit it with --pin=none",
        )


def prepare_manifest(session: Session, job: Object, place: PlaceOptions, *, gang: bool) -> PreparedJob:
    """Return the *job* of a manifest as it would be created in the namespace of *session*; nothing is created.

    *gang*: its pods are to start together by a gang scheduler. Raises what ``prepare`` raises, ``DocumentError`` for a job that
    cannot be planned.
    """
    kind = kind_of(job)
    manifest = with_runtime_facts(session, Manifest(job=_ours(kind, job, session.namespace), kind=kind))
    is_planned = place.pin is not Pin.NONE
    if is_planned:
        _check_plannable(manifest.job)
    spec = spec_of(manifest.job, gang=gang, topology=False)
    # Its plan is why it is submitted here.
    place = replace(place, requested=is_planned)
    cluster = look(session, spec, SubmitOptions(), place)
    if cluster.context.kind is not kind:
        raise UsageError(
            f"the manifest has an {title(kind)}, and this cluster serves {cluster.context.kind.version}",
            hint="write it for the version that is served",
        )
    choice = choose(spec, cluster, place)
    missing = missing_rights(session, choice.enforcement, session.namespace) if choice.enforcement else ()
    if missing and not cluster.controller:
        choice = without_plan(choice, missing, place)
    prepared = with_gang(spec, manifest, cluster, choice, place)
    by_controller = cluster.controller and choice.enforcement is not None
    return replace(prepared, controller=by_controller, sees_cluster=not missing)


def plannable(session: Session | None, job: Object) -> Object:
    """Return the *job* of a manifest as the planner reads it, with what a runtime says where there is a *session*.

    Raises ``DocumentError`` for one that cannot be planned, and what reading a runtime raises.
    """
    kind = kind_of(job)
    manifest = Manifest(job=_ours(kind, job, session.namespace if session else "default"), kind=kind)
    read = with_runtime_facts(session, manifest).job if session else manifest.job
    _check_plannable(read)
    return read


def offline(job: Object, namespace: str) -> PreparedJob:
    """Return the *job* of a manifest without asking any cluster."""
    kind = kind_of(job)
    return PreparedJob(manifest=Manifest(job=_ours(kind, job, namespace), kind=kind))


def _ours(kind: Kind, job: Object, namespace: str) -> Object:
    """Return *job* in *namespace* with the label, or the empty patch, that its kind needs to be found and pinned."""
    own = deepcopy(job)
    own["metadata"]["namespace"] = namespace
    if kind is INDEXED_JOB:
        labels = own["metadata"].get("labels") or {}
        own["metadata"]["labels"] = {**labels, keys.TRAINING_JOB: "true"}
    return with_patch(own) if kind is TRAINJOB else own


def spec_of(job: Object, *, gang: bool, topology: bool) -> JobSpec:
    """Return as much of *job* as a submit asks of a job that is rendered already."""
    kind = kind_of(job)
    worker, *_ = planned_replicas(kind, job)
    pod = worker.pods.get("spec") or {}
    limits = [
        (container.get("resources") or {}).get("limits") or {} for container in pod.get("containers") or ()
    ]
    gpus = {
        name: amount(name, count)
        for each in limits
        for name, count in each.items()
        if name in keys.GPU_RESOURCES
    }
    return JobSpec(
        name=job["metadata"]["name"],
        namespace=job["metadata"]["namespace"],
        image="",
        command=(),
        workers=worker.count,
        gpus=sum(gpus.values()),
        gang=gang,
        topology=topology,
        pod=PodOptions(
            priority=str(pod.get("priorityClassName") or ""),
            devices={keys.ACK_GPU: str(gpus[keys.ACK_GPU])} if keys.ACK_GPU in gpus else {},
        ),
        kind=kind.kind,
    )
