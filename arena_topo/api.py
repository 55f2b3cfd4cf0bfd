"""What the command line does, as functions of Python: ``import arena_topo as at``.

::

    cluster = at.connect(namespace="ml")
    job = at.Job(name="vgg16", image="train:1.0", command="mpirun python train.py", workers=4, gpus=8)
    plan = cluster.plan(job, require_topology="rack")
    if plan.fits:
        cluster.submit(job, require_topology="rack", wait="running").why()

Commands and these functions call the same functions below them. So a ``document`` is what ``-o json`` prints,
``str()`` what is printed without a terminal, and an error is the command's own, with its hint; its words name
flags, whose names are those of the arguments here. Each call opens a connection of its own, as each command
does: a notebook that was left alone for a night continues. What a call waits for goes to the logger
``arena_topo``.
"""

import html
import logging
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack

from arena_topo.errors import ArenaTopoError, UsageError
from arena_topo.files import LARGEST_FILE, LARGEST_SETTING, read_bytes
from arena_topo.jobs.options import (
    PlaceOptions,
    PlanOptions,
    check_elastic,
    check_gang_options,
    check_options,
    elastic_job,
    worker_range,
)
from arena_topo.jobs.sources import FromFlags, FromManifest, job_in, namespace_of, plannable
from arena_topo.kinds.table import kinds_called
from arena_topo.kube import REQUEST_TIMEOUT, ConnectionFlags
from arena_topo.kube.kubeconfig import configured_target
from arena_topo.kube.session import Session
from arena_topo.kube.session import connect as open_session
from arena_topo.model import validation
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.job import Claim, Compute, JobSpec, PodOptions, RunOptions, RuntimeRef
from arena_topo.model.job_view import Goal, JobStatus, JobView
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import (
    NodeLoss,
    Objective,
    Pin,
    TopologyPolicy,
    read_hang_rule,
    read_parallelism,
)
from arena_topo.model.plan import Infeasible, Scaling, Verdict
from arena_topo.model.plan_record import StartEstimate
from arena_topo.model.reports import Comparison, Finding, Fragmentation
from arena_topo.model.text.quantity import checked_quantity
from arena_topo.output.text import document as written_document

if TYPE_CHECKING:
    from arena_topo.diagnosis.verdict import Verdict as Diagnosis
    from arena_topo.prediction.forecast import Forecast

Value = TypeVar("Value")

_MOST_LOGS = 128
"""Logs that are open at once, as ``logs --max-log-requests`` has it."""

_log = logging.getLogger("arena_topo")


# What a call returns: the typed value, its document, and its text.


@dataclass(frozen=True, slots=True)
class Report(Generic[Value]):
    """A ``value``, its ``document`` as ``-o json`` prints it, and its ``text`` as a command prints it."""

    value: Value = field(repr=False)
    document: Any
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _page(self.text)


@dataclass(frozen=True, slots=True)
class Topology:
    """GPUs, their links and the fabric between nodes: what ``topology`` shows.

    ``topology["rack-1"]`` is that part of it, and ``topology["gpu-node-1"]`` one machine.
    """

    value: Snapshot = field(repr=False)
    names: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> "Topology":
        """Return the node or the domain *name*. Raises ``UsageError`` if there is no such name."""
        from arena_topo.output.topology import select_nodes

        select_nodes(self.value, (name,))
        return replace(self, names=(*self.names, name))

    @property
    def document(self) -> dict[str, Any]:
        """The snapshot as ``-o json`` prints it, and as ``save`` writes it."""
        from arena_topo.output.topology import select_nodes
        from arena_topo.topology.files import snapshot_document

        return snapshot_document(select_nodes(self.value, self.names))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful about it, which commands print on stderr."""
        return self.value.warnings

    def fragmentation(self) -> Report[Fragmentation]:
        """Return what jobs the free GPUs can hold: ``topology --fragmentation``."""
        from arena_topo.output.reports import render_fragmentation
        from arena_topo.output.text import plain
        from arena_topo.planner.advise import fragmentation

        found = fragmentation(self.value)
        return Report(found, plain(found), render_fragmentation(found))

    def compare(self, job: "Job", **placing: "Unpack[Placing]") -> Report[Comparison]:
        """Return what other ways of asking for *job* would give here: ``plan --compare --from``."""
        return _comparison(job, self.value, _plan_options(placing))

    def save(self, file: str | Path) -> None:
        """Write the whole snapshot to *file*, which ``snapshot`` and ``--from`` read: ``topology save``."""
        from arena_topo.output.text import compact
        from arena_topo.topology.files import snapshot_document

        # YAML for people who edit the file; JSON loads much faster.
        path, saved = Path(file), snapshot_document(self.value)
        is_yaml = path.suffix in (".yaml", ".yml")
        path.write_text(written_document(saved, "yaml") if is_yaml else compact(saved), "utf-8")

    def __str__(self) -> str:
        return self._drawn("text")

    def _repr_svg_(self) -> str:
        return self._drawn("svg")

    def _repr_html_(self) -> str:
        return _page("", self._repr_svg_())

    def _drawn(self, form: str) -> str:
        from arena_topo.output.render import render_topology

        return render_topology(self.value, self.names, form)


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a job would run, and why, or why it does not fit: what ``plan`` shows.

    ``value`` is a ``Placement`` or an ``Infeasible``, and ``snapshot`` the cluster that it was planned for.
    """

    name: str
    value: Verdict = field(repr=False)
    snapshot: Snapshot = field(repr=False)
    start: StartEstimate | None = field(default=None, repr=False)

    @property
    def fits(self) -> bool:
        """Whether the job fits now."""
        return not isinstance(self.value, Infeasible)

    @property
    def document(self) -> dict[str, Any]:
        """The plan as ``-o json`` prints it."""
        from arena_topo.output.plan import plan_document

        return plan_document(self.name, self.value, self.start)

    @property
    def why(self) -> str:
        """The reasons, assumptions and NUMA nodes: ``plan --why``."""
        return self._drawn("text", why=True)

    def __str__(self) -> str:
        return self._drawn("text")

    def _repr_svg_(self) -> str | None:
        # No drawing shows a job whose pods differ by role.
        return None if self.value.by_role else self._drawn("svg")

    def _repr_html_(self) -> str:
        return _page(str(self), self._repr_svg_() or "")

    def _drawn(self, form: str, *, why: bool = False) -> str:
        from arena_topo.output.plan import render_plan

        starts = (self.start, datetime.now(UTC)) if self.start else None
        return render_plan(self.name, self.value, self.snapshot, form, starts=starts, why=why)


def _page(text: str, picture: str = "") -> str:
    """Return *text* and *picture* for a notebook; as an image, whose styles stay its own."""
    shown = f"<pre>{html.escape(text)}</pre>" if text else ""
    data = b64encode(picture.encode()).decode()
    return shown + (f'<img src="data:image/svg+xml;base64,{data}">' if picture else "")


# What is asked of a placement, in the names of the flags.


class Placing(TypedDict, total=False):
    """How a gang is to be placed; ``arena-topo plan mpi --help-all`` explains each."""

    topology_policy: Literal["best-effort", "restricted", "none"]
    require_topology: str
    prefer_topology: str
    spread_evenly: str
    spares: int
    objective: Literal["bandwidth", "pack"]
    parallel: str
    coalesce: bool
    share_gpus: bool
    levels: Sequence[str]


class Submitting(Placing, total=False):
    """How a job is placed and kept there, and what is waited for; ``timeout`` is in seconds, 0 for no limit.

    ``wait`` is how far the job has to come before the call returns.
    """

    pin: Literal["auto", "none", "nodes", "workers", "gpus"]
    gang_scheduler: str
    queue: str
    on_node_loss: Literal["wait", "suspend", "fail"]
    on_hang: str
    expect_nodes: bool
    wait: Literal["placed", "running", "succeeded"]
    timeout: float


def _plan_options(asked: Mapping[str, Any]) -> PlanOptions:
    parallel, on_hang = asked.get("parallel", ""), asked.get("on_hang", "")
    return check_options(
        PlanOptions(
            policy=_word(TopologyPolicy, "topology_policy", asked.get("topology_policy", "best-effort")),
            required_level=asked.get("require_topology", ""),
            preferred_level=asked.get("prefer_topology", ""),
            spread_evenly=asked.get("spread_evenly", ""),
            spares=asked.get("spares", 0),
            coalesce=asked.get("coalesce", False),
            objective=_word(Objective, "objective", asked.get("objective", "bandwidth")),
            share_gpus=asked.get("share_gpus", False),
            levels=tuple(asked.get("levels", ())),
            on_node_loss=_word(NodeLoss, "on_node_loss", asked.get("on_node_loss", "wait")),
            on_hang=read_hang_rule(on_hang, "--on-hang") if on_hang else None,
            parallel=read_parallelism(parallel, "--parallel") if parallel else None,
        )
    )


def _place_options(asked: Mapping[str, Any], *, gang: bool) -> PlaceOptions:
    scheduler, queue = asked.get("gang_scheduler", "auto"), asked.get("queue", "")
    check_gang_options(scheduler, queue, gang=gang)
    pin = _word(Pin, "pin", asked.get("pin", "auto"))
    goal = _word(Goal, "wait", asked["wait"]) if "wait" in asked else None
    place = PlaceOptions.of(
        _plan_options(asked),
        pin=pin,
        scheduler=scheduler,
        queue=queue,
        timeout=asked.get("timeout", 0.0) if goal else None,
        goal=goal,
        expects_nodes=asked.get("expect_nodes", False),
    )
    # Who wants no plan says so by pin="none".
    return replace(place, requested=pin is not Pin.NONE)


def _word(kind: Callable[[str], Value], name: str, word: str) -> Value:
    try:
        return kind(word)
    except ValueError as error:
        known = ", ".join(str(one.value) for one in kind)  # type: ignore[attr-defined]  # an Enum
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(f"{flag}: {word!r} is not known", hint=f"use one of {known}") from error


# The job that is described.


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job to plan or to submit, in the words of ``arena-topo submit``; a plan needs no name and no image.

    ``kind`` is mpi, pytorch, train, jobset or job. A ``command`` in one text is run by a shell, and a list of
    words as it is. ``data`` are paths in the container by PersistentVolumeClaim. ``min_workers`` and
    ``max_workers`` make it elastic. What is not here, and TFJobs, take a manifest in place of this.
    """

    name: str = ""
    kind: str = "mpi"
    image: str = ""
    command: str | Sequence[str] = ()
    workers: int | None = None
    gpus: int = 0
    cpu: str = ""
    memory: str = ""
    rdma: bool = False
    gang: bool = False
    min_workers: int | None = None
    max_workers: int | None = None
    grow: bool = False
    slots_per_worker: int | None = None
    nproc_per_node: str = ""
    runtime: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    priority: str = ""
    working_dir: str = "/root"
    retry: int = 0

    def spec(self, namespace: str = "default") -> JobSpec:
        """Return the job as it is rendered in *namespace*. Raises ``UsageError``."""
        kinds = [kind.kind for kind in kinds_called(self.kind)]
        if not kinds or kinds[0] == "TFJob":
            raise UsageError(
                f"{self.kind!r} is no kind of job that is described this way",
                hint="use mpi, pytorch, train, jobset or job, and a manifest for any other",
            )
        self._check()
        command = ("sh", "-c", self.command) if isinstance(self.command, str) else tuple(self.command)
        workers = 1 if self.workers is None else self.workers
        slots = self.slots_per_worker
        job = JobSpec(
            name=self.name,
            namespace=namespace,
            image=self.image,
            command=command if any(command) and command[-1] else (),
            workers=workers,
            gpus=self.gpus,
            compute=Compute(cpu=self.cpu, memory=self.memory),
            slots=max(self.gpus, 1) if slots is None else slots,
            gang=self.gang,
            pod=PodOptions(
                env=dict(self.env),
                labels=dict(self.labels),
                annotations=dict(self.annotations),
                selector=dict(self.selector),
                claims=tuple(Claim(name, path) for name, path in self.data.items()),
                priority=self.priority,
                working_dir=self.working_dir,
                rdma=self.rdma,
            ),
            run=RunOptions(retry=self.retry, clean_policy="Running" if kinds[0] == "PyTorchJob" else "All"),
            kind=kinds[0],
            processes=self.nproc_per_node,
            runtime=RuntimeRef(self.runtime) if self.runtime else None,
        )
        range_ = worker_range(self.min_workers, self.max_workers)
        return elastic_job(job, range_, self.workers, grow=self.grow)

    def _check(self) -> None:
        validation.check_job_name(self.name)
        least = {"--workers": (self.workers, 1), "--gpus": (self.gpus, 0), "--retry": (self.retry, 0)}
        for flag, (number, bound) in {**least, "--slots-per-worker": (self.slots_per_worker, 1)}.items():
            if number is not None and number < bound:
                raise UsageError(f"{flag}: {number} is less than {bound}")
        for flag, amount in (("--cpu", self.cpu), ("--memory", self.memory)):
            if amount:
                checked_quantity(flag, amount)
        for name in self.env:
            validation.check_env_name(name)
        validation.check_labels("--label", dict(self.labels))
        validation.check_labels("--selector", dict(self.selector))
        for key in self.annotations:
            validation.check_key("--annotation", key)
        for claim in self.data:
            validation.check_object_name("--data", claim)

    def _planned(self) -> "Job":
        """Return the job with what a plan ignores, which may be missing."""
        has_own = {"image": self.image or "none", "command": self.command or ("true",)}
        return replace(self, name=self.name or "job", **has_own)  # type: ignore[arg-type]  # of these fields

    def _submitted(self) -> "Job":
        """Return the job if it has what a submit needs. Raises ``UsageError``."""
        is_train = kinds_called(self.kind)[:1] == kinds_called("train")[:1]
        needed = "runtime" if is_train else "image"
        if not getattr(self, needed):
            raise UsageError(f"--{needed} must be set")
        if not self.command and not is_train:
            raise UsageError("the job has no command", hint='give it as command="mpirun python train.py"')
        return self


Manifest = str | Path | Mapping[str, Any]
"""A job of any kind as Kubernetes has it: a file of YAML or JSON, or the object itself."""


def _object(manifest: Manifest) -> Object:
    if isinstance(manifest, Mapping):
        return job_in([dict(manifest)], "the manifest")
    from arena_topo.model.text.yaml import load_all

    return job_in(load_all(_text(manifest, LARGEST_SETTING), name=str(manifest)), str(manifest))


def _text(file: str | Path, most: int) -> str:
    try:
        return read_bytes(file, most).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not a text file") from error


# A cluster, and what its users do there.


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, as one user sees it; ``connect`` makes it."""

    connection: ConnectionFlags = field(default_factory=ConnectionFlags)

    def _session(self) -> Session:
        return open_session(self.connection)

    @property
    def namespace(self) -> str:
        """The namespace of jobs that name none."""
        return configured_target(self.connection).namespace

    def version(self) -> Report[str]:
        """Return the versions of arena-topo and of the cluster: ``version``."""
        from arena_topo.output.text import versions_document

        document = versions_document(self._session().version())
        text = f"arena-topo: {document['client']}\nServer: {document['server']}\n"
        return Report(str(document["server"] or ""), document, text)

    def snapshot(self, levels: Sequence[str] = ()) -> Topology:
        """Return the GPUs, their links and the fabric: ``topology``.

        *levels* are label keys, coarse to fine, in place of those that are known.
        """
        from arena_topo.cluster.published import visible_snapshot

        return Topology(visible_snapshot(self._session(), tuple(levels)))

    def plan(self, job: Job | Manifest, *, when: bool = False, **placing: Unpack[Placing]) -> Plan:
        """Return where *job* would run: ``plan``. What is reserved for other jobs is not free.

        *when*: also when it would start. Raises ``UsageError``.
        """
        options = _plan_options(placing)
        if when and isinstance(job, Job):
            from arena_topo.jobs.when import read_outlook

            outlook = read_outlook(self._session(), levels=options.levels)
            planned = _plan(job, outlook.left, options, self.connection.namespace)
            spec = job._planned().spec(self.connection.namespace or "default")  # noqa: SLF001  # of this module
            return replace(planned, start=outlook.of_spec(spec, options, planned.value))
        if when:
            raise UsageError("--when is for jobs that are described, not for manifests")
        session = self._session()
        return _plan(job, _free(session, options), options, self.connection.namespace, session)

    def compare(self, job: Job, **placing: Unpack[Placing]) -> Report[Comparison]:
        """Return what other ways of asking for *job* would give: ``plan --compare``."""
        options = _plan_options(placing)
        return _comparison(job, _free(self._session(), options), options)

    def submit(self, job: Job | Manifest, **submitting: Unpack[Submitting]) -> "JobHandle":
        """Create *job*, planned unless ``pin="none"``, and return a handle on it: ``submit``.

        Raises ``DoesNotFit`` for a job that could never fit, ``Conflict`` for a name that is taken, and
        ``WaitTimeout``. One that was interrupted continues by ``resume``, or is undone by ``delete``.
        """
        from arena_topo.jobs.prepare import prepare
        from arena_topo.jobs.submit import submit_prepared
        from arena_topo.jobs.wait import wait_for_goal
        from arena_topo.output.plan import submitted_lines

        started = time.monotonic()
        session, request = self._request(job, submitting)
        prepared = prepare(session, request)
        for text in (*prepared.warnings, *prepared.notes):
            _log.warning(text)
        waiter, place = _waiter(), prepared.place
        waiting = session.patient() if place.goal else session
        submitted = submit_prepared(waiting, prepared, waiter, lambda _: None)
        created, placed = submitted.objects[0]["metadata"], submitted.placed
        name, notes = str(created["name"]), (*prepared.warnings, *prepared.notes)
        if placed:
            notes += tuple(
                submitted_lines(
                    name,
                    placed.verdict,
                    placed.record,
                    suspended=placed.suspended,
                    queued=placed.queued,
                    unenforced=placed.unenforced,
                )
            )
        if place.goal in (Goal.RUNNING, Goal.SUCCEEDED):
            limit = place.timeout or 0.0
            left = max(limit - (time.monotonic() - started), 0.001) if limit else 0.0
            wait_for_goal(session, name, created["uid"], place.goal, waiter, timeout=left, limit=limit)
        type_ = str(submitted.objects[0]["kind"]).lower()
        return JobHandle(self._within(str(created["namespace"])), name, type_, notes)

    def preview(self, job: Job | Manifest, **submitting: Unpack[Submitting]) -> Report[tuple[Object, ...]]:
        """Return the objects that ``submit`` would create: ``submit --dry-run=server --plan``.

        The server tries them, and creates nothing.
        """
        from arena_topo.jobs.prepare import prepare
        from arena_topo.jobs.submit import dry_run
        from arena_topo.output.text import objects, objects_document

        session, request = self._request(job, submitting)
        tried = dry_run(session, prepare(session, request), planned=True).objects
        return Report(tuple(tried), objects_document(tried), objects(tried, "yaml"))

    def _request(self, job: Job | Manifest, submitting: Mapping[str, Any]) -> tuple[Session, Any]:
        session = self._session()
        if isinstance(job, Job):
            place = _place_options(submitting, gang=job.gang)
            spec = job._submitted().spec(session.namespace)  # noqa: SLF001  # of this module
            check_elastic(spec, place.plan)
            if spec.elastic and spec.elastic.grows:
                place = replace(place, plan=replace(place.plan, grow=True))
            return session, FromFlags(job=spec).request(session, place)
        gang = "queue" in submitting or "gang_scheduler" in submitting
        written = _object(job)
        session = session.within(namespace_of(written, self.connection.namespace) or session.namespace)
        place = _place_options(submitting, gang=gang)
        return session, FromManifest(written, gang).request(session, place)

    def _within(self, namespace: str) -> "Cluster":
        return replace(self, connection=replace(self.connection, namespace=namespace))

    def job(self, name: str, type: str = "") -> "JobHandle":  # noqa: A002  # --type
        """Return a handle on the job *name*; *type* is its kind where several have the name.

        Nothing is asked of the cluster yet.
        """
        return JobHandle(self, name, type)

    def jobs(
        self,
        *,
        all_namespaces: bool = False,
        selector: str = "",
        status: Sequence[str] = (),
        type: str = "",  # noqa: A002  # --type
    ) -> Report[tuple[JobView, ...]]:
        """Return the jobs, the newest first: ``list``; *status* chooses by words such as running."""
        from arena_topo.jobs.lists import list_jobs
        from arena_topo.jobs.lookup import of_type
        from arena_topo.jobs.queue import with_queues
        from arena_topo.output.job import job_document, job_list_rows
        from arena_topo.output.text import tabulate

        session = of_type(self._session(), type)
        wanted = {_word(JobStatus, "status", word.upper()) for word in status}
        found = list_jobs(session, all_namespaces=all_namespaces, selector=selector, whole=True)
        views = with_queues(session, [view for view in found if not wanted or view.status in wanted])
        text = tabulate(job_list_rows(views, namespaces=all_namespaces))
        return Report(tuple(views), [job_document(view) for view in views], text)

    def nodes(self, *names: str) -> Report[tuple[GpuNode, ...]]:
        """Return how the GPUs of the nodes are used: ``top node``."""
        from arena_topo.cluster.published import visible_snapshot
        from arena_topo.output.top_node import chosen_nodes, top_nodes, top_nodes_document

        chosen = chosen_nodes(visible_snapshot(self._session()), names)
        return Report(tuple(chosen), top_nodes_document(chosen), top_nodes(chosen, chosen=bool(names)))

    def doctor(self, queue: str = "") -> Report[tuple[Finding, ...]]:
        """Return what the cluster supports for gangs and pinning: ``doctor``."""
        from arena_topo.cluster.capabilities import detect_with_access
        from arena_topo.cluster.doctor import diagnose, verdict
        from arena_topo.jobs.other_plans import reservations
        from arena_topo.output.plan import reservations_finding
        from arena_topo.output.reports import findings_document, findings_text

        session = self._session()
        facts = detect_with_access(session)
        findings = (
            *diagnose(facts, namespace=session.namespace, queue=queue),
            reservations_finding(reservations(session)),
        )
        text = findings_text(findings, verdict(findings), verbose=True)
        return Report(findings, findings_document(findings), text)


# A job on a cluster.


@dataclass(frozen=True, slots=True)
class JobHandle:
    """A job on a cluster, by its name; ``notes`` are what its submit had to say."""

    cluster: Cluster = field(repr=False)
    name: str
    type: str = ""
    notes: tuple[str, ...] = field(default=(), repr=False)

    def _session(self) -> Session:
        from arena_topo.jobs.lookup import of_type

        return of_type(open_session(self.cluster.connection), self.type)

    def status(self) -> Report[JobView]:
        """Return the job and its instances: ``get``."""
        from arena_topo.jobs.lookup import fetch_job_view
        from arena_topo.output.job import fitted_instances, job_table, saved_document

        view = fetch_job_view(self._session(), self.name)
        text = job_table(view, instances=fitted_instances(view, None))
        return Report(view, saved_document(view), text)

    def describe(self) -> Report[JobView]:
        """Return all about the job, with its events: ``describe``."""
        from arena_topo.jobs.lookup import described_job
        from arena_topo.output.job import described_document, job_page

        session = self._session()
        view, events = described_job(session, self.name)
        text = job_page(view, events, session.now())
        return Report(view, described_document(view, events), text)

    def logs(
        self,
        instance: str = "",
        *,
        tail: int | None = None,
        since: float | None = None,
        follow: bool = False,
        previous: bool = False,
        every: bool = False,
        role: str = "",
        container: str = "",
    ) -> Iterator[dict[str, str | int | None]]:
        """Yield the lines of the job's log as ``logs -o json`` prints them: ``line["line"]`` is the text.

        *instance* is one by name or workers by number, such as 0-3,7; *every* means all, *role* those of one.
        *tail* is a number of lines and *since* in seconds.
        """
        from arena_topo.jobs.logs.follow import LogOptions, parse_instances
        from arena_topo.jobs.logs.many import JobLogs
        from arena_topo.output.log_lines import line_document

        seconds = max(int(since), 1) if since else None
        logs = JobLogs(
            session=self._session(),
            names=(self.name,),
            instances=parse_instances(instance, role, every=every),
            container=container,
            options=LogOptions(tail=tail, since=seconds, timestamps=True, previous=previous),
            waiter=_waiter(),
            report=lambda error: _log.warning(error.message),
            most=_MOST_LOGS,
        )
        lines = logs.follow() if follow else logs.read()
        return (line_document(line, line.text) for line in lines)

    def why(self, again: float | None = None) -> "Report[Diagnosis]":
        """Return whether the job makes progress, and which rank the others wait for: ``why``.

        *again*: look once more after so many seconds.
        """
        from arena_topo.jobs.why import runner, why
        from arena_topo.output.why import why_document, why_text

        session = self._session()
        run = runner(self.cluster.connection, session)
        answer = why(session, self.name, run, patience=again, notify=_log.info)
        job, verdict = answer.job, answer.verdict
        return Report(verdict, why_document(job.name, job.namespace, verdict), why_text(job.name, verdict))

    def wait(
        self, goal: Literal["running", "succeeded", "deleted"] = "succeeded", timeout: float = 0
    ) -> None:
        """Return once the job has come that far: ``wait``; *timeout* is in seconds, 0 for no limit.

        Raises ``JobFailed`` and ``WaitTimeout``.
        """
        from arena_topo.jobs.wait import wait_for

        wait_for(self._session(), self.name, _word(Goal, "for", goal), timeout=timeout)

    def scale(self, workers: int | None, *, dry_run: bool = False, grace: float = 120) -> Report[Scaling]:
        """Change the number of workers of an elastic job, None for as many as there is room for: ``scale``.

        *dry_run*: only say what would change. *grace* is in seconds. Raises ``DoesNotFit``.
        """
        from arena_topo.jobs.scale import Leave, Size, planned_scaling, scale_job
        from arena_topo.output.plan import render_scaling, scaling_document

        session, size = self._session(), Size(workers)
        if dry_run:
            scaling = planned_scaling(session, self.name, size)
        else:
            leave = Leave(grace=grace, report=_log.info)
            scaling = scale_job(session, self.name, size, _policy(None), leave)
        return Report(scaling, scaling_document(scaling), render_scaling(scaling, steps=True))

    def suspend(self) -> None:
        """Stop the job for now, and free its GPUs: ``suspend``."""
        from arena_topo.jobs.resume import suspend_job

        suspend_job(self._session(), self.name)

    def resume(self, timeout: float | None = None) -> None:
        """Start the job if it is suspended, waits or was interrupted: ``resume``.

        *timeout* is how long a placement is waited for, in seconds: None for not at all, 0 for no limit.
        """
        from arena_topo.jobs.resume import resume_job

        resume_job(self._session(), self.name, _policy(timeout))

    def delete(self, *, uid: str = "", wait: bool = True) -> None:
        """Delete the job with its pods and everything that was created for it: ``delete``.

        With a *uid*, only that very job. Raises ``NotFound``.
        """
        from arena_topo.jobs.create import delete_job, wait_until_gone

        gone = delete_job(self._session(), self.name, uid=uid)
        if wait:
            wait_until_gone(gone, self.name, timeout=0)


def _waiter() -> Any:
    from arena_topo.jobs.logs.wait import Waiter

    return Waiter(_log.info)


def _policy(timeout: float | None) -> Any:
    from arena_topo.jobs.reserve import WaitPolicy

    return WaitPolicy(waiter=_waiter(), timeout=timeout, clock=time.monotonic)


# The first words of a session: functions of the module.


def connect(
    *,
    namespace: str = "",
    context: str = "",
    kubeconfig: str = "",
    server: str = "",
    token: str = "",
    impersonate: str = "",
    request_timeout: float = REQUEST_TIMEOUT,
) -> Cluster:
    """Return the cluster that the kubeconfig names, or another one of its contexts.

    Nothing is asked of it yet. Raises ``DocumentError`` where no kubeconfig names one.
    """
    cluster = Cluster(
        ConnectionFlags(
            namespace=namespace,
            context=context,
            kubeconfig=kubeconfig,
            server=server,
            token=token,
            impersonate=impersonate,
            request_timeout=request_timeout,
        )
    )
    # What is wrong with the kubeconfig is said here, not at the first question.
    _ = cluster.namespace
    return cluster


def snapshot(file: str | Path = "", *, product: str = "") -> Topology:
    """Return the cluster's topology, or the one in *file*: ``topology``, ``topology --from``.

    *file* is a saved snapshot, or the matrix of one machine, whose GPUs are called *product*.
    """
    if not file:
        return connect().snapshot()
    from arena_topo.topology.files import open_topology

    return Topology(open_topology(_text(file, LARGEST_FILE), str(file), product))


def plan(
    job: Job | Manifest, snapshot: Topology | str | Path | None = None, **placing: Unpack[Placing]
) -> Plan:
    """Return where *job* would run on the cluster, or in a saved *snapshot*: ``plan``, ``plan --from``."""
    if snapshot is None:
        return connect().plan(job, **placing)
    options = _plan_options(placing)
    return _plan(job, _topology(snapshot).value, options)


def submit(job: Job | Manifest, **submitting: Unpack[Submitting]) -> JobHandle:
    """Create *job* on the cluster: ``Cluster.submit``."""
    return connect().submit(job, **submitting)


def predict(
    plan: Plan | None = None,
    *,
    ranks: int | None = None,
    busbw: float | None = None,
    transport: str | None = None,
    model: str = "",
    framework: str = "",
    batch: int = 64,
    gpu: str = "",
    images_per_second: float | None = None,
) -> "Report[tuple[Forecast, ...]]":
    """Return how fast benchmarks would train, by a *plan* or by *ranks* and their transport: ``predict``.

    *busbw* is in GB/s; *transport* one of nvlink, pcie, rdma, isolated and tcp.
    """
    from arena_topo.output.reports import forecast_document, forecast_table
    from arena_topo.prediction.forecast import read_planned_gang, shipped_calibration
    from arena_topo.prediction.request import ForecastRequest, forecasts

    calibration = shipped_calibration()
    request = ForecastRequest(
        model=model,
        framework=framework,
        batch=batch,
        ranks=ranks,
        busbw=busbw,
        transport=transport,
        gpu=gpu,
        images_per_second=images_per_second,
    )
    planned = partial(read_planned_gang, plan.document, plan.name) if plan else None
    found, prediction = forecasts(request, calibration, planned)
    document = forecast_document(found, prediction, calibration.source)
    return Report(tuple(found), document, forecast_table(found, prediction, calibration.source))


def _free(session: Session, options: PlanOptions) -> Snapshot:
    """Return the cluster less what is reserved for jobs."""
    from arena_topo.jobs.other_plans import unreserved_snapshot

    return unreserved_snapshot(session, levels=options.levels)


def _topology(given: Topology | str | Path) -> Topology:
    return given if isinstance(given, Topology) else snapshot(given)


def _plan(
    job: Job | Manifest,
    cluster: Snapshot,
    options: PlanOptions,
    namespace: str = "",
    session: Session | None = None,
) -> Plan:
    from arena_topo.jobs.plan import plan_job, plan_spec

    if isinstance(job, Job):
        spec = job._planned().spec(namespace or "default")  # noqa: SLF001  # of this module
        check_elastic(spec, options)
        return Plan(spec.name, plan_spec(spec, cluster, options), cluster)
    written = _object(job)
    if session:
        session = session.within(namespace_of(written, namespace) or session.namespace)
    read = plannable(session, written)
    return Plan(str(read["metadata"]["name"]), plan_job(read, cluster, options), cluster)


def _comparison(job: Job, cluster: Snapshot, options: PlanOptions) -> Report[Comparison]:
    from arena_topo.jobs.plan import compare_spec
    from arena_topo.output.reports import comparison_document, render_comparison

    spec = job._planned().spec()  # noqa: SLF001  # of this module
    found = compare_spec(spec, cluster, options)
    return Report(found, comparison_document(spec.name, found), render_comparison(spec.name, found))


__all__ = [
    "ArenaTopoError",
    "Cluster",
    "Job",
    "JobHandle",
    "Plan",
    "Report",
    "Topology",
    "connect",
    "plan",
    "predict",
    "snapshot",
    "submit",
]
