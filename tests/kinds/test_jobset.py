"""The anatomy of a JobSet, whose pods have the labels of an indexed Job, and more."""

import pytest

from arena_topo.kinds.jobset import JOBSET
from arena_topo.model.kind import Member, offsets
from arena_topo.model.objects import Object

_INDEX, _JOB = "batch.kubernetes.io/job-completion-index", "jobset.sigs.k8s.io/job-index"


def jobset(**roles: tuple[int | None, int | None, int | None]) -> Object:
    """Return a JobSet whose *roles* have Jobs, and each of
    these a parallelism and completions; None leaves one out.
    """

    def given(**fields: int | None) -> Object:
        return {key: value for key, value in fields.items() if value is not None}

    replicated = [
        {
            "name": role,
            **given(replicas=jobs),
            "template": {"spec": {**given(parallelism=pods, completions=whole), "template": {"spec": {}}}},
        }
        for role, (jobs, pods, whole) in roles.items()
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set"},
        "spec": {"replicatedJobs": replicated},
    }


def labelled_pod(labels: dict[str, str], **annotations: str) -> Object:
    """Return a pod of role ``node`` of the JobSet ``set``."""
    named = {"jobset.sigs.k8s.io/jobset-name": "set", "jobset.sigs.k8s.io/replicatedjob-name": "node"}
    return {"metadata": {"name": "x", "labels": {**named, **labels}, "annotations": annotations}}


def test_roles_are_those_that_the_job_names() -> None:
    """Each with the pods of all of its Jobs, in the order of the job; all of them are planned."""
    job = jobset(leader=(None, None, None), node=(2, 3, 3))

    assert [("leader", 1), ("node", 6)] == [(each.role, each.count) for each in JOBSET.replicas(job)]
    assert {"leader": 0, "node": 1} == offsets(JOBSET, job)


def test_a_template_is_a_part_of_the_job() -> None:
    """And is found at its path."""
    job = jobset(leader=(1, 1, 1), node=(1, 2, 2))
    node = JOBSET.replicas(job)[1]

    assert "/spec/replicatedJobs/1/template/spec/template" == node.path
    assert node.template is job["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]


@pytest.mark.parametrize(
    ("parallelism", "completions", "count"),
    [(None, None, 1), (3, None, 3), (3, 2, 2), (2, 3, 2), (0, None, 0)],
)
def test_a_job_has_as_many_pods_as_run_at_one_time(
    parallelism: int | None, completions: int | None, count: int
) -> None:
    """No more than it has to complete; nought is a number too."""
    (node,) = JOBSET.replicas(jobset(node=(1, parallelism, completions)))

    assert count == node.count


@pytest.mark.parametrize(
    ("labels", "annotations", "index"),
    [
        ({_INDEX: "1", _JOB: "0"}, {}, 1),
        ({_INDEX: "1", _JOB: "0"}, {"arena-topo.dev/pods-per-job": "2"}, 1),
        ({_INDEX: "1", _JOB: "2"}, {"arena-topo.dev/pods-per-job": "2"}, 5),
        ({_INDEX: "1", _JOB: "2"}, {}, None),
        ({_INDEX: "1", _JOB: "2"}, {"arena-topo.dev/pods-per-job": "x"}, None),
        ({_INDEX: "x", _JOB: "0"}, {}, None),
        ({_INDEX: "1"}, {}, None),
    ],
)
def test_a_pod_of_a_set_tells_its_index(
    labels: dict[str, str], annotations: dict[str, str], index: int | None
) -> None:
    """In its role; in any Job but the first only where its template says how many pods a Job has."""
    expected = None if index is None else Member("set", "node", index)

    assert expected == JOBSET.member(labelled_pod(labels, **annotations))


@pytest.mark.parametrize(("job", "index", "chief"), [("0", "0", True), ("0", "1", False), ("1", "0", False)])
def test_the_first_pod_of_the_first_job_is_the_chief(job: str, index: str, *, chief: bool) -> None:
    """Whatever its role is called."""
    labels = {"jobset.sigs.k8s.io/job-global-index": job, _JOB: "0", _INDEX: index}

    assert chief is JOBSET.is_chief(labelled_pod(labels))
