"""The logs of one instance or of many at once, and one instance whose container runs, for commands in it."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from queue import Empty, Full, Queue

from arena_topo.errors import ArenaTopoError, NotFound, UsageError
from arena_topo.jobs.conditions import chief_pod, has_ended, pod_word
from arena_topo.jobs.logs.follow import Follower, Instances, LogOptions, follow, read, read_pod
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
# back and memory stays bounded. The caller's thread looks at the jobs once in a while: it starts a follower
# for each instance that has started, also for one that was recreated, and when a job has ended it reads the
# rest of its logs; when all have, it is done.

_TICK = 0.1
"""Seconds for which the caller's thread waits for a follower to stop before it takes lines again."""

_GRACE = 5.0
"""Seconds that followers have after their job has ended to come to the ends of their logs by themselves."""

_QUEUED = 64
"""Lines of all instances that wait to be printed."""

Report = Callable[[ArenaTopoError], None]


@dataclass(slots=True, kw_only=True)
class JobLogs:
    """The logs of some *instances* of each of the jobs *names*; at most *most* are open at once.

    What fails for one instance goes to *report*, as does what fails for one of several jobs, and the others
    continue. Jobs are looked at every *period* seconds.
    """

    session: Session
    names: Sequence[str]
    instances: Instances
    container: str
    options: LogOptions
    waiter: Waiter
    report: Report
    most: int
    period: float = 5.0
    _crew: dict[str, "_Member"] = field(default_factory=dict)
    _queue: Queue["LogLine | _Done"] = field(default_factory=lambda: Queue(_QUEUED))
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _ended: set[str] = field(default_factory=set)
    _is_abandoned: threading.Event = field(default_factory=threading.Event)

    def read(self) -> Iterator[LogLine]:
        """Yield the logs as they are now, one instance after the other. Raises ``NotFound`` without any.

        Who does not follow does not wait for a server that is away either.
        """
        if target := self._only_target():
            yield from read(self.session, self.names[0], target, self.options)
            return
        for name in self.names:
            with self._of_one_job():
                yield from self._read(name)

    def _read(self, name: str) -> Iterator[LogLine]:
        served, pods = self._read_job(name)
        self.instances.check(served)
        for pod in pods:
            try:
                container = self._container(pod)
                if has_started(pod, container):
                    yield from read_pod(self.session, pod, container, self.options, job=name)
            except ArenaTopoError as error:
                self.report(error)
        if not any(has_started(pod, self._container(pod)) for pod in pods):
            raise NotFound(
                f"no instance of job {name} that is asked for has started",
                hint=f"see arena-topo get {name}; arena-topo logs -f waits for them",
            )

    @contextmanager
    def _of_one_job(self) -> Iterator[None]:
        """Report what fails for one of several jobs, and raise it for the only one."""
        try:
            yield
        except ArenaTopoError as error:
            if len(self.names) == 1:
                raise
            self.report(error)

    def follow(self) -> Iterator[LogLine]:
        """Yield the lines of all instances as they come, until each job has ended and every log is read.

        Raises ``NotFound`` without such a job or instance, ``UsageError`` for more logs than may be open.
        """
        if target := self._only_target():
            yield from follow(self.session, self.names[0], target, self.options, self.waiter)
            return
        try:
            jobs: list[_Job] = []
            for name in self.names:
                with self._of_one_job():
                    jobs.append(self._first_look(name))
            yield from self._until_the_end(jobs)
        finally:
            self._is_abandoned.set()

    def _only_target(self) -> LogTarget | None:
        """Return the one log that is meant, for which no threads are needed; None for several."""
        if self.instances.one and len(self.names) == 1:
            return LogTarget(self.instances.name_in(self.names[0]), self.container)
        return None

    def _until_the_end(self, jobs: list["_Job"]) -> Iterator[LogLine]:
        """Yield lines until each of *jobs* has ended, and for the followers' grace beyond that."""
        while True:
            for job in jobs:
                self._start(job)
            self._report_failures()
            for job in [job for job in jobs if self._is_over(job)]:
                jobs.remove(job)
                yield from self._stop(job.name)
                yield from self._rest(job.name)
            if not jobs:
                return
            ended = yield from self._queued(self.period)
            for job in jobs:
                # Where the log of one has ended, the others need not be looked at before their time.
                if ended in ("", job.name):
                    self._look_again(job)

    def _is_over(self, job: "_Job") -> bool:
        """Whether no more is to be awaited of *job*.

        It has ended and so have its logs, or its followers had their grace, or no log of it can be read.
        """
        crew = self._crew_of(job.name)
        if job.served is None or has_ended(job.served.job):
            now = self.waiter.clock()
            job.deadline = now + _GRACE if job.deadline is None else job.deadline
            return all(member.is_done for member in crew) or now > job.deadline
        if not crew:
            several = f" of {job.name}" if len(self.names) > 1 else ""
            pod = next(iter(job.pods), None)
            title = f"the chosen instances{several}"
            job.waiter.report(why_not_started(job.served.kind, title, pod, job.pods))
            return False
        # A user who cannot read a log, or cannot any more, would wait for the job's end forever.
        return all(member.is_failed for member in crew)

    def _start(self, job: "_Job") -> None:
        """Start a follower for each pod of *job* that has started and has none."""
        for pod in job.pods:
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
            member = self._member(job.name, pod, container, is_first=is_first)
            self._crew[pod["metadata"]["uid"]] = member
            threading.Thread(target=self._run, args=(member,), daemon=True).start()

    def _crew_of(self, name: str) -> list["_Member"]:
        return [member for member in self._crew.values() if member.follower.job == name]

    def _member(self, name: str, pod: Object, container: str, *, is_first: bool) -> "_Member":
        gate = threading.Lock()
        options = self.options if is_first else LogOptions(timestamps=self.options.timestamps)
        follower = Follower(
            self.session, name, pod, container, options, self._own_waiter(), guard=self._guard, gate=gate
        )
        return _Member(follower, gate)

    def _own_waiter(self) -> Waiter:
        """Return a waiter that knows what it has reported itself, and nothing of the others."""
        return Waiter(self.waiter.notify, self.waiter.sleep, self.waiter.clock)

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
            self._put(_Done(member.follower.job))

    def _put(self, line: "LogLine | _Done") -> None:
        while True:
            try:
                self._queue.put(line, timeout=1)
            except Full:
                # The reader may be gone, as at Ctrl-C.
                if self._is_abandoned.is_set():
                    raise _AbandonedError from None
            else:
                return

    def _queued(self, seconds: float) -> Generator[LogLine, None, str]:
        """Yield lines for some *seconds*, or until a follower is done, and return the name of its job."""
        if self._ended:
            return self._ended.pop()
        until = self.waiter.clock() + seconds
        while (left := until - self.waiter.clock()) > 0:
            try:
                line = self._queue.get(timeout=left)
            except Empty:
                return ""
            if isinstance(line, _Done):
                return line.job
            yield line
        return ""

    def _stop(self, name: str) -> Iterator[LogLine]:
        """Stop the followers of a job, each between two lines, and yield what has been passed on."""
        for member in self._crew_of(name):
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
            if isinstance(line, _Done):
                self._ended.add(line.job)
            else:
                yield line

    def _rest(self, name: str) -> Iterator[LogLine]:
        """Yield the ends of the logs of a job whose followers were stopped."""
        self._report_failures()
        for member in self._crew_of(name):
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

    def _first_look(self, name: str) -> "_Job":
        job = _Job(name, self._own_waiter())
        job.served, job.pods = patient(lambda: self._read_job(name), job.waiter)
        self.instances.check(job.served)
        return job

    def _look_again(self, job: "_Job") -> None:
        try:
            job.served, job.pods = patient(lambda: self._read_job(job.name), job.waiter)
        except NotFound:
            job.served, job.pods = None, []

    def _read_job(self, name: str) -> tuple[ServedJob, list[Object]]:
        """Return the job, and those of its pods that are meant, in order."""
        with self._guard:
            served = find_job(self.session, name)
            pods = self.instances.among(served, pods_of(self.session, served))
        if not self.instances.one:
            return served, pods
        # Of a launcher that was retried the last one is meant, as where it is the only job.
        chief = chief_pod(pods)
        return served, [chief] if chief else pods

    def _container(self, pod: Object) -> str:
        return LogTarget(container=self.container).container_in(pod)


class _AbandonedError(Exception):
    """Nobody takes lines any more."""


@dataclass(frozen=True, slots=True)
class _Done:
    """A follower of a job has come to its end."""

    job: str


@dataclass(slots=True)
class _Job:
    """A job as it was seen last, None once it is gone, and its pods that are meant.

    ``deadline`` is when its followers are stopped, None while it has not ended.
    """

    name: str
    waiter: Waiter
    served: ServedJob | None = None
    pods: list[Object] = field(default_factory=list)
    deadline: float | None = None


@dataclass(slots=True)
class _Member:
    follower: Follower
    gate: threading.Lock
    is_done: bool = False
    is_failed: bool = False
    error: Exception | None = None


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
