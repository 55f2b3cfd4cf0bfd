"""The log of a container, once or as it grows: no line lost, no line twice, whatever happens to the connection.

A stream that ends says nothing about the container: load balancers and kubelets close streams too. So the follower
looks at the container after every stream. If the container has ended, the rest of its log is drained; if it was
started again, the rest comes from its previous run, and the new run is followed; if it runs, the stream is resumed where
it stopped (``cursor``). A pod that is recreated or retried is followed in its turn, until the job has ended.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from arena_topo.errors import ApiError, ArenaTopoError, ConnectionFailed, NotFound, Unauthorized
from arena_topo.jobs.logs.cursor import LogCursor
from arena_topo.jobs.logs.instances import role_of
from arena_topo.jobs.logs.wait import (
    LONGEST_PAUSE,
    LogTarget,
    Waiter,
    check_possible,
    container_status,
    has_started,
    is_passing,
    patient,
    wait_for_next,
    wait_for_start,
)
from arena_topo.jobs.lookup import find_job, pods_of
from arena_topo.jobs.status.conditions import ending
from arena_topo.jobs.status.pod_status import why_waiting
from arena_topo.kinds.chief import is_chief
from arena_topo.kube.resources import PODS
from arena_topo.kube.session import Session
from arena_topo.kube.transport import Response
from arena_topo.model.job.log_line import LogLine
from arena_topo.model.objects import Object

_SILENCE = 600.0
"""Seconds without a line after which a stream is taken for dead, and opened again."""

_LONG_STREAM = 30.0
"""Seconds after which a stream that ends without a line worked all the same: balancers close idle ones."""

_QUIET_FAILURES = 2
"""Streams that may end at once before the user hears of it: a kubelet reports an end seconds after the stream's."""

_MOST_DRAINS = 10
"""Attempts to read the rest of an ended log."""

LONGEST_LINE = 256 * 1024
"""Bytes of a line that are held at once; a longer one is passed on in pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Which part of a log to print.

    ``tail`` is a number of lines, None for all; ``since`` is in seconds; ``since_time`` is an RFC 3339 text.
    """

    tail: int | None = None
    since: int | None = None
    since_time: str = ""
    timestamps: bool = False
    previous: bool = False

    def query(self) -> dict[str, str | int | bool | None]:
        """Return the options as parameters of the API."""
        return {
            "tailLines": self.tail,
            "sinceSeconds": self.since,
            "sinceTime": self.since_time or None,
            "previous": self.previous,
        }


def read(session: Session, name: str, target: LogTarget, options: LogOptions) -> Iterator[LogLine]:
    """Yield the log's lines as they are now.

    Raises ``NotFound`` without such a job or instance, ``ArenaTopoError`` when the container has not started.
    """
    served = find_job(session, name)
    pods = pods_of(session, served)
    pod = target.pod_among(pods)
    if pod is None:
        check_possible(served, pods, target)
        raise NotFound(
            f"{target.title(served)} of job {name} does not exist yet, or any more",
            hint=f"see arena-topo get {name}; arena-topo logs -f waits for it",
        )
    container = target.container_in(pod)
    if not has_started(pod, container):
        raise ArenaTopoError(
            f"instance {pod['metadata']['name']} is not running: {why_waiting(pod)}",
            hint="arena-topo logs -f waits until it is",
        )
    yield from read_pod(session, pod, container, options)


def read_pod(session: Session, pod: Object, container: str, options: LogOptions) -> Iterator[LogLine]:
    """Yield the lines of one container as they are now."""
    stream = session.stream_once(
        _path(session, pod),
        timeout=_SILENCE,
        container=container,
        timestamps=options.timestamps,
        **options.query(),
    )
    # A stream that is read once needs no cursor, except to part the stamps from the lines.
    cursor, as_line = LogCursor(), _line_maker(pod, container)
    try:
        while line := stream.readline(LONGEST_LINE):
            stamp, text = (cursor.admit(line) or (b"", b"")) if options.timestamps else (b"", line)
            yield as_line(stamp, text)
    finally:
        stream.close()


def follow(
    session: Session, name: str, target: LogTarget, options: LogOptions, waiter: Waiter
) -> Iterator[LogLine]:
    """Wait for the container to start, and yield its log's lines as they come until it has ended for good.

    Raises what ``wait_for_start`` raises, and ``ApiError`` for a refusal that no waiting will heal.
    """
    done: set[str] = set()
    pod: Object | None = wait_for_start(session, name, target, waiter)
    while pod is not None:
        follower = Follower(session, name, pod, target.container_in(pod), options, waiter)
        yield from follower.lines()
        if follower.is_final and not _may_be_retried(session, name, follower, waiter):
            return
        done.add(pod["metadata"]["uid"])
        # What the user chose by --tail and --since is behind: of another pod's log, everything is new.
        options = LogOptions(timestamps=options.timestamps)
        pod = wait_for_next(session, name, target, done, waiter)


def _may_be_retried(session: Session, name: str, follower: "Follower", waiter: Waiter) -> bool:
    """Whether a new pod may follow one that has ended: a batch Job retries a launcher or a pod of its own that failed."""
    if follower.exit_code == 0 or not is_chief(follower.pod):
        return False
    try:
        spec = patient(lambda: find_job(session, name), waiter).job["spec"]
    except NotFound:
        return False
    limit = (spec.get("runPolicy") or spec).get("backoffLimit")
    return bool(limit != 0)


@dataclass(slots=True)
class Follower:
    """Follows one container of one pod of the job called ``job``.

    ``guard`` is held while the session's kept connection is used. ``gate`` is held from the moment at which a line is
    known as new until its taker asks for the next one: whoever sets ``is_stopped`` under it may go on from ``cursor``.
    Afterwards ``is_final`` says whether the container ended by itself, with ``exit_code``, rather than with its pod.
    """

    session: Session
    job: str
    pod: Object
    container: str
    options: LogOptions
    waiter: Waiter
    guard: AbstractContextManager[object] = field(default_factory=nullcontext)
    gate: AbstractContextManager[object] = field(default_factory=nullcontext)
    cursor: LogCursor = field(default_factory=LogCursor)
    run: int | None = None
    is_stopped: bool = False
    is_final: bool = False
    exit_code: int | None = None
    _failures: int = 0
    _begin: str = ""
    _was_refused: bool = False

    def lines(self) -> Generator[LogLine]:
        """Yield every line once, over as many streams as it takes."""
        # Counted from now: runs that ended before belong to --previous.
        self.run = self._restarts(self.pod)
        chosen = self.options
        self.cursor = LogCursor(whole=chosen.tail is None and not chosen.since and not chosen.since_time)
        while not self.is_stopped:
            opened = self.waiter.clock()
            yield from self._stream(follow=True)
            pod = self._current_pod()
            if pod is None:
                self._notify_of_loss(f"{self.name} is gone: its log ends here")
                return
            if self._restarts(pod) > self.run or self._has_stopped(pod):
                self.run = yield from self._end_of_run(pod, self.run)
                if self.run is None:
                    return
                continue
            if self.waiter.clock() - opened > _LONG_STREAM:
                self._failures = 0
            if self._failures > _QUIET_FAILURES:
                self.waiter.report(f"{self.name}: the log's stream ended and the container runs; resuming")
            self._pause()

    def finish(self) -> Generator[LogLine]:
        """Yield what is left of a log whose end nobody waits for."""
        pod = self._current_pod()
        if pod is None:
            self.waiter.notify(f"{self.name} is gone: its log may have had more lines")
            return
        if self.run is not None and self._restarts(pod) > self.run:
            yield from self.rest(previous=True)
            self._begin_run()
        yield from self.rest()

    def rest(self, *, previous: bool = False) -> Generator[LogLine]:
        """Yield what is left of a log that grows no more. Raises ``ArenaTopoError`` when it cannot be read."""
        for _ in range(_MOST_DRAINS):
            try:
                if (yield from self._stream(follow=False, previous=previous)):
                    return
            except NotFound:
                self._notify_of_loss(f"{self.name} is gone: its log may have had more lines")
                return
            self._pause()
        raise ArenaTopoError(
            f"the end of the log of {self.name} could not be read",
            hint=f"arena-topo logs {self.job} -i {self.name} -c {self.container} tries it again, as long as the pod exists",
        )

    def _end_of_run(self, pod: Object, run: int) -> Generator[LogLine, None, int | None]:
        """Yield the rest of run number *run*, which has ended; return the number of the next one, None without any."""
        restarted = self._restarts(pod) > run
        yield from self.rest(previous=restarted)
        if self._restarts(pod) > run + 1:
            self.waiter.notify(
                f"{self.name} was restarted more than once meanwhile: the runs between are lost"
            )
        self._report_exit(pod, ended_before=restarted)
        if not restarted:
            if not self._will_restart(pod):
                self.is_final = True
                return None
            again = self._wait_for_restart(run)
            if again is None:
                return None
            pod = again
        with self.gate:
            if self.is_stopped:
                return None
            self._begin_run()
        self.waiter.notify(f"{self.name} was restarted: its next run follows")
        return self._restarts(pod)

    def _begin_run(self) -> None:
        """Forget the run before: of another run's log, everything is new, whatever the user chose of the first."""
        self.cursor, self.options, self._begin = (
            LogCursor(),
            LogOptions(timestamps=self.options.timestamps),
            "",
        )

    def _stream(self, *, follow: bool, previous: bool = False) -> Generator[LogLine, None, bool]:
        """Yield the new lines of one stream; return whether it came to its end.

        An unfinished line waits for the next stream, or ends the log.
        """
        with self.gate:
            if self.is_stopped:
                return False
            self.cursor.resume()
        stream = self._opened(follow=follow, previous=previous)
        if stream is None:
            return False
        try:
            return (yield from self._new_lines(stream, follow=follow))
        except ConnectionFailed as error:
            self.waiter.report(f"{self.name}: the log's stream broke off ({error.message})")
            return False
        except TimeoutError:
            # A quiet container and a dead connection look alike, so the stream is opened again.
            return False
        finally:
            stream.close()

    def _opened(self, *, follow: bool, previous: bool) -> Response | None:
        """Return a new stream, None where none can be had at the moment."""
        try:
            return self._open(follow=follow, previous=previous)
        except ConnectionFailed:
            # While a log is followed, the next look at the pod reports this, and waits until a server answers.
            return None
        except ApiError as error:
            self._tolerate(error, gone_is_final=not follow)
            return None

    def _new_lines(self, stream: Response, *, follow: bool) -> Generator[LogLine, None, bool]:
        as_line = _line_maker(self.pod, self.container)
        while line := stream.readline(LONGEST_LINE):
            # Half a line comes whole with the next stream; the last stream's is all that there is.
            if follow and not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                return False
            with self.gate:
                if self.is_stopped:
                    return False
                if new := self.cursor.admit(line):
                    # A stream that brings something new works: the next break is tried again at once.
                    self._failures = 0
                    self.waiter.forget()
                    yield as_line(*new)
        return True

    def _tolerate(self, error: ApiError, *, gone_is_final: bool) -> None:
        """Report a refusal that passes once a container or a node has changed its state; raise any other."""
        # 400: the container is about to start, or to restart. 404: the pod is gone, which the next look finds out.
        # From 500 on the kubelet or its node does not answer the API server. A second look reads credentials anew.
        is_first_401 = isinstance(error, Unauthorized) and not self._was_refused
        is_of_the_pod = error.status == 400 or (error.status == 404 and not gone_is_final)
        if not (is_of_the_pod or is_passing(error) or is_first_401):
            raise error
        self._was_refused = isinstance(error, Unauthorized)
        self.waiter.report(f"{self.name}: {error.message}")

    def _open(self, *, follow: bool, previous: bool) -> Response:
        query = self.options.query()
        # The user's tail and since choose where the log begins; a resumed stream begins where the last one stopped.
        if self.cursor.since:
            query = {"sinceTime": self.cursor.since}
        elif self._begin:
            query = {"sinceTime": self._begin, "tailLines": self.options.tail or None}
        query["previous"] = previous or self.options.previous
        stream = self.session.stream(
            _path(self.session, self.pod),
            timeout=_SILENCE,
            container=self.container,
            follow=follow,
            timestamps=True,
            **query,
        )
        self._was_refused = False
        if not self._begin:
            self._begin = self._beginning(stream)
        return stream

    def _beginning(self, stream: Response) -> str:
        """Return the time from which a log without lines is resumed, empty where the options say it as well."""
        # These two count from now, and what is written until the next stream would come before it.
        if self.options.tail != 0 and not self.options.since:
            return ""
        # Few logs begin by the clock, and the parser of dates takes a while to import.
        from email.utils import parsedate_to_datetime

        try:
            now = parsedate_to_datetime(stream.header("Date"))
        except (ValueError, OverflowError):
            now = datetime.now(UTC)
        began = now if self.options.tail == 0 else now - timedelta(seconds=self.options.since or 0)
        return began.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _current_pod(self) -> Object | None:
        """Return the pod as it is now, None once it is gone; while no server answers, try again."""
        try:
            pod = patient(self._look, self.waiter, name=self.name)
        except NotFound:
            return None
        # Another pod of this name has another log.
        return pod if pod["metadata"]["uid"] == self.pod["metadata"]["uid"] else None

    def _look(self) -> Object:
        with self.guard:
            return self.session.get(PODS.path(self.session.namespace, self.name))

    def _wait_for_restart(self, run: int) -> Object | None:
        """Return the pod once its container runs again, None when it will not any more."""
        while True:
            pod = self._current_pod()
            if pod is None or self._restarts(pod) > run:
                return pod
            if not self._will_restart(pod):
                self.is_final = True
                return None
            self.waiter.pause(f"waiting for {self.name} to be restarted: {self._waiting_reason(pod)}")

    def _waiting_reason(self, pod: Object) -> str:
        waiting = (self._status(pod).get("state") or {}).get("waiting") or {}
        return str(waiting.get("message") or waiting.get("reason") or "its container has ended")

    def _will_restart(self, pod: Object) -> bool:
        """Whether the kubelet starts the ended container again, by the pod's policy."""
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed") or pod["metadata"].get(
            "deletionTimestamp"
        ):
            return False
        policy = pod["spec"].get("restartPolicy")
        return policy == "Always" or (policy == "OnFailure" and self.exit_code != 0)

    def _has_stopped(self, pod: Object) -> bool:
        """Whether the container's present run has ended; one that backs off has its end in its last state."""
        status = self._status(pod)
        state = status.get("state") or {}
        backs_off = "waiting" in state and "terminated" in (status.get("lastState") or {})
        return "terminated" in state or backs_off

    def _pause(self) -> None:
        """Return at once the first time, then after 1, 2, 4 ... seconds; a new line starts this anew."""
        if self._failures:
            self.waiter.sleep(min(2.0 ** (self._failures - 1), LONGEST_PAUSE))
        self._failures += 1

    def _report_exit(self, pod: Object, *, ended_before: bool) -> None:
        """Keep the exit code of the run that has ended, and report it unless it is 0."""
        status = self._status(pod)
        states = ("lastState",) if ended_before else ("state", "lastState")
        ended = [(status.get(state) or {}).get("terminated") for state in states]
        terminated: Object = next((state for state in ended if state), {})
        self.exit_code = terminated.get("exitCode")
        if self.exit_code:
            reason = f" ({terminated['reason']})" if terminated.get("reason") else ""
            is_deleted = bool(pod["metadata"].get("deletionTimestamp"))
            notify = self._notify_of_loss if is_deleted else self.waiter.notify
            notify(f"{self.name} exited with code {self.exit_code}{reason}")

    def _notify_of_loss(self, text: str) -> None:
        """Report *text* about a pod that somebody deletes, unless its job has ended: then its operator cleans up."""
        if not self._job_has_ended():
            self.waiter.notify(text)

    def _job_has_ended(self) -> bool:
        try:
            job = patient(self._look_at_job, self.waiter, name=self.name)
        # A job that was deleted took its pods with it before it had ended.
        except NotFound:
            return False
        return ending(job) is not None

    def _look_at_job(self) -> Object:
        with self.guard:
            return find_job(self.session, self.job).job

    def _status(self, pod: Object) -> Object:
        return container_status(pod, self.container)

    def _restarts(self, pod: Object) -> int:
        return int(self._status(pod).get("restartCount") or 0)

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])


def _line_maker(pod: Object, container: str) -> Callable[[bytes, bytes], LogLine]:
    """Return what makes a line of a stamp and a text that *container* of *pod* wrote."""
    name, node = str(pod["metadata"]["name"]), pod["spec"].get("nodeName") or ""
    role, index = role_of(pod)
    return lambda stamp, text: LogLine(name, container, node, stamp, text, role, index)


def _path(session: Session, pod: Object) -> str:
    return PODS.path(session.namespace, pod["metadata"]["name"], "log")
