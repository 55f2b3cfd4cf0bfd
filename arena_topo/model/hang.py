"""What the controller saw of a job that no longer makes progress, as an annotation of the job keeps it.

It is a JSON object, such as::

    {"since": "2026-11-23T14:02:05Z", "state": "stuck", "kept": true,
     "message": "31 ranks wait in all_reduce for rank 17 (bert-worker-2, dgx-3), which has been at next ..."}

Anyone who may write the job may write the annotation: one that cannot be read is ignored.
"""

import json
from dataclasses import dataclass
from datetime import datetime

from arena_topo.model.keys import HANG
from arena_topo.model.objects import Object
from arena_topo.model.text.json import cut, read_json
from arena_topo.model.text.quantity import parse_instant

_MOST_TEXT = 600
"""Characters of a message that are kept: it names a rank, and what it does."""

STUCK = "stuck"
"""The state of a job that hangs beyond doubt."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Since when the log of a job is silent, and what was said of its ranks; ``kept``: with evidence."""

    since: datetime
    state: str
    message: str
    kept: bool = True

    @property
    def annotation(self) -> str:
        """The value of the annotation, for ``hang_of``."""
        since = self.since.strftime("%Y-%m-%dT%H:%M:%SZ")
        message = cut(self.message, _MOST_TEXT)
        return json.dumps({"since": since, "state": self.state, "kept": self.kept, "message": message})

    @property
    def text(self) -> str:
        """What it is in one line: ``hung since 14:02 UTC (23 Nov): 31 ranks wait for ...``."""
        word = "hung" if self.state == STUCK else "silent, and not seen to move,"
        return f"{word} since {self.since.strftime('%H:%M UTC (%d %b)')}: {self.message}"


def hang_of(job: Object) -> Hang | None:
    """Return what the annotation of *job* says, None if there is none that can be read."""
    text = (job["metadata"].get("annotations") or {}).get(HANG)
    if not isinstance(text, str) or len(text) > 4 * _MOST_TEXT:
        return None
    try:
        found = read_json(text)
        return Hang(
            parse_instant(str(found["since"])),
            str(found["state"]),
            cut(str(found["message"]), _MOST_TEXT),
            found["kept"] is True,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
