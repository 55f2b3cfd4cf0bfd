"""The plan on a job: written and read back unchanged, small enough for an annotation."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.plan_record import (
    MOST_ROLES,
    Enforcement,
    GpuEnforcement,
    PlannedRole,
    PlanRecord,
    Slot,
    Stage,
    StartEstimate,
    UnreadablePlan,
    decode,
    encode,
    placed_text,
    slots_by_node,
)

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1, max_size=12)
GPUS = st.none() | st.lists(st.integers(0, 15), max_size=4).map(tuple)
SLOTS = st.lists(st.tuples(NAMES, GPUS), max_size=8).map(
    lambda places: tuple(Slot(worker, node, gpus) for worker, (node, gpus) in enumerate(places))
)
INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(  # noqa: DTZ001  # aware below
    lambda at: at.replace(microsecond=0, tzinfo=UTC)
)
ESTIMATES = st.builds(
    lambda instants, names, more: StartEstimate(
        earliest=instants[0],
        likely=instants[1],
        latest=instants[2],
        after=tuple(names),
        basis=tuple(f"what is known of {name}" for name in names),
        more=more,
    ),
    st.lists(INSTANTS, min_size=3, max_size=3).map(sorted),
    st.lists(NAMES, max_size=8),
    st.integers(0, 2**40),
) | st.builds(StartEstimate, unknown=st.text(min_size=1, max_size=20))
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
    position=st.integers(0, 2**40),
    estimate=st.none() | ESTIMATES,
)


@given(RECORDS)
def test_a_plan_is_read_back_as_it_was_written(record: PlanRecord) -> None:
    """Whatever is in it."""
    assert record == decode(encode(record))


SERVED = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "a", (0,)), Slot(1, "a", (1,)), Slot(2, "b", (0,)), Slot(3, "c", ())),
    worker_requests={"cpu": 1, "nvidia.com/gpu": 1},
    roles=(
        PlannedRole("chief", 1, {"cpu": 1, "nvidia.com/gpu": 1}),
        PlannedRole("worker", 2, {"cpu": 2, "nvidia.com/gpu": 1}),
        PlannedRole("ps", 1, {"cpu": 4}),
    ),
)


def test_the_roles_of_a_plan_are_read_back() -> None:
    """Each with its pods and what one of them requests."""
    assert SERVED == decode(encode(SERVED))


def test_each_pod_requests_what_its_role_does() -> None:
    """By its number, those of the first role first; pods that a job has since then count as the first."""
    assert [1, 2, 2, 4, 1] == [SERVED.requests_of(number)["cpu"] for number in range(5)]


def test_a_plan_without_roles_has_alike_pods() -> None:
    """As plans of earlier releases have; and those of alike pods are still written so, for their readers."""
    text = '{"v":1,"stage":"confirmed","nodes":[["a",2]],"gpus":[["0",1],["1",1]],"each":{"cpu":3}}'

    assert [{"cpu": 3}, {"cpu": 3}] == [decode(text).requests_of(number) for number in (0, 1)]
    assert "roles" not in encode(decode(text))


def test_the_pods_of_a_plan_are_told_by_role() -> None:
    """Where they are not all workers."""
    assert "1 chief, 2 workers, 1 ps on 3 nodes" == placed_text(SERVED)
    assert "4 workers on 3 nodes" == placed_text(replace(SERVED, roles=()))


@pytest.mark.parametrize(
    ("level", "domain", "said"),
    [
        ("node", "a", "4 workers on node a"),
        ("example.com/rack", "r0", "4 workers on 3 nodes in rack r0"),
        ("cluster", "cluster", "4 workers on 3 nodes in the cluster"),
    ],
)
def test_a_plan_tells_its_closest_domain(level: str, domain: str, said: str) -> None:
    """As `plan` does: the cluster has no name of its own, and a single node is named once."""
    assert said == placed_text(replace(SERVED, roles=(), level=level, domain=domain))


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ([PlannedRole("ps", 3)], "its roles do not have 4 pods together"),
        ([PlannedRole("worker", 5), PlannedRole("ps", -1)], "a role without pods"),
        ([PlannedRole(f"r{number}", 1) for number in range(MOST_ROLES + 1)], "at most 64"),
    ],
)
def test_roles_that_cannot_be_are_refused(roles: list[PlannedRole], said: str) -> None:
    """Anyone who may edit a job may edit its plan."""
    with pytest.raises(UnreadablePlan, match=said):
        decode(encode(replace(SERVED, roles=tuple(roles))))


def test_a_thousand_workers_fit_into_an_annotation() -> None:
    """On 125 nodes with long names, with the GPUs of each
    worker; all annotations together may have 256 KiB.
    """
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


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)
ANYTHING = VALUES | st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("from", "likely", "to"), INSTANTS.map(datetime.isoformat) | VALUES),
        **dict.fromkeys(("after", "basis"), st.lists(st.text(max_size=400), max_size=12) | VALUES),
        **dict.fromkeys(("more", "unknown", "of a later release"), VALUES),
    },
)


@given(ANYTHING)
def test_an_estimate_that_anybody_wrote_is_bounded_or_refused(written: object) -> None:
    """Some jobs, texts that are cut, and instants in their
    order; nothing else than a refusal comes of all others.
    """
    try:
        read = decode(json.dumps({"v": 1, "stage": "waiting", "start": written})).estimate
    except UnreadablePlan:
        return
    if read is None:
        return
    assert all(len(text) <= 300 for text in (*read.after, *read.basis, read.unknown))
    assert 8 >= len(read.after) == len(read.basis)
    instants = (read.earliest, read.likely, read.latest)
    assert None in instants or sorted(filter(None, instants)) == list(instants)


def test_of_many_jobs_an_annotation_names_some() -> None:
    """And counts the others."""
    names = tuple(f"default/job-{at}" for at in range(20))
    at = datetime(2026, 11, 22, 8, tzinfo=UTC)
    estimate = StartEstimate(earliest=at, likely=at, latest=at, after=names, basis=names)
    read = decode(encode(PlanRecord(stage=Stage.WAITING, estimate=estimate))).estimate

    assert read is not None
    assert (names[:8], names[:8], 12) == (read.after, read.basis, read.more)


def test_workers_are_told_by_node() -> None:
    """Each node once, with the slots on it."""
    slots = (Slot(0, "a"), Slot(1, "a"), Slot(2, "b"))
    record = PlanRecord(stage=Stage.CONFIRMED, slots=slots)
    assert [("a", [slots[0], slots[1]]), ("b", [slots[2]])] == list(slots_by_node(record).items())
