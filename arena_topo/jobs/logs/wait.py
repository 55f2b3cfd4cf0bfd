"""Waiting for a container to start, and saying what the user waits for."""

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from arena_topo.errors import ArenaTopoError, NotFound, Unauthorized
from arena_topo.jobs.conditions import chief_pod, final_condition, has_ended, why_down, why_waiting
from arena_topo.jobs.lookup import ServedJob, find_job, pods_of
from arena_topo.kinds.mpijob import ApiVersion, launcher_name, parse_worker_name, worker_count
from arena_topo.kube.session import Session, is_passing
from arena_topo.model import keys
from arena_topo.model.kind import Kind, Member, chief_title, planned_replicas
from arena_topo.model.objects import Object

Notify = Callable[[str], None]
Look = TypeVar("Look")

LONGEST_PAUSE = 20.0
"""Seconds; pauses between two attempts double up to this."""

MOST_REFUSALS = 5
"""Refusals of credentials in a row after which they are wrong: with the pauses between them that is 15 s."""

_PERIOD = 1.0
"""Seconds between two looks at what somebody else has to do: the operator, the scheduler or a kubelet."""

_QUIET_LOOKS = 5
"""Looks that are given to a job whose pod has ended, before its user reads what it waits for."""


@dataclass(frozen=True, slots=True)
class LogTarget:
    """The container whose log is printed.

    Empty fields stand for the job's chief and its default container.
    """

    instance: str = ""
    container: str = ""

    def title(self, served: ServedJob) -> str:
        """Return how messages name the target's pod: as the user did, or ``the launcher``, ``worker 0``."""
        return self.instance or chief_title(served.kind, served.job)

    def pod_among(self, pods: Sequence[Object]) -> Object | None:
        """Return the target's pod, None while it is not among *pods*."""
        if not self.instance:
            return chief_pod(pods)
        return next((pod for pod in pods if _is_called(pod, self.instance)), None)

    def container_in(self, pod: Object) -> str:
        """Return the name of the target's container in *pod*.

        Raises ``NotFound`` where there is no such container.
        """
        spec = pod["spec"]
        names = [
            container["name"] for key in ("containers", "initContainers") for container in spec.get(key) or []
        ]
        # As in kubectl, the annotation comes before the first container.
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
    """Passes the time between two looks with ``sleep``, and reports new reasons to ``notify``."""

    notify: Notify
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _last_reason: str = field(default="", init=False)

    def pause(self, reason: str, seconds: float = _PERIOD) -> None:
        """Report *reason* unless it was the last one reported, and sleep for some *seconds*."""
        self.report(reason)
        self.sleep(seconds)

    def report(self, reason: str) -> None:
        """Report *reason* unless it was the last one reported."""
        if reason != self._last_reason:
            self.notify(reason)
            self._last_reason = reason

    def forget(self) -> None:
        """Report the last reason again when it comes again: what it was about has gone on meanwhile."""
        self._last_reason = ""


def wait_for_start(session: Session, name: str, target: LogTarget, waiter: Waiter) -> Object:
    """Return the pod of *target* in job *name* once its container runs or has run.

    Raises ``NotFound`` when the job vanishes or cannot have such an instance, ``ArenaTopoError`` when it
    ended without ever starting one.
    """
    while True:
        served, pods = patient(lambda: _look(session, name), waiter)
        pod = target.pod_among(pods)
        if pod is not None and has_started(pod, target.container_in(pod)):
            return pod
        check_possible(served, pods, target)
        waiter.pause(why_not_started(served.kind, target.title(served), pod, pods))


def wait_for_next(
    session: Session, name: str, target: LogTarget, done: Collection[str], waiter: Waiter
) -> Object | None:
    """Return the pod of *target* after those whose uid is in *done*, None when the job ended without one.

    A batch Job retries a failed launcher, and operators recreate workers that were evicted.
    """
    looks = 0
    while True:
        try:
            served, pods = patient(lambda: _look(session, name), waiter)
        except NotFound:
            return None
        left = [pod for pod in pods if pod["metadata"]["uid"] not in done]
        pod = target.pod_among(left)
        if pod is not None and has_started(pod, target.container_in(pod)):
            return pod
        if has_ended(served.job):
            return None
        looks += 1
        # What ends with its pod mostly ends within seconds, and a notice about it would come at the end of
        # every job.
        if looks > _QUIET_LOOKS:
            waiter.report(why_not_started(served.kind, target.title(served), pod, left))
        waiter.sleep(_PERIOD)


def patient(look: Callable[[], Look], waiter: Waiter, *, name: str = "") -> Look:
    """Return what *look* returns.

    While no server answers or one is overloaded, say so for *name* and try again.
    A 401 is answered by another look, for which the credentials are read again, ``MOST_REFUSALS`` in a row.
    """
    failures = refusals = 0
    while True:
        try:
            return look()
        except ArenaTopoError as error:
            refusals = refusals + 1 if isinstance(error, Unauthorized) else 0
            if not is_passing(error) and not 0 < refusals < MOST_REFUSALS:
                raise
            waiter.report(
                f"{name}: {error.message}; trying again" if name else f"{error.message}; trying again"
            )
            waiter.sleep(min(2.0**failures, LONGEST_PAUSE))
            failures += 1


def _look(session: Session, name: str) -> tuple[ServedJob, list[Object]]:
    served = find_job(session, name)
    return served, pods_of(session, served)


def has_started(pod: Object, container: str) -> bool:
    """Whether *container* runs, or ran before."""
    status = container_status(pod, container)
    state = status.get("state") or {}
    # A container that waits to be restarted has a log too.
    return bool(state.get("running") or state.get("terminated") or status.get("restartCount"))


def container_status(pod: Object, container: str) -> Object:
    """Return the status of *container*, empty before the kubelet reported one."""
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((status for status in statuses if status["name"] == container), {})


def check_possible(served: ServedJob, pods: Sequence[Object], target: LogTarget) -> None:
    """Raise where waiting is pointless: the job cannot have such an instance, or has ended without it."""
    name = served.name
    instances = sorted(pod["metadata"]["name"] for pod in pods)
    # Operators name pods so; a name that they never give would be waited for without end.
    if target.instance and not can_be_of(served, target.instance):
        raise NotFound(
            f"invalid instance name {target.instance} in job {name}",
            hint=f"its instances are {', '.join(instances) or 'not created yet'}; see arena-topo get {name}",
        )
    if ended := final_condition(served.job):
        raise ArenaTopoError(
            f"job {name} has ended ({ended['type']}: {ended.get('message') or 'no reason given'}) "
            f"and {target.title(served)} has no log any more",
            hint=f"arena-topo get {name} shows what is left of it",
        )


def can_be_of(served: ServedJob, instance: str) -> bool:
    """Whether an operator would name a pod of the job so, or users might.

    Those of an indexed Job or a JobSet have a random end to their names.
    """
    kind, name = served.kind, served.name
    if not isinstance(kind, ApiVersion):
        planned = [replicas for replicas in planned_replicas(kind, served.job) if replicas.count]
        # A pod has its own number in its name: of two billion that a manifest asks for, few are looked at.
        numbers = {int(digits) for digits in re.findall("[0-9]{1,18}", instance)}
        members = [
            Member(name, replicas.role, number)
            for replicas in planned
            for number in numbers
            if number < replicas.count
        ]
        if any(instance == f"{name}-{member.role}-{member.index}" for member in members):
            return True
        if not planned or not kind.pod_name(Member(name, planned[0].role, 0)).endswith("-"):
            return False
        # Beyond the first Job of a role of a JobSet, names continue with the number of their Job.
        return any(instance.startswith(kind.pod_name(member)) for member in members) or any(
            re.fullmatch(rf"{re.escape(name)}-{re.escape(role.role)}-\d+-\d+-\w+", instance, re.ASCII)
            for role in kind.replicas(served.job)
        )
    worker = parse_worker_name(instance)
    if worker is not None and worker.job == name:
        return worker.index < worker_count(served.job)
    # A launcher that a batch Job creates has a random suffix to its name.
    return instance.startswith(launcher_name(name))


def _is_called(pod: Object, instance: str) -> bool:
    """Whether *instance* is the name of *pod*, or what users may call it."""
    if pod["metadata"]["name"] == instance:
        return True
    if keys.COMPLETION_INDEX not in (pod["metadata"].get("labels") or {}):
        return False
    # Most logs are of jobs of the operators, and need not import these.
    from arena_topo.kinds.indexed_job import INDEXED_JOB
    from arena_topo.kinds.jobset import JOBSET

    member = JOBSET.member(pod) or INDEXED_JOB.member(pod)
    return member is not None and instance == f"{member.job}-{member.role}-{member.index}"


def why_not_started(kind: Kind, title: str, pod: Object | None, pods: Sequence[Object]) -> str:
    """Return why *pod* has not started; while it does not exist, why the first of the other *pods* has not.

    Messages name the pod by its *title* until it has a name.
    """
    if pod is not None:
        return f"waiting for {pod['metadata']['name']}: {why_waiting(pod) or 'its container starts'}"
    # The operator creates a v2beta1 launcher once all workers are ready, so a pending worker holds it up.
    reasons = ((pod["metadata"]["name"], why_down(pod)) for pod in pods)
    reason = next((f"{name}: {why}" for name, why in reasons if why), "")
    return f"waiting for {title}: {reason or f'not created yet by {kind.served_by}'}"
