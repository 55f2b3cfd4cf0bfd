"""The log of a container, once or as it grows: no line lost, no line twice, whatever happens to the connection.

A stream that ends says nothing about the container: load balancers and kubelets close streams too. So the follower
looks at the container after every stream. If the container has ended, the rest of its log is drained, and that is all;
if it runs, the stream is resumed where it stopped (``cursor``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from arena_topo.errors import ApiError, ArenaTopoError, ConnectionFailed, NotFound
from arena_topo.jobs.logs.cursor import LogCursor
from arena_topo.jobs.logs.wait import LogTarget, Waiter, container_status, has_started, wait_for_start
from arena_topo.jobs.lookup import find_job, pods_of
from arena_topo.jobs.status.pod_status import why_waiting
from arena_topo.kube.resources import PODS
from arena_topo.kube.session import Session
from arena_topo.kube.transport import Response
from arena_topo.model.objects import Object

_SILENCE = 600.0
"""Seconds without a line after which a stream is taken for dead, and opened again."""

_LONGEST_PAUSE = 20.0
"""Seconds; pauses between two attempts double up to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Which part of a log to print, and how.

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


def read(session: Session, name: str, target: LogTarget, options: LogOptions) -> Iterator[bytes]:
    """Yield the log's lines as they are now.

    Raises ``NotFound`` without such a job or instance, ``ArenaTopoError`` when the container has not started.
    """
    pod = target.pod_among(pods_of(session, find_job(session, name)))
    if pod is None:
        raise NotFound(
            f"{target.instance or 'the launcher'} of job {name} does not exist yet, or any more",
            hint=f"see arena-topo get {name}; arena-topo logs -f waits for it",
        )
    container = target.container_in(pod)
    if not has_started(pod, container):
        raise ArenaTopoError(
            f"instance {pod['metadata']['name']} is not running: {why_waiting(pod)}",
            hint="arena-topo logs -f waits until it is",
        )
    path = _path(session, pod)
    stream = session.stream(
        path, timeout=_SILENCE, container=container, timestamps=options.timestamps, **options.query()
    )
    while line := stream.readline():
        yield line


def follow(
    session: Session, name: str, target: LogTarget, options: LogOptions, waiter: Waiter
) -> Iterator[bytes]:
    """Wait for the container to start, and yield its log's lines as they come until it has ended.

    Raises what ``wait_for_start`` raises, and ``ApiError`` for a refusal that no waiting will heal.
    """
    pod = wait_for_start(session, name, target, waiter)
    follower = _Follower(session, pod, target.container_in(pod), options, waiter)
    yield from follower.lines()


@dataclass(slots=True)
class _Follower:
    session: Session
    pod: Object
    container: str
    options: LogOptions
    waiter: Waiter
    cursor: LogCursor = field(default_factory=LogCursor)
    failures: int = 0

    def lines(self) -> Iterator[bytes]:
        """Yield every line once, over as many streams as it takes."""
        # Counted from now: runs that ended before belong to --previous.
        restarts = self._status(self.pod).get("restartCount") or 0
        while True:
            yield from self._stream(follow=True)
            pod = self._current_pod()
            if pod is None:
                self.waiter.notify(f"{self._name} is gone: its log ends here")
                return
            status = self._status(pod)
            restarted = (status.get("restartCount") or 0) > restarts
            # The stream was of the run that has ended: a restarted container has a new log.
            if restarted or "terminated" in (status.get("state") or {}):
                yield from self._stream(follow=False, previous=restarted)
                self._report_exit(status, "lastState" if restarted else "state")
                return
            self.waiter.notify(f"{self._name}: the log's stream ended and the container runs; resuming")
            self._pause()

    def _stream(self, *, follow: bool, previous: bool = False) -> Iterator[bytes]:
        """Yield the new lines of one stream; an unfinished line waits for the next one, or ends the log."""
        self.cursor.resume()
        try:
            stream = self._open(follow=follow, previous=previous)
        except ConnectionFailed:
            # While a log is followed, the next look at the pod reports this, and waits until a server answers.
            return
        except ApiError as error:
            self._tolerate(error)
            return
        try:
            while line := stream.readline():
                # Half a line comes whole with the next stream; the last stream's is all that there is.
                if not line.endswith(b"\n") and follow:
                    return
                if new := self.cursor.admit(line):
                    # A stream that brings something new works: the next break is tried again at once.
                    self.failures = 0
                    stamp, text = new
                    yield stamp + b" " + text if self.options.timestamps and stamp else text
        except ConnectionFailed as error:
            self.waiter.notify(f"{self._name}: the log's stream broke off ({error.message})")
        except TimeoutError:
            # A quiet container and a dead connection look alike, so the stream is opened again.
            return
        finally:
            stream.close()

    def _tolerate(self, error: ApiError) -> None:
        """Report a refusal that passes once a container or a node has changed its state; raise any other."""
        # 400: the container is about to start, or to restart. 404: the pod is gone, which the next look finds out.
        # From 500 on the kubelet or its node does not answer the API server.
        if error.status not in (400, 404) and error.status < 500:
            raise error
        self.waiter.notify(f"{self._name}: {error.message}")

    def _open(self, *, follow: bool, previous: bool) -> Response:
        query = self.options.query()
        # The user's tail and since choose where the log begins; a resumed stream begins where the last one stopped.
        if since := self.cursor.since:
            query = {"sinceTime": since}
        query["previous"] = previous or self.options.previous
        return self.session.stream(
            _path(self.session, self.pod),
            timeout=_SILENCE,
            container=self.container,
            follow=follow,
            timestamps=True,
            **query,
        )

    def _current_pod(self) -> Object | None:
        """Return the pod as it is now, None once it is gone; while no server answers, try again."""
        while True:
            try:
                pod = self.session.get(PODS.path(self.session.namespace, self._name))
            except NotFound:
                return None
            except ConnectionFailed as error:
                self.waiter.notify(f"{self._name}: {error.message}; trying again")
                self._pause()
                continue
            # Another pod of this name has another log.
            return pod if pod["metadata"]["uid"] == self.pod["metadata"]["uid"] else None

    def _pause(self) -> None:
        """Return at once the first time, then after 1, 2, 4 ... seconds; a new line starts this anew."""
        if self.failures:
            self.waiter.sleep(min(2.0 ** (self.failures - 1), _LONGEST_PAUSE))
        self.failures += 1

    def _report_exit(self, status: Object, state: str) -> None:
        """Report the exit code that *state* (``state`` or ``lastState``) of a container *status* has, unless it is 0."""
        terminated = (status.get(state) or {}).get("terminated") or {}
        if terminated.get("exitCode"):
            reason = f" ({terminated['reason']})" if terminated.get("reason") else ""
            self.waiter.notify(f"{self._name} exited with code {terminated['exitCode']}{reason}")

    def _status(self, pod: Object) -> Object:
        return container_status(pod, self.container)

    @property
    def _name(self) -> str:
        return str(self.pod["metadata"]["name"])


def _path(session: Session, pod: Object) -> str:
    return PODS.path(session.namespace, pod["metadata"]["name"], "log")
