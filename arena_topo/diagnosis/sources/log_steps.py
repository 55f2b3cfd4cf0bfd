"""Lines of a log that count steps: how far a job got, and how long ago, by the clock of its node.

Nothing has to be agreed on with the script: training loops print such lines. A log that says nothing of
steps, or is buffered by Python (PYTHONUNBUFFERED is not set), says nothing about progress either.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from arena_topo.model.text.quantity import parse_instant
from arena_topo.model.text.words import written_duration

_STEP = re.compile(
    # step 1200/5000, "global_step": 1200, [Iteration 1200], iter=1200, and the bars of tqdm: | 1200/5000
    # [02:11<
    r"""\b(?:global[_ ]?step|step|iter(?:ation)?|batch)\b["']?\s{0,4}[:=#\[(]{0,2}\s{0,4}(\d{1,12})\b"""
    r"""|\|\s{0,4}(\d{1,12})/\d{1,12} \[""",
    re.IGNORECASE,
)
_LONGEST = 2000
"""Characters of a line in which a step is looked for."""
_LATE = 3.0
"""How many times as long as usual a step may take before its log counts as silent."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The last step in a log, and when it was printed; ``pace`` is the usual time between two, in seconds."""

    step: int
    at: datetime
    pace: float

    def is_recent(self, now: datetime) -> bool:
        """Whether the next line is not overdue."""
        return (now - self.at).total_seconds() <= max(1.0, _LATE * self.pace)

    def words(self, now: datetime) -> str:
        """Return how far the log got: ``its log reached step 1,200 12m ago, a line every 8s before``."""
        ago = written_duration(max(1.0, (now - self.at).total_seconds()))
        return f"its log reached step {self.step:,} {ago} ago, with a line every {written_duration(self.pace)} before"


def read_steps(lines: Iterable[tuple[str, str]]) -> Progress | None:
    """Return how far the log got, of its last lines, each with the time at which the container wrote it.

    None without two lines whose steps rise: a number that stays is no progress.
    """
    seen: list[tuple[int, datetime]] = []
    for stamp, text in lines:
        matches = list(_STEP.finditer(text[-_LONGEST:]))
        if not matches:
            continue
        # Of a bar that is drawn again and again on one line the last one counts.
        step = int(matches[-1][1] or matches[-1][2])
        # Each epoch may count from the beginning.
        if seen and step < seen[-1][0]:
            seen = []
        if not seen or step > seen[-1][0]:
            try:
                seen.append((step, parse_instant(stamp)))
            except ValueError:
                continue
    if len(seen) < 2:
        return None
    pace = median((after[1] - before[1]).total_seconds() for before, after in pairwise(seen))
    return Progress(*seen[-1], pace=max(0.0, pace))
