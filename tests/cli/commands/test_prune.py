"""`prune` deletes in Arena's words."""

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing
from tests.jobs.test_prune import JOBS, jobs_without_pods


def jobs_by_name(call: Call) -> Answer:
    """Serve the jobs, each by its name too."""
    name = call.path.rpartition("/")[2]
    if "/mpijobs/" in call.path:
        return next((Answer(body=item) for item in JOBS if item["metadata"]["name"] == name), missing(name))
    return jobs_without_pods(call)


def test_what_has_ended_and_is_old_enough_is_deleted(invoke: Invoke, serve: Serve) -> None:
    """Each by its uid; what waits is named."""
    transport = serve(jobs_by_name)
    outcome = invoke("prune", "--since", "10h")
    deleted = [call for call in transport.calls if call.method == "DELETE"]

    assert (0, "Delete mpijob done with Age 1d \nDelete mpijob failed with Age 20h \n") == (
        outcome.code,
        outcome.out,
    )
    assert ["uid-done", "uid-failed"] == [call.body["preconditions"]["uid"] for call in deleted]
    assert "1 older job has not started; --pending deletes those too" in outcome.err


def test_all_namespaces_are_pruned_on_demand(invoke: Invoke, serve: Serve) -> None:
    """Those of Arena's flag."""
    transport = serve(jobs_by_name)
    assert 0 == invoke("prune", "-s", "10h", "-A").code

    assert "/apis/kubeflow.org/v2beta1/mpijobs" in [call.path for call in transport.calls]


def test_nothing_to_delete_is_told_in_arenas_words(invoke: Invoke, serve: Serve) -> None:
    """With exit code 0."""
    serve(jobs_by_name)

    assert (0, "No job need to be deleted\n") == ((out := invoke("prune", "-s", "900h")).code, out.out)


def test_the_age_is_needed(invoke: Invoke) -> None:
    """As in Arena."""
    outcome = invoke("prune")

    assert (2, True) == (outcome.code, "--since must be set" in outcome.err)
