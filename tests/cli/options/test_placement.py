"""Arena's switch --queue next to the name of a queue, and the job's command after either."""

import json

import pytest

from arena_topo.cli.options.placement import Wait, wait_for
from arena_topo.model.job_view import Goal
from tests.cli.conftest import Invoke

SUBMIT = ("submit", "mpi", "--name=job", "--image=i", "--dry-run=client", "-o", "json")


@pytest.mark.parametrize(
    ("words", "suspended", "workers"),
    [
        (("--queue", "--workers=2", "mpirun hostname"), True, 2),
        (("--workers=2", "--queue", "mpirun hostname"), True, 2),
        (("--queue=true", "mpirun hostname"), True, 1),
        (("--queue=false", "mpirun hostname"), False, 1),
        (("--gang", "--queue", "team-a", "--workers=2", "mpirun hostname"), False, 2),
        (("--gang", "--queue=team-a", "mpirun hostname"), False, 1),
        (("--queue", "--", "mpirun", "hostname"), True, 1),
    ],
    ids=str,
)
def test_queue_alone_is_arenas_switch(
    invoke: Invoke, words: tuple[str, ...], suspended: bool, workers: int
) -> None:
    """It sets kube-queue's annotation and swallows neither a flag nor the command."""
    outcome = invoke(*SUBMIT, *words)
    job = json.loads(outcome.out)
    annotations = job["metadata"]["annotations"]

    assert (0, suspended) == (outcome.code, annotations.get("scheduling.x-k8s.io/suspend") == "true")
    assert workers == job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert "mpirun hostname" in " ".join(launcher["args"])


def test_a_queues_name_is_a_name(invoke: Invoke) -> None:
    """Given after an equals sign it is taken for nothing else."""
    outcome = invoke(*SUBMIT, "--queue=a b", "c")

    assert 2 == outcome.code
    assert "--queue: 'a b' is not a valid object name" in outcome.err


def test_no_flag_of_any_command_swallows_another(invoke: Invoke) -> None:
    """The error names both, and how to say it where it is meant."""
    outcome = invoke("submit", "mpi", "--name", "--image=i", "c")

    assert 2 == outcome.code
    assert "--name takes a value, and the next word is '--image=i'" in outcome.err
    assert "--name=VALUE" in outcome.err


@pytest.mark.parametrize(
    ("text", "goal", "timeout"),
    [
        ("true", Goal.PLACED, 0.0),
        ("30m", Goal.PLACED, 1800.0),
        ("placed", Goal.PLACED, 0.0),
        ("placed,30m", Goal.PLACED, 1800.0),
        ("running", Goal.RUNNING, 0.0),
        ("succeeded,1h", Goal.SUCCEEDED, 3600.0),
    ],
)
def test_a_wait_has_a_goal_and_a_limit(text: str, goal: Goal, timeout: float) -> None:
    """A time alone is for the placement, as it was before there were other goals."""
    assert Wait(goal, timeout) == wait_for(text, "--wait")


def test_a_wait_can_be_switched_off() -> None:
    """Scripts write --wait=false."""
    assert None is wait_for("false", "--wait")
