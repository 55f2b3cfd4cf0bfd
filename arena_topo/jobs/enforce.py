"""Releasing the gated workers of a job, each to its planned node."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.errors import Conflict, NotFound, UsageError, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, pods_of
from arena_topo.kinds.table import kind_of
from arena_topo.kube.resources import PODS, path_of, resource_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import Pins
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import DRA_GPU, MOVES, PIN_GPUS, PIN_NODES
from arena_topo.model.kind import Kind, Loose, number_of, planned_noun, planned_replicas
from arena_topo.model.moves import Move, with_move
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import Pin
from arena_topo.model.plan_record import (
    MOST_WORKERS,
    Enforcement,
    GpuEnforcement,
    PlanRecord,
    Slot,
    Stage,
    encode,
    slots_by_node,
)
from arena_topo.model.text.words import written_duration
from arena_topo.pin import affinity, run_lists
from arena_topo.pin.dra_claims import GROUP, VERSIONS, claim, claim_name, same_gpus
from arena_topo.pin.gates import is_gated, release_patch

# How a plan is enforced on this cluster: the choice, and the pins that carry it out.


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSupport:
    """What of a cluster decides how a plan can be enforced.

    ``admission``: our policy is installed and current; ``keeps_gates``: the served MPIJob keeps scheduling
    gates.
    """

    kind: Kind
    admission: bool = False
    keeps_gates: bool = True


def choose_enforcement(pin: Pin, support: PinSupport, *, gates_are_the_gang: bool = False) -> Enforcement:
    """Return how a plan is enforced for *pin*. Raises ``UsageError`` where nothing is exact enough."""
    # Where the gates are what starts the gang together, they are set whatever pin was asked for.
    if gates_are_the_gang:
        return Enforcement.GATES
    if pin is Pin.NONE:
        return Enforcement.NONE
    # v1alpha1 can be neither suspended nor gated, so nothing could wait for a plan to be confirmed.
    # --pin=nodes asks only for the set of nodes, which leaves the scheduler its choice among them.
    each_worker = bool(support.kind.suspend) and pin is not Pin.NODES
    # The policy comes first: it places a recreated worker by itself, which a gate leaves to arena-topo
    # resume.
    if each_worker and support.admission:
        return Enforcement.ADMISSION
    if each_worker and support.keeps_gates:
        return Enforcement.GATES
    # An affinity is known once the plan is confirmed, and then neither the webhook of JobSet nor Kubernetes
    # takes it any more.
    if support.kind.loose is Loose.SCHEDULING:
        if pin is Pin.AUTO:
            return Enforcement.NONE
        raise UsageError(
            f"--pin={pin.value} cannot be enforced for a {support.kind.kind}: the template of its pods takes no node "
            "affinity once it is created"
            if pin is Pin.NODES
            else f"--pin={pin.value} cannot be enforced on this cluster: neither the admission policy nor scheduling gates "
            "can be used",
            hint="use --pin=workers, which the admission policy or scheduling gates enforce, or --pin=none",
        )
    # Affinity does not decide for each worker, so it is too weak where that was asked for.
    if pin in (Pin.WORKERS, Pin.GPUS):
        raise UsageError(
            f"--pin={pin.value} cannot be enforced on this cluster: neither the admission policy nor scheduling gates "
            "can be used",
            hint="use --pin=auto, or ask the cluster's admin for: arena-topo cluster setup --apply",
        )
    return Enforcement.AFFINITY


def suspended_with_plan(record: PlanRecord) -> Pins:
    """Return the pins of a job that is created with the proposal *record* and waits for its confirmation."""
    gated = record.enforcement is Enforcement.GATES
    return Pins(plan=encode(record), new=True, gated=gated, suspended=None if gated else True)


def rewritten(job: Object, record: PlanRecord, uuids: Mapping[int, Sequence[str]] | None = None) -> Pins:
    """Return the pins by which the waiting *job* gets the plan *record*, in place of the one before.

    A confirmed plan starts the job: its pins take effect, and the operator may create the pods. Gated workers
    are released one by one after that. *uuids* are the workers' GPUs, where the plan enforces them.
    """
    # A plan that is only proposed, or waits, must not start anything: only the text of the plan is replaced.
    if record.stage is not Stage.CONFIRMED:
        return Pins(plan=encode(record))
    started = Pins(plan=encode(record), suspended=False)
    hostnames = [record.hostname(slot.node) for slot in record.slots]
    match record.enforcement:
        case Enforcement.ADMISSION:
            return replace(
                started,
                annotations=_run_lists(job, record, hostnames, uuids or {}),
                shared_gpus=record.gpu_enforcement is GpuEnforcement.SHARED_CLAIMS,
            )
        case Enforcement.AFFINITY:
            return replace(
                started,
                node_term=affinity.node_term(hostnames),
                spread=affinity.spread_constraint(job["metadata"]["name"], hostnames),
            )
        case Enforcement.GATES | Enforcement.NONE:
            return started


def pinned_immediately(job: Object, record: PlanRecord) -> Pins:
    """Return the pins of *job* that starts as it is created, its plan in force.

    For v1alpha1, which can be neither suspended nor gated until a plan is confirmed.
    """
    return replace(rewritten(job, replace(record, stage=Stage.CONFIRMED)), new=True)


def pins_of(job: Object, record: PlanRecord) -> Pins:
    """Return what the plan *record* has put onto *job* and its templates, for anyone who takes it away again.

    Which GPUs it named need not be known for that.
    """
    return rewritten(job, replace(record, stage=Stage.CONFIRMED, gpu_enforcement=GpuEnforcement.NONE))


def _run_lists(
    job: Object, record: PlanRecord, hostnames: Sequence[str], uuids: Mapping[int, Sequence[str]]
) -> dict[str, str]:
    gpus = record.gpu_enforcement
    claimants = claimant_by_worker(record) if gpus.by_claim else {}
    # HAMi allocates by UUID; workers that share a claim find by UUID which of its GPUs are their own.
    by_uuid = gpus in (GpuEnforcement.UUIDS, GpuEnforcement.SHARED_CLAIMS)
    return run_lists.pin_annotations(
        nodes=hostnames,
        gpus=[uuids[slot.worker] for slot in record.slots] if by_uuid else (),
        # Parameter servers without GPUs claim none.
        claims=[
            claim_name(job, claimants[slot.worker]) if slot.worker in claimants else ""
            for slot in record.slots
        ]
        if claimants
        else (),
    )


def moved_pins(
    job: Object, move: Move, hostnames: Mapping[int, str], uuids: Mapping[int, Sequence[str]]
) -> list[Object]:
    """Return the JSON patch that notes *move* on *job*, as the server has it, and pins workers elsewhere.

    *hostnames*, and *uuids* if GPUs are pinned, are those of the workers that move; the pins of all others
    stay. Nothing of the templates but the lists is written, and the server refuses the patch once anybody
    else changed one. Raises ``Conflict`` for a job whose templates have no pins yet.
    """
    meta = job["metadata"]
    operations: list[Object] = [{"op": "test", "path": "/metadata/uid", "value": meta["uid"]}]
    operations += noted_move(job, move)
    if not hostnames:
        return operations
    lists = {
        PIN_NODES: hostnames,
        PIN_GPUS: {number: run_lists.joined(each) for number, each in uuids.items()},
    }
    pinned = False
    for replicas in planned_replicas(kind_of(job), job):
        annotations = (replicas.template.get("metadata") or {}).get("annotations") or {}
        for key, new in lists.items():
            if text := annotations.get(key):
                pinned = pinned or key == PIN_NODES
                values = run_lists.decoded(text, MOST_WORKERS)
                values = [new.get(number, value) for number, value in enumerate(values)]
                operations += _replaced(
                    f"{replicas.path}/metadata", annotations, key, run_lists.encoded(values)
                )
    if not pinned:
        raise Conflict(f"the job {meta['name']} has no pins that could be changed yet", status=409)
    return operations


def noted_move(job: Object, move: Move, *, again: bool = False) -> Iterator[Object]:
    """Yield the operations that note *move* on *job*; *again*: the last one came to nothing."""
    written = job["metadata"].get("annotations")
    if written is None:
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    text = with_move((written or {}).get(MOVES), move, again=again)
    yield from _replaced("/metadata", written or {}, MOVES, text)


def _replaced(path: str, annotations: Mapping[str, str], key: str, value: str) -> Iterator[Object]:
    """Yield the operations that give *key* of the *annotations* at *path* the *value*, if it is as it was."""
    pointer = f"{path}/annotations/{key.replace('/', '~1')}"
    if key in annotations:
        yield {"op": "test", "path": pointer, "value": annotations[key]}
    yield {"op": "add", "path": pointer, "value": value}


def claimant_by_worker(record: PlanRecord) -> dict[int, int]:
    """Map each worker with GPUs to the one whose name its claim carries.

    That is itself, or the first that shares the claim.
    """
    if record.gpu_enforcement is not GpuEnforcement.SHARED_CLAIMS:
        # Of alike pods a plan may not know the GPUs, and all claim some.
        return {slot.worker: slot.worker for slot in record.slots if slot.gpus or not record.roles}
    return {slot.worker: slots[0].worker for slots in slots_by_node(record).values() for slot in slots}


# Which GPUs of its node each worker gets, where that can be enforced: by DRA claims, or by HAMi's annotation.

_HAMI = "hami.io/"


def choose_gpu_enforcement(
    slots: Sequence[Slot],
    snapshot: Snapshot,
    gpu_resource: str,
    *,
    enforcement: Enforcement,
    pin: Pin,
    share: bool = False,
) -> GpuEnforcement:
    """Return how the GPUs of *slots*, which the workers request by *gpu_resource*, are enforced.

    Raises ``UsageError`` where that is less than *pin* or *share* needs, and where GPUs are only allocated by
    claims but nothing can give each worker its own.
    """
    possible = _strongest_possible(slots, snapshot, gpu_resource, enforcement, share=share)
    if share and possible is not GpuEnforcement.SHARED_CLAIMS:
        raise UsageError(
            "--share-gpus needs GPUs allocated by a DRA driver and the admission policy",
            hint="use --coalesce, which makes one pod of a node's ranks on any cluster",
        )
    if pin is Pin.GPUS and possible is GpuEnforcement.NONE:
        raise UsageError(
            "--pin=gpus cannot be enforced on this cluster: it needs GPUs of a DRA driver, or HAMi's",
            hint="use --pin=auto, which says what is only predicted",
        )
    # HAMi can choose by itself, so --pin=workers leaves it the choice; a claim must name the GPUs in any
    # case.
    if pin is Pin.WORKERS and possible is GpuEnforcement.UUIDS:
        return GpuEnforcement.NONE
    return possible


def _strongest_possible(
    slots: Sequence[Slot], snapshot: Snapshot, gpu_resource: str, enforcement: Enforcement, *, share: bool
) -> GpuEnforcement:
    if gpu_resource == DRA_GPU:
        # All workers have one template, so only the policy can name another claim for each of them.
        if enforcement is Enforcement.ADMISSION:
            return GpuEnforcement.SHARED_CLAIMS if share else GpuEnforcement.CLAIMS
        raise UsageError(
            "the GPUs of this cluster are allocated by DRA claims, and per-worker claims need the admission policy, "
            "which is not installed",
            hint="ask the cluster's admin for: arena-topo cluster setup --apply",
        )
    nodes = {node.name: node for node in snapshot.nodes}
    with_gpus = [nodes[slot.node] for slot in slots if slot.gpus]
    # HAMi reads the UUIDs from the pod's annotation, which the policy writes, or the patch that opens the
    # gate.
    by_hami = bool(with_gpus) and all(_is_hami(node) for node in with_gpus)
    return GpuEnforcement.UUIDS if by_hami and enforcement.places_each_worker else GpuEnforcement.NONE


def uuids_of(record: PlanRecord, snapshot: Snapshot) -> dict[int, tuple[str, ...]]:
    """Return the UUIDs of each worker's GPUs, by its index; empty strings where a node does not publish them.

    Workers that share a claim have all GPUs of the claim, their own first. For example, with worker 0 on GPUs
    0 and 1 of a node and worker 1 on GPUs 2 and 3, worker 1 gets the UUIDs of GPUs 2, 3, 0 and 1.
    """
    published = {node.name: {gpu.index: gpu.uuid for gpu in node.gpus} for node in snapshot.nodes}
    own = {
        slot.worker: tuple(published.get(slot.node, {}).get(gpu, "") for gpu in slot.gpus or ())
        for slot in record.slots
    }
    if record.gpu_enforcement is not GpuEnforcement.SHARED_CLAIMS:
        return own
    together = {
        node: [uuid for slot in slots for uuid in own[slot.worker]]
        for node, slots in slots_by_node(record).items()
    }
    return {
        slot.worker: tuple(dict.fromkeys((*own[slot.worker], *together[slot.node]))) for slot in record.slots
    }


def create_claims(
    session: Session, job: Object, record: PlanRecord, uuids: Mapping[int, Sequence[str]]
) -> None:
    """Create the claim of every worker, or of every node where they are shared.

    A claim that exists for other GPUs, of an earlier plan, is recreated. Raises ``NotFound`` where the
    cluster serves no claims, ``UsageError`` where a GPU's UUID is not known.
    """
    if any(not uuid for gpus in uuids.values() for uuid in gpus):
        raise UsageError("a planned GPU has no known UUID, so it cannot be claimed", hint="use --pin=none")
    version = _served_version(session)
    for worker in sorted(set(claimant_by_worker(record).values())):
        _create(session, claim(job, worker, uuids[worker], version))


def _create(session: Session, wanted: Object) -> None:
    meta = wanted["metadata"]
    collection, path = (
        resource_of(wanted["apiVersion"], wanted["kind"]).path(meta["namespace"]),
        path_of(wanted),
    )
    try:
        session.create(collection, wanted)
    except Conflict as error:
        existing = session.get(path)
        # An interrupted submit, or a proposal that lost, left it; for the same GPUs it serves as it is.
        if same_gpus(existing, wanted):
            return
        # A reserved claim belongs to pods that have been scheduled, and its finalizer keeps it until they
        # have ended.
        if (existing.get("status") or {}).get("reservedFor"):
            raise Conflict(
                f"the claim {meta['name']} is in use with other GPUs",
                hint="delete the job and submit it again",
                status=409,
            ) from error
        session.delete(path, uid=existing["metadata"]["uid"])
        session.create(collection, wanted)


def _served_version(session: Session) -> str:
    newest = ServedApis(session).preferred(GROUP, VERSIONS)
    if not newest:
        raise NotFound(f"this cluster serves no ResourceClaims ({GROUP})", status=404)
    return newest


def _is_hami(node: GpuNode) -> bool:
    # A node's facts say where they come from: HAMi registers its GPUs in annotations of the node.
    return all(gpu.uuid for gpu in node.gpus) and any(_HAMI in fact.source for fact in node.facts)


Uuids = Mapping[int, Sequence[str]]

_TRIES = 5
"""Attempts to release a pod that others write at the same time."""


@dataclass(frozen=True, slots=True)
class Released:
    """How far a release has got.

    Workers released by it, workers released before, and workers that do not exist yet.
    """

    now: int
    before: int
    missing: int


def gated_workers(session: Session, served: ServedJob) -> frozenset[int]:
    """Return the workers of the job that wait at our gate."""
    return frozenset(index for index, pod in _workers(session, served) if is_gated(pod))


def ungate_existing(
    session: Session, served: ServedJob, record: PlanRecord, uuids: Uuids | None = None
) -> Released:
    """Release every gated worker that exists to its place in *record*, and to its GPUs where given."""
    workers = dict(_workers(session, served))
    gated = {index: pod for index, pod in workers.items() if is_gated(pod)}
    for slot in record.slots:
        if slot.worker in gated:
            gpus = (uuids or {}).get(slot.worker, ())
            _release(session, gated[slot.worker], record.hostname(slot.node), gpus)
    # A worker without a gate was released before, by us or by another submitter.
    existing = sum(slot.worker in workers for slot in record.slots)
    return Released(len(gated), existing - len(gated), len(record.slots) - existing)


def ungate_as_created(
    session: Session,
    served: ServedJob,
    record: PlanRecord,
    waiter: Waiter,
    *,
    uuids: Uuids | None = None,
    timeout: float = 120.0,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Release the workers as the operator creates them; return how many were released now.

    *timeout* is in seconds. Raises ``WaitTimeout`` when some were never created.
    """
    deadline, released = clock() + timeout, 0
    while True:
        progress = ungate_existing(session, served, record, uuids)
        released += progress.now
        if not progress.missing:
            return released
        missing = f"{progress.missing} of {len(record.slots)} {planned_noun(served.kind)}s"
        if clock() > deadline:
            raise WaitTimeout(
                f"{missing} were not created within {written_duration(timeout)}",
                hint=f"is {served.kind.served_by} running? Continue with: arena-topo resume {served.name}",
            )
        waiter.pause(f"waiting for {served.kind.served_by} to create {missing}")


def _workers(session: Session, served: ServedJob) -> Iterator[tuple[int, Object]]:
    """Yield the planned pods of the job that exist, with their numbers."""
    for pod in pods_of(session, served):
        number = number_of(served.kind, served.job, pod)
        if number is not None:
            yield number, pod


def _release(session: Session, pod: Object, hostname: str, uuids: Sequence[str]) -> None:
    path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"])
    for _ in range(_TRIES):
        try:
            session.patch(path, release_patch(pod, hostname, uuids))
        except Conflict:
            # The operator or kubelet wrote the pod since it was read; another submitter may have released it.
            pod = session.get(path)
            if not is_gated(pod):
                return
        except NotFound:
            # A worker that was deleted is recreated behind the gate, and waits for arena-topo resume.
            return
        else:
            return
    raise Conflict(f"the pod {pod['metadata']['name']} changes too fast to be released", status=409)
