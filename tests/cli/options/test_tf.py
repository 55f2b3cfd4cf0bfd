"""The job that the flags of a TensorFlow job describe."""

import pytest

from arena_topo.cli.declare import command
from arena_topo.cli.options.kinds import TfFlags, tf_job
from arena_topo.errors import UsageError
from arena_topo.model.job import JobSpec


def job(*words: str) -> JobSpec:
    """Return the job of the flags *words*."""
    typed: list[TfFlags] = []
    command("tf", TfFlags)(typed.append).main(["--name=wide", *words], standalone_mode=False)
    return tf_job(typed[0], words=("train",), argv=None, namespace="ml")


def test_a_job_has_all_roles_and_counts_their_pods() -> None:
    """A chief among them."""
    spec = job("--image=i", "--workers=3", "--gpus=2", "--ps=2", "--ps-gpus=1", "--chief", "--evaluator")

    assert "TFJob" == spec.kind
    assert ["chief", "worker", "ps", "evaluator"] == [role.name for role in spec.roles]
    assert (7, 12) == (spec.pods, spec.gpus_in_all)


def test_a_chief_may_train_alone() -> None:
    """Then there is no worker."""
    assert ["chief"] == [role.name for role in job("--image=i", "--workers=0", "--chief").roles]


def test_every_role_may_have_an_image_of_its_own() -> None:
    """Then the job needs none; a role without one is told."""
    assert "w" == job("--worker-image=w", "--ps=1", "--ps-image=p").image
    with pytest.raises(UsageError, match="--image must be set, or an image for ps"):
        job("--worker-image=w", "--ps=1")
    with pytest.raises(UsageError, match="--image must be set"):
        job("--ps=1")


def test_what_the_operator_knows_reaches_the_job() -> None:
    """The default success policy has no word in its API; the order of roles is an annotation for Arena's."""
    spec = job("--image=i", "--success-policy=AllWorkers", "--role-sequence=w,p", "--clean-task-policy=None")

    assert ("AllWorkers", "None") == (spec.run.success_policy, spec.run.clean_policy)
    assert "Worker,PS" == spec.pod.annotations["job-role-sequence"]
    assert "" == job("--image=i").run.success_policy
