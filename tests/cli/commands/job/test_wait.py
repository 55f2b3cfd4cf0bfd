"""``arena-topo wait`` ends with the job's fate as its exit code."""

import pytest

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call
from tests.objects import condition, mpijob


def ended(kind: str) -> Answer:
    """Return a list with a job that ended so."""
    job = mpijob("a", status={"conditions": [condition(kind, message="too slow")]})
    return Answer(body={"metadata": {"resourceVersion": "1"}, "items": [job]})


@pytest.mark.parametrize(
    ("kind", "args", "code", "out"),
    [
        ("Succeeded", (), 0, "mpijob.kubeflow.org/a succeeded\n"),
        ("Succeeded", ("--for=running",), 0, "mpijob.kubeflow.org/a running\n"),
        ("Succeeded", ("--for=condition=Succeeded",), 0, "mpijob.kubeflow.org/a succeeded\n"),
        ("Failed", (), 5, ""),
        ("Succeeded", ("--for=deleted", "--timeout=1ms"), 4, ""),
    ],
)
def test_the_exit_code_says_what_became_of_the_job(
    invoke: Invoke, serve: Serve, kind: str, args: tuple[str, ...], code: int, out: str
) -> None:
    """0, 5 for a job that failed, 4 when the time is over."""

    def cluster(call: Call) -> Answer:
        if "watch" in call.query:
            return Answer()
        jobs = call.path.endswith("/mpijobs")
        return ended(kind) if jobs else Answer(body={"metadata": {"resourceVersion": "1"}, "items": []})

    serve(cluster)
    outcome = invoke("wait", "a", *args)
    assert (code, out) == (outcome.code, outcome.out)


def test_a_goal_that_is_not_known_is_usage(invoke: Invoke) -> None:
    """With those that are."""
    outcome = invoke("wait", "a", "--for=happy")

    assert 2 == outcome.code
    assert "use one of running, succeeded, deleted" in outcome.err
