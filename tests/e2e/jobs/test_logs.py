"""Logs through the API server: every end, every cut, every wait, without a line lost or repeated."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.controlplane.components.kubeconfig import write_kubeconfig
from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.container_log import ContainerLog
from tests.controlplane.machines.kubelet import ScriptedKubelet
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import SEED_NODES
from tests.controlplane.machines.proxy import CuttableWire
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Running

NAME = "job"


def submit_on_seed_node(arena: Arena, *flags: str) -> None:
    """Submit a job whose workers run on a fake node."""
    there = f"--selector=kubernetes.io/hostname={SEED_NODES[0]}"
    outcome = arena("submit", "mpi", f"--name={NAME}", "--image=busybox", there, *flags, "train")
    assert 0 == outcome.code, outcome.err


def launcher_of(kube: Kube, namespace: str) -> str:
    """Return the name of the launcher, once it is made."""
    found = eventually(lambda: pods.of_job(kube, namespace, NAME, "launcher"), "a launcher")
    return str(found[0]["metadata"]["name"])


@pytest.fixture
def scripted(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str], kubelet: ScriptedKubelet
) -> tuple[str, ScriptedKubelet, ContainerLog]:
    """Run a job whose launcher is on the node whose kubelet is the test; return launcher, kubelet and log."""
    del gpu_nodes
    submit_on_seed_node(arena, f"--launcher-selector=kubernetes.io/hostname={kubelet.name}")
    launcher = launcher_of(kube, namespace)
    kubelet.run(namespace, launcher)
    return launcher, kubelet, kubelet.log(namespace, launcher, "mpi")


@contextmanager
def following(arena: Arena, log: ContainerLog, *flags: str) -> Iterator[Running]:
    """Follow the job's log; the stream is open when the body begins."""
    with arena.running("logs", "-f", NAME, *flags) as running:
        log.wait_for_readers()
        yield running


def printed(running: Running, *lines: str) -> None:
    """Wait until exactly *lines* were printed."""
    wanted = "".join(f"{line}\n" for line in lines)
    try:
        eventually(lambda: len("".join(running.out)) >= len(wanted), "the lines")
    finally:
        assert wanted == "".join(running.out), running.err


def test_a_log_ends_with_its_container(
    arena: Arena, scripted: tuple[str, ScriptedKubelet, ContainerLog], namespace: str
) -> None:
    """And tells a failure on the side."""
    launcher, kubelet, log = scripted
    with following(arena, log) as running:
        log.write("epoch 1")
        printed(running, "epoch 1")
        log.write("epoch 2")
        kubelet.finish(namespace, launcher, 3)
        log.end()
        ended = running.wait()

    assert (0, "epoch 1\nepoch 2\n") == (ended.code, ended.out)
    assert f"{launcher} exited with code 3 (Error)" in ended.err


@pytest.mark.parametrize("cut", ["close", "drop"])
def test_a_stream_that_is_cut_is_resumed(
    arena: Arena, scripted: tuple[str, ScriptedKubelet, ContainerLog], namespace: str, cut: str
) -> None:
    """Cleanly or torn in the middle of a line, several times."""
    launcher, kubelet, log = scripted
    expected: list[str] = []
    with following(arena, log) as running:
        for epoch in range(3):
            log.write(f"epoch {epoch}")
            log.write_partial(f"loss {epoch}")
            printed(running, *expected, f"epoch {epoch}")
            getattr(log, cut)()
            log.write(".5")
            expected += [f"epoch {epoch}", f"loss {epoch}.5"]
            printed(running, *expected)
        kubelet.finish(namespace, launcher)
        log.end()
        ended = running.wait()

    assert (0, expected) == (ended.code, ended.out.splitlines())


def test_a_connection_that_breaks_before_the_api_server_is_resumed(
    scripted: tuple[str, ScriptedKubelet, ContainerLog], plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """The wire between the user and the API server, as when a laptop changes its network."""
    launcher, kubelet, log = scripted
    site = plane.site
    with CuttableWire(site.api_port) as wire:
        config = write_kubeconfig(tmp_path / "wire", wire.url, site.authority, site.admin, namespace)
        with following(Arena(config), log) as running:
            for epoch in range(3):
                log.write(f"epoch {epoch}")
                printed(running, *(f"epoch {each}" for each in range(epoch + 1)))
                assert wire.cut() >= 1
            log.write("epoch 3")
            kubelet.finish(namespace, launcher)
            log.end()
            ended = running.wait()

    assert (0, [f"epoch {each}" for each in range(4)]) == (ended.code, ended.out.splitlines())


def test_a_rotated_log_goes_on(
    arena: Arena, scripted: tuple[str, ScriptedKubelet, ContainerLog], namespace: str
) -> None:
    """What was read before is not repeated, what comes after is not lost."""
    launcher, kubelet, log = scripted
    with following(arena, log) as running:
        log.write("epoch 1")
        printed(running, "epoch 1")
        log.rotate()
        log.drop()
        log.write("epoch 2")
        printed(running, "epoch 1", "epoch 2")
        kubelet.finish(namespace, launcher)
        log.end()
        assert 0 == running.wait().code


def test_a_restarted_container_is_followed_on(
    arena: Arena, scripted: tuple[str, ScriptedKubelet, ContainerLog], namespace: str
) -> None:
    """The last lines of the run before come from the previous container, then those of the new one."""
    launcher, kubelet, log = scripted
    before = kubelet.log(namespace, launcher, "mpi", previous=True)
    with following(arena, log) as running:
        moment = datetime.now(UTC)
        for each in (log, before):
            each.write("epoch 1", at=moment)
        printed(running, "epoch 1")
        before.write("the end")
        kubelet.run(namespace, launcher, restarts=1)
        log.rotate()
        log.drop()
        printed(running, "epoch 1", "the end")
        log.write("again")
        printed(running, "epoch 1", "the end", "again")
        kubelet.finish(namespace, launcher, restarts=1)
        log.end()
        assert 0 == running.wait().code


def test_following_says_what_it_waits_for(arena: Arena, gpu_nodes: list[str]) -> None:
    """The scheduler's own words."""
    del gpu_nodes
    submit_on_seed_node(arena, "--gpus=8", "--workers=2")
    with arena.running("logs", "-f", NAME) as running:
        running.until_said("Insufficient nvidia.com/gpu", "the scheduler's words")
        assert running.said("waiting for the launcher: job-worker-")
        assert [] == running.out


def test_following_waits_for_the_image(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str], kubelet: ScriptedKubelet
) -> None:
    """And prints the log once there is one."""
    del gpu_nodes
    submit_on_seed_node(arena, f"--launcher-selector=kubernetes.io/hostname={kubelet.name}")
    with arena.running("logs", "-f", NAME) as running:
        launcher = launcher_of(kube, namespace)
        kubelet.hold(namespace, launcher, "ImagePullBackOff")
        running.until_said(f"waiting for {launcher}: ImagePullBackOff", "the reason")
        kubelet.log(namespace, launcher, "mpi").write("epoch 1")
        kubelet.run(namespace, launcher)
        printed(running, "epoch 1")


def test_an_interrupt_ends_the_following(
    arena: Arena, scripted: tuple[str, ScriptedKubelet, ContainerLog]
) -> None:
    """With 130, and no traceback."""
    _, _, log = scripted
    with following(arena, log) as running:
        log.write("epoch 1")
        printed(running, "epoch 1")
        running.process.send_signal(2)
        ended = running.wait()

    assert (130, "epoch 1\n") == (ended.code, ended.out)
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), "epoch 1\nepoch 2\nepoch 3\n"),
        (("--tail", "1"), "epoch 3\n"),
        (("-t", "0"), ""),
        (("--since=1h", "-c", "mpi"), "epoch 1\nepoch 2\nepoch 3\n"),
        (("--since-time=2100-01-01T00:00:00Z",), ""),
    ],
)
def test_a_part_of_the_log_is_printed(
    arena: Arena, scripted: tuple[str, ScriptedKubelet, ContainerLog], flags: tuple[str, ...], expected: str
) -> None:
    """As with kubectl's flags."""
    scripted[2].write("epoch 1", "epoch 2", "epoch 3")
    outcome = arena("log", NAME, *flags)

    assert (0, expected) == (outcome.code, outcome.out)


def test_times_are_printed_when_asked(
    arena: Arena, scripted: tuple[str, ScriptedKubelet, ContainerLog]
) -> None:
    """Before every line, as the kubelet wrote them."""
    scripted[2].write("epoch 1")
    stamp, _, text = arena("logs", NAME, "--timestamps").out.partition(" ")

    assert ("epoch 1\n", "Z") == (text, stamp[-1])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nothing",), "training job nothing not found"),
        ((NAME, "-i", "other"), "invalid instance name other in job"),
        ((NAME, "-f", "-i", "other"), "invalid instance name other in job job"),
        ((NAME, "-c", "other"), "container other is not valid for pod"),
    ],
)
def test_what_has_no_log_is_told(
    arena: Arena, scripted: tuple[str, ScriptedKubelet, ContainerLog], args: tuple[str, ...], message: str
) -> None:
    """With exit code 1."""
    del scripted
    outcome = arena("logs", *args)

    assert (1, "") == (outcome.code, outcome.out)
    assert message in outcome.err


def test_a_workers_log_is_read_by_its_name(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str], fake_log: FakeLog
) -> None:
    """As a real stream from a fake node."""
    del gpu_nodes
    submit_on_seed_node(arena)

    eventually(lambda: "RUNNING" in arena("get", NAME).out, "the job to run")
    fake_log.wait_served(kube, namespace, f"{NAME}-worker-0")
    fake_log.write("sshd is up")

    assert "sshd is up\n" == arena("logs", NAME, "-i", f"{NAME}-worker-0").out
