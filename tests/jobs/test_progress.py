"""For how long a job counts no steps, as its log tells, and when nothing is said."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.jobs.progress import no_progress
from arena_topo.model.job_view import Instance, JobStatus
from tests.fakes import Answer, Broken, Call, Silent, refusal, session
from tests.objects import viewed

CHIEF = Instance("job-launcher-x", "Running", True, 0, 1.0, datetime.now(UTC))


def stepped(ago: Sequence[float], text: str = "step {number}") -> list[bytes | type[Broken] | type[Silent]]:
    """Return lines of a log that were written so many seconds ago."""
    now = datetime.now(UTC)
    times = [now - timedelta(seconds=seconds) for seconds in ago]
    return [
        f"{time.strftime('%Y-%m-%dT%H:%M:%S.%fZ')} {text.format(number=number)}\n".encode()
        for number, time in enumerate(times)
    ]


def asked(
    answer: Answer, status: JobStatus = JobStatus.RUNNING, *, chief: bool = True
) -> tuple[str, list[Call]]:
    """Return what is said of a job whose log is *answer*, and what was read for it."""
    calls: list[Call] = []

    def script(call: Call) -> Answer:
        calls.append(call)
        return answer

    opened, _ = session(script)
    job = viewed(name="job", status=status, instances=(CHIEF,) if chief else ())
    return no_progress(opened, job), calls


def test_a_log_that_has_stopped_to_count_steps_is_told() -> None:
    """One read, of the last lines of one pod, with the times by the node's clock."""
    said, (call,) = asked(Answer(lines=stepped([749, 741, 733, 725])))
    assert "no progress for 12m: its log is at step 3, and had a line every 8s" == said
    assert call.path.endswith("/pods/job-launcher-x/log")
    assert ("100", "true") == (call.query["tailLines"], call.query["timestamps"])


@pytest.mark.parametrize(
    "answer",
    [
        lambda: Answer(lines=stepped([60, 50, 40, 30])),
        lambda: Answer(lines=stepped([1200, 900, 600, 300])),
        lambda: Answer(lines=stepped([749, 741, 733, 725], "loss 0.{number}")),
        lambda: Answer(lines=stepped([744], "step 1")),
        lambda: Answer(lines=[]),
        lambda: Answer(lines=[b"\xff\x00 step 1\n", b"step"]),
        lambda: refusal(403, "Forbidden"),
        lambda: refusal(400, "a container name must be specified"),
    ],
    ids=["recent", "slow steps", "no steps", "one step", "no log", "garbage", "forbidden", "two containers"],
)
def test_nothing_is_guessed(answer: Callable[[], Answer]) -> None:
    """A job may be silent for many reasons, and may take long for a step."""
    assert "" == asked(answer())[0]


@pytest.mark.parametrize(
    ("status", "chief"), [(JobStatus.PENDING, True), (JobStatus.SUCCEEDED, True), (JobStatus.RUNNING, False)]
)
def test_no_log_is_read_of_a_job_that_cannot_progress(status: JobStatus, chief: bool) -> None:
    """It waits, has ended, or has no pod that leads it."""
    assert ("", []) == asked(Answer(lines=stepped([749, 741, 733, 725])), status, chief=chief)
