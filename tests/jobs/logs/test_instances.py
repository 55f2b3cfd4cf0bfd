"""Instances are named by role, by number, by name, or all."""

import pytest

from arena_topo.errors import NotFound, UsageError
from arena_topo.jobs.logs.follow import Instances, parse_instances, role_of
from arena_topo.jobs.logs.wait import LogTarget, can_be_of
from arena_topo.jobs.lookup import ServedJob
from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.kinds.jobset import JOBSET
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB
from arena_topo.model.objects import Object
from tests.jobs.manifests import MANIFESTS
from tests.kinds.jobs import pod_of, training_job
from tests.objects import mpijob, pod

MPI = ServedJob(ApiVersion.V2BETA1, mpijob("job"))
PODS = [
    *(pod(f"job-worker-{index}") for index in (10, 2, 0, 1)),
    pod("job-launcher-x", role="launcher"),
    pod("other-worker-0"),
]


@pytest.mark.parametrize(
    ("text", "role", "every", "expected"),
    [
        ("", "", False, Instances()),
        ("", "worker", False, Instances(role="worker")),
        ("", "PS", False, Instances(role="ps")),
        ("", "launcher", False, Instances(role="launcher")),
        ("", "", True, Instances(every=True)),
        ("3", "", False, Instances(indices=(range(3, 4),))),
        ("0-3,7", "", False, Instances(indices=(range(4), range(7, 8)))),
        ("worker-3", "", False, Instances(indices=(range(3, 4),))),
        ("job-worker-3", "", False, Instances(names=("job-worker-3",))),
        ("launcher,0", "", False, Instances(role="launcher", indices=(range(1),))),
    ],
)
def test_a_choice_is_read(text: str, role: str, every: bool, expected: Instances) -> None:
    """As the flags write it."""
    assert expected == parse_instances(text, role, every=every)


@pytest.mark.parametrize(
    ("text", "role", "every", "message"),
    [
        ("3-0", "", False, "'3-0' ends before it begins"),
        ("1,,2", "", False, "'1,,2' has an empty part"),
        ("1", "worker", False, "at most one of --instance, --role and --all"),
        ("", "worker", True, "at most one of --instance, --role and --all"),
    ],
)
def test_what_is_no_choice_is_an_error(text: str, role: str, every: bool, message: str) -> None:
    """Before anything is asked of the cluster."""
    with pytest.raises(UsageError, match=message):
        parse_instances(text, role, every=every)


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        (Instances(), ["job-launcher-x"]),
        (Instances(role="launcher"), ["job-launcher-x"]),
        (Instances(role="worker"), [f"job-worker-{index}" for index in (0, 1, 2, 10)]),
        (Instances(indices=(range(1, 3),)), ["job-worker-1", "job-worker-2"]),
        (Instances(role="launcher", indices=(range(1),)), ["job-launcher-x", "job-worker-0"]),
        (Instances(names=("job-worker-2",)), ["job-worker-2"]),
    ],
)
def test_instances_are_found_in_order(chosen: Instances, names: list[str]) -> None:
    """The launcher first, workers by number."""
    assert names == [each["metadata"]["name"] for each in chosen.among(MPI, PODS)]


@pytest.mark.parametrize(
    ("chosen", "one", "name"),
    [
        (Instances(), True, ""),
        (Instances(role="launcher"), True, ""),
        (Instances(indices=(range(3, 4),)), True, "job-worker-3"),
        (Instances(names=("job-launcher-x",)), True, "job-launcher-x"),
        (Instances(role="worker"), False, ""),
        (Instances(every=True), False, ""),
    ],
)
def test_one_instance_is_known_as_one(chosen: Instances, one: bool, name: str) -> None:
    """Its lines need no prefix."""
    assert (one, name) == (chosen.one, chosen.name_in("job"))


def test_an_instance_beyond_the_jobs_workers_is_an_error() -> None:
    """Waiting for it would never end; a range may be absurdly long."""
    job = ServedJob(ApiVersion.V2BETA1, mpijob("job", workers=4))
    Instances(indices=(range(4),), names=("job-launcher-abc",)).check(job)
    for wrong in (Instances(indices=(range(9_999_999),)), Instances(names=("other-worker-0",))):
        with pytest.raises(NotFound, match=r"invalid instance name .* in job job, which has 4 workers"):
            wrong.check(job)


TORCH = ServedJob(PYTORCHJOB, training_job(PYTORCHJOB, {"Master": 1, "Worker": 3}))
TORCH_PODS = [*(pod_of(PYTORCHJOB, "worker", index) for index in (2, 0, 1)), pod_of(PYTORCHJOB, "master", 0)]
TORCH_PODS[-1]["metadata"]["labels"]["training.kubeflow.org/job-role"] = "master"


@pytest.mark.parametrize(
    ("text", "role", "names"),
    [
        ("", "", ["job-master-0"]),
        ("launcher,2", "", ["job-master-0", "job-worker-2"]),
        ("0-1", "", ["job-worker-0", "job-worker-1"]),
        ("job-master-0", "", ["job-master-0"]),
        ("", "worker", ["job-worker-0", "job-worker-1", "job-worker-2"]),
        ("", "master", ["job-master-0"]),
    ],
)
def test_instances_of_other_kinds_are_found(text: str, role: str, names: list[str]) -> None:
    """By the roles of their kind."""
    chosen = parse_instances(text, role, every=False)
    chosen.check(TORCH)

    assert names == [each["metadata"]["name"] for each in chosen.among(TORCH, TORCH_PODS)]


@pytest.mark.parametrize(
    ("text", "role", "message"),
    [
        ("3", "", "invalid instance name job-worker-3 in job job, which has 1 master and 3 workers"),
        ("job-launcher-x", "", "invalid instance name job-launcher-x"),
        ("", "ps", "job job has no instances of role ps"),
    ],
)
def test_what_a_job_of_another_kind_cannot_have_is_an_error(text: str, role: str, message: str) -> None:
    """Waiting for it would never end."""
    with pytest.raises(NotFound, match=message):
        parse_instances(text, role, every=False).check(TORCH)


@pytest.mark.parametrize(
    ("instance", "possible"),
    [
        ("set-worker-1", True),
        ("set-worker-0-1-x7k2p", True),
        ("set-worker-3-4-x7k2p", True),
        ("set-worker-2", False),
        ("set-other-0-1-x7k2p", False),
        ("set-worker", False),
    ],
)
def test_pods_of_a_jobset_have_a_random_end_to_their_names(instance: str, possible: bool) -> None:
    """Or are called by their number."""
    template: Object = {"spec": {"parallelism": 2, "completions": 2, "template": {}}}
    role = {"name": "worker", "replicas": 1, "template": template}
    job = {"metadata": {"name": "set"}, "spec": {"replicatedJobs": [role]}}

    assert possible == can_be_of(ServedJob(JOBSET, job), instance)


@pytest.mark.parametrize(
    ("instance", "possible"),
    [
        ("bert-worker-1", True),
        ("bert-1-x7k2p", True),
        ("bert-worker-3", False),
        ("bert-3-x7k2p", False),
        (f"bert-worker-{'9' * 5000}", False),
    ],
    ids=lambda value: str(value)[:16],
)
def test_pods_of_an_indexed_job_have_a_random_end_to_their_names(instance: str, possible: bool) -> None:
    """Or are called by their number."""
    assert possible == can_be_of(ServedJob(INDEXED_JOB, MANIFESTS["Job"]), instance)


def test_a_pod_of_an_indexed_job_is_found_by_its_number() -> None:
    """As `logs bert -i 1` names it."""
    labels = {"batch.kubernetes.io/job-name": "bert", "batch.kubernetes.io/job-completion-index": "1"}
    one = {"metadata": {"name": "bert-1-x7k2p", "labels": labels}}

    assert one == LogTarget("bert-worker-1").pod_among([one])
    assert LogTarget("bert-worker-0").pod_among([one]) is None


def test_a_pod_of_a_jobset_is_found_by_its_number() -> None:
    """As `logs set -i 1` names it."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "set",
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "jobset.sigs.k8s.io/job-index": "0",
        "batch.kubernetes.io/job-completion-index": "1",
    }
    one = {"metadata": {"name": "set-worker-0-1-x7k2p", "labels": labels}}

    assert one == LogTarget("set-worker-1").pod_among([one])
    assert LogTarget("set-worker-0").pod_among([one]) is None


def labelled_pod(name: str, **labels: str) -> Object:
    """Return a pod with labels of the batch controller and of JobSet."""
    domains = {"job_completion_index": "batch.kubernetes.io"}
    return {
        "metadata": {
            "name": name,
            "labels": {
                f"{domains.get(key, 'jobset.sigs.k8s.io')}/{key.replace('_', '-')}": value
                for key, value in labels.items()
            },
        }
    }


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        (pod("job-worker-2"), ("worker", 2)),
        (pod("job-launcher-x2x4z"), ("launcher", None)),
        (pod_of(PYTORCHJOB, "master", 0, chief=True), ("master", 0)),
        (pod_of(PYTORCHJOB, "worker", 1), ("worker", 1)),
        (pod_of(TFJOB, "ps", 1), ("ps", 1)),
        (
            labelled_pod(
                "js-trainer-0-3-x2x4z", job_completion_index="3", job_index="0", replicatedjob_name="trainer"
            ),
            ("trainer", 3),
        ),
        (labelled_pod("job-3-x2x4z", job_completion_index="3"), ("worker", 3)),
    ],
    ids=lambda value: value["metadata"]["name"] if isinstance(value, dict) else "",
)
def test_an_instance_has_a_role_in_its_job(instance: Object, expected: tuple[str, int | None]) -> None:
    """As its kind calls it; a launcher is the only one of its role."""
    assert expected == role_of(instance)
