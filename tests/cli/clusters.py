"""Clusters that answer a command from lists of objects, and what the command did there as a text."""

import json
import re
from collections.abc import Iterable
from typing import Any

from arena_topo.model.objects import Object
from tests.e2e.arena import Outcome
from tests.fakes import Answer, Call, FakeTransport, Script, missing


def cluster(*jobs: Object, pods: Iterable[Object] = (), **others: Answer | list[Object]) -> Script:
    """Return a cluster of MPIJobs and their pods; *others* are its other lists, by their resources.

    A watch ends at once, and everything else is an empty list or does not exist.
    """
    lists: dict[str, Answer | list[Object]] = {"mpijobs": list(jobs), "pods": list(pods), **others}

    def script(call: Call) -> Answer:
        collection, _, last = call.path.rpartition("/")
        kind = collection.rpartition("/")[2]
        if "watch" in call.query:
            return Answer()
        if kind in lists:
            answer = lists[kind]
            found = [] if isinstance(answer, Answer) else answer
            return next(
                (Answer(body=item) for item in found if last == item["metadata"]["name"]), missing(last)
            )
        items = lists.get(last, [])
        empty: dict[str, Any] = {"groups": [], "metadata": {"resourceVersion": "1"}}
        return items if isinstance(items, Answer) else Answer(body={**empty, "items": items})

    return script


# Jobs grow older from run to run, and local times have their zones.
_AGE = re.compile(r"\b\d+(\.\d+)?(ms|[smhdy])(\d+[smhd])*\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def printed(outcome: Outcome) -> str:
    """Return what a command printed on both streams, and its exit code."""
    parts = [
        outcome.out,
        f"--- stderr\n{outcome.err}" if outcome.err else "",
        f"--- exit code {outcome.code}\n" if outcome.code else "",
    ]
    return "".join(parts)


def transcript(outcome: Outcome, transport: FakeTransport) -> str:
    """Return what a command printed, its exit code, and what it wrote to the cluster.

    Ages and local times are masked, and so are the blanks of the columns that they stand in.
    """
    writes = [
        f"--- {call.method} {call.path} {json.dumps({'query': call.query, 'body': call.body})}\n"
        for call in transport.calls
        if call.method != "GET"
    ]
    text = "".join((printed(outcome), *writes))
    return re.sub(r" {2,}", "  ", _TIME.sub("TIME", _AGE.sub("AGE", text)))
