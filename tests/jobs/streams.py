"""A cluster whose lists and watches a test writes."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arena_topo.kube.session import Session
from tests.fakes import Answer, Call, Line, session

JOBS, PODS = "mpijobs", "pods"


def event(kind: str, item: Any) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def versioned(item: Any, version: str) -> Any:
    """Return *item* at a resource version."""
    return {**item, "metadata": {**item["metadata"], "resourceVersion": version}}


@dataclass(slots=True)
class Streams:
    """The lists of jobs and pods, one for each time they are asked for, and the lines of their streams
    likewise.

    A stream beyond the last one stays silent until the test ends.
    """

    lists: dict[str, list[Sequence[Any]]]
    lines: Mapping[str, Sequence[Sequence[Line]]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    def session(self) -> Session:
        """Return a session with this cluster."""
        return session(self.answer)[0]

    def answer(self, call: Call) -> Answer:
        """Answer as the script says."""
        self.calls.append(call)
        kind = call.path.rpartition("/")[2]
        # Nothing but MPIJobs is served.
        if kind == "apis":
            return Answer(body={})
        if "watch" not in call.query:
            left = self.lists[kind]
            items = left.pop(0) if len(left) > 1 else left[0]
            return Answer(body={"metadata": {"resourceVersion": "7"}, "items": items})
        opened = sum("watch" in made.query and made.path == call.path for made in self.calls) - 1
        streams = self.lines.get(kind, ())
        return Answer(lines=list(streams[opened])) if opened < len(streams) else Endless()


class Endless(Answer):
    """A stream on which nothing comes; its thread is a daemon, which ends with the tests."""

    def readline(self, limit: int = -1) -> bytes:
        """Wait permanently."""
        del limit
        threading.Event().wait()
        return b""
