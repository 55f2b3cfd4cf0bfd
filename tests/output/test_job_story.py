"""All about a job on one page, and its events as a table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from arena_topo.model.job.job_view import Instance, JobEvent, JobStatus, JobView, PlannedWorker, PlanView
from arena_topo.output.job_story import fitted_events, job_page
from arena_topo.output.lines import tabulate

NOW = datetime(2026, 11, 21, 1, 5, tzinfo=UTC)
EVENT = JobEvent(
    "pod/job-worker-0", "Warning", "FailedScheduling", "0/2 nodes\x1b[31m", NOW - timedelta(minutes=3)
)
WORKER = Instance("job-worker-0", "Pending", False, 1, 60, NOW, reason="Unschedulable: 0/2 nodes")
PLAN = PlanView("0 of 1 worker where planned (gates)", workers=(PlannedWorker("job-worker-0", "n1", (0, 3)),))


def job(**extra: object) -> JobView:
    """Return a job that waits."""
    values: dict[str, object] = {
        "name": "job",
        "namespace": "ml",
        "uid": "u",
        "version": "v2beta1",
        "status": JobStatus.PENDING,
        "priority": "",
        "created": NOW,
        "duration": 60,
        "ended": None,
        "instances": (WORKER,),
        "requested_gpus": 1,
        "allocated_gpus": 0,
        "workers": 1,
        **extra,
    }
    return JobView(**values)  # type: ignore[arg-type]  # the fields of the view


def test_a_page_has_a_section_for_each_question() -> None:
    """What it is, why it waits, what to do, where it should be, where it is, and what happened."""
    page = job_page(job(message="too full", advice="arena-topo resume job", plan=PLAN), [EVENT], NOW)

    assert [
        "Why pending:", "Next:", "Plan:", "Instances:", "Events:"
    ] == [line for line in page.splitlines() if line.endswith(":") and not line.startswith(("Name", "EndTime"))]  # fmt: skip
    assert "GPUs:        0 allocated, 1 requested\n" in page
    assert "  job-worker-0  n1            0,3           N/A\n" in page
    assert "  job-worker-0  Pending  1m   false     1               N/A   Unschedulable: 0/2 nodes\n" in page
    assert "\x1b" not in page


def test_what_is_not_there_is_said() -> None:
    """Instead of an empty table."""
    assert "Instances:\n  none\n\nEvents:\n  none, or none any more" in job_page(job(instances=()), [], NOW)
    assert "Events:\n  you may not list the events" in job_page(job(), None, NOW)


def test_events_are_a_table_of_kubectls_columns() -> None:
    """What others wrote into them can be seen."""
    _, row = tabulate(fitted_events([EVENT], NOW).rows).splitlines()

    assert ["3m", "Warning", "FailedScheduling", "pod/job-worker-0", "0/2", r"nodes\x1b[31m"] == row.split()


def test_a_narrow_terminal_has_the_columns_that_say_most() -> None:
    """No row is wider, sentences go on below themselves, and what is hidden is named."""
    long = replace(EVENT, message="0/2 nodes are available: the gang has no place on any of the racks")
    page = job_page(job(message="too full", plan=PLAN), [long], NOW, width=50)

    assert [] == [line for line in page.splitlines() if len(line) > 50 and "(hidden: " not in line]
    assert "hidden: LAST SEEN, TYPE, REASON; a wider" in page
    assert ["OBJECT", "MESSAGE"] == page.partition("Events:\n")[2].splitlines()[0].split()
