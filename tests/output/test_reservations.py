"""Who has reserved what, and since when."""

from dataclasses import replace

from arena_topo.model.plan import Slot
from arena_topo.model.plan_record import PlanRecord, Stage
from arena_topo.model.reports import State
from arena_topo.output.plan import reservation_lines, reservations_finding
from arena_topo.planner.reservations import OtherPlan

SLOTS = tuple(Slot(worker, f"gpu-{worker}", (0, 1)) for worker in range(6))
PLAN = OtherPlan(
    order=("1", "x"),
    record=PlanRecord(stage=Stage.CONFIRMED, slots=SLOTS, worker_requests={"nvidia.com/gpu": 2, "cpu": 1000}),
    bound=frozenset({0}),
    namespace="team",
    name="train",
    since="2026-11-21T08:00:00Z",
)
WORDS = (
    "team/train: 10 nvidia.com/gpu on gpu-1, gpu-2, gpu-3, gpu-4 and 1 more, confirmed, "
    "since 2026-11-21T08:00:00Z"
)


def test_a_reservation_is_told_with_its_job_and_its_time() -> None:
    """For the nodes that are shown; what runs already is in the table."""
    assert [f"reserved for {WORDS}"] == list(reservation_lines([PLAN], {"gpu-1"}))
    assert [] == list(reservation_lines([PLAN], {"gpu-0"}))


def test_many_reservations_are_summed_up() -> None:
    """A tenant may have thousands of jobs."""
    plans = [replace(PLAN, name=f"job-{number}") for number in range(1000)]
    lines = list(reservation_lines(plans, {"gpu-1"}))
    assert (21, "and 980 more jobs have reservations; arena-topo doctor sums them up") == (
        len(lines),
        lines[-1],
    )
    finding = reservations_finding(plans)
    assert "1,000 jobs reserve places for 5,000 workers without a node" == finding.found
    assert finding.evidence.endswith("; and 980 more")


def test_doctor_names_the_jobs() -> None:
    """With the command that shows the oldest one."""
    finding = reservations_finding([PLAN])
    assert ("1 job reserves places for 5 workers without a node", WORDS) == (finding.found, finding.evidence)
    assert "arena-topo get -n team train" == finding.command


def test_nothing_reserved_and_nothing_seen_are_two_findings() -> None:
    """A user who cannot look is told so."""
    assert (State.OK, "none") == (reservations_finding([]).state, reservations_finding([]).found)
    assert State.UNKNOWN is reservations_finding(None).state


def test_names_of_others_are_no_commands_to_a_terminal() -> None:
    """Whatever their objects say."""
    liar = replace(PLAN, namespace="a\x1b[2Jb", name="c\nd")
    finding = reservations_finding([liar])
    texts = [*reservation_lines([liar], {"gpu-1"}), finding.evidence, finding.command]

    assert [] == [text for text in texts if not text.isprintable()]
