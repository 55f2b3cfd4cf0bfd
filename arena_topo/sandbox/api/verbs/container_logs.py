"""What containers have printed, and requests for it.

Source of the options' meaning: k8s.io/kubernetes pkg/registry/core/pod/strategy.go (LogLocation) and the kubelet.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.refusals import bad_request


@dataclass(slots=True)
class Book:
    """The lines of one run of one container, and whether more can come."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    closed: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self, text: str) -> None:
        """Add a line, stamped now."""
        self.lines.append((datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z"), text))
        self._notify()

    def close(self) -> None:
        """Say that no line will come."""
        self.closed = True
        self._notify()

    def _notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Logbook:
    """All containers' books, by the pod's uid, the container's name and the run's number."""

    def __init__(self) -> None:
        self._books: dict[tuple[str, str, int], Book] = {}

    def open(self, uid: str, container: str, run: int = 0) -> Book:
        """Return the book of a run, begun if it is new."""
        return self._books.setdefault((uid, container, run), Book())

    def find(self, uid: str, container: str, run: int) -> Book | None:
        """Return the book of a run, or None."""
        return self._books.get((uid, container, run))

    def forget(self, uid: str) -> None:
        """Drop the books of a pod that is gone; who follows one sees its end."""
        for key in [each for each in self._books if each[0] == uid]:
            self._books.pop(key).close()

    def dump(self) -> list[Object]:
        """Return all books."""
        return [
            {"uid": uid, "container": container, "run": run, "lines": book.lines, "closed": book.closed}
            for (uid, container, run), book in self._books.items()
        ]

    def load(self, books: list[Object]) -> None:
        """Take over dumped books."""
        for each in books:
            lines = [(stamp, text) for stamp, text in each["lines"]]
            self._books[each["uid"], each["container"], each["run"]] = Book(lines, closed=each["closed"])


def choose_container(pod: Object, wanted: str) -> str:
    """Return the container that a log request means; raises Refusal when it is none or not clear."""
    name = pod["metadata"]["name"]
    names = [each["name"] for each in pod["spec"]["containers"]]
    everyone = names + [each["name"] for each in pod["spec"].get("initContainers", [])]
    if wanted:
        if wanted not in everyone:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(names) > 1:
        listed = "[" + " ".join(names) + "]"
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: {listed}")
    return str(names[0])


def waiting(pod: Object, container: str, *, previous: bool) -> None:
    """Raise Refusal when the container has not printed anything yet and cannot."""
    name = pod["metadata"]["name"]
    states = pod.get("status", {}).get("containerStatuses", [])
    status: Object = next((each for each in states if each["name"] == container), {})
    if previous:
        if not status.get("lastState", {}).get("terminated"):
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        return
    state = status.get("state", {})
    if "running" in state or "terminated" in state:
        return
    reason = state.get("waiting", {}).get("reason", "ContainerCreating")
    raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


async def read(book: Book, query: dict[str, str]) -> AsyncIterator[bytes]:
    """Yield the lines that a log request asks for; with ``follow`` until the container ends."""
    stamped = query.get("timestamps") == "true"
    position = _start(book, query)
    while True:
        changed = book.changed
        while position < len(book.lines):
            stamp, text = book.lines[position]
            position += 1
            yield (f"{stamp} {text}\n" if stamped else f"{text}\n").encode()
        if query.get("follow") != "true" or book.closed:
            return
        await changed.wait()


def _start(book: Book, query: dict[str, str]) -> int:
    """Return the first line to show, by tail and since."""
    start = 0
    if "tailLines" in query:
        start = max(len(book.lines) - _count(query["tailLines"], "tailLines"), 0)
    since = None
    if "sinceSeconds" in query:
        since = datetime.now(UTC) - timedelta(seconds=_count(query["sinceSeconds"], "sinceSeconds"))
    elif "sinceTime" in query:
        since = parse_instant(query["sinceTime"])
    while since is not None and start < len(book.lines) and parse_instant(book.lines[start][0]) < since:
        start += 1
    return start


def _count(text: str, name: str) -> int:
    if not text.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({name})')
    return int(text)
