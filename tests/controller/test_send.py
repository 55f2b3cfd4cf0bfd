"""What was decided is sent, for as long as the Lease is held."""

from collections.abc import Callable

from arena_topo.controller.actions import Action, PatchStatus, ReleaseWorker
from arena_topo.controller.send import Failure, Sender
from tests.fakes import Answer, refusal, session

PATCH = PatchStatus("/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/w/status", "uid", [])


def sent(answer: Answer, may_write: Callable[[], bool], *actions: Action) -> tuple[list[str], list[Failure]]:
    """Return the methods of the requests by which *actions* were sent, and what went wrong."""
    opened, transport = session(lambda _: answer)
    sender = Sender([opened], may_write)
    sender.start()
    for action in actions:
        sender.send(action)
    sender.stop()
    return [call.method for call in transport.calls], sender.failures()


def test_what_is_decided_is_sent_before_the_end() -> None:
    """All of it, and nothing is reported then."""
    assert (["PATCH", "PATCH"], []) == sent(
        Answer(body={"metadata": {"name": "w"}}), lambda: True, PATCH, PATCH
    )


def test_nothing_is_sent_without_the_lease() -> None:
    """Whoever decided it hears of it."""
    assert ([], [Failure(PATCH, "the Lease has ended")]) == sent(Answer(), lambda: False, PATCH)


def test_what_the_server_refuses_is_reported() -> None:
    """In its own words, and the next action is sent all the same."""
    methods, failures = sent(refusal(422, "Invalid", "no such entry"), lambda: True, PATCH, PATCH)
    assert ["PATCH", "PATCH"] == methods
    assert [PATCH, PATCH] == [failure.action for failure in failures]
    assert "no such entry" in failures[0].message


def test_an_object_that_nobody_can_read_ends_no_thread() -> None:
    """One user's pod must not stop what all others wait for."""
    garbled = ReleaseWorker({"metadata": {}}, "node")
    methods, failures = sent(Answer(body={"metadata": {"name": "w"}}), lambda: True, garbled, PATCH)
    assert ["PATCH"] == methods
    assert [garbled] == [failure.action for failure in failures]
