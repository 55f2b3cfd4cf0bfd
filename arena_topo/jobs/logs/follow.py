"""The log of a container, once or as it grows: no line lost, no line twice, whatever happens to the connection.

A stream that ends says nothing about the container: load balancers and kubelets close streams too. So after every
end the container is looked at: ended, the rest is drained and that is all; running, the stream is resumed.
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
_LONGEST_PAUSE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Which part of a log, and how; ``tail`` None for all, ``since`` in seconds, ``since_time`` as RFC 3339."""

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


def read(session: Session, name: str, wanted: LogTarget, options: LogOptions) -> Iterator[bytes]:
    """Yield the log's lines as they are now.

    Raises ``NotFound`` without such a job or instance, ``ArenaTopoError`` when the container has not started.
    """
    found = find_job(session, name)
    pod = wanted.pick(pods_of(session, found))
    if pod is None:
        raise NotFound(
            f"{wanted.instance or 'the launcher'} of job {name} does not exist yet, or any more",
            hint=f"see arena-topo get {name}; arena-topo logs -f waits for it",
        )
    container = wanted.container_of(pod)
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
    session: Session, name: str, wanted: LogTarget, options: LogOptions, waiter: Waiter
) -> Iterator[bytes]:
    """Yield the log's lines as they come, until the container has ended; waits for it to start first."""
    pod = wait_for_start(session, name, wanted, waiter)
    follower = _Follower(session, pod, wanted.container_of(pod), options, waiter)
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
        restarts = self._status(self.pod).get("restartCount") or 0
        while True:
            yield from self._stream(follow=True)
            now = self._look()
            if now is None:
                self.waiter.notify(f"{self._name} is gone: its log ends here")
                return
            status = self._status(now)
            restarted = (status.get("restartCount") or 0) > restarts
            if restarted or "terminated" in (status.get("state") or {}):
                yield from self._stream(follow=False, previous=restarted)
                self._tell_end(status, "lastState" if restarted else "state")
                return
            self.waiter.notify(f"{self._name}: the log's stream ended and the container runs; resuming")
            self._pause()

    def _stream(self, *, follow: bool, previous: bool = False) -> Iterator[bytes]:
        """Yield the new lines of one stream; an unfinished line waits for the next one, or ends the log."""
        self.cursor.resume()
        try:
            stream = self._open(follow=follow, previous=previous)
        except ConnectionFailed:
            return
        except ApiError as error:
            self._give_time(error)
            return
        try:
            while line := stream.readline():
                if not line.endswith(b"\n") and follow:
                    return
                if new := self.cursor.admit(line):
                    self.failures = 0
                    stamp, text = new
                    yield stamp + b" " + text if self.options.timestamps and stamp else text
        except ConnectionFailed as error:
            self.waiter.notify(f"{self._name}: the log's stream broke off ({error.message})")
        except TimeoutError:
            return
        finally:
            stream.close()

    def _give_time(self, error: ApiError) -> None:
        """Let a refusal pass that a container or a node in transition brings; raise any other."""
        if error.status not in (400, 404) and error.status < 500:
            raise error
        self.waiter.notify(f"{self._name}: {error.message}")

    def _open(self, *, follow: bool, previous: bool) -> Response:
        query = self.options.query()
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

    def _look(self) -> Object | None:
        """Return the pod as it is now, None once it is gone; as long as nobody answers, ask again."""
        while True:
            try:
                pod = self.session.get(PODS.path(self.session.namespace, self._name))
            except NotFound:
                return None
            except ConnectionFailed as error:
                self.waiter.notify(f"{self._name}: {error.message}; trying again")
                self._pause()
                continue
            return pod if pod["metadata"]["uid"] == self.pod["metadata"]["uid"] else None

    def _pause(self) -> None:
        """Resume at once the first time, then after 1, 2, 4 ... seconds, until a line comes."""
        if self.failures:
            self.waiter.sleep(min(2.0 ** (self.failures - 1), _LONGEST_PAUSE))
        self.failures += 1

    def _tell_end(self, status: Object, where: str) -> None:
        ended = (status.get(where) or {}).get("terminated") or {}
        if ended.get("exitCode"):
            reason = f" ({ended['reason']})" if ended.get("reason") else ""
            self.waiter.notify(f"{self._name} exited with code {ended['exitCode']}{reason}")

    def _status(self, pod: Object) -> Object:
        return container_status(pod, self.container)

    @property
    def _name(self) -> str:
        return str(self.pod["metadata"]["name"])


def _path(session: Session, pod: Object) -> str:
    return PODS.path(session.namespace, pod["metadata"]["name"], "log")
