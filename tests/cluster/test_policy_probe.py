"""Setup returns once the policy acts."""

from collections.abc import Callable

import pytest

from arena_topo.cluster.setup import wait_until_applied
from arena_topo.errors import WaitTimeout
from tests.fakes import Answer, Call, refusal, session


def server(pinned_from: int) -> tuple[list[Call], Callable[[Call], Answer]]:
    """Return the calls that a server gets, and its answers: it pins from that call on."""
    calls: list[Call] = []

    def answer(call: Call) -> Answer:
        calls.append(call)
        selector = {"kubernetes.io/hostname": "arena-topo-probe"} if len(calls) >= pinned_from else {}
        return Answer(201, {**call.body, "spec": {**call.body["spec"], "nodeSelector": selector}})

    return calls, answer


def test_a_worker_is_tried_out_until_it_is_pinned() -> None:
    """By a server-side dry run: nothing is stored."""
    calls, answer = server(3)

    assert wait_until_applied(session(answer)[0], "ml", sleep=lambda _: None)
    assert 3 == len(calls)
    assert {("POST", "/api/v1/namespaces/ml/pods", "All")} == {
        (call.method, call.path, call.query["dryRun"]) for call in calls
    }


def test_a_policy_that_never_acts_is_an_error() -> None:
    """With the exit code of a time-out, for scripts."""
    _, answer = server(10**6)
    moments = iter(range(0, 1000, 10))
    with pytest.raises(WaitTimeout, match="does not apply the admission policy after 30s"):
        wait_until_applied(session(answer)[0], "ml", clock=lambda: next(moments), sleep=lambda _: None)


def test_whoever_may_not_create_pods_cannot_tell() -> None:
    """Nor can one whose pods another policy refuses."""
    assert not wait_until_applied(session(lambda _: refusal(403, "Forbidden"))[0], "ml")
