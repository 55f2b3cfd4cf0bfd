"""Whether a controller runs, by its Lease."""

from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.cluster.capabilities.controller import controller_runs
from tests.fakes import Answer, missing, refusal, session


def lease(age: float, holder: str = "a") -> Answer:
    """Return a Lease that was renewed *age* seconds ago."""
    renewed = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Answer(body={"metadata": {"name": "l"}, "spec": {"holderIdentity": holder, "renewTime": renewed}})


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (lease(2), True),
        (lease(3600), False),
        (lease(2, holder=""), False),
        (missing("lease"), False),
        (refusal(403, "Forbidden"), False),
        (Answer(body={"metadata": {"name": "l"}, "spec": {"renewTime": "soon"}}), False),
    ],
    ids=["renewed", "ended", "given up", "none", "hidden", "garbled"],
)
def test_a_controller_runs_where_its_lease_is_renewed(answer: Answer, *, runs: bool) -> None:
    """Nobody who may not see it is stopped by that."""
    assert runs is controller_runs(session(lambda _: answer)[0])
