"""``arena-topo describe`` shows all about a job, also to who may not list events."""

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, refusal
from tests.objects import mpijob, pod


def test_a_page_without_events_for_lack_of_a_right(invoke: Invoke, serve: Serve) -> None:
    """The rest is worth reading."""

    def cluster(call: Call) -> Answer:
        if call.path.endswith("/events"):
            return refusal(403, "Forbidden", "may not")
        return Answer(body={"items": [pod("a-worker-0")]} if call.path.endswith("/pods") else mpijob("a"))

    transport = serve(cluster)
    outcome = invoke("describe", "mpijob/a")

    assert 0 == outcome.code
    assert "Workers:     4" in outcome.out
    assert "you may not list the events of this namespace" in outcome.out
    assert 3 == len(transport.calls)
