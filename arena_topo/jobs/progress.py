"""For how long a job has made no progress, as far as one log shows: no rank is asked.

Silence alone says nothing: many jobs never log. Only a log that counted steps, at a pace, and then stopped.
"""

from arena_topo.diagnosis.sources.log_steps import Progress, read_steps
from arena_topo.errors import ArenaTopoError
from arena_topo.kube.resources import PODS
from arena_topo.kube.session import Session
from arena_topo.model.job_view import JobStatus, JobView
from arena_topo.model.text.words import written_duration

_LINES, _LONGEST = 100, 4096
"""The last lines of a log that are read, and bytes of a line."""
_SECONDS = 2.0
"""How long a kubelet may be silent: one that is gone must not delay those who look at the job."""
_LEAST_SECONDS, _LEAST_STEPS = 120.0, 10.0
"""The shortest silence that is reported: a shorter one may be a checkpoint."""


def no_progress(session: Session, job: JobView) -> str:
    """Return for how long *job* has counted no step, in a sentence; empty if it may well make progress.

    One read, of the log of the pod that leads it, by the times at which its kubelet got the lines.
    """
    if job.status is not JobStatus.RUNNING or job.chief is None:
        return ""
    try:
        found = _last_step(session, job.chief.name)
    # Users who cannot read logs, a container that has not started, a node that is gone.
    except ArenaTopoError:
        return ""
    now = session.now()
    if found is None:
        return ""
    silence = (now - found.at).total_seconds()
    if silence < max(_LEAST_SECONDS, _LEAST_STEPS * found.pace):
        return ""
    minutes = silence // 60 * 60
    return (
        f"no progress for {written_duration(minutes)}: its log is at step {found.step:,}, "
        f"and had a line every {written_duration(found.pace)}"
    )


def _last_step(session: Session, pod: str) -> Progress | None:
    stream = session.stream_once(
        PODS.path(session.namespace, pod) + "/log", timeout=_SECONDS, timestamps=True, tailLines=_LINES
    )
    lines: list[tuple[str, str]] = []
    try:
        while len(lines) < _LINES and (line := stream.readline(_LONGEST)):
            stamp, _, text = line.decode(errors="replace").partition(" ")
            lines.append((stamp, text))
    finally:
        stream.close()
    return read_steps(lines)
