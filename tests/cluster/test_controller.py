"""Whether a controller runs, by its Lease."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.cluster.capabilities import controller_runs
from tests.fakes import Answer, missing, refusal, session


def lease(age: float, holder: str = "a") -> Answer:
    """Return a Lease that was renewed *age* seconds ago."""
    renewed = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Answer(body={"metadata": {"name": "l"}, "spec": {"holderIdentity": holder, "renewTime": renewed}})


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (lambda: lease(2), True),
        (lambda: lease(3600), False),
        (lambda: lease(2, holder=""), False),
        (lambda: missing("lease"), False),
        (lambda: refusal(403, "Forbidden"), False),
        (lambda: Answer(body={"metadata": {"name": "l"}, "spec": {"renewTime": "soon"}}), False),
    ],
    ids=["renewed", "ended", "given up", "none", "hidden", "garbled"],
)
def test_a_controller_runs_where_its_lease_is_renewed(answer: Callable[[], Answer], *, runs: bool) -> None:
    """Nobody users who cannot see it is stopped by that."""
    # The age of a Lease counts from here: tests are collected minutes before they run.
    written = answer()
    assert runs is controller_runs(session(lambda _: written)[0])
