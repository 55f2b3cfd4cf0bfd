"""What containers have printed, and requests for it.

Source of the options' meaning: k8s.io/kubernetes pkg/registry/core/pod/strategy.go (LogLocation) and the
kubelet.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from arena_topo.model.objects import Object
from arena_topo.model.text.durations import parse_instant
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.requests import Cause, bad_request, invalid, number_of

_CENTURY = 100 * 365 * 86400  # seconds
_OPTIONS = Kind("", "v1", "PodLogOptions", "podlogoptions", "podlogoptions", namespaced=True)


@dataclass(slots=True)
class ContainerLog:
    """The stamped lines of one run of one container, and whether it has ended."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    closed: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self, text: str) -> None:
        """Add a line, stamped with the present instant."""
        # Kubelets stamp lines with nanoseconds, which Python's clock does not have.
        self.lines.append((datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z"), text))
        self._notify()

    def close(self) -> None:
        """Mark the run as ended."""
        self.closed = True
        self._notify()

    def _notify(self) -> None:
        # Each follower waits for the event that it took before it read; the next change gets a new one.
        self.changed.set()
        self.changed = asyncio.Event()


class ContainerLogs:
    """The logs of all containers, by the pod's uid, the container's name and the run's number."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str, int], ContainerLog] = {}

    def open(self, uid: str, container: str, run: int = 0) -> ContainerLog:
        """Return the log of a run, a new one if there is none."""
        return self._logs.setdefault((uid, container, run), ContainerLog())

    def find(self, uid: str, container: str, run: int) -> ContainerLog:
        """Return the log of a run; an ended one without lines if there is none."""
        return self._logs.get((uid, container, run), ContainerLog(closed=True))

    def forget(self, uid: str) -> None:
        """Drop the logs of a pod that is gone; followers see their end."""
        for key in [key for key in self._logs if key[0] == uid]:
            self._logs.pop(key).close()

    def dump(self) -> list[Object]:
        """Return all logs as JSON has them."""
        return [
            {"uid": uid, "container": container, "run": run, "lines": log.lines, "closed": log.closed}
            for (uid, container, run), log in self._logs.items()
        ]

    def load(self, logs: list[Object]) -> None:
        """Restore dumped logs."""
        for log in logs:
            lines = [(stamp, text) for stamp, text in log["lines"]]
            self._logs[log["uid"], log["container"], log["run"]] = ContainerLog(lines, closed=log["closed"])


def container_of(pod: Object, name: str) -> str:
    """Return the container that a log request means; raises StatusError for none, or several."""
    pod_name, spec = pod["metadata"]["name"], pod["spec"]
    names = [container["name"] for container in spec["containers"]]
    # A name may be that of an init container, but the default is only ever an ordinary one.
    if name:
        if name not in names + [container["name"] for container in spec.get("initContainers", [])]:
            raise bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    if len(names) > 1:
        listed = "[" + " ".join(names) + "]"
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: {listed}")
    return str(names[0])


def run_of(pod: Object, container: str, *, previous: bool) -> int:
    """Return the number of the run to show; raises StatusError when the container has not run yet."""
    name = pod["metadata"]["name"]
    states = pod.get("status", {}).get("containerStatuses", [])
    status: Object = next((state for state in states if state["name"] == container), {})
    run = int(status.get("restartCount", 0))
    if previous:
        if not status.get("lastState", {}).get("terminated"):
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        return run - 1
    state = status.get("state", {})
    if "running" not in state and "terminated" not in state:
        # While a container waits for its next start, as in CrashLoopBackOff, its last run is what it has to
        # show.
        if status.get("lastState", {}).get("terminated"):
            return run - 1
        reason = state.get("waiting", {}).get("reason", "ContainerCreating")
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    return run


def read(log: ContainerLog, query: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Return the lines that a request asks for, with ``follow`` until the end; raises StatusError."""
    follow, stamped = query.get("follow") == "true", query.get("timestamps") == "true"
    return _lines(log, _first_line(log, query), follow=follow, stamped=stamped)


async def _lines(log: ContainerLog, position: int, *, follow: bool, stamped: bool) -> AsyncIterator[bytes]:
    while True:
        changed = log.changed
        while position < len(log.lines):
            stamp, text = log.lines[position]
            position += 1
            yield (f"{stamp} {text}\n" if stamped else f"{text}\n").encode()
        if not follow or log.closed:
            return
        await changed.wait()


def _first_line(log: ContainerLog, query: Mapping[str, str]) -> int:
    """Return the first line to show, by tail and since."""
    start, since = 0, None
    tail, seconds = number_of(query, "tailLines"), number_of(query, "sinceSeconds")
    if tail is not None:
        start = max(len(log.lines) - _checked("tailLines", tail, 0), 0)
    if seconds is not None:
        # A hundred years is before any log, and still an instant.
        span = min(_checked("sinceSeconds", seconds, 1), _CENTURY)
        since = datetime.now(UTC) - timedelta(seconds=span)
    elif "sinceTime" in query:
        since = _instant(query["sinceTime"])
    while since is not None and start < len(log.lines) and parse_instant(log.lines[start][0]) < since:
        start += 1
    return start


def _checked(name: str, value: int, least: int) -> int:
    """Return *value*; raises StatusError where it is below *least*, in the words of the API's validation."""
    if value < least:
        bound = "greater than or equal to 0" if least == 0 else "greater than 0"
        text = f"Invalid value: {value}: must be {bound}"
        raise invalid(_OPTIONS, "", [Cause(name, "FieldValueInvalid", text)])
    return value


def _instant(text: str) -> datetime:
    try:
        return parse_instant(text)
    except ValueError:
        raise bad_request(
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}"'
        ) from None
