"""A job whose kubelets and API server do everything to its logs that is seen in the field, by the dice of a
seed.

Streams break off, within a line and between two, or end cleanly though the container runs on; requests are
refused; files are rotated; containers are started again, pods are recreated. No line gets lost on this side:
what a stream has not brought is in the file, or in that of the previous run, when it is asked for again.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Literal

from tests.objects import condition, mpijob, pod

SECOND = 10**9
REFUSALS = (500, 502, 503, 429, 401)
Event = bytes | Literal["drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Torments:
    """How often things happen, for each pod: cuts of its
    streams, refused requests, restarts, and recreations.
    """

    lines: int = 40
    cuts: int = 5
    refusals: int = 2
    restarts: int = 1
    recreations: int = 1


@dataclass(slots=True)
class Counts:
    """What was done to the logs."""

    cuts: int = 0
    refusals: int = 0
    rotations: int = 0
    restarts: int = 0
    recreations: int = 0


class TorturedPod:
    """One instance: its runs, and how far each is written."""

    def __init__(self, name: str, torments: Torments, dice: Random, counts: Counts) -> None:
        self.name, self._torments, self._dice, self._counts = name, torments, dice, counts
        self.life = -1
        self.run = 0
        self.is_over = self._has_expired = False
        self._written = self._file_begins = 0
        self.cuts_left, self.refusals_left = torments.cuts, torments.refusals
        self._clock = 1_800_000_000 * SECOND
        self.expected: list[bytes] = []
        self._begin_life()

    def look(self) -> Any:
        """Return the pod as the API server has it."""
        role = "launcher" if "launcher" in self.name else "worker"
        made = pod(self.name, role=role)
        made["metadata"]["uid"] = f"uid-{self.name}-{self.life}"
        made["spec"]["restartPolicy"] = "OnFailure"
        status = made["status"]["containerStatuses"][0]
        status["restartCount"] = self.run
        if self.is_over:
            status["state"] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
            made["status"]["phase"] = "Succeeded"
        return made

    def refuses(self) -> int:
        """Return the code of a refusal, 0 for none."""
        if self.refusals_left and self._dice.random() < 0.2:
            self.refusals_left -= 1
            self._counts.refusals += 1
            code = self._dice.choice(REFUSALS)
            # A token expires once; one that is refused again is wrong, and ends the following.
            if code == 401 and self._has_expired:
                return 503
            self._has_expired = self._has_expired or code == 401
            return code
        return 0

    def stream(self, query: Mapping[str, str]) -> Iterator[Event]:
        """Yield what a reader gets."""
        run = self.run - (query.get("previous") == "true")
        follow = query.get("follow") == "true"
        log, since = self._runs[run], query.get("sinceTime", "")
        position = self._file_begins if run == self.run else 0
        while True:
            end = self._written if run == self.run else len(log)
            for nanos, text in log[position:end]:
                line = _stamped(nanos, text)
                if line[:19] >= since[:19].encode():
                    yield line
            position = end
            if run != self.run or not follow:
                return
            if self._written == len(log):
                self._end_of_run()
                return
            # What has been delivered may be rotated away: later streams begin behind it.
            if self._dice.random() < 0.1:
                self._file_begins = position
                self._counts.rotations += 1
            if self.cuts_left and self._dice.random() < 0.4:
                yield from self._cut(log)
                return
            self._written = min(self._written + self._dice.randint(1, 5), len(log))

    def _cut(self, log: list[tuple[int, bytes]]) -> Iterator[Event]:
        self.cuts_left -= 1
        self._counts.cuts += 1
        if self._dice.random() < 0.5:
            torn = _stamped(*log[self._written])
            yield torn[: self._dice.randint(1, len(torn) - 1)]
        if self._dice.random() < 0.7:
            yield "drop"
        # More is written while nobody listens, sometimes up to the end of the run, and then the container
        # starts again.
        self._written = min(self._written + self._dice.randint(0, 6), len(log))
        if self._written == len(log) and self.run < len(self._runs) - 1:
            self._next_run()

    def _end_of_run(self) -> None:
        if self.run < len(self._runs) - 1:
            self._next_run()
        elif self.life < self._torments.recreations:
            self._counts.recreations += 1
            self._begin_life()
        else:
            self.is_over = True

    def _next_run(self) -> None:
        self.run += 1
        self._counts.restarts += 1
        self._written = self._file_begins = 0

    def _begin_life(self) -> None:
        self._runs = [self._log(self.life + 1, run) for run in range(self._torments.restarts + 1)]
        self.expected += [text for log in self._runs for _, text in log]
        self.run, self._written, self._file_begins = 0, 0, 0
        # Anyone who lists pods in another thread sees the new one only when its log is there.
        self.life += 1

    def _log(self, life: int, run: int) -> list[tuple[int, bytes]]:
        log = []
        for index in range(self._torments.lines):
            self._clock += self._dice.choice((0, 1, 1000, SECOND // 10, SECOND))
            # The writers of stdout and stderr race, by up to half a second.
            stamp = self._clock - self._dice.choice((0, 0, 0, 1000, SECOND // 2))
            log.append((stamp, b"%s life %d run %d line %d" % (self.name.encode(), life, run, index)))
        return log


@dataclass(slots=True)
class TorturedJob:
    """The API of one job with a number of workers and a launcher; its methods are called from many threads.

    No stream says anything before *together* of them have been open at once.
    """

    workers: int
    seed: int
    torments: Torments
    counts: Counts = field(default_factory=Counts)
    pods: dict[str, TorturedPod] = field(default_factory=dict)
    open_streams: int = 0
    most_streams: int = 0
    together: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        dice = Random(self.seed)
        for name in ["job-launcher-x", *(f"job-worker-{index}" for index in range(self.workers))]:
            self.pods[name] = TorturedPod(name, self.torments, Random(dice.random()), self.counts)

    @property
    def expected(self) -> dict[str, list[bytes]]:
        """What each instance prints, over all its runs and lives."""
        return {name: each.expected for name, each in self.pods.items()}

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Return the status of an answer, and its object or the events of its stream."""
        parts = path.strip("/").split("/")
        if "mpijobs" in parts:
            is_over = all(each.is_over for each in self.pods.values())
            status = {"conditions": [condition("Succeeded")]} if is_over else {}
            return 200, mpijob("job", workers=self.workers, status=status)
        if parts[-1] == "pods":
            return 200, {"items": [each.look() for each in self.pods.values()]}
        one = self.pods[parts[parts.index("pods") + 1]]
        if code := one.refuses():
            return code, {"kind": "Status", "reason": "InternalError", "message": f"refused with {code}"}
        if parts[-1] != "log":
            return 200, one.look()
        return 200, self._counted(one.stream(query))

    def _counted(self, events: Iterator[Event]) -> Iterator[Event]:
        with self.changed:
            self.open_streams += 1
            self.most_streams = max(self.most_streams, self.open_streams)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.most_streams >= self.together, 100)
        try:
            yield from events
        finally:
            with self.changed:
                self.open_streams -= 1


def _stamped(nanos: int, text: bytes) -> bytes:
    seconds, rest = divmod(nanos, SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z ".encode() + text + b"\n"
