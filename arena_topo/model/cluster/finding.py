"""What a check of a cluster found, and what follows from it for jobs."""

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """How a finding bears on jobs: ``ABSENT`` is what a cluster may do without, a ``PROBLEM`` keeps jobs from running."""

    OK = "ok"
    ABSENT = "absent"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: ``found`` is the fact, ``evidence`` where it was seen, ``follows`` what it means for jobs.

    ``command`` would improve it, where one can.
    """

    topic: str
    state: State
    found: str
    evidence: str
    follows: str
    command: str = ""
