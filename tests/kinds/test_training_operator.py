"""Jobs of the training operator: their roles, and the names and labels of their pods."""

import pytest

from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB, TrainingOperatorKind
from arena_topo.model.kind import Member, is_suspended, offsets, planned_replicas, pod_selector
from tests.kinds.jobs import pod_of, training_job


@pytest.mark.parametrize(
    ("kind", "roles", "expected"),
    [
        (PYTORCHJOB, {"Worker": 2, "Master": 1}, ["master 0", "worker 0", "worker 1"]),
        (PYTORCHJOB, {"Worker": None}, ["worker 0"]),
        (TFJOB, {"PS": 1, "Worker": 2, "Evaluator": 1}, ["worker 0", "worker 1", "ps 0", "evaluator 0"]),
        (TFJOB, {"Worker": 1, "Chief": 1, "PS": 0}, ["chief 0", "worker 0"]),
    ],
)
def test_pods_are_numbered_in_the_order_of_ranks(
    kind: TrainingOperatorKind, roles: dict[str, int | None], expected: list[str]
) -> None:
    """Whatever order the job names them in; a role without a number has one pod, and one may have none."""
    planned = planned_replicas(kind, training_job(kind, roles))

    assert expected == [f"{pods.role} {index}" for pods in planned for index in range(pods.count)]


def test_a_role_begins_behind_those_before_it() -> None:
    """The master is number 0, so that worker 0 is number 1."""
    job = training_job(PYTORCHJOB, {"Master": 1, "Worker": 3})

    assert {"master": 0, "worker": 1} == offsets(PYTORCHJOB, job)


def test_a_template_is_found_by_its_path() -> None:
    """A change of the template is written there."""
    job = training_job(TFJOB, {"PS": 1})

    (servers,) = TFJOB.replicas(job)

    assert "/spec/tfReplicaSpecs/PS/template" == servers.path
    assert servers.template is job["spec"]["tfReplicaSpecs"]["PS"]["template"]


@pytest.mark.parametrize(
    "spec", [{}, {"pytorchReplicaSpecs": None}, {"pytorchReplicaSpecs": {"Worker": None}}]
)
def test_a_job_of_somebody_else_may_lack_everything(spec: dict[str, None]) -> None:
    """It has no pods then."""
    assert [] == PYTORCHJOB.replicas({"spec": spec})


def test_a_pod_tells_its_role_and_index_by_its_labels() -> None:
    """And its name follows from them."""
    member = PYTORCHJOB.member(pod_of(PYTORCHJOB, "worker", 12))

    assert Member("job", "worker", 12) == member
    assert "job-worker-12" == PYTORCHJOB.pod_name(member)


def test_a_pod_without_these_labels_is_no_member() -> None:
    """A TensorBoard next to the job, for example."""
    assert PYTORCHJOB.member({"metadata": {"name": "job-worker-0"}}) is None


def test_the_operator_says_which_pod_is_the_chief() -> None:
    """By the role master, which worker 0 of a TFJob without a chief has."""
    assert TFJOB.is_chief(pod_of(TFJOB, "worker", 0, chief=True))
    assert not TFJOB.is_chief(pod_of(TFJOB, "worker", 1))


def test_two_kinds_of_one_name_have_their_own_pods() -> None:
    """Their operator gives the pods of both the job's name, and its own name for each kind."""
    assert (
        "training.kubeflow.org/job-name=job,training.kubeflow.org/operator-name=tfjob-controller"
        == pod_selector(TFJOB, "job")
    )


def test_a_job_is_suspended_by_its_run_policy() -> None:
    """A job without one is not."""
    assert is_suspended(TFJOB, training_job(TFJOB, {"Worker": 1}, suspend=True))
    assert not is_suspended(TFJOB, training_job(TFJOB, {"Worker": 1}))
