"""JobSets from submit to delete, on a real API server with the real JobSet controller."""

import re

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.logs import FakeLog
from tests.e2e.arena import Arena
from tests.e2e.kinds.places import (
    POD_FLAGS,
    after_a_loss,
    assert_deleted,
    assert_in_places,
    end,
    nodes_of,
    places,
    plan_on,
    running_pods,
    suspend_and_resume,
    tried,
)

SELECTOR = "jobset.sigs.k8s.io/jobset-name=bert"
JOBSET = ("jobset.x-k8s.io/v1alpha2", "JobSet")
SUBMIT = ("submit", "jobset", "--name=bert", "--workers=3", "--gpus=2", "--image=i")
COMMAND = "torchrun --node-rank=$JOB_COMPLETION_INDEX train.py --note='a  b'"


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_set_runs_in_its_places_from_submit_to_delete(
    arena: Arena, kube: Kube, namespace: str, fake_log: FakeLog
) -> None:
    """Each pod on its own node, and again when a lost one starts the set anew; all commands know it by its name alone."""
    outcome = arena(*SUBMIT, "--retry=1", "--gputopology", "--pin=workers", COMMAND)
    assert (0, "jobset.jobset.x-k8s.io/bert created\n") == (outcome.code, outcome.out), outcome.err

    members = running_pods(kube, namespace, selector=SELECTOR)
    planned = nodes_of(plan_on(kube, namespace, JOBSET))
    assert planned == places(members)
    (container,) = members[0]["spec"]["containers"]
    assert ["sh", "-c", COMMAND] == container["command"]
    again = after_a_loss(kube, namespace, members[1], selector=SELECTOR)
    assert planned == places(again)

    assert "jobset.jobset.x-k8s.io/bert running\n" == arena("wait", "bert", "--for=running").out
    assert "jobset.jobset.x-k8s.io/bert\n" == arena("list", "-o", "name").out
    table = arena("get", "bert").out
    assert "Trainer:   JOBSET" in table
    assert [pod["metadata"]["name"] for pod in again] == re.findall(r"^  (bert-\S+)", table, re.MULTILINE)
    assert re.search(r"^bert +RUNNING +JOBSET +\w+ +6 +6 ", arena("list").out, re.MULTILINE)
    assert re.search(r"^bert +RUNNING +JOBSET ", arena("list", "--type=jobset").out, re.MULTILINE)
    fake_log.write("step 1")
    assert "step 1" in arena("logs", "bert").out
    assert "step 1\n" == arena("logs", "bert", "-i", "1", "--tail=1").out

    assert_deleted(arena, kube, namespace)


@pytest.mark.usefixtures("gpu_nodes")
def test_without_the_policy_gates_hold_the_pods_until_all_have_a_place(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """The gate stays in the template of the set: suspended and resumed, its pods are gated again."""
    outcome = arena(*SUBMIT, "--gang", "--gang-scheduler=gates", COMMAND)
    assert 0 == outcome.code, outcome.err
    assert "by scheduling gates" in outcome.err
    assert_in_places(kube, namespace, JOBSET, selector=SELECTOR)

    suspend_and_resume(arena, kube, namespace)
    assert_in_places(kube, namespace, JOBSET, selector=SELECTOR)


@pytest.mark.usefixtures("gpu_nodes", "policy")
@pytest.mark.parametrize(("exit_code", "word"), [(0, "SUCCEEDED"), (3, "FAILED")])
def test_a_set_ends_as_its_pods_do(
    arena: Arena, kube: Kube, namespace: str, exit_code: int, word: str
) -> None:
    """JobSet has words of its own for it."""
    assert 0 == arena(*SUBMIT, COMMAND).code
    end(kube, namespace, running_pods(kube, namespace, selector=SELECTOR), exit_code)

    assert (0 if word == "SUCCEEDED" else 5) == arena("wait", "bert", "--for=succeeded").code
    assert re.search(rf"^Status: +{word}", arena("get", "bert").out, re.MULTILINE)


@pytest.mark.usefixtures("gpu_nodes")
def test_the_server_takes_every_flag(arena: Arena, kube: Kube, namespace: str) -> None:
    """Under strict validation against JobSet's own definition, and by its webhook."""
    everything = (
        "--retry=2",
        "--ttl-after-finished=1h",
        "--running-timeout=2h",
        "--working-dir=/work",
        *POD_FLAGS,
    )
    outcome = arena(*SUBMIT, *everything, "--dry-run=client", "-o", "yaml", COMMAND)
    assert 0 == outcome.code, outcome.err
    stored = tried(kube, namespace, outcome.out)["JobSet"]
    assert 2 == stored["spec"]["failurePolicy"]["maxRestarts"]
