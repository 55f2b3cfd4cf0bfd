"""The log of a container, once or as it grows.

No line lost, no line twice, whatever happens to the connection.
A stream that ends says nothing about the container: load balancers and kubelets close streams too. So the
follower looks at the container after every stream. If the container has ended, the rest of its log is
drained; if it was started again, the rest comes from its previous run, and the new run is followed; if it
runs, the stream is resumed where it stopped (``cursor``). A pod that is recreated or retried is followed
next, until the job has ended.
"""

import re
import signal
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import FrameType

from arena_topo.errors import ApiError, ArenaTopoError, ConnectionFailed, NotFound, Unauthorized, UsageError
from arena_topo.jobs.conditions import ending, why_waiting
from arena_topo.jobs.logs.wait import (
    LONGEST_PAUSE,
    MOST_REFUSALS,
    LogTarget,
    Waiter,
    can_be_of,
    check_possible,
    container_status,
    has_started,
    patient,
    wait_for_next,
    wait_for_start,
)
from arena_topo.jobs.lookup import ServedJob, find_job, pods_of
from arena_topo.kinds.mpijob import parse_worker_name, worker_count, worker_name
from arena_topo.kinds.names import is_chief
from arena_topo.kube.resources import PODS
from arena_topo.kube.session import Session, http_date, is_passing
from arena_topo.kube.transport import Response
from arena_topo.model import keys
from arena_topo.model.kind import LogLine
from arena_topo.model.objects import Object
from arena_topo.model.text.words import natural_sort_key, plural

# Where a log was left: which lines of a resumed stream are new.
#
# Within one stream every line is new, whatever its stamp: the writers of stdout and stderr race, and clocks
# step back. Only the beginning of a resumed stream repeats lines. The API server resumes at whole seconds,
# and ``since`` is one second before that of the last line, because a line that comes after it may have a
# slightly older stamp. For example, after ``02.5 a`` and ``02.5 b`` the stream is resumed from second 1 and
# brings ``01.2 z``, ``02.5 a``, ``02.5 b``, ``02.5 c``: the first is older than all that was seen, the next
# two were seen, and with the second the overlap is over: ``c`` is new.
#
# Seen lines are known by stamp and hash of their text, the last few thousand of them; of older ones only the
# newest stamp is kept. The overlap ends with the last line that was seen, or with a line newer than all that
# was seen, where the kubelet has rotated the seen ones away. Stamps are RFC 3339 with up to nine fractional
# digits.
#
# A line that the container wrote in pieces has a time for each piece, and the kubelet resumes in the middle
# of it: such a rest has no stamp, and comes before any line that has one. A line that is too long to be read
# at once is admitted piece by piece, and each piece is known like a line.

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?")

_REMEMBERED = 4096
"""Lines; what a stream brings twice is the output of one or two seconds."""

_MARGIN = 1
"""Seconds by which a line may be older than the one before it and still be resumed."""

Moment = tuple[int, int]
"""Whole seconds since 1970 and the nanoseconds beyond them."""

_Print = tuple[Moment, int]
"""What a line is known by: its stamp, and the hash of its text."""


class LogCursor:
    """The lines that were seen last in a log.

    One that is not *whole* had lines before its first one, as with --tail.
    """

    def __init__(self, *, whole: bool = True) -> None:
        self._is_whole = whole
        self._recent: deque[_Print] = deque(maxlen=_REMEMBERED)
        self._forgotten: Moment | None = None
        self._overlap: Counter[_Print] = Counter()
        self._last: _Print | None = None
        self._newest: Moment | None = None
        self._is_found = False
        self._is_begun = True
        self._unended: tuple[Moment, int] | None = None

    @property
    def since(self) -> str:
        """The second to resume from, as RFC 3339, empty before the first line."""
        if not self._recent:
            return ""
        second = self._recent[-1][0][0] - _MARGIN
        return datetime.fromtimestamp(second, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def resume(self) -> None:
        """Expect the lines that were seen last once more."""
        self._overlap = Counter(self._recent)
        self._last = self._recent[-1] if self._recent else None
        self._newest = max((moment for moment, _ in self._recent), default=None)
        self._is_found = False
        self._is_begun = self._last is None
        self._unended = None

    def admit(self, line: bytes) -> tuple[bytes, bytes] | None:
        """Return the stamp and the text of *line* if it is new, else None.

        A line without an end is continued by the next one, which then has no stamp. A line without a stamp is
        new, unless it is the rest of one at the beginning of a resumed log.
        """
        if self._unended is not None:
            (moment, index), stamp, text = self._unended, b"", line
        elif (match := _STAMP.match(line)) and (read := _moment(match)):
            moment, index, stamp, text = read, 0, match.group(0).rstrip(), line[match.end() :]
        else:
            return (b"", line) if self._is_begun else None
        self._is_begun = True
        self._unended = None if line.endswith(b"\n") else (moment, index + 1)
        if self._was_seen(print_ := (moment, hash((index, text)))):
            return None
        self._remember(print_)
        return stamp, text

    def _was_seen(self, line: _Print) -> bool:
        """Whether *line* belongs to what a resumed stream repeats."""
        if not self._overlap:
            return False
        if self._overlap[line]:
            self._overlap[line] -= 1
            self._is_found = True
            # Of equal lines with one stamp, as many are old as were seen.
            if line == self._last and not self._overlap[line]:
                self._overlap.clear()
            return True
        # Before the first line that is remembered come those that are not any more, and those before the
        # user's --tail.
        if not self._is_found and self._forgotten is not None and line[0] <= self._forgotten:
            return True
        if self._newest is not None and line[0] > self._newest:
            self._overlap.clear()
        return False

    def _remember(self, line: _Print) -> None:
        if not self._recent and not self._is_whole:
            self._forgotten = line[0]
        elif len(self._recent) == _REMEMBERED:
            self._forgotten = max(self._forgotten or line[0], self._recent[0][0])
        self._recent.append(line)


def _moment(match: re.Match[bytes]) -> Moment | None:
    """Return the moment of a stamp, None for what only looks like one, such as the 31st of February."""
    second, fraction, zone = match.groups()
    try:
        return _epoch(second, zone), int((fraction or b"0").ljust(9, b"0"))
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _epoch(second: bytes, zone: bytes) -> int:
    offset = "+00:00" if zone == b"Z" else zone.decode()
    return int(datetime.fromisoformat(second.decode() + offset).timestamp())


# Which instances of a job are meant: the launcher, all, those of a role, or some by name and index.

_LAUNCHER, _WORKER = "launcher", "worker"
_RANGE = r"(?:worker-)?(\d{1,7})(?:-(\d{1,7}))?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """Some instances of a job.

    Without anything it is the launcher, or what takes its place in jobs of other kinds.
    ``indices`` are workers by number, ``names`` are pods; ``role`` means all of a role, ``every`` simply all.
    """

    every: bool = False
    role: str = ""
    indices: tuple[range, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def one(self) -> bool:
        """Whether one instance at most is meant."""
        if self.every or self.role not in ("", _LAUNCHER):
            return False
        return sum(map(len, self.indices)) + len(self.names) + bool(self.role) <= 1

    def name_in(self, job: str) -> str:
        """Return the name of the one instance that is meant, empty for the launcher."""
        if self.names:
            return self.names[0]
        return worker_name(job, self.indices[0][0]) if self.indices else ""

    def among(self, served: ServedJob, pods: Sequence[Object]) -> list[Object]:
        """Return those of *pods* that are meant, the launcher first and workers by number."""
        meant = [pod for pod in pods if self._holds(served, pod)]
        return sorted(
            meant, key=lambda pod: (not served.kind.is_chief(pod), natural_sort_key(pod["metadata"]["name"]))
        )

    def check(self, served: ServedJob) -> None:
        """Raise ``NotFound`` where a job cannot have one of these instances."""
        name, roles = served.name, roles_of(served)
        if self.role not in ("", _LAUNCHER, *roles):
            raise NotFound(
                f"job {name} has no instances of role {self.role}", hint=f"its roles are {', '.join(roles)}"
            )
        # A range may be as long as its user likes, and its last number is the one that counts.
        asked = [*self.names, *(worker_name(name, each[-1]) for each in self.indices)]
        for instance in asked:
            if not can_be_of(served, instance):
                raise NotFound(
                    f"invalid instance name {instance} in job {name}, which has {_pods(served)}",
                    hint=f"see arena-topo get {name}",
                )

    def _holds(self, served: ServedJob, pod: Object) -> bool:
        if self.every or pod["metadata"]["name"] in self.names:
            return True
        # Named instances and roles leave the launcher out, unless it is asked for as well.
        are_chosen = self.indices or self.names or self.role not in ("", _LAUNCHER)
        if served.kind.is_chief(pod) and (self.role == _LAUNCHER or not are_chosen):
            return True
        member = served.kind.member(pod)
        if member is None or member.job != served.name:
            return False
        is_asked_for = member.role == _WORKER and any(member.index in each for each in self.indices)
        return is_asked_for or member.role == self.role


def role_of(pod: Object) -> tuple[str, int | None]:
    """Return the role of *pod* in its job and its index in that, None for a launcher, of which there is one.

    For example ``("worker", 2)``, ``("master", 0)``, ``("launcher", None)``.
    """
    if worker := parse_worker_name(pod["metadata"]["name"]):
        return _WORKER, worker.index
    labels = pod["metadata"].get("labels") or {}
    # Most logs are of MPIJobs, and need not import the other kinds.
    if labels.get(keys.OPERATOR_REPLICA_TYPE, _LAUNCHER) == _LAUNCHER and keys.COMPLETION_INDEX not in labels:
        return _LAUNCHER, None
    from arena_topo.kinds.table import OTHER_KINDS

    members = filter(None, (kind.member(pod) for kind in OTHER_KINDS))
    return next(((member.role, member.index) for member in members), (_LAUNCHER, None))


def roles_of(served: ServedJob) -> list[str]:
    """Return the roles of a job, in the order of its kind."""
    roles = [role.role for role in served.kind.replicas(served.job)]
    # v1alpha1 has one template for both of its roles.
    return [*roles, _LAUNCHER] if roles == [_WORKER] and served.kind.plural == "mpijobs" else roles


def _pods(served: ServedJob) -> str:
    """Return the pods that can be named, such as ``4 workers``."""
    if served.kind.plural == "mpijobs":
        return plural(worker_count(served.job), "worker")
    return " and ".join(plural(role.count, role.role) for role in served.kind.replicas(served.job))


def parse_instances(text: str, role: str, *, every: bool) -> Instances:
    """Return the instances of ``--instance``, ``--role`` and ``--all``.

    For example ``0-3,7`` means five workers, ``vgg16-worker-2`` one, ``launcher`` the launcher. Raises
    ``UsageError``.
    """
    if every + bool(role) + bool(text) > 1:
        raise UsageError("at most one of --instance, --role and --all may be used")
    if not text:
        return Instances(every=every, role=role.lower())
    indices, names, launcher = [], [], False
    for part in text.split(","):
        if match := re.fullmatch(_RANGE, part, re.ASCII):
            indices.append(_indices(match, part))
        elif part == _LAUNCHER:
            launcher = True
        elif part:
            names.append(part)
        else:
            raise UsageError(
                f"--instance: {text!r} has an empty part", hint="write for example 0-3,7 or vgg16-worker-2"
            )
    return Instances(indices=tuple(indices), names=tuple(names), role=_LAUNCHER if launcher else "")


def _indices(match: re.Match[str], part: str) -> range:
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"--instance: {part!r} ends before it begins", hint=f"write {last}-{first}")
    return range(first, last + 1)


_SILENCE = 600.0
"""Seconds without a line after which a stream is taken for dead, and opened again."""

_LONG_STREAM = 30.0
"""Seconds after which a stream that ends without a line worked anyway: balancers close idle ones."""

_QUIET_FAILURES = 2
"""Streams that may end at once before the user is notified: a kubelet reports an end seconds after the
stream's."""

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
    yield from read_pod(session, pod, container, options, job=name)


def read_pod(
    session: Session, pod: Object, container: str, options: LogOptions, *, job: str = ""
) -> Iterator[LogLine]:
    """Yield the lines of one container of *job* as they are now."""
    stream = session.stream_once(
        _path(session, pod),
        timeout=_SILENCE,
        container=container,
        timestamps=options.timestamps,
        **options.query(),
    )
    # A stream that is read once needs no cursor, except to part the stamps from the lines.
    cursor, as_line = LogCursor(), _line_maker(job, pod, container)
    try:
        while line := stream.readline(LONGEST_LINE):
            stamp, text = (cursor.admit(line) or (b"", b"")) if options.timestamps else (b"", line)
            yield as_line(stamp, text)
    finally:
        stream.close()


def follow(
    session: Session, name: str, target: LogTarget, options: LogOptions, waiter: Waiter
) -> Iterator[LogLine]:
    """Wait for the container to start, and yield its log's lines as they come until it has ended permanently.

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
    """Whether a new pod may follow one that has ended.

    A batch Job retries a launcher or a pod of its own that failed.
    """
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

    ``guard`` is held while the session's kept connection is used. ``gate`` is held from the moment at which a
    line is known as new until its taker asks for the next one: anyone who sets ``is_stopped`` under it may
    continue from ``cursor``. Afterwards ``is_final`` says whether the container ended by itself, with
    ``exit_code``, rather than with its pod.
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
    _refusals: int = 0

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
        """Yield what is left of a log whose end is not waited for."""
        pod = self._current_pod()
        if pod is None:
            self.waiter.notify(f"{self.name} is gone: its log may have had more lines")
            return
        if self.run is not None and self._restarts(pod) > self.run:
            yield from self.rest(previous=True)
            self._begin_run()
        yield from self.rest()

    def rest(self, *, previous: bool = False) -> Generator[LogLine]:
        """Yield what is left of a log that grows no more.

        Raises ``ArenaTopoError`` when it cannot be read.
        """
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
        """Yield the rest of run number *run*, which has ended.

        Return the number of the next one, None without any.
        """
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
        """Forget the run before: of another run's log everything is new."""
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
            # The stream is read, so that the server is the right one.
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
        except ConnectionFailed as error:
            if not is_passing(error):
                raise
            # While a log is followed, the next look at the pod reports this, and waits until a server
            # answers.
            return None
        except ApiError as error:
            self._tolerate(error, gone_is_final=not follow)
            return None

    def _new_lines(self, stream: Response, *, follow: bool) -> Generator[LogLine, None, bool]:
        as_line = _line_maker(self.job, self.pod, self.container)
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
        # 400: the container is about to start, or to restart. 404: the pod is gone, which the next look finds
        # out. From 500 on the kubelet or its node does not answer the API server. A second look reads
        # credentials again.
        refusals = self._refusals + 1 if isinstance(error, Unauthorized) else 0
        is_of_the_pod = error.status == 400 or (error.status == 404 and not gone_is_final)
        if not (is_of_the_pod or is_passing(error) or 0 < refusals < MOST_REFUSALS):
            raise error
        self._refusals = refusals
        self.waiter.report(f"{self.name}: {error.message}")

    def _open(self, *, follow: bool, previous: bool) -> Response:
        query = self.options.query()
        # The user's tail and since choose where the log begins; a resumed stream begins where the last one
        # stopped.
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
        self._refusals = 0
        if not self._begin:
            self._begin = self._beginning(stream)
        return stream

    def _beginning(self, stream: Response) -> str:
        """Return the time from which a log without lines is resumed, empty where the options say it."""
        # These two count from now, and what is written until the next stream would come before it.
        if self.options.tail != 0 and not self.options.since:
            return ""
        now = http_date(stream.header("Date")) or datetime.now(UTC)
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
        """Return at once the first time, then after 1, 2, 4 ... seconds; a new line starts this again."""
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
        """Report *text* about a pod that somebody deletes, unless the operator of an ended job cleans up."""
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


def _line_maker(job: str, pod: Object, container: str) -> Callable[[bytes, bytes], LogLine]:
    """Return what makes a line of a stamp and a text that *container* of *pod* of *job* wrote."""
    name, node = str(pod["metadata"]["name"]), pod["spec"].get("nodeName") or ""
    role, index = role_of(pod)
    return lambda stamp, text: LogLine(name, container, node, stamp, text, role, index, job)


def _path(session: Session, pod: Object) -> str:
    return PODS.path(session.namespace, pod["metadata"]["name"], "log")


# Choosing lines by regular expressions, each in bounded time.
#
# Python's expressions backtrack: ``(a+)+$`` on thirty letters takes minutes. While one is matched, a timer of
# the process's CPU time runs, so that a laptop that sleeps in between is no excuse, and the user who wrote
# such an expression reads which.

_LONGEST_MATCH = 1.0
"""Seconds of CPU time for all expressions on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """Lines are wanted that any of *include* matches, or all without any, and none of *exclude*."""

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()

    def wanted(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """Yield those of *lines* that are wanted, in the main thread.

        Raises ``UsageError`` at one that takes too long.
        """
        if not self.include and not self.exclude:
            yield from lines
            return
        with _timer():
            for line in lines:
                if self._wants(line):
                    yield line

    def _wants(self, line: LogLine) -> bool:
        # Logs may be of any encoding; what is no UTF-8 matches no letter.
        text = line.text.rstrip(b"\r\n").decode(errors="surrogateescape")
        signal.setitimer(signal.ITIMER_VIRTUAL, _LONGEST_MATCH)
        try:
            return (not self.include or any(each.search(text) for each in self.include)) and not any(
                each.search(text) for each in self.exclude
            )
        except _TooSlowError:
            raise UsageError(
                f"--include and --exclude took more than {_LONGEST_MATCH:g} s on one line of {line.instance} "
                f"({len(text)} characters)",
                hint="an expression with nested repetitions, such as (a+)+, backtracks: write it without",
            ) from None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def compiled(flag: str, patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Return the compiled *patterns* of *flag*. Raises ``UsageError``."""
    return tuple(_compiled(flag, pattern) for pattern in patterns)


def _compiled(flag: str, pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            # What a later Python may read differently is of no use to the user who types it today.
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"{flag}: {pattern[:80]!r} is not a regular expression: {error}",
            hint="it is read as Python's re does; quote it for the shell",
        ) from error


class _TooSlowError(Exception):
    """The time for one line is over."""


@contextmanager
def _timer() -> Iterator[None]:
    """Let the timer's signal interrupt a match."""

    def stop(_: int, __: FrameType | None) -> None:
        raise _TooSlowError

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)
