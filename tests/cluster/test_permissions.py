"""The caller's access is reviewed by the server itself."""

import pytest

from arena_topo.cluster.capabilities import detect_with_access
from tests.cluster.clusters import Cluster, found
from tests.fakes import refusal, session


@pytest.mark.parametrize("allowed", [True, False])
def test_rights_are_asked_of_the_server_itself(allowed: bool) -> None:
    """In the namespace, or the whole cluster, and only of what is served."""
    facts, transport = found({}, "scheduling.volcano.sh/v1beta1", access=True, allowed=allowed)
    reviews = [call.body["spec"]["resourceAttributes"] for call in transport.calls if call.method == "POST"]

    assert {
        "verb": "create",
        "group": "kubeflow.org",
        "resource": "mpijobs",
        "namespace": "default",
    } in reviews
    assert {"verb": "list", "group": "", "resource": "nodes"} in reviews
    assert "create podgroups.scheduling.volcano.sh" in [review.what for review in facts.access]
    assert {allowed} == {review.allowed for review in facts.access}
    assert not [review for review in facts.access if "resource.k8s.io" in review.what]


def test_a_server_that_does_not_answer_about_rights_leaves_them_open() -> None:
    """Unknown is no refusal."""
    opened, _ = session(
        lambda call: refusal(403, "Forbidden", "no") if call.method == "POST" else Cluster({})(call)
    )

    assert {None} == {review.allowed for review in detect_with_access(opened).access}
