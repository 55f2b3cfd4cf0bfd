"""The anatomy of an indexed Job."""

from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.model.kind import Member

_INDEX = "batch.kubernetes.io/job-completion-index"


def test_an_indexed_job_has_one_role() -> None:
    """Whose first pod is the chief."""
    job = {"metadata": {"name": "job"}, "spec": {"parallelism": 2, "completions": 2, "template": {}}}
    labels = {"batch.kubernetes.io/job-name": "job", _INDEX: "0"}
    first = {"metadata": {"name": "job-0-x7k2p", "labels": labels}}

    assert [("worker", 2, "/spec/template")] == [
        (each.role, each.count, each.path) for each in INDEXED_JOB.replicas(job)
    ]
    assert Member("job", "worker", 0) == INDEXED_JOB.member(first)
    assert INDEXED_JOB.is_chief(first)
    assert "job-0-" == INDEXED_JOB.pod_name(Member("job", "worker", 0))


def test_a_pod_of_a_set_is_none_of_a_job() -> None:
    """Though the Job that made it is indexed."""
    assert (
        INDEXED_JOB.member(
            {"metadata": {"name": "x", "labels": {_INDEX: "0", "jobset.sigs.k8s.io/jobset-name": "set"}}}
        )
        is None
    )
