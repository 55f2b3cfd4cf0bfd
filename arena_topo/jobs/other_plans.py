"""The plans of other jobs, as reservations that the planner must respect where the jobs bear them out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from arena_topo.cluster.published import read_published
from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import DocumentError, Forbidden, NotFound
from arena_topo.jobs.conditions import has_ended
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import asked_roles, question_of
from arena_topo.kinds.elastic import pods_of_job, worker_range
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import KINDS, kind_of
from arena_topo.kube.resources import PODS, RESOURCE_QUOTAS, jobs_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import PLAN, PLANNED, PLANNED_KIND
from arena_topo.model.kind import Kind, Member, api_version, is_suspended, offsets, planned_replicas
from arena_topo.model.objects import POD, TRAINING_JOB, Object
from arena_topo.model.plan import Demand
from arena_topo.model.plan_record import PlanRecord, Stage, decode, plan_text
from arena_topo.model.text.documents import Part, fitted, items, mapping
from arena_topo.model.text.quantity import parse_instant
from arena_topo.planner.reservations import (
    OtherPlan,
    Quota,
    Quotas,
    Scope,
    WorkerTraits,
    credible,
    quota_of,
    within_quotas,
    without_reserved,
)
from arena_topo.topology.objects import amounts, identity, skipped

Bound = Mapping[tuple[str, str, str], frozenset[Member]]
"""The planned pods that have a node, by the namespace, the kind in lower case and the name of their job."""

_MPIJOB = ApiVersion.V2BETA1.kind.lower()
_BY_WORD = {kind.kind.lower(): kind for kind in KINDS}
"""A kind for each word; the pods of all versions of a kind are named alike."""

_STALE = timedelta(seconds=15)
"""Age at which a proposal's submitter is taken for dead. A live one confirms, or writes again, within a few
seconds."""

_EXPIRED = timedelta(seconds=180)
"""Age at which a proposal reserves nothing. A submitter confirms none that is older than
``LATEST_CONFIRMATION``."""

LATEST_CONFIRMATION = timedelta(seconds=30)
"""Age at which a submitter proposes again instead of confirming. With the fifty seconds in which a request is
retried, and the minute after which an API server gives a request up, no confirmation takes effect once others
ignore the proposal."""

_AHEAD = timedelta(seconds=10)
"""How far the clocks of several API servers of one cluster may be apart; what is later than that is no time
of theirs."""

_SELECTOR = f"{PLANNED}=true"
_WRITES_PLAN = f"f:{PLAN}"


def bound_workers(session: Session) -> Bound:
    """Return the workers of planned jobs that have a node now."""
    path, here = PODS.path(), PODS.path(session.namespace)
    return _bound_among(_listed(session, path, here, POD))


def _bound_among(pods: Iterable[Object]) -> Bound:
    bound: dict[tuple[str, str, str], set[Member]] = {}
    for pod in pods:
        word, member = member_of(pod)
        if member and has_node(pod):
            bound.setdefault((pod["metadata"]["namespace"], word, member.job), set()).add(member)
    return {job: frozenset(members) for job, members in bound.items()}


def member_of(pod: Object) -> tuple[str, Member | None]:
    """Return the kind of the job that the planned *pod* is of, in lower case, and which pod of it.

    None where it is no planned pod.
    """
    word = str((pod["metadata"].get("labels") or {}).get(PLANNED_KIND, _MPIJOB))
    kind = _BY_WORD.get(word)
    return word, kind.member(pod) if kind else None


def has_node(pod: Object) -> bool:
    """Whether *pod* was bound to a node."""
    return bool((pod.get("spec") or {}).get("nodeName"))


def other_plans(
    session: Session,
    kinds: Iterable[Kind],
    bound: Bound,
    snapshot: Snapshot,
    warnings: list[str] | None = None,
    *,
    exclude_uid: str = "",
) -> list[OtherPlan]:
    """Return what the plans of all jobs of *kinds* reserve, except the job with the uid *exclude_uid*.

    A plan counts as far as its job asks for the same, and could have it in *snapshot*. Jobs whose plans count
    for nothing are named in *warnings*.
    """
    jobs = [job for kind in kinds for job in read_jobs(session, kind, planned=True)]
    others = [job for job in jobs if job["metadata"]["uid"] != exclude_uid]
    return _plans_of_jobs(session, others, bound, snapshot, [] if warnings is None else warnings)


def _plans_of_jobs(
    session: Session, jobs: Iterable[Object], bound: Bound, snapshot: Snapshot, warnings: list[str]
) -> list[OtherPlan]:
    # By the server's clock: the clocks of those who plan may be wrong, and the one of a forger is what he
    # likes.
    now = session.now()
    found = list(_plans((job for job in jobs if not has_ended(job)), bound, snapshot, now, warnings))
    # Hardly any plan reserves anything: the workers of most jobs have their nodes.
    if not any(plan.reserved for plan in found):
        return found
    return list(within_quotas(found, _read_quotas(session), _gpus_in_use(snapshot)))


def read_jobs(session: Session, kind: Kind, *, planned: bool) -> list[Object]:
    """Return the jobs of *kind*, of the namespaces whose jobs the user may list.

    Only the *planned* ones where asked.
    """
    resource = jobs_of(kind)
    path, here = resource.path(), resource.path(session.namespace)
    try:
        jobs = _listed(session, path, here, TRAINING_JOB, planned=planned)
    except Forbidden:
        # Every cluster has batch Jobs: users who cannot list any plans as if none of them were planned.
        if not kind.listed:
            raise
        return []
    return [{**job, "apiVersion": api_version(kind), "kind": kind.kind} for job in jobs]


def less_reserved(
    session: Session, jobs: Iterable[Object], bound: Bound, snapshot: Snapshot
) -> tuple[Snapshot, list[OtherPlan]]:
    """Return *snapshot* less what the planned ones of *jobs* reserve in it, and their plans.

    Those whose plans count for nothing are named in the snapshot's warnings.
    """
    warnings: list[str] = []
    planned = [job for job in jobs if (job["metadata"].get("labels") or {}).get(PLANNED) == "true"]
    plans = _plans_of_jobs(session, planned, bound, snapshot, warnings)
    left = without_reserved(snapshot, plans)
    return (replace(left, warnings=(*left.warnings, *warnings)) if warnings else left), plans


def unreserved_snapshot(session: Session, *, levels: Sequence[str] = ()) -> Snapshot:
    """Return the cluster as it is now, less what is reserved for jobs whose workers do not run yet.

    Users who cannot see it get what the controller has published of it.
    """
    kinds = ServedApis(session).kinds(KINDS)
    try:
        # Listed before the snapshot, or a worker bound in between would be missed by both.
        bound = bound_workers(session)
        snapshot = take_snapshot(session, levels=levels, needs_pods=True)
    except Forbidden:
        if published := read_published(session, levels):
            return published
        bound, snapshot = bound_workers(session), take_snapshot(session, levels=levels)
    jobs = [job for kind in kinds for job in read_jobs(session, kind, planned=True)]
    return less_reserved(session, jobs, bound, snapshot)[0]


def reservations(session: Session, snapshot: Snapshot | None = None) -> list[OtherPlan] | None:
    """Return the plans that reserve anything now, oldest first.

    *snapshot* is the cluster, read where it is not given.
    None where the user cannot list what they are read from.
    """
    kinds = ServedApis(session).kinds(KINDS)
    try:
        bound = bound_workers(session)
        # On most clusters no job is planned: one short list shows it before all nodes and pods are read.
        if not any(_is_planned_somewhere(session, kind) for kind in kinds):
            return []
        plans = other_plans(session, kinds, bound, snapshot or take_snapshot(session))
    except Forbidden:
        return None
    except NotFound:
        return []
    return sorted((plan for plan in plans if plan.reserved), key=lambda plan: plan.order)


def settled(job: Object, record: PlanRecord) -> PlanRecord:
    """Return *record*, the plan of *job*, as it stands if a growth that it proposes is not finished.

    The number of pods changes in the write that confirms their places: a plan with places for more is a
    proposal still.
    """
    pods = pods_of_job(kind_of(job), job)
    if record.stage is not Stage.PROPOSED or len(record.slots) <= pods:
        return record
    return replace(record, stage=Stage.CONFIRMED, slots=record.slots[:pods])


def _is_planned_somewhere(session: Session, kind: Kind) -> bool:
    try:
        return bool(session.get(jobs_of(kind).path(), labelSelector=_SELECTOR, limit=1).get("items"))
    except Forbidden:
        if not kind.listed:
            raise
        return False


def order_of(job: Object) -> tuple[str, str]:
    """Return what sorts jobs by age."""
    meta = job["metadata"]
    return str(meta.get("creationTimestamp", "")), str(meta.get("uid", ""))


def _plans(
    jobs: Iterable[Object], bound: Bound, snapshot: Snapshot, now: datetime, warnings: list[str]
) -> Iterator[OtherPlan]:
    nodes = {node.name: node for node in snapshot.nodes}
    for job in jobs:
        meta = job["metadata"]
        try:
            kind = kind_of(job)
            members = bound.get((meta["namespace"], kind.kind.lower(), meta["name"]), ())
            plan = reserving_plan(kind, job, snapshot, nodes, numbers_of(kind, job, members))
            if plan and (counted := aged(plan, now)):
                yield counted
        except Exception as error:  # noqa: BLE001  # what one job makes this program do must not stop the planning of others
            warnings.append(skipped(identity(job, str(job.get("kind"))), error))


UNTRUE = (ValueError, DocumentError)
"""What ``reserving_plan`` raises: anybody may write an annotation; what is false must not stop the planning
of others."""


def reserving_plan(
    kind: Kind, job: Object, snapshot: Snapshot, nodes: Mapping[str, GpuNode], bound: frozenset[int]
) -> OtherPlan | None:
    """Return the plan of *job* as far as it counts on *nodes*, those of *snapshot* by name.

    None where it reserves nothing. The planned pods with the numbers *bound* have a node. How old the plan
    is, is for ``aged``. Raises ``UNTRUE``.
    """
    meta = job["metadata"]
    record = _reserving(kind, job)
    if record is None:
        return None
    kept = settled(job, record)
    return OtherPlan(
        order=order_of(job),
        record=credible(record, _asked(kind, job, record, snapshot), nodes),
        bound=bound,
        if_given_up=None if kept is record else credible(kept, _asked(kind, job, kept, snapshot), nodes),
        namespace=meta["namespace"],
        name=meta["name"],
        since=_written(job),
        traits=_worker_traits(kind, job),
    )


def aged(plan: OtherPlan, now: datetime) -> OtherPlan | None:
    """Return *plan* as it counts at the server's instant *now*, None once it has expired."""
    age = _age(plan.since, now)
    if plan.record.stage is Stage.PROPOSED and age > _EXPIRED:
        # A growth that was not finished leaves the job the places that it had.
        return replace(plan, record=plan.if_given_up, if_given_up=None) if plan.if_given_up else None
    return replace(plan, stale=age > _STALE)


def _asked(kind: Kind, job: Object, record: PlanRecord, snapshot: Snapshot) -> Sequence[tuple[str, Demand]]:
    """Return what the roles of *job* ask for: of an elastic one that grows, as many pods as it may have."""
    question = question_of(job, snapshot, PlanOptions())
    limits = worker_range(kind, job) if record.stage is Stage.PROPOSED else None
    if limits and isinstance(question, Demand):
        question = replace(question, workers=max(question.workers, limits.most))
    return asked_roles(question)


def numbers_of(kind: Kind, job: Object, members: Iterable[Member]) -> frozenset[int]:
    """Return the numbers of *members*, pods of *job*."""
    first = offsets(kind, job)
    return frozenset(first[member.role] + member.index for member in members if member.role in first)


def _reserving(kind: Kind, job: Object) -> PlanRecord | None:
    """Return the plan of *job*, None where it reserves nothing.

    Raises ``ValueError`` for one that cannot be true.
    """
    record = decode(plan_text(job) or "")
    # A job that waits has no slots.
    if record.stage in (Stage.WAITING, Stage.SUSPENDED):
        return None
    if not planned_replicas(kind, job):
        raise ValueError("it has a plan and no workers")
    # Submit releases a job in the write that confirms its plan: one that is suspended anyway asks for
    # nothing.
    if record.stage is Stage.CONFIRMED and is_suspended(kind, job):
        raise ValueError("its plan is confirmed, and the job is suspended")
    return record


def age_of_plan(job: Object, now: datetime) -> timedelta:
    """Return how long ago the plan of *job* was written.

    More than any limit where its time is in the future.
    """
    return _age(_written(job), now)


def _age(since: str, now: datetime) -> timedelta:
    written = parse_instant(since)
    return timedelta.max if written - now > _AHEAD else now - written


def _written(job: Object) -> str:
    """Return when the server took the plan of *job*, by its note for each writer, else its creation."""
    meta = job["metadata"]
    times = [str(entry["time"]) for entry in entries_of_plan(job) if entry.get("time")]
    return max(times, key=parse_instant, default=str(meta["creationTimestamp"]))


def plan_writers(job: Object) -> frozenset[str]:
    """Return the field managers that have written the plan that *job* carries."""
    return frozenset(str(entry.get("manager")) for entry in entries_of_plan(job))


def entries_of_plan(job: Object) -> Iterator[Object]:
    """Yield what the server notes of each writer of the plan of *job*."""
    for entry in job["metadata"].get("managedFields") or ():
        if _WRITES_PLAN in _annotations_of(entry):
            yield entry


def _annotations_of(entry: Object) -> Object:
    fields: Object = entry
    for key in ("fieldsV1", "f:metadata", "f:annotations"):
        below = fields.get(key)
        fields = below if isinstance(below, dict) else {}
    return fields


def _read_quotas(session: Session) -> Quotas:
    """Return what the ResourceQuotas of all namespaces admit; none where the user cannot list them."""
    try:
        return quotas_of(session.list(RESOURCE_QUOTAS.path()))
    except (Forbidden, NotFound):
        return {}


def quotas_of(found: Iterable[Object]) -> Quotas:
    """Return what the ResourceQuota objects *found* admit, by namespace.

    Those that cannot be read admit anything.
    """
    quotas: dict[str, list[Quota]] = {}
    for quota in found:
        try:
            spec = mapping(quota, "spec")
            namespace = str(mapping(quota, "metadata").get("namespace", ""))
            read = Quota(quota_of(amounts(spec, "hard")), tuple(_scopes(spec)))
        except DocumentError:
            continue
        quotas.setdefault(namespace, []).append(read)
    return quotas


def _scopes(spec: Mapping[str, object]) -> Iterator[Scope]:
    plain = spec.get("scopes") or []
    if not isinstance(plain, list):
        raise DocumentError("scopes must be a list")
    yield from (Scope(str(name)) for name in plain)
    for term in items(mapping(spec, "scopeSelector"), "matchExpressions"):
        values = term.get("values") or []
        if not isinstance(values, list):
            raise DocumentError("values must be a list")
        yield Scope(str(term.get("scopeName")), str(term.get("operator")), frozenset(map(str, values)))


def _worker_traits(kind: Kind, job: Object) -> WorkerTraits:
    """Return what the scopes of quotas ask of the planned pods of *job*. Raises ``DocumentError``."""
    # The pods of all roles are in the same scopes, unless somebody's job gives them different priorities.
    spec = mapping(planned_replicas(kind, job)[0].pods, "spec")
    affinity = mapping(spec, "affinity")
    terms = [
        term.get("podAffinityTerm") or term
        for kind in ("podAffinity", "podAntiAffinity")
        for rule in ("required", "preferred")
        for term in items(mapping(affinity, kind), f"{rule}DuringSchedulingIgnoredDuringExecution")
    ]
    amounts_of_all = [
        amounts
        for container in (*items(spec, "containers"), *items(spec, "initContainers"))
        for amounts in mapping(container, "resources").values()
        if isinstance(amounts, Mapping)
    ]
    return WorkerTraits(
        priority_class=str(spec.get("priorityClassName") or ""),
        has_deadline=spec.get("activeDeadlineSeconds") is not None,
        # Only by CPU and memory, as the kubelet classes pods.
        is_best_effort=not any({"cpu", "memory"} & amounts.keys() for amounts in amounts_of_all),
        is_near_other_namespaces=any(
            isinstance(term, Mapping)
            and (term.get("namespaces") or term.get("namespaceSelector") is not None)
            for term in terms
        ),
    )


def _gpus_in_use(snapshot: Snapshot) -> Mapping[str, Mapping[str, int]]:
    used: dict[str, Counter[str]] = {}
    for node in snapshot.nodes:
        for holder in node.holders:
            used.setdefault(holder.namespace, Counter())[node.gpu_resource] += holder.gpus
    return used


def _listed(
    session: Session, everywhere: str, here: str, shape: Part, *, planned: bool = True
) -> list[Object]:
    """Return the objects, or only the *planned* ones, of all namespaces that the user can list."""

    def listed(path: str) -> list[Object]:
        return session.list(path, labelSelector=_SELECTOR) if planned else session.list(path)

    # A user of one namespace may plan anyway: what others have reserved elsewhere is then unknown.
    try:
        found = listed(everywhere)
    except Forbidden:
        found = listed(here)
    return [fitted(item, shape) for item in found]
