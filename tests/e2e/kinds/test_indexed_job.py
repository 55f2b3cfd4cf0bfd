"""Indexed Jobs from submit to delete, on a real API server with the controllers of Kubernetes itself."""

import re

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.polling import eventually
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

JOB = ("batch/v1", "Job")
SUBMIT = ("submit", "job", "--name=bert", "--workers=3", "--gpus=2", "--image=i", "--retry=2")
COMMAND = "train --rank=$JOB_COMPLETION_INDEX --note='a  b'"
SELECTOR = "batch.kubernetes.io/job-name=bert"


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_job_runs_in_its_places_from_submit_to_delete(
    arena: Arena, kube: Kube, namespace: str, fake_log: FakeLog
) -> None:
    """Each pod on its own node, a lost one again; a Service lets them find each other, and goes with the job."""
    outcome = arena(*SUBMIT, "--gputopology", "--pin=workers", COMMAND)
    assert (0, "job.batch/bert created\nservice/bert created\n") == (outcome.code, outcome.out), outcome.err

    members = running_pods(kube, namespace, selector=SELECTOR)
    planned = nodes_of(plan_on(kube, namespace, JOB))
    assert planned == places(members)
    (container,) = members[0]["spec"]["containers"]
    assert ["sh", "-c", COMMAND] == container["command"]
    assert ("bert-0", "bert") == (members[0]["spec"]["hostname"], members[0]["spec"]["subdomain"])
    again = after_a_loss(kube, namespace, members[1], selector=SELECTOR)
    assert planned == places(again)

    assert "job.batch/bert running\n" == arena("wait", "bert", "--for=running").out
    assert "job.batch/bert\n" == arena("list", "-o", "name").out
    table = arena("get", "bert").out
    assert "Trainer:   JOB" in table
    assert [pod["metadata"]["name"] for pod in again] == re.findall(r"^  (bert-\S+)", table, re.MULTILINE)
    assert re.search(r"^bert +RUNNING +JOB +\w+ +6 +6 ", arena("list", "--type=job").out, re.MULTILINE)
    assert "bert-0" in arena("describe", "bert").out
    assert "bert" in arena("top", "job").out
    fake_log.write("step 1")
    assert "step 1" in arena("logs", "bert").out
    assert "step 1\n" == arena("logs", "bert", "-i", "1", "--tail=1").out
    assert "step 1\n" == arena("logs", "bert", "-i", again[2]["metadata"]["name"], "--tail=1").out

    assert_deleted(arena, kube, namespace)
    eventually(lambda: kube.find("v1", "Service", "bert", namespace) is None, "the end of its Service")


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_suspended_job_is_planned_anew(arena: Arena, kube: Kube, namespace: str) -> None:
    """Kubernetes 1.36 takes new pins of a Job that ran before, once it is suspended and has no pods."""
    assert 0 == arena(*SUBMIT, "--gputopology", COMMAND).code
    running_pods(kube, namespace, selector=SELECTOR)

    suspend_and_resume(arena, kube, namespace)
    assert_in_places(kube, namespace, JOB, selector=SELECTOR)


@pytest.mark.usefixtures("gpu_nodes")
def test_without_the_policy_gates_hold_the_pods_until_all_have_a_place(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """The gate stays in the template, so that a suspended Job needs no new one."""
    outcome = arena(*SUBMIT, "--gang", "--gang-scheduler=gates", COMMAND)
    assert 0 == outcome.code, outcome.err
    assert_in_places(kube, namespace, JOB, selector=SELECTOR)

    suspend_and_resume(arena, kube, namespace)
    assert_in_places(kube, namespace, JOB, selector=SELECTOR)


@pytest.mark.usefixtures("gpu_nodes", "policy")
@pytest.mark.parametrize(("exit_code", "word"), [(0, "SUCCEEDED"), (3, "FAILED")])
def test_a_job_ends_as_its_pods_do(
    arena: Arena, kube: Kube, namespace: str, exit_code: int, word: str
) -> None:
    """Kubernetes says Complete, or Failed once more pods failed than may."""
    assert 0 == arena(*SUBMIT, "--retry=0", COMMAND).code
    end(kube, namespace, running_pods(kube, namespace, selector=SELECTOR), exit_code)

    assert (5 if exit_code else 0) == arena("wait", "bert", "--for=succeeded").code
    assert re.search(rf"^Status: +{word}", arena("get", "bert").out, re.MULTILINE)


@pytest.mark.usefixtures("gpu_nodes", "policy")
@pytest.mark.parametrize("kind", ["job", "jobset"])
def test_a_set_of_nodes_is_refused(arena: Arena, kind: str) -> None:
    """The affinity would come when the template takes none any more; nothing is created."""
    outcome = arena(
        "submit", kind, "--name=bert", "--workers=2", "--gpus=1", "--image=i", "--pin=nodes", COMMAND
    )

    assert 2 == outcome.code
    assert "takes no node affinity once it is created" in outcome.err
    assert "" == outcome.out


@pytest.mark.usefixtures("gpu_nodes")
def test_the_server_takes_every_flag(arena: Arena, kube: Kube, namespace: str) -> None:
    """Under strict validation."""
    everything = ("--ttl-after-finished=1h", "--running-timeout=2h", "--working-dir=/work", *POD_FLAGS)
    outcome = arena(*SUBMIT, *everything, "--dry-run=client", "-o", "yaml", COMMAND)
    assert 0 == outcome.code, outcome.err
    stored = tried(kube, namespace, outcome.out)
    assert {"Job": "bert", "Service": "bert"} == {
        kind: item["metadata"]["name"] for kind, item in stored.items()
    }
