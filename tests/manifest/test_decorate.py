"""A decoration reaches every pod that it is for, and never overrules the user."""

from copy import deepcopy
from typing import Any

import pytest

from arena_topo.errors import DocumentError, UsageError
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.gang import decorated
from arena_topo.model.gang import Decoration
from tests.gang.jobs import V1, V2, job_of_four_workers

FULL = Decoration(
    job_labels={"a": "1"},
    job_annotations={"b": "2"},
    pod_labels={"c": "3"},
    pod_annotations={"d": "4"},
    worker_labels={"e": "5"},
    worker_annotations={"f": "6"},
    scheduler_name="s",
)


def template(mpi_job: dict[str, Any], role: str = "Worker") -> Any:
    """Return the pod template of a role."""
    return mpi_job["spec"].get("template") or mpi_job["spec"]["mpiReplicaSpecs"][role]["template"]


@pytest.mark.parametrize("version", ApiVersion)
def test_everything_reaches_the_workers(version: ApiVersion) -> None:
    """In every version of the API."""
    result = decorated(job_of_four_workers(version), FULL)
    worker = template(result)

    assert ({"a": "1"}, {"b": "2"}) == (result["metadata"]["labels"], result["metadata"]["annotations"])
    assert {"labels": {"c": "3", "e": "5"}, "annotations": {"d": "4", "f": "6"}} == worker["metadata"]
    assert "s" == worker["spec"]["schedulerName"]


@pytest.mark.parametrize("version", [V2, V1])
def test_the_launcher_gets_what_is_for_both_alone(version: ApiVersion) -> None:
    """It is no worker, and not in their group."""
    launcher = template(decorated(job_of_four_workers(version), FULL), "Launcher")

    assert {"labels": {"c": "3"}, "annotations": {"d": "4"}} == launcher["metadata"]
    assert "s" == launcher["spec"]["schedulerName"]


def test_the_job_itself_stays_as_it_is() -> None:
    """What was rendered may be shown, or decorated in another way."""
    rendered = job_of_four_workers()
    before = deepcopy(rendered)
    decorated(rendered, FULL)

    assert before == rendered


def test_what_the_user_set_is_kept() -> None:
    """Labels and a policy of their own are next to ours."""
    rendered = job_of_four_workers()
    rendered["metadata"]["labels"] = {"team": "x"}
    rendered["spec"]["runPolicy"] = {"schedulingPolicy": {"queue": "q"}}
    result = decorated(
        rendered,
        Decoration(job_labels={"a": "1"}, scheduling_policy={"minAvailable": 4}),
    )

    assert {"team": "x", "a": "1"} == result["metadata"]["labels"]
    assert {"queue": "q", "minAvailable": 4} == result["spec"]["runPolicy"]["schedulingPolicy"]


def test_decorating_twice_changes_nothing() -> None:
    """What is there already is no contradiction."""
    once = decorated(job_of_four_workers(), FULL)

    assert once == decorated(once, FULL)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("metadata", "labels", "a"), "9", "a of the job is '9', and the gang scheduler needs '1'"),
        (
            ("spec", "mpiReplicaSpecs", "Worker", "template", "spec", "schedulerName"),
            "mine",
            "schedulerName of the worker's pods is 'mine'",
        ),
    ],
    ids=["label", "scheduler"],
)
def test_a_contradiction_is_an_error(path: tuple[str, ...], value: str, words: str) -> None:
    """Neither side wins in silence."""
    rendered = job_of_four_workers()
    inner: Any = rendered
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    with pytest.raises(UsageError, match=words) as caught:
        decorated(rendered, FULL)
    assert "another --gang-scheduler" in caught.value.hint


@pytest.mark.parametrize(
    "broken",
    [
        {"apiVersion": "v1", "kind": "Secret", "spec": {}},
        {"apiVersion": "kubeflow.org/v9", "kind": "MPIJob", "spec": {}},
    ],
    ids=["other kind", "other version"],
)
def test_what_is_no_job_is_told(broken: dict[str, Any]) -> None:
    """A template can render anything."""
    with pytest.raises(DocumentError, match="unsupported kind"):
        decorated(broken, FULL)


def test_a_key_without_a_value_is_one_that_is_not_there() -> None:
    """As a template's author may leave it."""
    empty = job_of_four_workers(V2)
    empty["spec"]["runPolicy"] = None
    template(empty)["metadata"] = None
    policy = Decoration(scheduling_policy={"minAvailable": 2}, worker_labels={"a": "1"})
    result = decorated(empty, policy)

    assert {"schedulingPolicy": {"minAvailable": 2}} == result["spec"]["runPolicy"]
    assert {"labels": {"a": "1"}} == template(result)["metadata"]


def test_a_run_policy_of_another_type_is_one_clear_error() -> None:
    """It names the key."""
    wrong = job_of_four_workers(V2)
    wrong["spec"]["runPolicy"] = "none"
    with pytest.raises(DocumentError, match="runPolicy is 'none', expected a mapping"):
        decorated(wrong, Decoration(scheduling_policy={"minAvailable": 2}))
