"""How the planned GPUs of each worker are enforced, and which UUIDs that names."""

from dataclasses import replace

import pytest

from arena_topo.errors import UsageError
from arena_topo.jobs.enforce import choose_gpu_enforcement, uuids_of
from arena_topo.model.cluster import Fact, Gpu, Snapshot
from arena_topo.model.placement_options import Pin
from arena_topo.model.plan_record import Enforcement, GpuEnforcement, PlanRecord, Slot, Stage
from tests.planner.fleets import cluster, node

DRA, PLUGIN = "gpu.nvidia.com", "nvidia.com/gpu"
SLOTS = (Slot(0, "n", (0, 1)), Slot(1, "n", (2, 3)))


def with_uuids(source: str) -> Snapshot:
    """Return a node whose GPUs have UUIDs, as *source* publishes them."""
    plain = node("n")
    gpus = tuple(Gpu(gpu.index, f"GPU-{gpu.index}") for gpu in plain.gpus)
    return cluster([replace(plain, gpus=gpus, facts=(Fact("gpus", source),))])


PLAIN, HAMI = with_uuids("the device plugin"), with_uuids("annotation hami.io/node-nvidia-register")


@pytest.mark.parametrize(
    ("snapshot", "resource", "enforcement", "pin", "share", "expected"),
    [
        (PLAIN, PLUGIN, Enforcement.ADMISSION, Pin.AUTO, False, GpuEnforcement.NONE),
        (PLAIN, DRA, Enforcement.ADMISSION, Pin.AUTO, False, GpuEnforcement.CLAIMS),
        (PLAIN, DRA, Enforcement.ADMISSION, Pin.WORKERS, False, GpuEnforcement.CLAIMS),
        (PLAIN, DRA, Enforcement.ADMISSION, Pin.AUTO, True, GpuEnforcement.SHARED_CLAIMS),
        (HAMI, PLUGIN, Enforcement.GATES, Pin.AUTO, False, GpuEnforcement.UUIDS),
        (HAMI, PLUGIN, Enforcement.ADMISSION, Pin.GPUS, False, GpuEnforcement.UUIDS),
        (HAMI, PLUGIN, Enforcement.GATES, Pin.WORKERS, False, GpuEnforcement.NONE),
        (HAMI, PLUGIN, Enforcement.AFFINITY, Pin.AUTO, False, GpuEnforcement.NONE),
    ],
)
def test_gpus_are_enforced_as_exactly_as_the_cluster_can(
    snapshot: Snapshot,
    resource: str,
    enforcement: Enforcement,
    pin: Pin,
    *,
    share: bool,
    expected: GpuEnforcement,
) -> None:
    """By claims where a DRA driver allocates them, by UUID
    where HAMi does; --pin=workers leaves HAMi the choice.
    """
    assert expected is choose_gpu_enforcement(
        SLOTS, snapshot, resource, enforcement=enforcement, pin=pin, share=share
    )


@pytest.mark.parametrize(
    ("resource", "enforcement", "pin", "share", "message"),
    [
        (DRA, Enforcement.GATES, Pin.AUTO, False, "per-worker claims need the admission policy"),
        (PLUGIN, Enforcement.ADMISSION, Pin.GPUS, False, "--pin=gpus cannot be enforced on this cluster"),
        (PLUGIN, Enforcement.ADMISSION, Pin.AUTO, True, "--share-gpus needs GPUs allocated by a DRA driver"),
    ],
)
def test_less_than_was_asked_for_is_refused(
    resource: str, enforcement: Enforcement, pin: Pin, *, share: bool, message: str
) -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match=message) as refused:
        choose_gpu_enforcement(SLOTS, PLAIN, resource, enforcement=enforcement, pin=pin, share=share)
    assert refused.value.hint


def record(gpus: GpuEnforcement) -> PlanRecord:
    """Return a plan of two workers on one node."""
    return PlanRecord(stage=Stage.CONFIRMED, slots=SLOTS, gpu_enforcement=gpus)


def test_each_worker_is_given_the_uuids_of_its_own_gpus() -> None:
    """Empty where the node does not publish them."""
    assert {0: ("GPU-0", "GPU-1"), 1: ("GPU-2", "GPU-3")} == uuids_of(record(GpuEnforcement.CLAIMS), HAMI)
    assert {0: ("", ""), 1: ("", "")} == uuids_of(record(GpuEnforcement.CLAIMS), cluster([node("n")]))


def test_workers_that_share_a_claim_have_all_its_gpus() -> None:
    """Their own first."""
    expected = {0: ("GPU-0", "GPU-1", "GPU-2", "GPU-3"), 1: ("GPU-2", "GPU-3", "GPU-0", "GPU-1")}
    assert expected == uuids_of(record(GpuEnforcement.SHARED_CLAIMS), HAMI)
