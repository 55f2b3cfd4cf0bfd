"""Deleting takes the job with all that is its, and waits for it if asked."""

import pytest

from arena_topo.errors import NotFound, WaitTimeout
from arena_topo.jobs.create import delete_job, wait_until_gone
from tests.fakes import Answer, in_turn, missing, refusal, session
from tests.objects import mpijob

ARENAS = {**mpijob("job"), "metadata": {**mpijob("job")["metadata"], "labels": {"createdBy": "MPIJob"}}}
RECORD = {
    "metadata": {"name": "job-mpijob", "uid": "r", "labels": {"createdBy": "arena"}},
    "data": {"app": "mpijob.kubeflow.org/job"},
}
AGAIN = {**mpijob("job"), "metadata": {**mpijob("job")["metadata"], "uid": "another"}}


def test_the_server_deletes_what_belongs_to_the_job_first() -> None:
    """And only the very job that was found."""
    opened, transport = session(in_turn(Answer(body=mpijob("job")), Answer(body={})))
    delete_job(opened, "job")
    call = transport.calls[-1]

    assert ("DELETE", "Foreground", {"uid": "uid-job"}) == (
        call.method,
        call.body["propagationPolicy"],
        call.body["preconditions"],
    )


def test_arenas_record_goes_with_a_job_that_arena_made() -> None:
    """Or Arena would refuse to submit a job of that name again."""
    opened, transport = session(
        in_turn(Answer(body=ARENAS), Answer(body={}), Answer(body=RECORD), Answer(body={}))
    )
    delete_job(opened, "job")
    call = transport.calls[-1]

    assert ("DELETE", "/api/v1/namespaces/default/configmaps/job-mpijob", {"uid": "r"}) == (
        call.method,
        call.path,
        call.body["preconditions"],
    )


@pytest.mark.parametrize(
    "answer",
    [missing("job-mpijob"), refusal(403, "Forbidden"), Answer(body={"metadata": {"name": "job-mpijob"}})],
    ids=["gone", "not allowed", "a user's own"],
)
def test_a_record_that_cannot_be_deleted_stops_nothing(answer: Answer) -> None:
    """And a user's ConfigMap of that name stays."""
    opened, transport = session(in_turn(Answer(body=ARENAS), Answer(body={}), answer))
    delete_job(opened, "job")

    assert ["GET", "DELETE", "GET"] == [call.method for call in transport.calls]


@pytest.mark.parametrize(
    ("answer", "gone"),
    [(missing("job"), True), (Answer(body=mpijob("job")), False), (Answer(body=AGAIN), True)],
    ids=["no such job", "still there", "a new one of that name"],
)
def test_a_job_is_gone_when_its_uid_is(answer: Answer, gone: bool) -> None:
    """A job of the same name may have been made meanwhile."""
    opened, _ = session(in_turn(Answer(body=mpijob("job")), Answer(body={}), answer))

    assert gone is delete_job(opened, "job")()


def test_a_job_that_does_not_exist_is_reported() -> None:
    """By the usual error."""
    opened, _ = session(in_turn(missing("job"), Answer(body={})))
    with pytest.raises(NotFound):
        delete_job(opened, "job")


def test_waiting_asks_until_it_is_gone() -> None:
    """With a breath in between."""
    answers, slept = iter([False, False, True]), list[float]()
    wait_until_gone(lambda: next(answers), "job", timeout=0, sleep=slept.append)

    assert [0.2, 0.2] == slept


def test_waiting_has_an_end() -> None:
    """With its own exit code."""
    with pytest.raises(WaitTimeout, match=r"job job is still being deleted after 0\.001s"):
        wait_until_gone(lambda: False, "job", timeout=0.001)
