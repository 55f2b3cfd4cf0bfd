"""Whether a controller runs, by its Lease."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.cluster.capabilities import controller_runs, looks_at_ranks
from arena_topo.model.keys import HANGS_IN
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


@pytest.mark.parametrize(("said", "looks"), [("team-a,default", True), ("team-a", False), ("", False)])
def test_the_controller_says_in_which_namespaces_it_looks_at_ranks(said: str, *, looks: bool) -> None:
    """On its Lease, which everybody may read."""
    written = Answer(body={"metadata": {"name": "l", "annotations": {HANGS_IN: said}}, "spec": {}})
    assert looks is looks_at_ranks(session(lambda _: written)[0], "default")
    assert not looks_at_ranks(session(lambda _: refusal(403, "Forbidden"))[0], "default")
