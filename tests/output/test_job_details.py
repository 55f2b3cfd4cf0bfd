"""Events and GPUs below a job's table, as Arena lays them out."""

from dataclasses import replace
from datetime import UTC, datetime

from arena_topo.model.job.job_view import Instance, JobStatus, JobView, PlannedWorker, PlanView
from arena_topo.output.job_details import events_text, gpus_text, node_gpus_text

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
CHIEF = Instance("job-launcher", "Running", True, 0, 0.0, NOW, node_ip="10.0.0.1")
WORKER = Instance("job-worker-0", "Running", False, 2, 0.0, NOW, node_ip="10.0.0.2")
JOB = JobView("job", "ml", "u", "v2beta1", JobStatus.RUNNING, "", NOW, 0.0, None, (CHIEF, WORKER), 2, 2)
MIB, GIB = 1024.0**2, 1024.0**3


def test_events_are_laid_out_as_arenas() -> None:
    """A blank line ends those of each object, and nobody's text moves the cursor."""
    events = [
        ("pod/job-worker-0", "Warning", datetime(2026, 1, 1, tzinfo=UTC), "[FailedScheduling] 0/3 \x1b[2J"),
        ("mpijob/job", "Normal", datetime(2026, 1, 1, 0, 59, tzinfo=UTC), "[Created] made"),
    ]

    assert (
        "\nEvents:\n"
        "  SOURCE            TYPE     AGE  MESSAGE\n"
        "  ------            ----     ---  -------\n"
        "  pod/job-worker-0  Warning  1h   [FailedScheduling] 0/3 \\x1b[2J\n"
        "\n"
        "  mpijob/job  Normal  1m  [Created] made\n"
        "\n"
    ) == events_text(events, now=NOW)


def test_events_on_a_narrow_terminal_are_one_table() -> None:
    """Their messages go on below themselves."""
    events = [
        (
            "pod/job-worker-0",
            "Warning",
            datetime(2026, 1, 1, tzinfo=UTC),
            "[FailedScheduling] 0/3 nodes are free",
        ),
        ("mpijob/job", "Normal", datetime(2026, 1, 1, 0, 59, tzinfo=UTC), "[Created] made"),
    ]

    assert (
        "\nEvents:\n"
        "  SOURCE            AGE  MESSAGE\n"
        "  ------            ---  -------\n"
        "  pod/job-worker-0  1h   [FailedScheduling] 0/3\n"
        "                         nodes are free\n"
        "  mpijob/job        1m   [Created] made\n"
        "  (hidden: TYPE; a wider terminal shows them)\n"
    ) == events_text(events, now=NOW, width=50)


def test_without_events_arena_says_so() -> None:
    """In its words."""
    assert "\nEvents:\n  No events for resources\n" == events_text([], now=NOW)


def test_gpus_are_laid_out_as_arenas() -> None:
    """The instance stands on the first of its lines."""
    uses = {"job-worker-0": {"0": (99.5, 100 * MIB, 200 * MIB), "3": (0.0, 0.0, 200 * MIB)}}

    assert (
        "\nGPUs:\n"
        "  INSTANCE      NODE(IP)  GPU(Requested)  GPU(IndexId)  GPU(DutyCycle)  GPU Memory(Used/Total)\n"
        "  --------      --------  --------------  ------------  --------------  ----------------------\n"
        "  job-launcher  10.0.0.1  0               N/A           N/A             N/A\n"
        "  job-worker-0  10.0.0.2  2               0             99.5%           100.0/200.0(MiB)\n"
        "                                          3             0.0%            0.0/200.0(MiB)\n"
        "\n"
        "  Allocated/Requested GPUs of Job: 2/2\n"
    ) == gpus_text(JOB, uses)


def test_gpus_that_nobody_measured_are_the_planned_ones() -> None:
    """Where a plan chose them."""
    plan = PlanView("", workers=(PlannedWorker("job-worker-0", "n", (4, 7)),))

    assert "  job-worker-0  10.0.0.2  2               4,7           N/A" in gpus_text(
        replace(JOB, plan=plan), {}
    )


def test_the_gpus_of_nodes_are_a_table() -> None:
    """Only what was measured; nothing at all without."""
    text = node_gpus_text(["a", "b"], {"b": {"0": (12.0, GIB, 16 * GIB)}})

    assert (
        "\nGPUs:\n"
        "  NODE  INDEX  MEMORY(Used)  MEMORY(Total)  DUTY_CYCLE\n"
        "  b     0      1.0 GiB       16.0 GiB       12.0%\n"
    ) == text
    assert "" == node_gpus_text(["a"], {})


def test_gpus_on_a_narrow_terminal_lose_columns() -> None:
    """And say which."""
    uses = {"b": {"0": (12.0, GIB, 16 * GIB)}}

    assert "(hidden: NODE(IP), GPU(Requested); a wider" in gpus_text(JOB, {}, width=70)
    assert "(hidden: MEMORY(Total); a wider" in node_gpus_text(["b"], uses, width=45)
