"""The words by which jobs of every kind say that they have ended."""

import pytest

from arena_topo.jobs.conditions import FAILED, SUCCEEDED, Ending, ending
from arena_topo.kinds.table import KINDS


def test_the_words_are_those_of_the_kinds() -> None:
    """Each once, in the order of the kinds."""
    assert tuple(dict.fromkeys(kind.succeeded for kind in KINDS)) == SUCCEEDED
    assert tuple(dict.fromkeys(kind.failed for kind in KINDS)) == FAILED


@pytest.mark.parametrize(
    ("word", "status", "expected"),
    [
        ("Succeeded", "True", Ending(succeeded=True, message="m")),
        ("Completed", "True", Ending(succeeded=True, message="m")),
        ("Failed", "True", Ending(succeeded=False, message="m")),
        ("Completed", "False", None),
        ("Running", "True", None),
    ],
)
def test_a_condition_that_is_true_tells_the_end(word: str, status: str, expected: Ending | None) -> None:
    """In the word of the job's kind."""
    condition = {"type": word, "status": status, "message": "m"}

    assert expected == ending({"status": {"conditions": [condition]}})
