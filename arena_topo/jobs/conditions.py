"""How a job ended, by its status, whatever its kind and version."""

from collections.abc import Sequence
from dataclasses import dataclass

from arena_topo.kinds.names import is_chief
from arena_topo.model.kind import Kind, chief_title, is_planned, planned_noun
from arena_topo.model.objects import Object

# Which launcher or first pod of a job counts: a batch Job may have created several, one after the other.


def chief_pod(pods: Sequence[Object]) -> Object | None:
    """Return the newest launcher, master or first pod of *pods* that got beyond Pending, else the newest."""
    # A batch Job retries what failed with a new pod, and a pending one has no log and no end to report yet.
    chiefs = sorted(filter(is_chief, pods), key=lambda pod: (_is_beyond_pending(pod), _created(pod)))
    return chiefs[-1] if chiefs else None


def _is_beyond_pending(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("phase", "Pending") != "Pending")


def _created(pod: Object) -> str:
    return str(pod["metadata"]["creationTimestamp"])


# Not asked of the kinds, whose table get and logs do without: a test compares them.
SUCCEEDED = ("Succeeded", "Complete", "Completed")
"""The conditions of jobs of all kinds that have ended well; none uses the word of another for anything
else."""

FAILED = ("Failed",)
_ALPHA_FINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended; ``message`` is what its operator says of it, which may be nothing."""

    succeeded: bool
    message: str = ""


def ending(job: Object) -> Ending | None:
    """Return how *job* ended, None while it has not."""
    if condition := final_condition(job):
        return Ending(condition["type"] in SUCCEEDED, str(condition.get("message") or ""))
    # v1alpha1 writes no conditions, only the state of its launcher.
    state = (job.get("status") or {}).get("launcherStatus")
    return Ending(state == "Succeeded") if state in _ALPHA_FINAL else None


def true_condition(job: Object, *kinds: str) -> Object | None:
    """Return the first condition of *job* that is true and one of *kinds*, None if there is none."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next(
        (
            condition
            for condition in conditions
            if condition["type"] in kinds and condition.get("status") == "True"
        ),
        None,
    )


def final_condition(job: Object) -> Object | None:
    """Return the condition that says how *job* ended, None while it has not; v1alpha1 writes none."""
    return true_condition(job, *SUCCEEDED, *FAILED)


def has_ended(job: Object) -> bool:
    """Whether *job* has ended or is being deleted: it keeps what its pods hold, and reserves nothing more."""
    return bool(job["metadata"].get("deletionTimestamp") or ending(job))


def ended_without_condition(job: Object) -> bool:
    """Whether *job* has ended as one of v1alpha1, which only writes the state of its launcher."""
    return (job.get("status") or {}).get("launcherStatus") in _ALPHA_FINAL


# The one word for a pod that ``kubectl get pods`` prints, and why a pod does not run.
#
# Source of the word's rules: ``k8s.io/kubernetes/pkg/printers/internalversion/printers.go`` (printPod).


def pod_word(pod: Object) -> str:
    """Return the word in kubectl's STATUS column."""
    status = pod.get("status") or {}
    word = str(status.get("reason") or status.get("phase") or "Pending")
    if _is_gated(status):
        word = "SchedulingGated"
    word = _init_word(pod, status) or _container_word(status) or word
    # The node controller marks the pods of a node that has stopped reporting: no kubelet will confirm their
    # end.
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return word


def _is_gated(status: Object) -> bool:
    return any(
        condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated"
        for condition in status.get("conditions") or []
    )


def _init_word(pod: Object, status: Object) -> str:
    """Return the word of the first init container that holds the pod up, empty if none does."""
    init = (pod.get("spec") or {}).get("initContainers") or []
    sidecars = {container["name"] for container in init if container.get("restartPolicy") == "Always"}
    for index, container in enumerate(status.get("initContainerStatuses") or []):
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        # It is done, and the next one is up.
        if terminated and terminated.get("exitCode") == 0:
            continue
        # A sidecar never ends; once it has started, the next init container runs next to it.
        if container.get("name") in sidecars and container.get("started"):
            continue
        if terminated:
            return "Init:" + _ended_word(terminated)
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(init)}"
    return ""


def _container_word(status: Object) -> str:
    """Return the word of the first container that waits or has ended, in the order of the spec."""
    # Backwards, as kubectl goes through them, so that the first container has the last word.
    word, running = "", False
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            word = str(waiting["reason"])
        elif terminated:
            word = _ended_word(terminated)
        elif container.get("ready") and state.get("running") is not None:
            running = True
    # One container is through while another still runs.
    if word == "Completed" and running:
        return "Running"
    return word


def _ended_word(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    return (
        f"Signal:{terminated['signal']}"
        if terminated.get("signal")
        else f"ExitCode:{terminated.get('exitCode')}"
    )


def is_held_up(pod: Object) -> bool:
    """Whether *pod* has not started, or its containers are to be started again and do not run meanwhile."""
    status = pod.get("status") or {}
    phase = status.get("phase") or "Pending"
    if phase != "Running":
        return bool(phase == "Pending")
    return any(_waiting(container) for container in status.get("containerStatuses") or [])


def _waiting(container: Object) -> Object | None:
    waiting: Object | None = (container.get("state") or {}).get("waiting")
    return waiting


def why_waiting(pod: Object) -> str:
    """Return what a pod that does not run waits for, in one line, empty if it runs or has ended."""
    if not is_held_up(pod):
        return ""
    status = pod.get("status") or {}
    # A pod without a node has no container statuses: the scheduler's reason comes first.
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            text = str(condition.get("message") or condition.get("reason") or "not scheduled yet")
            # The scheduler's own message names none of them, and each has somebody else to open it.
            if gates := (pod.get("spec") or {}).get("schedulingGates"):
                text = f"waits at {', '.join(str(gate.get('name')) for gate in gates)}"
            return f"{condition.get('reason') or 'Unschedulable'}: {text}"
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for container in containers:
        waiting = _waiting(container) or {}
        if waiting.get("reason"):
            text = _last_end(container) or str(waiting.get("message") or "")
            return f"{waiting['reason']}: {text}" if text else str(waiting["reason"])
    node = (pod.get("spec") or {}).get("nodeName")
    return f"starting on {node}" if node else "not scheduled yet"


def _last_end(container: Object) -> str:
    """Return how a container that is started again ended the last time, empty before its first end."""
    ended = (container.get("lastState") or {}).get("terminated")
    # The kubelet's own message says how long it waits, and for which pod, not what happened.
    return (
        f"it exited with code {ended.get('exitCode')}, {container.get('restartCount', 0)} restarts"
        if ended
        else ""
    )


# Why a job failed, in one line: how its launcher or first pod ended, and the first of the others that did not
# end well.
#
# Where a worker dies, mpirun on the launcher fails a moment later, and the operator says of the job no more
# than that its backoff limit is reached. The first failure by the kubelets' clocks is therefore the one to
# look at.

_SIGNALS = {134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}
"""Exit codes of shells and container runtimes for a process that a signal ended: 128 and the signal's
number."""

_LONGEST_MESSAGE = 300
"""Characters that are shown of what a container left as its last words, which may be a page of a log."""


@dataclass(frozen=True, slots=True)
class PodFailure:
    """How a pod failed: in words, and when by its kubelet's clock (empty where it is unknown)."""

    pod: str
    words: str
    when: str


def failure_message(kind: Kind, job: Object, pods: Sequence[Object], chief: Object | None) -> str:
    """Return why *job* failed.

    For example ``the launcher exited with code 7; first worker to fail: job-worker-1, OOMKilled``.
    """
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
