"""Which GPUs of its node each worker gets, where that can be enforced: by DRA claims, or by HAMi's annotation."""

from collections.abc import Mapping, Sequence

from arena_topo.errors import Conflict, NotFound, UsageError
from arena_topo.jobs.placement.enforcement import claimant_by_worker
from arena_topo.kube.discovery import preferred_version, served_versions
from arena_topo.kube.resources import path_of, resource_of
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.keys import DRA_GPU
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import Enforcement, GpuEnforcement, Pin, PlanRecord, slots_by_node
from arena_topo.pin.dra_claims import GROUP, VERSIONS, claim, same_gpus

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

    Raises ``UsageError`` where that is less than *pin* or *share* needs, and where GPUs are allocated by claims alone
    but nothing can give each worker its own.
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
    # HAMi can choose by itself, so --pin=workers leaves it the choice; a claim must name the GPUs in any case.
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
    # HAMi reads the UUIDs from the pod's annotation, which the policy writes, or the patch that opens the gate.
    by_hami = bool(with_gpus) and all(_is_hami(node) for node in with_gpus)
    return GpuEnforcement.UUIDS if by_hami and enforcement.places_each_worker else GpuEnforcement.NONE


def uuids_of(record: PlanRecord, snapshot: Snapshot) -> dict[int, tuple[str, ...]]:
    """Return the UUIDs of each worker's GPUs, by its index; empty strings where a node does not publish them.

    Workers that share a claim have all GPUs of the claim, their own first. For example, with worker 0 on GPUs 0 and 1
    of a node and worker 1 on GPUs 2 and 3, worker 1 gets the UUIDs of GPUs 2, 3, 0 and 1.
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

    A claim that exists for other GPUs, of an earlier plan, is recreated. Raises ``NotFound`` where the cluster serves
    no claims, ``UsageError`` where a GPU's UUID is not known.
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
        # A reserved claim belongs to pods that have been scheduled, and its finalizer keeps it until they have ended.
        if (existing.get("status") or {}).get("reservedFor"):
            raise Conflict(
                f"the claim {meta['name']} is in use with other GPUs",
                hint="delete the job and submit it again",
                status=409,
            ) from error
        session.delete(path, uid=existing["metadata"]["uid"])
        session.create(collection, wanted)


def _served_version(session: Session) -> str:
    newest = preferred_version(served_versions(session), GROUP, VERSIONS)
    if not newest:
        raise NotFound(f"this cluster serves no ResourceClaims ({GROUP})", status=404)
    return newest


def _is_hami(node: GpuNode) -> bool:
    # A node's facts say where they come from: HAMi registers its GPUs in annotations of the node.
    return all(gpu.uuid for gpu in node.gpus) and any(_HAMI in fact.source for fact in node.facts)
