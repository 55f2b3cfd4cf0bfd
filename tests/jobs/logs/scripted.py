"""A job whose launcher's log is served as a script, and what following it prints."""

from collections.abc import Callable
from typing import Any

from arena_topo.jobs.logs.follow import LogOptions, follow
from arena_topo.jobs.logs.wait import LogTarget, Waiter
from tests.fakes import Answer, Call, FakeTransport, session
from tests.objects import mpijob, pod

LAUNCHER = "job-launcher-x"


def line(second: int, text: str) -> bytes:
    """Return a stamped line."""
    return f"2026-11-21T01:00:{second:02d}.5Z {text}\n".encode()


def launcher(*, ended: int | None = None, restarts: int = 0, **extra: Any) -> Any:
    """Return a launcher that runs, or has ended with a code."""
    made = pod(LAUNCHER, role="launcher", **extra)
    if made["status"]["containerStatuses"]:
        made["status"]["containerStatuses"][0]["restartCount"] = restarts
    if ended is not None:
        made["status"]["containerStatuses"][0]["state"] = {
            "terminated": {"exitCode": ended, "reason": "Error" if ended else "Completed"}
        }
    return made


class Cluster:
    """One job whose launcher's log is served as a script of streams; *looks* are the pod at each look."""

    def __init__(
        self, streams: list[Any], looks: list[Any], waits: list[list[Any]] | None = None, job: Any = None
    ) -> None:
        self.streams, self.looks = streams, looks
        self.waits = waits or [[launcher()]]
        self.job = job or mpijob("job")
        self.asked: list[dict[str, str]] = []

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        if call.path.endswith("/log"):
            self.asked.append(call.query)
            stream = self.streams.pop(0)
            return stream if isinstance(stream, Answer) else Answer(lines=list(stream))
        if call.path.endswith(f"/pods/{LAUNCHER}"):
            look = self.looks.pop(0)
            return look if isinstance(look, Answer) else Answer(body=look)
        if call.path.endswith("/pods"):
            return Answer(body={"items": self.waits.pop(0) if len(self.waits) > 1 else self.waits[0]})
        # A job that was there once may be gone the next time.
        job = self.job.pop(0) if isinstance(self.job, list) and len(self.job) > 1 else self.job
        job = job[0] if isinstance(job, list) else job
        return job if isinstance(job, Answer) else Answer(body=job)


def followed(
    cluster: Callable[[Call], Answer], options: LogOptions | None = None, target: LogTarget | None = None
) -> tuple[bytes, list[str], list[float], FakeTransport]:
    """Return what following prints, says and waits."""
    said: list[str] = []
    slept: list[float] = []
    stamped = bool(options and options.timestamps)
    opened, transport = session(cluster)
    lines = follow(
        opened, "job", target or LogTarget(), options or LogOptions(), Waiter(said.append, slept.append)
    )
    printed = b"".join(each.stamp + b" " + each.text if stamped else each.text for each in lines)
    return printed, said, slept, transport
