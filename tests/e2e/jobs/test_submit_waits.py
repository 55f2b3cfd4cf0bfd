"""A submit that stays until the job has ended, on a real API server with the real MPI operator."""

import signal

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.kubelet import ScriptedKubelet
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Running


def arguments(kubelet: ScriptedKubelet, nodes: list[str], *flags: str) -> tuple[str, ...]:
    """Return a submit whose workers run by themselves, and whose launcher does what the test says."""
    hostname = "kubernetes.io/hostname"
    placing = (f"--selector={hostname}={nodes[0]}", f"--launcher-selector={hostname}={kubelet.name}")
    shape = ("--name=job", "--image=train", "--workers=2", "--gpus=1")
    return ("submit", "mpi", *shape, *placing, *flags, "--", "mpirun")


def launcher(kube: Kube, namespace: str) -> str:
    """Return the name of the job's launcher, once it is there."""
    found = eventually(lambda: pods.of_job(kube, namespace, "job", "launcher"), "a launcher")
    return str(found[0]["metadata"]["name"])


@pytest.mark.parametrize(("exit_code", "expected"), [(0, 0), (1, 5)])
def test_a_followed_submit_ends_as_its_job_does(
    arena: Arena,
    kube: Kube,
    namespace: str,
    gpu_nodes: list[str],
    kubelet: ScriptedKubelet,
    exit_code: int,
    expected: int,
) -> None:
    """It prints that the job was created, then the log, and ends with 5 where the job failed."""
    with arena.running(*arguments(kubelet, gpu_nodes, "--follow")) as submit:
        name = launcher(kube, namespace)
        kubelet.run(namespace, name)
        log = kubelet.log(namespace, name, "mpi")
        log.write("step 1")
        submit.until_said("step 1", "the log", of=submit.out)
        kubelet.finish(namespace, name, exit_code)
        log.end()
        outcome = submit.wait()

    assert (expected, "mpijob.kubeflow.org/job created\nstep 1\n") == (outcome.code, outcome.out), outcome.err
    assert ("the job job failed" in outcome.err) is (expected == 5)


def test_wait_has_its_goals(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str], kubelet: ScriptedKubelet
) -> None:
    """--wait=running ends once the launcher runs, and the job is left running."""
    with arena.running(*arguments(kubelet, gpu_nodes, "--wait=running")) as submit:
        name = launcher(kube, namespace)
        kubelet.run(namespace, name)
        outcome = submit.wait()

    assert 0 == outcome.code, outcome.err
    assert "The job job is running" in outcome.err


def interrupted(submit: Running) -> tuple[int, str]:
    """Press Ctrl-C; return the exit code, and what was said of it."""
    submit.process.send_signal(signal.SIGINT)
    outcome = submit.wait()
    said = [line for line in outcome.err.splitlines() if line.startswith("interrupted: ")]
    return outcome.code, said[-1] if said else outcome.err


def test_after_ctrl_c_a_running_job_goes_on(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str], kubelet: ScriptedKubelet
) -> None:
    """The last line says how to follow it again, and how to undo it."""
    with arena.running(*arguments(kubelet, gpu_nodes, "--wait=succeeded")) as submit:
        submit.until_said("created", "the job to be created", of=submit.out)
        kubelet.run(namespace, launcher(kube, namespace))
        submit.until_said("RUNNING", "the job to run")
        code, said = interrupted(submit)

    assert 130 == code
    assert "the job job continues without this terminal: arena-topo logs -f job follows it" in said
    assert kube.find(*MPIJOB, "job", namespace)


def test_after_ctrl_c_a_job_without_a_place_can_be_resumed(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """Its creation was said before it waited, and nothing of it runs."""
    # One node is all that both may have, whatever other nodes the cluster has.
    placing = f"--selector=kubernetes.io/hostname={gpu_nodes[0]}"
    shape = ("--workers=1", "--gpus=8", "--gputopology", "--image=train", placing)
    assert 0 == arena("submit", "mpi", "--name=first", *shape, "--", "mpirun").code
    with arena.running("submit", "mpi", "--name=late", *shape, "--wait", "--", "mpirun") as submit:
        submit.until_said("late created", "the job to be created", of=submit.out)
        submit.until_said("waiting for room", "the reason for waiting")
        code, said = interrupted(submit)

    assert 130 == code
    assert "arena-topo resume late continues, arena-topo delete late undoes it" in said
    assert 3 == arena("resume", "late").code
    assert 0 == arena("delete", "late", "first").code
    assert None is kube.find(*MPIJOB, "late", namespace)
