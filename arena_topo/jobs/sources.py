"""The sources of a job that is to be submitted: flags, a manifest, or a job that was submitted before.

Each says what it requests, which ``prepare`` takes from there. A job that is only rendered needs neither a
cluster nor a plan, so that what reads one or makes the other is imported where it is needed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from arena_topo.errors import DocumentError, Forbidden, NotFound, UsageError
from arena_topo.jobs.options import PlaceOptions, options_from_annotation
from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.kinds.mpijob import ApiVersion, pod_templates, version_of, worker_count
from arena_topo.kinds.table import check_templates, kind_of, newest_kind
from arena_topo.kinds.trainjob import TRAINJOB, with_patch
from arena_topo.manifest.pods import FOLDER, SCRIPT
from arena_topo.manifest.render import Manifest, RenderContext, check_pod_names, render
from arena_topo.model import keys
from arena_topo.model.job import JobSpec, PodOptions
from arena_topo.model.kind import Kind, Replicas, containers, is_suspended, planned_replicas, title
from arena_topo.model.objects import TRAINING_JOB, Object
from arena_topo.model.placement_options import Pin
from arena_topo.model.pods import pod_spec_requests
from arena_topo.model.text.documents import misfit
from arena_topo.model.text.quantity import amount
from arena_topo.model.text.yaml import dump
from arena_topo.model.validation import check_job_name, check_object_name

if TYPE_CHECKING:
    from arena_topo.kube.session import Session
    from arena_topo.manifest.fresh import FreshJob
    from arena_topo.manifest.plan_on_job import Pins
    from arena_topo.model.plan_record import PlanRecord


@dataclass(frozen=True, slots=True)
class WrittenJob:
    """The objects of a job that is rendered already, and the error where another version is served.

    ``description`` begins its message, as in "the manifest has an MPIJob v1"; ``hint`` is its hint.
    """

    manifest: Manifest
    description: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What a source requests: a job, as far as a submit reads it, with its gang and its placement.

    ``version``, and the user's own ``template``, are for a job that is rendered: None means the version that
    is served. ``written`` is one that is not rendered any more; ``job`` then has no command.
    """

    job: JobSpec
    place: PlaceOptions
    version: ApiVersion | None = None
    template: str = ""
    written: WrittenJob | None = None


# From flags: the job is rendered, in the version and the shape that fit the cluster.

# Patterns are compiled where they are used: few jobs need one of them.
_ONE_DASH = r"(?<!\S)-((?:bind-to|map-by|rank-by)(?:-\w+)*)(?!\S)"
"""Options of mpirun that Open MPI 4 takes with one dash as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromFlags:
    """A job that flags describe; ``version`` None means the one served, ``template`` is the user's own."""

    job: JobSpec
    version: ApiVersion | None = None
    template: str = ""

    def request(self, session: "Session", place: PlaceOptions) -> JobRequest:
        """Return the job as the flags describe it, with ``--coalesce`` in the shape that fits best.

        Raises ``UsageError`` for a shape that cannot be, and ``Forbidden`` where it needs nodes that the user
        cannot list.
        """
        job = self.job
        if place.plan.coalesce:
            # Only for it the planner is imported here, and all of the cluster read.
            from arena_topo.jobs.other_plans import unreserved_snapshot
            from arena_topo.jobs.plan import coalesced

            snapshot = unreserved_snapshot(session, levels=place.plan.levels)
            job = coalesced(job, snapshot, place.plan, template=self.template)
        return JobRequest(job=job, place=place, version=self.version, template=self.template)

    def offline(self) -> Manifest:
        """Return the job rendered without any cluster: with Arena's GPU resource, in the newest version."""
        gpu_resource = keys.ACK_GPU if self.job.topology else keys.NVIDIA_GPU
        context = RenderContext(self.version or newest_kind(self.job.kind), gpu_resource)
        return render(self.job, context, template=self.template)


def advice_on_command(job: JobSpec) -> Iterator[str]:
    """Yield what the command of *job* should say in place of what only an old mpirun takes."""
    line = " ".join(job.command)
    if job.elastic and job.kind == "MPIJob" and SCRIPT not in line:
        yield (
            "note: only a framework that looks for its hosts again can grow and shrink: "
            f"horovodrun --min-np ... --max-np ... --host-discovery-script {FOLDER}/{SCRIPT}"
        )
    options = dict.fromkeys(re.findall(_ONE_DASH, line)) if "mpirun" in line or "mpiexec" in line else {}
    if options:
        old, new = (" and ".join(f"{dashes}{option}" for option in options) for dashes in ("-", "--"))
        yield f"note: mpirun of Open MPI 5 ends with an error at {old}: write {new}, which Open MPI 4 takes too"


# From a manifest that somebody has: it is planned and pinned, and else stays as it was written.
#
# What would contradict a plan, or could not be planned, is refused before anything is asked of the cluster.

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp")
_PINS = (keys.PIN_NODES, keys.PIN_GPUS, keys.PIN_CLAIMS)


def _is_manifest(document: object) -> bool:
    """Whether *document* says that it is an object of Kubernetes; a file of flags has none of these keys."""
    return isinstance(document, dict) and ("apiVersion" in document or "kind" in document)


def job_in(documents: Sequence[object], file: str) -> Object:
    """Return the one job in *documents*, read from *file*.

    Raises ``DocumentError`` for one that cannot be planned.
    """
    if not documents:
        raise DocumentError(f"{file} is empty")
    if len(documents) != 1:
        raise DocumentError(
            f"{file} has {len(documents)} documents, and a job is submitted from one",
            hint="kubectl create -f creates the others; a job's own files can be given to it with --config-file",
        )
    (job,) = documents
    if not isinstance(job, dict) or not _is_manifest(job):
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


def namespace_of(job: Object, named: str) -> str:
    """Return the namespace of *job*, empty where neither its manifest nor the user has *named* one.

    Raises ``UsageError`` if they name two, as kubectl does.
    """
    own = str(job["metadata"].get("namespace") or "")
    if named and own not in ("", named):
        raise UsageError(
            f"the manifest is of namespace {own}, and -n names {named}", hint="leave one of them out"
        )
    return named or own


def _faults(kind: Kind, job: Object) -> Iterator[tuple[str, str]]:
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
            f"the pods of the {kind.kind} request nothing, so that any node would do",
            hint="set resources of their containers, or submit it with --pin=none",
        )


@dataclass(frozen=True, slots=True)
class FromManifest:
    """The ``job`` of a manifest, from ``job_in``; ``gang``: a gang scheduler starts its pods together."""

    job: Object
    gang: bool = False

    def request(self, session: "Session", place: PlaceOptions) -> JobRequest:
        """Return the job as it was written; it is planned unless the user wants no pins.

        Raises ``DocumentError`` for one that cannot be planned, and what reading a runtime raises.
        """
        from arena_topo.cluster.training_runtime import with_runtime

        manifest = with_runtime(session, self.offline(session.namespace))
        is_planned = place.pin is not Pin.NONE
        if is_planned:
            _check_plannable(manifest.job)
        return JobRequest(
            job=_spec_of(manifest.job, gang=self.gang, topology=False),
            # Its plan is why it is submitted here.
            place=replace(place, requested=is_planned),
            written=WrittenJob(
                manifest,
                f"the manifest has an {title(manifest.kind)}",
                "write it for the version that is served",
            ),
        )

    def offline(self, namespace: str) -> Manifest:
        """Return the job in *namespace* without asking any cluster."""
        kind = kind_of(self.job)
        return Manifest(job=_ours(kind, self.job, namespace), kind=kind)


def plannable(session: "Session | None", job: Object) -> Object:
    """Return the *job* of a manifest as the planner reads it; with a *session*, what a runtime says counts.

    Raises ``DocumentError`` for one that cannot be planned, and what reading a runtime raises.
    """
    manifest = FromManifest(job).offline(session.namespace if session else "default")
    if session:
        from arena_topo.cluster.training_runtime import with_runtime

        manifest = with_runtime(session, manifest)
    _check_plannable(manifest.job)
    return manifest.job


def _ours(kind: Kind, job: Object, namespace: str) -> Object:
    """Return *job* in *namespace* with the label, or the empty patch, that finding and pinning it takes."""
    own = deepcopy(job)
    own["metadata"]["namespace"] = namespace
    if kind is INDEXED_JOB:
        labels = own["metadata"].get("labels") or {}
        own["metadata"]["labels"] = {**labels, keys.TRAINING_JOB: "true"}
    return with_patch(own) if kind is TRAINJOB else own


def _spec_of(job: Object, *, gang: bool, topology: bool) -> JobSpec:
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


# From a job that was submitted before, as the cluster or a file has it.


@dataclass(frozen=True, slots=True, kw_only=True)
class FromEarlierJob:
    """A ``job`` that was submitted before, the objects saved with it, and its new name, empty for its own."""

    job: Object
    others: tuple[Object, ...] = ()
    name: str = ""

    def request(self, session: "Session", place: PlaceOptions) -> JobRequest:
        """Return the job as a submit would render it, with its files and the options of its submit.

        Raises ``UsageError`` for a name that it cannot have, and ``NotFound`` where its files are gone.
        """
        from arena_topo.manifest.fresh import fresh

        version, name = version_of(self.job), self.name or str(self.job["metadata"]["name"])
        check_job_name(name)
        again = fresh(self.job, name, _own_pins(self.job))
        job = {**again.job, "metadata": {**again.job["metadata"], "namespace": session.namespace}}
        check_pod_names(name, worker_count(job), version)
        return JobRequest(
            job=_spec_of(job, gang=again.gang, topology=again.topology),
            place=_with_options(place, record_of(self.job), again),
            written=WrittenJob(
                Manifest(job=job, kind=version, companions=self._files(session, again.files, job)),
                f"the job is an MPIJob of {version.value}",
                "submit it again: arena-topo submit mpi",
            ),
        )

    def _files(self, session: "Session", name: str, job: Object) -> tuple[Object, ...]:
        """Return the ConfigMap *name* with the files of the earlier job, if it has any, for *job*."""
        from arena_topo.kube.resources import CONFIG_MAPS

        if not name:
            return ()
        maps = (item for item in self.others if item.get("kind") == "ConfigMap")
        saved = next((item for item in maps if (item.get("metadata") or {}).get("name") == name), None)
        if saved is None:
            try:
                saved = session.get(CONFIG_MAPS.path(session.namespace, name))
            except NotFound as error:
                raise NotFound(
                    f"the files of the job are gone: its ConfigMap {name} does not exist any more",
                    hint="submit it again with --config-file, or from a file that has the ConfigMap next to the job",
                    status=404,
                ) from error
        metadata = {
            "name": f"{job['metadata']['name']}-files",
            "namespace": session.namespace,
            "labels": job["metadata"].get("labels") or {},
        }
        content = {key: saved[key] for key in ("data", "binaryData") if saved.get(key)}
        return ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content},)


def source_from_cluster(session: "Session", name: str) -> FromEarlierJob:
    """Return the job *name* as the cluster has it. Raises ``NotFound``."""
    from arena_topo.jobs.lookup import find_job

    try:
        return FromEarlierJob(job=find_job(session, name).job)
    except NotFound as error:
        raise NotFound(
            error.message,
            hint="a job that is gone can be run again from a file: arena-topo rerun -f FILE, with what "
            "arena-topo get -o json, kubectl get mpijob -o yaml or arena-topo submit -o yaml printed of it",
            status=404,
        ) from error


def source_from_documents(documents: Sequence[object], file: str) -> FromEarlierJob:
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
    return FromEarlierJob(job=jobs[0], others=tuple(item for item in objects if item is not jobs[0]))


def _objects(document: object, file: str) -> list[Object]:
    if not isinstance(document, dict):
        raise DocumentError(f"{file} holds something that is not a Kubernetes object")
    if document.get("kind") == "List":
        return [item for item in document.get("items") or () if isinstance(item, dict)]
    # What arena-topo get -o json prints has Arena's keys, and the job itself under one of ours.
    manifest = document.get("manifest")
    return [manifest if isinstance(manifest, dict) else document]


def record_of(job: Object) -> "PlanRecord | None":
    """Return the plan of *job*, None if there is none or it cannot be read."""
    from arena_topo.model.plan_record import UnreadablePlan, decode, plan_text

    text = plan_text(job)
    try:
        return None if text is None else decode(text)
    except UnreadablePlan:
        return None


def _own_pins(job: Object) -> "Pins | None":
    """Return what the plan of *job* put onto it once in force, None where it has none that can be read."""
    from arena_topo.jobs.enforce import pins_of
    from arena_topo.model.plan_record import Stage

    record = record_of(job)
    return pins_of(job, replace(record, stage=Stage.CONFIRMED)) if record else None


def _with_options(place: PlaceOptions, record: "PlanRecord | None", again: "FreshJob") -> PlaceOptions:
    """Return *place* with what the job was submitted with."""
    # A gang without a plan has its level only from its scheduler; whichever keeps it together now gets the
    # same.
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


JobSource = FromFlags | FromManifest | FromEarlierJob
"""Where a job that is to be submitted comes from."""


# How a job that runs differs from what a submit of the same name would create.

_CONFIDENTIAL = "secret|token|passw|credential|api_?key|access_?key|private"
_Place = tuple[str, int, str]
"""A variable: its role, the number of its container, and its name."""

_MASK, _BEFORE, _AFTER = "***", "*** (before)", "*** (after)"
"""What stands for values that may be secret, as in kubectl diff."""


def difference(session: "Session", manifest: Manifest) -> tuple[str, tuple[str, ...]]:
    """Return the unified diff from the job as it is to that of *manifest*, empty without one, and notes.

    What the server, a plan and a suspension put onto a job is no difference.
    """
    from difflib import unified_diff

    from arena_topo.jobs.lookup import look_up_job
    from arena_topo.manifest.fresh import unplanned

    wanted, notes = _with_defaults(session, manifest)
    name = str(wanted["metadata"]["name"])
    _, existing = look_up_job(session, name)
    live: Object = {} if existing is None else _bare(unplanned(existing, _own_pins(existing)))
    wanted = _bare(wanted)
    before, after = _masked(live, wanted)
    lines = unified_diff(_lines(before), _lines(after), f"live/{name}", f"submit/{name}", lineterm="")
    return "".join(f"{line}\n" for line in lines), notes


def _with_defaults(session: "Session", manifest: Manifest) -> tuple[Object, tuple[str, ...]]:
    """Return the job of *manifest* with the defaults of the server, which the job that runs has too."""
    from arena_topo.kube.resources import jobs_of
    from arena_topo.manifest.fresh import unplanned

    job = manifest.job
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    # The name is taken, by the very job that is compared: the server tries the new one under another.
    metadata = {key: value for key, value in job["metadata"].items() if key != "name"}
    tried = {**job, "metadata": {**metadata, "generateName": f"{name[:40]}-"}}
    try:
        answer = session.create(jobs_of(manifest.kind).path(namespace), tried, dry_run=True)
    except Forbidden:
        note = "you cannot create jobs here: the job is compared without the server's defaults"
        return unplanned(job, None), (note,)
    # A server that garbles its answer may leave out what every object has.
    kind = {key: job[key] for key in ("apiVersion", "kind")}
    return unplanned({**kind, **answer, "metadata": {**answer["metadata"], "name": name}}, None), ()


def _bare(value: Any) -> Any:
    """Return *value* with its keys in order, without empty ones, which mean the same as none."""
    if isinstance(value, dict):
        below = {key: _bare(value[key]) for key in sorted(value)}
        return {key: item for key, item in below.items() if item not in ({}, [], None)}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def _lines(job: Object) -> list[str]:
    return dump(job).splitlines() if job else []


def _masked(before: Object, after: Object) -> tuple[Object, Object]:
    """Return copies of both jobs in which environment values that may be secret only show if they differ."""
    old, new = dict(_secrets(before)), dict(_secrets(after))
    return _with_masks(before, old, new, _BEFORE), _with_masks(after, new, old, _AFTER)


def _with_masks(job: Object, own: Mapping[_Place, Any], other: Mapping[_Place, Any], mark: str) -> Object:
    """Return a copy of *job* with *mark* in place of the values of *own* that *other* has otherwise."""
    masked = deepcopy(job)
    for place, variable in _variables(masked):
        if place in own:
            variable["value"] = mark if other.get(place, own[place]) != own[place] else _MASK
    return masked


def _variables(job: Object) -> Iterator[tuple[_Place, Object]]:
    for role, template in (pod_templates(job) if job else {}).items():
        for index, container in enumerate(containers(template)):
            for variable in container.get("env") or ():
                yield (role.value, index, str(variable.get("name"))), variable


def _secrets(job: Object) -> Iterator[tuple[_Place, Any]]:
    for place, variable in _variables(job):
        if "value" in variable and re.search(_CONFIDENTIAL, place[2], re.IGNORECASE):
            yield place, variable["value"]
