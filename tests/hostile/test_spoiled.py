"""Each command against answers of a real server in which one value is spoiled."""

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.hostile.commands import COMMANDS
from tests.hostile.conftest import Perform, typed
from tests.hostile.front import Front
from tests.hostile.test_commands import faults, leftovers
from tests.hostile_objects import spoiled_body

_PROFILE = settings.default or settings()
_EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", "0")) or 2 * _PROFILE.max_examples
"""How many answers are spoiled: ten thousand take a quarter of an hour."""

# A command leaves its connection to the end of its process, which here is that of the test.
pytestmark = [
    pytest.mark.timeout(max(1800, _EXAMPLES)),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_ERRORS = {
    "cluster setup": (2,),
    "diff mpi": (2,),
    "agent run": (2,),
    **dict.fromkeys(("scale", "suspend", "resume"), (2,)),
}
"""Other codes of errors, by command."""

_RESULTS = {"doctor": (1,), "diff mpi": (1,), "why": (5, 6, 7, 8, 9)}
"""Codes that are results, by command, and not errors."""


@settings(
    parent=_PROFILE,
    max_examples=_EXAMPLES,
    suppress_health_check=[*HealthCheck],
    deadline=None,
    # A failure names what was spoiled.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(command=st.sampled_from(sorted(COMMANDS)), seed=st.integers(0, 2**64))
def test_a_spoiled_value_is_no_internal_error(
    cluster: Front, perform: Perform, tmp_path: Path, command: str, seed: int
) -> None:
    """Whatever it is, and in the answer to whatever request: a result without it, or one error."""
    if command not in cluster.counts:
        cluster.tell(lambda _: False)
        perform(typed(command, cluster, tmp_path))
        cluster.counts[command] = len(cluster.paths)
    random, done = Random(seed), list[str]()
    at = random.randint(1, max(cluster.counts[command], 1))
    words = typed(command, cluster, tmp_path)
    cluster.tell(lambda number: number == at, twist=lambda body: spoiled_body(body, random, done))
    outcome = perform(words, "--request-timeout=2s")
    asked = cluster.paths[at - 1 : at]
    if outcome.code in _RESULTS.get(command, ()) and "error: " not in outcome.err:
        outcome = replace(outcome, code=0)
    told = [*faults(outcome, *_ERRORS.get(command, ())), *leftovers(cluster, words.job)]

    assert [] == told, (asked, done, outcome.err[-1500:])
