"""How a plan is enforced on this cluster: the choice, and the pins that carry it out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.errors import UsageError
from arena_topo.manifest.plan_on_job import Pins
from arena_topo.model.job.kind import Kind, Loose
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
class PinSupport:
    """What of a cluster decides how a plan can be enforced.

    ``admission``: our policy is installed and current; ``keeps_gates``: the served MPIJob keeps scheduling gates.
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
    # v1alpha1 can be neither suspended nor gated, so nothing could wait for a plan to be confirmed. --pin=nodes asks
    # for the set of nodes alone, which leaves the scheduler its choice among them.
    each_worker = bool(support.kind.suspend) and pin is not Pin.NODES
    # The policy comes first: it places a recreated worker by itself, which a gate leaves to arena-topo resume.
    if each_worker and support.admission:
        return Enforcement.ADMISSION
    if each_worker and support.keeps_gates:
        return Enforcement.GATES
    # An affinity is known once the plan is confirmed, and then neither the webhook of JobSet nor Kubernetes takes it any more.
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
    """Return the pins of a job that is created with the proposal *record* and waits until that is confirmed."""
    gated = record.enforcement is Enforcement.GATES
    return Pins(plan=encode(record), new=True, gated=gated, suspended=None if gated else True)


def rewritten(job: Object, record: PlanRecord, uuids: Mapping[int, Sequence[str]] | None = None) -> Pins:
    """Return the pins by which the waiting *job* gets the plan *record*, in place of the one before.

    A confirmed plan starts the job: its pins take effect, and the operator may create the pods. Gated workers are
    released one by one after that. *uuids* are the workers' GPUs, where the plan enforces them.
    """
    # A plan that is only proposed, or waits, must not start anything: the text of the plan alone is replaced.
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
    """Return what the plan *record* has put onto *job* and its templates, for whoever takes it away again.

    Which GPUs it named need not be known for that.
    """
    return rewritten(job, replace(record, stage=Stage.CONFIRMED, gpu_enforcement=GpuEnforcement.NONE))


def _run_lists(
    job: Object, record: PlanRecord, hostnames: Sequence[str], uuids: Mapping[int, Sequence[str]]
) -> dict[str, str]:
    """Return the lists that the admission policy reads."""
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


def claimant_by_worker(record: PlanRecord) -> dict[int, int]:
    """Map each worker with GPUs to the one whose name its claim carries: itself, or the first that shares the claim."""
    if record.gpu_enforcement is not GpuEnforcement.SHARED_CLAIMS:
        # Of alike pods a plan may not know the GPUs, and all claim some.
        return {slot.worker: slot.worker for slot in record.slots if slot.gpus or not record.roles}
    return {slot.worker: slots[0].worker for slots in slots_by_node(record).values() for slot in slots}


_ENFORCED_GPUS = {
    GpuEnforcement.CLAIMS: "each on its own GPUs, by a DRA claim",
    GpuEnforcement.SHARED_CLAIMS: (
        "the workers of a node share a DRA claim, each its own GPUs first (experimental: not seen on hardware yet)"
    ),
    GpuEnforcement.UUIDS: "each on its own GPUs, requested from HAMi by UUID",
    GpuEnforcement.NONE: "which GPUs of the node it gets is the kubelet's choice",
}

_ENFORCED = {
    Enforcement.ADMISSION: "all workers together, each on its node, by the cluster's admission policy",
    Enforcement.GATES: (
        "all workers together, each on its node, by scheduling gates; "
        "a recreated worker waits for arena-topo resume"
    ),
    Enforcement.AFFINITY: "the set of nodes, by node affinity; which worker goes where is left to the scheduler",
    Enforcement.NONE: "nothing: the placement is a prediction",
}


def enforced_text(record: PlanRecord) -> str:
    """Return the notes for users on the confirmed *record*: what is enforced, and by what."""
    text = _ENFORCED[record.enforcement]
    # Of GPUs there is something to say only where the plan knows them and each worker has a node of its own.
    if not (record.enforcement.places_each_worker and any(slot.gpus for slot in record.slots)):
        return text
    return f"{text}; {_ENFORCED_GPUS[record.gpu_enforcement]}"
