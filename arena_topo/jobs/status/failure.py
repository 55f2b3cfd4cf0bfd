"""Why a job failed, in one line: how its launcher or first pod ended, and the first of the others that did not end well.

Where a worker dies, mpirun on the launcher fails a moment later, and the operator says of the job no more than that
its backoff limit is reached. The first failure by the kubelets' clocks is therefore the one to look at.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from arena_topo.jobs.status.conditions import true_condition
from arena_topo.jobs.status.pod_status import why_waiting
from arena_topo.kinds.chief import is_chief
from arena_topo.model.job.kind import Kind, chief_title, is_planned, planned_noun
from arena_topo.model.objects import Object

_SIGNALS = {134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}
"""Exit codes of shells and container runtimes for a process that a signal ended: 128 and the signal's number."""

_LONGEST_MESSAGE = 300
"""Characters that are shown of what a container left as its last words, which may be a page of a log."""


@dataclass(frozen=True, slots=True)
class PodFailure:
    """How a pod failed: in words, and when by its kubelet's clock (empty where nobody says)."""

    pod: str
    words: str
    when: str


def failure_message(kind: Kind, job: Object, pods: Sequence[Object], chief: Object | None) -> str:
    """Return why *job* failed: ``the launcher exited with code 7; first worker to fail: job-worker-1, OOMKilled``."""
    of_chief = None if chief is None else pod_failure(chief)
    worker = first_failed_worker(pods)
    condition = true_condition(job, "Failed") or {}
    # The operator ends its sentence with a colon where it has no more to say.
    said = str(condition.get("message") or condition.get("reason") or "").rstrip(": ")
    parts = [f"{chief_title(kind, job)} {of_chief.words}"] if of_chief else [said] if said else []
    if worker:
        # Where the chief is one of them, which of them failed before it is not said.
        other = "other " if of_chief and is_planned(kind, kind.chief_role(job)) else ""
        parts.append(f"first {other}{planned_noun(kind)} to fail: {worker.pod}, which {worker.words}")
    # A limit in time is the operator's own decision, which no container's end shows.
    if of_chief and condition.get("reason") == "DeadlineExceeded":
        parts.append(said)
    return "; ".join(parts)


def first_failed_worker(pods: Sequence[Object]) -> PodFailure | None:
    """Return the failure of the worker that failed first, None where none did."""
    failures = [failure for pod in pods if not is_chief(pod) and (failure := pod_failure(pod))]
    # A failure without a time comes after those that have one.
    return min(failures, key=lambda failure: (not failure.when, failure.when, failure.pod), default=None)


def pod_failure(pod: Object) -> PodFailure | None:
    """Return how *pod* failed, None where it did not: it runs, waits for its first start, or ended well."""
    status = pod.get("status") or {}
    name = pod["metadata"]["name"]
    statuses = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for container in statuses:
        # A container that is started again and again failed the last time.
        ended = _failed(container.get("state")) or _failed(container.get("lastState"))
        if ended:
            return PodFailure(name, _words(ended), str(ended.get("finishedAt") or ""))
    if status.get("phase") == "Failed" or status.get("reason") == "NodeLost":
        reason, message = str(status.get("reason") or "failed"), str(status.get("message") or "")
        return PodFailure(name, f"ended: {reason}" + (f" ({_short(message)})" if message else ""), "")
    return None


def why_down(pod: Object) -> str:
    """Return why *pod* does not run: what it waits for, or how it failed; empty if it runs or ended well."""
    failure = pod_failure(pod) if (pod.get("status") or {}).get("phase") == "Failed" else None
    return failure.words if failure else why_waiting(pod)


def _failed(state: Object | None) -> Object | None:
    terminated: Object | None = (state or {}).get("terminated")
    return terminated if terminated and terminated.get("exitCode") != 0 else None


def _words(ended: Object) -> str:
    code, reason, message = ended.get("exitCode"), ended.get("reason"), str(ended.get("message") or "")
    # Error is what every other end without success is called.
    causes = [str(reason)] if reason not in (None, "", "Error") else []
    causes += [_SIGNALS[code]] if code in _SIGNALS else []
    remark = f" ({', '.join(causes)})" if causes else ""
    return f"exited with code {code}{remark}" + (f": {_short(message)}" if message else "")


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}..."
