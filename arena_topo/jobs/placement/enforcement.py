"""How a plan is made to hold on this cluster: the means, and what it puts onto the job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.errors import UsageError
from arena_topo.manifest import plan_on_job as manifest
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.keys import GANG_GATE
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import (
    Enforcement,
    GpuEnforcement,
    Pin,
    PlanRecord,
    Stage,
    encode,
    slots_by_node,
)
from arena_topo.pin import affinity, run_lists
from arena_topo.pin.dra_claims import claim_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What of a cluster decides the means.

    ``admission``: our policy is installed and current; ``keeps_gates``: the served MPIJob keeps scheduling gates;
    ``may_release``: the user may patch pods.
    """

    version: ApiVersion
    admission: bool = False
    keeps_gates: bool = True
    may_release: bool = True


def choose_means(pin: Pin, ground: Ground, *, gates_are_the_gang: bool = False) -> Enforcement:
    """Return the means for *pin* on *ground*. Raises ``UsageError`` where none is exact enough."""
    if pin is Pin.NONE and not gates_are_the_gang:
        return Enforcement.NONE
    held = ground.version is not ApiVersion.V1ALPHA1
    gates = held and ground.keeps_gates and ground.may_release
    if gates_are_the_gang:
        return Enforcement.GATES
    if ground.admission and held and pin is not Pin.NODES:
        return Enforcement.ADMISSION
    if gates and pin is not Pin.NODES:
        return Enforcement.GATES
    if pin in (Pin.WORKERS, Pin.GPUS):
        raise _too_exact(pin, "neither the admission policy nor scheduling gates can be used")
    return Enforcement.AFFINITY


def _too_exact(pin: Pin, why: str) -> UsageError:
    return UsageError(
        f"--pin={pin.value} cannot be kept on this cluster: {why}",
        hint="use --pin=auto, or ask the cluster's admin for: arena-topo cluster setup --apply",
    )


def held(job: Object, record: PlanRecord, means: Enforcement) -> Object:
    """Return *job* with its plan, held back by *means* until ``let_go``."""
    made = manifest.with_claimed_gpus(manifest.planned(job, encode(record)))
    return manifest.gated(made, GANG_GATE) if means is Enforcement.GATES else manifest.suspended(made)


def at_once(job: Object, record: PlanRecord) -> Object:
    """Return *job* with its plan and pins, not held back: for v1alpha1, whose operator cannot be made to wait."""
    confirmed = replace(record, stage=Stage.CONFIRMED)
    return let_go(manifest.planned(job, encode(confirmed)), confirmed)


def let_go(job: Object, record: PlanRecord, uuids: Mapping[int, Sequence[str]] | None = None) -> Object:
    """Return the held *job* with the confirmed *record* and its pins; gated workers are then released one by one.

    *uuids* are the workers' GPUs, where the plan enforces them.
    """
    made = manifest.with_plan(job, encode(record))
    if record.stage is not Stage.CONFIRMED:
        return made
    hostnames = [record.hostname(slot.node) for slot in record.slots]
    match record.enforcement:
        case Enforcement.ADMISSION:
            made = manifest.with_annotations(made, _pins(job, record, hostnames, uuids or {}))
            made = (
                manifest.with_shared_gpus(made)
                if record.gpu_enforcement is GpuEnforcement.SHARED_CLAIMS
                else made
            )
        case Enforcement.AFFINITY:
            name = str(job["metadata"]["name"])
            made = manifest.with_affinity(made, affinity.term(hostnames), affinity.spread(name, hostnames))
        case Enforcement.GATES | Enforcement.NONE:
            pass
    return manifest.resumed(made)


def _pins(
    job: Object, record: PlanRecord, hostnames: Sequence[str], uuids: Mapping[int, Sequence[str]]
) -> dict[str, str]:
    """Return the lists that the admission policy reads."""
    name, claiming = str(job["metadata"]["name"]), record.gpu_enforcement.by_claim
    owners = claimants(record) if claiming else {}
    named = record.gpu_enforcement in (GpuEnforcement.UUIDS, GpuEnforcement.SHARED_CLAIMS)
    return run_lists.pins(
        nodes=hostnames,
        gpus=[uuids[slot.worker] for slot in record.slots] if named else (),
        claims=[claim_name(name, owners[slot.worker]) for slot in record.slots] if claiming else (),
    )


def claimants(record: PlanRecord) -> dict[int, int]:
    """Return for each worker the one after which its claim is named: itself, or the first that shares it."""
    if record.gpu_enforcement is not GpuEnforcement.SHARED_CLAIMS:
        return {slot.worker: slot.worker for slot in record.slots}
    return {slot.worker: slots[0].worker for _, slots in slots_by_node(record).items() for slot in slots}


ENFORCED_GPUS = {
    GpuEnforcement.CLAIMS: "each on its own GPUs, by a DRA claim",
    GpuEnforcement.SHARED_CLAIMS: "the workers of a node share a DRA claim, each its own GPUs first (experimental: not seen on hardware yet)",
    GpuEnforcement.UUIDS: "each on its own GPUs, named to HAMi",
    GpuEnforcement.NONE: "which GPUs of the node it gets is the kubelet's choice",
}
"""What users are told of exact GPUs."""

ENFORCED = {
    Enforcement.ADMISSION: "all workers together, each on its node, by the cluster's admission policy",
    Enforcement.GATES: (
        "all workers together, each on its node, by scheduling gates; "
        "one that is made again waits for arena-topo resume"
    ),
    Enforcement.AFFINITY: "the set of nodes, by node affinity; which worker goes where is left to the scheduler",
    Enforcement.NONE: "nothing: the placement is a prediction",
}
"""What users are told of each means."""
