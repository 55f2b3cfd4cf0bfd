"""What was looked at in a cluster, what was found, and what follows from it."""

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """How a finding bears on jobs."""

    OK = "ok"
    ABSENT = "absent"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: ``found`` is the fact, ``evidence`` where it was seen, ``follows`` what it means for jobs.

    ``command`` would improve it, where something can; ``ABSENT`` is what a cluster may do without, a ``PROBLEM`` what
    keeps jobs from being submitted or holding.
    """

    topic: str
    state: State
    found: str
    evidence: str
    follows: str
    command: str = ""
