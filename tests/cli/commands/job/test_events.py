"""``arena-topo events`` prints what happened to a job."""

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, missing
from tests.jobs.reading.test_job_events import happened
from tests.objects import mpijob


def test_events_are_printed(invoke: Invoke, serve: Serve) -> None:
    """With kubectl's headings."""
    serve(lambda _: Answer(body={"items": [happened("a-worker-0", 1)]}))
    outcome = invoke("events", "a")

    assert 0 == outcome.code
    assert ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"] == outcome.out.splitlines()[0].split()
    assert "pod/a-worker-0" in outcome.out


def test_nothing_happened_to_a_job_that_exists(invoke: Invoke, serve: Serve) -> None:
    """One that does not is an error."""
    serve(lambda call: Answer(body={"items": []} if call.path.endswith("/events") else mpijob("a")))
    assert (0, "", "nothing happened to the job a lately\n") == (
        (outcome := invoke("events", "a")).code,
        outcome.out,
        outcome.err,
    )
    serve(lambda call: Answer(body={"items": []}) if call.path.endswith("/events") else missing("a"))
    assert 1 == invoke("events", "a").code
