"""The plan on a job: written and read back unchanged, small enough for an annotation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import (
    Enforcement,
    GpuEnforcement,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
    encode,
    slots_by_node,
)

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1, max_size=12)
GPUS = st.none() | st.lists(st.integers(0, 15), max_size=4).map(tuple)
SLOTS = st.lists(st.tuples(NAMES, GPUS), max_size=8).map(
    lambda places: tuple(Slot(worker, node, gpus) for worker, (node, gpus) in enumerate(places))
)
RECORDS = st.builds(
    PlanRecord,
    stage=st.sampled_from(Stage),
    slots=SLOTS,
    worker_requests=st.dictionaries(NAMES, st.integers(1, 2**40), max_size=3),
    enforcement=st.sampled_from(Enforcement),
    hostnames=st.dictionaries(NAMES, NAMES, max_size=2),
    level=NAMES,
    domain=st.text(max_size=5),
    written=NAMES,
    waiting_reason=st.text(max_size=20),
    requested_options=st.dictionaries(NAMES, NAMES, max_size=2),
    companion_paths=st.lists(NAMES, max_size=2).map(tuple),
    gpu_enforcement=st.sampled_from(GpuEnforcement),
)


@given(RECORDS)
def test_a_plan_is_read_back_as_it_was_written(record: PlanRecord) -> None:
    """Whatever is in it."""
    assert record == decode(encode(record))


def test_a_thousand_workers_fit_into_an_annotation() -> None:
    """On 125 nodes with long names, with the GPUs of each worker; all annotations together may have 256 KiB."""
    name = "a-node-with-a-rather-long-name.of-a-cluster.example.com-{:04}"
    slots = tuple(Slot(i, name.format(i // 8), (i % 8,)) for i in range(1000))
    assert len(encode(PlanRecord(stage=Stage.CONFIRMED, slots=slots))) < 32 * 1024


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"v":2,"stage":"confirmed"}',
        '{"v":1,"stage":"done"}',
        '{"v":1,"stage":"confirmed","means":"magic"}',
        '{"v":1,"stage":"confirmed","gpusBy":"magic"}',
        '{"v":1,"stage":"waiting","nodes":[["a",1]]}',
    ],
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    """With a reason, and never with another error."""
    with pytest.raises(UnreadablePlan, match=r"arena-topo.dev/plan cannot be read"):
        decode(text)


def test_workers_are_told_by_node() -> None:
    """Each node once, with the slots on it."""
    slots = (Slot(0, "a"), Slot(1, "a"), Slot(2, "b"))
    record = PlanRecord(stage=Stage.CONFIRMED, slots=slots)
    assert [("a", [slots[0], slots[1]]), ("b", [slots[2]])] == list(slots_by_node(record).items())
