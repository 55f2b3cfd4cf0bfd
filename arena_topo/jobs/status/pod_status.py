"""The one word for a pod that ``kubectl get pods`` prints, and why a pod does not run.

Source of the word's rules: ``k8s.io/kubernetes/pkg/printers/internalversion/printers.go`` (printPod).
"""

from arena_topo.model.objects import Object


def pod_word(pod: Object) -> str:
    """Return the word in kubectl's STATUS column."""
    status = pod.get("status") or {}
    word = str(status.get("reason") or status.get("phase") or "Pending")
    if _is_gated(status):
        word = "SchedulingGated"
    word = _init_word(pod, status) or _container_word(status) or word
    # The node controller marks the pods of a node that has stopped reporting: no kubelet will confirm their end.
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
        # A sidecar never ends; once it has started, the next init container runs beside it.
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
