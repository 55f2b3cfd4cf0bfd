"""Arena's switch --queue beside the name of a queue, and the job's command after either."""

import json

import pytest

from tests.cli.conftest import Invoke

SUBMIT = ("submit", "mpi", "--name=job", "--image=i", "--dry-run=client", "-o", "json")


@pytest.mark.parametrize(
    ("words", "suspended", "workers"),
    [
        (("--queue", "--workers=2", "mpirun hostname"), True, 2),
        (("--workers=2", "--queue", "mpirun hostname"), True, 2),
        (("--queue=true", "mpirun hostname"), True, 1),
        (("--queue=false", "mpirun hostname"), False, 1),
        (("--queue", "team-a", "--workers=2", "mpirun hostname"), False, 2),
        (("--queue=team-a", "mpirun hostname"), False, 1),
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
    assert "mpirun hostname" in " ".join(launcher["command"])


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
