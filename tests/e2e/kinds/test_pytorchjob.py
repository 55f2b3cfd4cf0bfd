"""PyTorchJobs from submit to delete, on a real API server with the real training operator."""

import re

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.kinds.places import (
    assert_deleted,
    nodes_of,
    places_by_name,
    plan_on,
    running_pods,
    suspend_and_resume,
)

PYTORCHJOB = ("kubeflow.org/v1", "PyTorchJob")
SELECTOR = "training.kubeflow.org/job-name=bert"
SUBMIT = ("submit", "pytorch", "--name=bert", "--workers=4", "--gpus=2", "--image=i", "--nproc-per-node=2")
COMMAND = "torchrun train.py --note='a  b'"
NAMES = ["bert-master-0", "bert-worker-0", "bert-worker-1", "bert-worker-2"]


def running_places(kube: Kube, namespace: str, without: str = "") -> dict[str, str]:
    """Return the nodes of the pods of the job by their names, once all of them run."""
    return places_by_name(running_pods(kube, namespace, 4, selector=SELECTOR, without=without))


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_job_runs_in_its_places_from_submit_to_delete(arena: Arena, kube: Kube, namespace: str) -> None:
    """Each pod on its own node by its rank, a recreated one again; and all commands know the job by its name alone."""
    outcome = arena(*SUBMIT, "--gputopology", "--pin=workers", "--retry=3", COMMAND)
    assert (0, "pytorchjob.kubeflow.org/bert created\n") == (outcome.code, outcome.out), outcome.err
    assert "`arena-topo get bert --type pytorchjob -n " in outcome.err

    places = running_places(kube, namespace)
    plan = plan_on(kube, namespace, PYTORCHJOB)
    assert "admission" == plan["means"]
    assert dict(zip(NAMES, nodes_of(plan), strict=True)) == places
    lost = kube.find("v1", "Pod", "bert-worker-1", namespace)
    assert lost is not None
    kube.delete("v1", "Pod", "bert-worker-1", namespace, gracePeriodSeconds="0")
    assert places == running_places(kube, namespace, without=lost["metadata"]["uid"])

    master = kube.find("v1", "Pod", "bert-master-0", namespace)
    assert master is not None
    (container,) = master["spec"]["containers"]
    assert ["sh", "-c", COMMAND] == container["command"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert ("4", "2", "0") == (env["PET_NNODES"], env["PET_NPROC_PER_NODE"], env["RANK"])
    table = eventually(
        lambda: next(
            (out for out in [arena("get", "bert").out] if re.search(r"Status: +RUNNING", out)), None
        ),
        "the job to run",
    )
    assert "Trainer:   PYTORCHJOB" in table
    assert NAMES == re.findall(r"^  (bert-\S+)", table, re.MULTILINE)
    assert ["true", "false", "false", "false"] == re.findall(r"s +(true|false) ", table)
    assert re.search(r"^bert +RUNNING +PYTORCHJOB +\w+ +8 +8 ", arena("list").out, re.MULTILINE)
    assert "RUNNING" in arena("get", "bert", "--type", "py").out
    assert 1 == arena("get", "bert", "--type", "mpijob").code
    assert "pytorchjob.kubeflow.org/bert running\n" == arena("wait", "bert", "--for=running").out
    assert "bert-master-0" in arena("describe", "bert").out

    assert_deleted(arena, kube, namespace)
    assert kube.find(*PYTORCHJOB, "bert", namespace) is None


@pytest.mark.usefixtures("gpu_nodes")
def test_without_the_policy_gates_hold_the_pods_until_all_have_a_place(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """Each is released to its own node; suspend frees them, and resume plans the job again."""
    outcome = arena(*SUBMIT, "--gang", "--gang-scheduler=gates", COMMAND)
    assert 0 == outcome.code, outcome.err

    assert dict(zip(NAMES, nodes_of(plan_on(kube, namespace, PYTORCHJOB)), strict=True)) == running_places(
        kube, namespace
    )
    suspend_and_resume(arena, kube, namespace)
    assert dict(zip(NAMES, nodes_of(plan_on(kube, namespace, PYTORCHJOB)), strict=True)) == running_places(
        kube, namespace
    )


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_jobs_of_two_kinds_never_get_the_same_gpus(arena: Arena, kube: Kube, namespace: str) -> None:
    """The plan of one that has not started yet is read by the submit of the other, which waits as there is no more room."""
    first = arena(
        "submit", "pytorch", "--name=bert", "--workers=2", "--gpus=8", "--image=i", "--gputopology", COMMAND
    )
    second = arena(
        "submit",
        "mpi",
        "--name=vgg16",
        "--workers=1",
        "--gpus=8",
        "--image=i",
        "--gputopology",
        "--pin=workers",
        "c",
    )

    assert (0, 0) == (first.code, second.code), first.err + second.err
    assert 2 == len(set(nodes_of(plan_on(kube, namespace, PYTORCHJOB))))
    mpijob = ("kubeflow.org/v2beta1", "MPIJob")
    assert "waiting" == plan_on(kube, namespace, mpijob, "vgg16")["stage"]
    assert 0 == arena("delete", "bert").code
    assert 0 == arena("resume", "vgg16").code
    assert "confirmed" == plan_on(kube, namespace, mpijob, "vgg16")["stage"]
