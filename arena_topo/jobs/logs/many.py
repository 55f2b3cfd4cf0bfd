"""One instance of a job whose container runs, for commands that are carried out in it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from queue import Empty, Full, Queue

from arena_topo.errors import ArenaTopoError, NotFound, UsageError
from arena_topo.jobs.conditions import has_ended, pod_word
from arena_topo.jobs.logs.follow import Follower, Instances, LogOptions, read_pod
from arena_topo.jobs.logs.wait import (
    LogTarget,
    Waiter,
    container_status,
    has_started,
    patient,
    why_not_started,
)
from arena_topo.jobs.lookup import ServedJob, find_job, pods_of
from arena_topo.kube.session import Session
from arena_topo.model.kind import LogLine
from arena_topo.model.objects import Object

# The logs of many instances at once, line by line as they come, over one connection for each that runs.
#
# One thread follows each container; their lines meet in one short queue, so that a slow reader holds them all
# back and memory stays bounded. The caller's thread looks at the job once in a while: it starts a follower
# for each instance that has started, also for one that was recreated, and when the job has ended it reads the
# rest of every log and is done.

_TICK = 0.1
"""Seconds for which the caller's thread waits for a follower to stop before it takes lines again."""

_GRACE = 5.0
"""Seconds that followers have after the job has ended to come to the ends of their logs by themselves."""

_QUEUED = 64
"""Lines of all instances that wait to be printed."""

Report = Callable[[ArenaTopoError], None]


@dataclass(slots=True, kw_only=True)
class GangLog:
    """The logs of some *instances* of job *name*; at most *most* are open at once.

    What fails for one instance goes to *report*, and the others continue. The job is looked at every *period*
    seconds.
    """

    session: Session
    name: str
    instances: Instances
    container: str
    options: LogOptions
    waiter: Waiter
    report: Report
    most: int
    period: float = 5.0
    _crew: dict[str, "_Member"] = field(default_factory=dict)
    _queue: Queue[LogLine | None] = field(default_factory=lambda: Queue(_QUEUED))
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _is_abandoned: threading.Event = field(default_factory=threading.Event)

    def read(self) -> Iterator[LogLine]:
        """Yield the logs as they are now, one instance after the other. Raises ``NotFound`` without any.

        Who does not follow does not wait for a server that is away either.
        """
        served, pods = self._read_job()
        self.instances.check(served)
        for pod in pods:
            try:
                container = self._container(pod)
                if has_started(pod, container):
                    yield from read_pod(self.session, pod, container, self.options)
            except ArenaTopoError as error:
                self.report(error)
        if not any(has_started(pod, self._container(pod)) for pod in pods):
            raise NotFound(
                f"no instance of job {self.name} that is asked for has started",
                hint=f"see arena-topo get {self.name}; arena-topo logs -f waits for them",
            )

    def follow(self) -> Iterator[LogLine]:
        """Yield the lines of all instances as they come, until the job has ended and every log is read.

        Raises ``NotFound`` without such a job or instance, ``UsageError`` for more logs than may be open.
        """
        try:
            yield from self._until_the_end()
            yield from self._stop()
            yield from self._rest()
        finally:
            self._is_abandoned.set()

    def _until_the_end(self) -> Iterator[LogLine]:
        """Yield lines until the job has ended, and for the followers' grace beyond that."""
        served: ServedJob | None
        served, pods = self._look()
        self.instances.check(served)
        deadline: float | None = None
        while True:
            self._start(pods)
            self._report_failures()
            if served is None or has_ended(served.job):
                deadline = self.waiter.clock() + _GRACE if deadline is None else deadline
                if (
                    not any(not member.is_done for member in self._crew.values())
                    or self.waiter.clock() > deadline
                ):
                    return
            elif not self._crew:
                pod = next(iter(pods), None)
                self.waiter.report(why_not_started(served.kind, "the chosen instances", pod, pods))
            elif all(member.is_failed for member in self._crew.values()):
                # A user who cannot read a log, or cannot any more, would wait for the job's end forever.
                return
            yield from self._queued(self.period)
            served, pods = self._look_again()

    def _start(self, pods: Sequence[Object]) -> None:
        """Start a follower for each of *pods* that has started and has none."""
        for pod in pods:
            container = self._container(pod)
            if pod["metadata"]["uid"] in self._crew or not has_started(pod, container):
                continue
            # The end of the log before comes first: both have one name.
            if any(
                member.follower.name == pod["metadata"]["name"] and not member.is_done
                for member in self._crew.values()
            ):
                continue
            open_logs = sum(not member.is_done for member in self._crew.values())
            if open_logs >= self.most:
                raise UsageError(
                    f"more than {self.most} logs would be followed at once",
                    hint="choose some, as with -i 0-31, or allow more with --max-log-requests",
                )
            # An instance that took another's place is new as a whole: what the user chose concerns the first
            # ones.
            is_first = all(member.follower.name != pod["metadata"]["name"] for member in self._crew.values())
            member = self._member(pod, container, is_first=is_first)
            self._crew[pod["metadata"]["uid"]] = member
            threading.Thread(target=self._run, args=(member,), daemon=True).start()

    def _member(self, pod: Object, container: str, *, is_first: bool) -> "_Member":
        gate = threading.Lock()
        waiter = Waiter(self.waiter.notify, self.waiter.sleep, self.waiter.clock)
        options = self.options if is_first else LogOptions(timestamps=self.options.timestamps)
        follower = Follower(
            self.session, self.name, pod, container, options, waiter, guard=self._guard, gate=gate
        )
        return _Member(follower, gate)

    def _run(self, member: "_Member") -> None:
        """Pass on the lines of one follower, in its own thread."""
        try:
            for line in member.follower.lines():
                self._put(line)
        # The caller's thread reports it, whatever it is.
        except Exception as error:  # noqa: BLE001
            member.error, member.is_failed = error, True
        member.is_done = True
        with suppress(_AbandonedError):
            self._put(None)

    def _put(self, line: LogLine | None) -> None:
        while True:
            try:
                self._queue.put(line, timeout=1)
            except Full:
                # The reader may be gone, as at Ctrl-C.
                if self._is_abandoned.is_set():
                    raise _AbandonedError from None
            else:
                return

    def _queued(self, seconds: float) -> Iterator[LogLine]:
        """Yield lines for some *seconds*, or until a follower is done and no line is left."""
        until = self.waiter.clock() + seconds
        while (left := until - self.waiter.clock()) > 0:
            try:
                line = self._queue.get(timeout=left)
            except Empty:
                return
            if line is None:
                return
            yield line

    def _stop(self) -> Iterator[LogLine]:
        """Stop all followers, each between two lines, and yield what they have passed on."""
        for member in self._crew.values():
            # A thread that waits for room in the queue holds the gate meanwhile.
            while not member.gate.acquire(timeout=_TICK):
                yield from self._waiting()
            member.follower.is_stopped = True
            member.gate.release()
        yield from self._waiting()

    def _waiting(self) -> Iterator[LogLine]:
        while True:
            try:
                line = self._queue.get_nowait()
            except Empty:
                return
            if line is not None:
                yield line

    def _rest(self) -> Iterator[LogLine]:
        """Yield the ends of the logs whose followers were stopped."""
        self._report_failures()
        for member in self._crew.values():
            if member.is_done:
                continue
            try:
                # The stopped one may still hang on its connection; this one continues from its last line.
                yield from replace(member.follower, gate=nullcontext(), is_stopped=False).finish()
            except ArenaTopoError as error:
                self.report(error)

    def _report_failures(self) -> None:
        """Report what ended followers before their logs, once; raise what is unexpected."""
        for member in self._crew.values():
            error, member.error = member.error, None
            if isinstance(error, ArenaTopoError):
                self.report(error)
            elif error is not None:
                raise error

    def _look(self) -> tuple[ServedJob, list[Object]]:
        """Return the job, and those of its pods that are meant, in order."""
        return patient(self._read_job, self.waiter)

    def _look_again(self) -> tuple[ServedJob | None, list[Object]]:
        """Return the same, or None and nothing once the job is gone."""
        try:
            return self._look()
        except NotFound:
            return None, []

    def _read_job(self) -> tuple[ServedJob, list[Object]]:
        with self._guard:
            served = find_job(self.session, self.name)
            return served, self.instances.among(served, pods_of(self.session, served))

    def _container(self, pod: Object) -> str:
        return LogTarget(container=self.container).container_in(pod)


class _AbandonedError(Exception):
    """Nobody takes lines any more."""


@dataclass(slots=True)
class _Member:
    follower: Follower
    gate: threading.Lock
    is_done: bool = False
    is_failed: bool = False
    error: Exception | None = None


# Choosing lines by regular expressions, each in bounded time.
#
# Python's expressions backtrack: ``(a+)+$`` on thirty letters takes minutes. While one is matched, a timer of
# the process's CPU time runs, so that a laptop that sleeps in between is no excuse, and anyone who wrote such
# an expression reads which.


def running_instance(session: Session, name: str, instances: Instances, container: str) -> tuple[Object, str]:
    """Return the pod of the one instance that is meant, and its container, which runs.

    Raises ``NotFound`` without such a job, instance or container, ``ArenaTopoError`` for one that does not
    run.
    """
    served = find_job(session, name)
    instances.check(served)
    instance = instances.name_in(name)
    target = LogTarget(instance, container)
    pod = target.pod_among(pods_of(session, served))
    if pod is None:
        raise NotFound(
            f"{target.title(served)} of job {name} does not exist yet, or any more",
            hint=f"see arena-topo get {name}",
        )
    chosen = target.container_in(pod)
    if "running" not in (container_status(pod, chosen).get("state") or {}):
        raise ArenaTopoError(
            f"container {chosen} of instance {pod['metadata']['name']} does not run: {pod_word(pod)}",
            hint=f"see arena-topo get {name}; arena-topo logs {name} shows what it printed",
        )
    return pod, chosen
