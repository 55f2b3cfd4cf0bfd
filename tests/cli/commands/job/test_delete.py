"""``arena-topo delete`` deletes what exists, and reports what does not."""

import pytest

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing, refusal
from tests.objects import mpijob


def cluster(call: Call) -> Answer:
    """Serve one job, which takes forever to go."""
    name = call.path.rpartition("/")[2]
    if name == "guarded":
        return (
            refusal(403, "Forbidden", "you may not") if call.method == "DELETE" else Answer(body=mpijob(name))
        )
    return Answer(body=mpijob("job")) if name == "job" else missing(name)


def test_a_missing_job_does_not_keep_the_others(invoke: Invoke, serve: Serve) -> None:
    """It is reported, and the exit code tells."""
    transport = serve(cluster)
    outcome = invoke("delete", "none", "job", "job", "--wait=false")

    assert (1, "The training job job has been deleted successfully\n") == (outcome.code, outcome.out)
    assert "error: the training job 'none' does not exist in namespace default" in outcome.err
    assert 1 == [call.method for call in transport.calls].count("DELETE")


def test_a_missing_job_may_be_ignored(invoke: Invoke, serve: Serve) -> None:
    """As kubectl does."""
    serve(cluster)
    outcome = invoke("delete", "none", "--ignore-not-found")

    assert (0, "", "") == (outcome.code, outcome.out, outcome.err)


def test_a_refusal_is_reported(invoke: Invoke, serve: Serve) -> None:
    """In the server's words."""
    serve(cluster)
    outcome = invoke("delete", "guarded", "--wait=false")

    assert (1, "") == (outcome.code, outcome.out)
    assert "error: you may not" in outcome.err


@pytest.mark.parametrize("flag", ["--timeout=1ms", "--timeout=0.001s"])
def test_waiting_ends_with_its_own_exit_code(invoke: Invoke, serve: Serve, flag: str) -> None:
    """The job is still being deleted then."""
    serve(cluster)
    outcome = invoke("delete", "job", flag)

    assert (4, "") == (outcome.code, outcome.out)
    assert "job job is still being deleted" in outcome.err
