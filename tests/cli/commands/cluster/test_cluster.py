"""``arena-topo cluster`` prints or applies the setup, and lists or deletes it."""

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call


def empty(call: Call) -> Answer:
    """Serve every resource, and no object."""
    return Answer(body={"groups": []} if call.path == "/apis" else {"items": [], "gitVersion": "v1.36.0"})


def test_without_a_cluster_it_can_be_read(invoke: Invoke) -> None:
    """As for one of today."""
    outcome = invoke(
        "cluster", "setup", "--users", "group:ml", "-n", "ml", "--agent-image", "i", "-o", "name"
    )

    assert 0 == outcome.code, outcome.err
    assert "mutatingadmissionpolicy.admissionregistration.k8s.io/arena-topo" == outcome.out.splitlines()[0]
    assert "daemonset.apps/arena-topo-agent" == outcome.out.splitlines()[-1]
    assert "no cluster reachable" in outcome.err


def test_applying_takes_a_cluster(invoke: Invoke) -> None:
    """Nothing is printed as if it were done."""
    outcome = invoke("cluster", "setup", "--apply")

    assert (1, "") == (outcome.code, outcome.out)
    assert "no cluster is configured" in outcome.err


def test_nothing_is_removed_where_nothing_is_set_up(invoke: Invoke, serve: Serve) -> None:
    """Which is no error."""
    transport = serve(empty)
    outcome = invoke("cluster", "remove", "--apply")

    assert (0, "") == (outcome.code, outcome.out)
    assert "there is nothing to remove" in outcome.err
    assert "DELETE" not in {call.method for call in transport.calls}
