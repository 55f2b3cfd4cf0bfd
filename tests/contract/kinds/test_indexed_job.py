"""Indexed Jobs: each pod's index, what is counted, another size, the end."""

import pytest

from tests.contract.bodies import affinity, path_of, pod
from tests.contract.client import MERGE_PATCH, Answer, Object
from tests.contract.cluster import Cluster, begun_pods, conditions_of, eventually, pods_of, running_pods

_INDEX = "batch.kubernetes.io/job-completion-index"
_OWN = "batch.kubernetes.io/job-name=job"
_TRACKING = "batch.kubernetes.io/job-tracking"


def indexed_job(nodes: list[str], **spec: object) -> Object:
    """Return an indexed Job of three pods, which run for a while on *nodes*."""
    template = {"spec": pod("p", command="sleep infinity", affinity=affinity(nodes))["spec"]}
    body = {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": body}


def created(cluster: Cluster, space: str, body: Object) -> Answer:
    """Create a Job."""
    answer = cluster.admin.send("POST", path_of(space, "jobs"), body)
    assert 201 == answer.code, answer.message
    return answer


def changed(cluster: Cluster, space: str, **spec: object) -> Answer:
    """Change the spec of the Job by a merge patch."""
    return cluster.admin.send("PATCH", path_of(space, "jobs", "job"), {"spec": spec}, MERGE_PATCH)


def running(cluster: Cluster, space: str, count: int = 3, *gone: Object) -> dict[str, Object]:
    """Return the pods by their index once *count* of them run, and all of *gone* have gone."""
    return {
        pod["metadata"]["labels"][_INDEX]: pod for pod in running_pods(cluster, space, _OWN, count, *gone)
    }


def status(cluster: Cluster, space: str, **expected: object) -> Object:
    """Return the status of the Job once it has the *expected* values."""

    def found() -> Object:
        state: Object = cluster.admin.get(path_of(space, "jobs", "job")).body.get("status", {})
        return state if expected.items() <= state.items() else {}

    return eventually(found, f"a status with {expected}")


def said(cluster: Cluster, space: str, condition: str, state: str, **expected: object) -> Object:
    """Return the status of the Job once a *condition* is in this *state*, and it has the *expected* values.

    The values may still be those of before: nothing is ready in a Job whose pods nobody has counted yet.
    """

    def found() -> Object:
        seen = status(cluster, space, **expected)
        return seen if conditions_of(seen).get(condition, ("", ""))[0] == state else {}

    return eventually(found, f"{condition} to be {state}")


def test_each_pod_has_an_index_and_is_told(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """By label, annotation, host name and environment; a finalizer keeps it until it is counted."""
    created(cluster, space, indexed_job(nodes))
    found = running(cluster, space)

    assert {"0", "1", "2"} == found.keys()
    meta, spec = found["1"]["metadata"], found["1"]["spec"]
    uid = cluster.admin.get(path_of(space, "jobs", "job")).body["metadata"]["uid"]
    assert {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "job",
        "controller-uid": uid,
        "job-name": "job",
        _INDEX: "1",
    } == meta["labels"]
    assert {_INDEX: "1"} == meta["annotations"]
    assert ("job-1-", "job-1", [_TRACKING]) == (meta["generateName"], spec["hostname"], meta["finalizers"])
    assert meta["name"].startswith("job-1-")
    (variable,) = spec["containers"][0]["env"]
    assert "JOB_COMPLETION_INDEX" == variable["name"]
    assert f"metadata.labels['{_INDEX}']" == variable["valueFrom"]["fieldRef"]["fieldPath"]
    state = status(cluster, space, active=3, ready=3, terminating=0, uncountedTerminatedPods={})
    assert not {"succeeded", "failed", "completedIndexes"} & state.keys()


def test_a_new_job_has_a_selector_and_defaults(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """In the answer to its creation, so that anyone who changes its template loses no label."""
    body = created(cluster, space, indexed_job(nodes, suspend=True)).body
    uid = body["metadata"]["uid"]

    assert {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}} == body["spec"]["selector"]
    assert "job" == body["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    defaults = {"backoffLimit": 6, "manualSelector": False, "podReplacementPolicy": "TerminatingOrFailed"}
    assert defaults.items() <= body["spec"].items()


def test_a_deleted_pod_has_failed_and_comes_again(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """Under its index; how often is counted even when nothing of it is left."""
    created(cluster, space, indexed_job(nodes))
    lost = running(cluster, space)["1"]
    cluster.admin.send("DELETE", path_of(space, "pods", lost["metadata"]["name"]), {"gracePeriodSeconds": 0})

    assert {"0", "1", "2"} == running(cluster, space, 3, lost).keys()
    status(cluster, space, active=3, failed=1, ready=3)


def test_a_job_fails_when_more_pods_fail_than_may(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """The others are stopped, and count as failed as well."""
    created(cluster, space, indexed_job(nodes, backoffLimit=0))
    lost = running(cluster, space)["1"]["metadata"]
    cluster.admin.send("DELETE", path_of(space, "pods", lost["name"]), {"gracePeriodSeconds": 0})
    eventually(lambda: not pods_of(cluster, space, _OWN), "the pods to go")

    state = eventually(lambda: _ended(cluster, space, "Failed"), "the Job to fail")
    reason = ("True", "BackoffLimitExceeded")
    assert {"FailureTarget": reason, "Failed": reason} == conditions_of(state)
    assert 3 == state["failed"]
    assert "active" not in state


def _ended(cluster: Cluster, space: str, condition: str) -> Object:
    state: Object = cluster.admin.get(path_of(space, "jobs", "job")).body.get("status", {})
    return state if condition in conditions_of(state) else {}


def test_a_job_completes_when_each_index_has_succeeded(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """It says which, and does not begin again when a finished pod is deleted."""
    body = indexed_job(nodes)
    body["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 10"]
    created(cluster, space, body)
    finished = begun_pods(cluster, space, _OWN, 3)
    for name in finished:
        cluster.finish(space, name)

    state = eventually(lambda: _ended(cluster, space, "Complete"), "the Job to complete")
    reason = ("True", "CompletionsReached")
    assert {"SuccessCriteriaMet": reason, "Complete": reason} == conditions_of(state)
    assert (3, "0-2") == (state["succeeded"], state["completedIndexes"])
    assert {"startTime", "completionTime"} <= state.keys()
    cluster.admin.send("DELETE", path_of(space, "pods", finished[0]))
    eventually(lambda: len(pods_of(cluster, space, _OWN)) == 2, "the pod to go")
    assert "0-2" == status(cluster, space, succeeded=3)["completedIndexes"]


def test_a_suspended_job_has_no_pods_and_takes_other_places(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """Its pods then stop without having failed, and the next ones are where the template says by then."""
    created(cluster, space, indexed_job(nodes))
    running(cluster, space)
    place = {"spec": {"nodeSelector": {"kubernetes.io/hostname": nodes[1]}}}
    refused = changed(cluster, space, template=place)
    assert (422, "Invalid") == (refused.code, refused.reason)
    assert refused.message.startswith('Job.batch "job" is invalid: spec.template: Invalid value: ')
    assert refused.message.endswith(": field is immutable")

    assert 200 == changed(cluster, space, suspend=True).code
    eventually(lambda: not pods_of(cluster, space, _OWN), "the pods to go")
    state = said(cluster, space, "Suspended", "True", ready=0, terminating=0)
    assert {"Suspended": ("True", "JobSuspended")} == conditions_of(state)
    assert not {"failed", "active", "startTime"} & state.keys()
    command = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    assert 422 == changed(cluster, space, template=command).code

    eventually(lambda: changed(cluster, space, template=place).code == 200, "the template to change")
    assert 200 == changed(cluster, space, suspend=False).code
    assert {nodes[1]} == {pod["spec"]["nodeName"] for pod in running(cluster, space).values()}
    state = said(cluster, space, "Suspended", "False", active=3)
    assert {"Suspended": ("False", "JobResumed")} == conditions_of(state)


def test_the_highest_indices_leave_a_job_that_shrinks(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """Completions and parallelism change together only."""
    created(cluster, space, indexed_job(nodes))
    running(cluster, space)
    refused = changed(cluster, space, completions=2)
    assert 422 == refused.code
    assert refused.message == (
        'Job.batch "job" is invalid: spec.completions: Invalid value: 2: can only be modified in tandem with '
        "spec.parallelism"
    )

    assert 200 == changed(cluster, space, completions=2, parallelism=2).code
    assert {"0", "1"} == running(cluster, space, 2).keys()
    assert "failed" not in status(cluster, space, active=2, ready=2, terminating=0)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"completions": None},
            "spec.completions: Required value: when completion mode is Indexed",
            id="completions",
        ),
        pytest.param(
            {"backoffLimit": -1},
            "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
            id="backoff",
        ),
        pytest.param(
            {"parallelism": 100_001},
            "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is "
            "Indexed",
            id="parallelism",
        ),
        pytest.param(
            {"completionMode": "Any"},
            'spec.completionMode: Unsupported value: "Any": supported values: "NonIndexed", "Indexed"',
            id="mode",
        ),
    ],
)
def test_what_no_job_can_be_is_refused(cluster: Cluster, space: str, spec: Object, message: str) -> None:
    """With the field and the reason."""
    answer = cluster.admin.send("POST", path_of(space, "jobs"), indexed_job(["nowhere"], **spec))
    assert (422, f'Job.batch "job" is invalid: {message}') == (answer.code, answer.message)


def test_pods_that_restart_for_ever_make_no_job(cluster: Cluster, space: str) -> None:
    """The default policy of pods is no Job's."""
    body = indexed_job(["nowhere"])
    del body["spec"]["template"]["spec"]["restartPolicy"]
    answer = cluster.admin.send("POST", path_of(space, "jobs"), body)
    assert answer.message == (
        'Job.batch "job" is invalid: spec.template.spec.restartPolicy: Required value: valid values: '
        '"OnFailure", "Never"'
    )
