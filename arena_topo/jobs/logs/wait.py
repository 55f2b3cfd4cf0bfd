"""Waiting for a container to start, and saying what it waits for."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from arena_topo.errors import ArenaTopoError, NotFound
from arena_topo.jobs.lookup import ServedJob, find_job, pods_of
from arena_topo.jobs.status.pod_status import why_waiting
from arena_topo.jobs.status.view import chief_pod
from arena_topo.kube.session import Session
from arena_topo.model.objects import Object

Notify = Callable[[str], None]

_PERIOD = 1.0


@dataclass(frozen=True, slots=True)
class LogTarget:
    """Whose log is wanted: a container of an instance; empty means the launcher, and its first container."""

    instance: str = ""
    container: str = ""

    def pick(self, pods: Sequence[Object]) -> Object | None:
        """Return the pod among *pods*, or None while it does not exist."""
        if not self.instance:
            return chief_pod(pods)
        return next((pod for pod in pods if pod["metadata"]["name"] == self.instance), None)

    def container_of(self, pod: Object) -> str:
        """Return the container's name in *pod*. Raises ``NotFound``."""
        spec = pod["spec"]
        names = [each["name"] for key in ("containers", "initContainers") for each in spec.get(key) or []]
        if not self.container:
            annotations = pod["metadata"].get("annotations") or {}
            return str(annotations.get("kubectl.kubernetes.io/default-container") or names[0])
        if self.container in names:
            return self.container
        raise NotFound(
            f"container {self.container} is not valid for pod {pod['metadata']['name']}",
            hint=f"its containers are {', '.join(names)}",
        )


@dataclass(slots=True)
class Waiter:
    """How waiting is done: ``notify`` hears each new reason once, ``sleep`` passes the time between two looks."""

    notify: Notify
    sleep: Callable[[float], None] = time.sleep
    _told: str = field(default="", init=False)

    def pause(self, reason: str, seconds: float = _PERIOD) -> None:
        """Say *reason* if it is new, and wait a moment."""
        if reason != self._told:
            self.notify(reason)
            self._told = reason
        self.sleep(seconds)


def wait_for_start(session: Session, name: str, wanted: LogTarget, waiter: Waiter) -> Object:
    """Return the wanted pod of job *name* once its container runs or has run.

    Raises ``NotFound`` when the job vanishes or cannot have such an instance, ``ArenaTopoError`` when it ended
    without ever starting one.
    """
    while True:
        found = find_job(session, name)
        pods = pods_of(session, found)
        pod = wanted.pick(pods)
        if pod is not None and has_started(pod, wanted.container_of(pod)):
            return pod
        _check_possible(found, pods, wanted)
        waiter.pause(_reason(pod, pods))


def has_started(pod: Object, container: str) -> bool:
    """Whether *container* runs, or ran before."""
    state = container_status(pod, container)
    now = state.get("state") or {}
    return bool(now.get("running") or now.get("terminated") or state.get("restartCount"))


def container_status(pod: Object, container: str) -> Object:
    """Return the status of *container*, empty before the kubelet reported one."""
    status = pod.get("status") or {}
    every = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((each for each in every if each["name"] == container), {})


def _check_possible(found: ServedJob, pods: Sequence[Object], wanted: LogTarget) -> None:
    name = found.job["metadata"]["name"]
    instances = sorted(pod["metadata"]["name"] for pod in pods)
    if wanted.instance and not wanted.instance.startswith((f"{name}-worker-", f"{name}-launcher")):
        raise NotFound(
            f"invalid instance name {wanted.instance} in job {name}",
            hint=f"its instances are {', '.join(instances) or 'not made yet'}; see arena-topo get {name}",
        )
    conditions = (found.job.get("status") or {}).get("conditions") or []
    ended = [
        each for each in conditions if each["type"] in ("Failed", "Succeeded") and each["status"] == "True"
    ]
    if ended:
        raise ArenaTopoError(
            f"job {name} has ended ({ended[0]['type']}: {ended[0].get('message') or 'no reason given'}) "
            f"and {wanted.instance or 'its launcher'} has no log any more",
            hint=f"arena-topo get {name} shows what is left of it",
        )


def _reason(pod: Object | None, pods: Sequence[Object]) -> str:
    """Return what is waited for: the pod's own reason, else that of the first pod that holds it up."""
    if pod is not None:
        return f"waiting for {pod['metadata']['name']}: {why_waiting(pod) or 'its container starts'}"
    held = ((each["metadata"]["name"], why_waiting(each)) for each in pods)
    reason = next((f"{name}: {why}" for name, why in held if why), "")
    return f"waiting for the launcher: {reason or 'the operator has not made it yet'}"
