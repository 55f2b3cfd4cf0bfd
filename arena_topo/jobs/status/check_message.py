"""What our admission check says of a Workload that waits for a place: a text for people, which programs read back.

``kubectl describe workload`` shows it, and whoever may read the Workload may read no more of the cluster for it::

    number 2 of those that wait for a place: 3 nodes have < 8 free GPUs
    start: {"after":["team/bert-7"],"basis":["its deadline"],"from":"2026-11-22T12:25:00Z",...}

The second line is there once the start has been estimated, with the keys of an estimate on a job of the own queue.
"""

import json
import re
from dataclasses import dataclass

from arena_topo.errors import DocumentError
from arena_topo.model.job.start_estimate import EstimateForm, StartEstimate
from arena_topo.model.notation.bounded_json import cut, read_json

MOST_MESSAGE = 8192
"""Characters of a message, an estimate included; Kueue admits 32,768."""

_MOST_REASON = 1000
"""Characters of a reason; Kueue's own may have 32,768."""

_HEAD = re.compile(r"number ([1-9][0-9]{0,8}) of those that wait for a place: (.*)", re.DOTALL)
_START = "\nstart: "
_FORM = EstimateForm()


@dataclass(frozen=True, slots=True)
class CheckMessage:
    """Which one a Workload is among those that wait for a place, why it has none, and when it starts, None before anybody knows."""

    position: int
    reason: str
    start: StartEstimate | None = None

    @property
    def head(self) -> str:
        """The first line."""
        return f"number {self.position} of those that wait for a place: {bounded_reason(self.reason)}"

    @property
    def text(self) -> str:
        """The message."""
        if self.start is None:
            return self.head
        document = json.dumps(_FORM.write(self.start), ensure_ascii=False, separators=(",", ":"))
        text = f"{self.head}{_START}{document}"
        # Half of an estimate is of no use.
        return text if len(text) <= MOST_MESSAGE else self.head


def bounded_reason(text: str) -> str:
    """Return the reason *text* on one line, cut to a length that a line of a table can bear."""
    return cut(" ".join(text.split()), _MOST_REASON)


def read_message(text: str) -> CheckMessage | None:
    """Return what the message *text* says, None where it is another one; an estimate that cannot be read counts as none."""
    line, _, document = text[:MOST_MESSAGE].partition(_START)
    found = _HEAD.fullmatch(line)
    if found is None:
        return None
    start = None
    try:
        start = _FORM.read(read_json(document), "start") if document else None
    except (ValueError, DocumentError):
        # Anybody who may write the status may have written it.
        start = None
    return CheckMessage(int(found[1]), bounded_reason(found[2]), start)
