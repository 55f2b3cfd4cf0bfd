"""Which GPUs of its node each worker gets, where the cluster can be told: DRA claims, or HAMi's annotation."""

from collections.abc import Mapping, Sequence

from arena_topo.errors import Conflict, NotFound, UsageError
from arena_topo.jobs.placement.enforcement import claimants
from arena_topo.kube.discovery import preferred_version, served_versions
from arena_topo.kube.resources import path_of, resource_of
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.keys import DRA_GPU
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Placement
from arena_topo.model.plan.plan_record import Enforcement, GpuEnforcement, PlanRecord, slots_by_node
from arena_topo.pin.dra_claims import GROUP, VERSIONS, asks_for, claim

_HAMI = "hami.io/"


def exactness(
    verdict: Placement, snapshot: Snapshot, resource: str, means: Enforcement, *, share: bool = False
) -> GpuEnforcement:
    """Return how the GPUs of *verdict* can be enforced.

    Raises ``UsageError`` where GPUs are handed out by claims alone and nothing can give each worker its own.
    """
    if resource == DRA_GPU:
        if means is Enforcement.ADMISSION:
            return GpuEnforcement.SHARED_CLAIMS if share else GpuEnforcement.CLAIMS
        raise UsageError(
            "the GPUs of this cluster are handed out by DRA claims, and a claim of its own for each worker takes the "
            "admission policy, which is not installed",
            hint="ask the cluster's admin for: arena-topo cluster setup --apply",
        )
    nodes = {node.name: node for node in snapshot.nodes}
    chosen = [nodes[slot.node] for slot in verdict.slots if slot.gpus]
    by_hami = bool(chosen) and all(_is_hami(node) for node in chosen)
    return GpuEnforcement.UUIDS if by_hami and means.places_each_worker else GpuEnforcement.NONE


def uuids_of(record: PlanRecord, snapshot: Snapshot) -> dict[int, tuple[str, ...]]:
    """Return the UUIDs of each worker's GPUs, by its index; empty texts where a node does not tell them.

    Where the workers of a node share its GPUs each has all of them, its own first.
    """
    known = {node.name: {gpu.index: gpu.uuid for gpu in node.gpus} for node in snapshot.nodes}
    own = {
        slot.worker: tuple(known.get(slot.node, {}).get(gpu, "") for gpu in slot.gpus or ())
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


def make_claims(
    session: Session, job: Object, record: PlanRecord, uuids: Mapping[int, Sequence[str]]
) -> None:
    """Make the claim of every worker, or the one of every node; one that is there for other GPUs, of an earlier plan, is made anew.

    Raises ``NotFound`` where the cluster serves no claims, ``UsageError`` where a GPU's UUID is not known.
    """
    if any(not uuid for each in uuids.values() for uuid in each):
        raise UsageError("a planned GPU tells no UUID, so that it cannot be claimed", hint="use --pin=none")
    version = _version(session)
    for worker in sorted(set(claimants(record).values())):
        _make(session, claim(job, worker, uuids[worker], version))


def _make(session: Session, wanted: Object) -> None:
    meta = wanted["metadata"]
    resource, path = resource_of(wanted["apiVersion"], wanted["kind"]), path_of(wanted)
    try:
        session.create(resource.path(meta["namespace"]), wanted)
    except Conflict as error:
        found = session.get(path)
        if asks_for(found, wanted):
            return
        if (found.get("status") or {}).get("reservedFor"):
            raise Conflict(
                f"the claim {meta['name']} is in use with other GPUs",
                hint="delete the job and submit it again",
                status=409,
            ) from error
        session.delete(path, uid=found["metadata"]["uid"])
        session.create(resource.path(meta["namespace"]), wanted)


def _version(session: Session) -> str:
    version = preferred_version(served_versions(session), GROUP, VERSIONS)
    if not version:
        raise NotFound(f"this cluster serves no ResourceClaims ({GROUP})", status=404)
    return version


def _is_hami(node: GpuNode) -> bool:
    return all(gpu.uuid for gpu in node.gpus) and any(_HAMI in fact.source for fact in node.facts)
