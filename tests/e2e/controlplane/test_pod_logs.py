"""Logs of the test control plane come through the API server's own proxy, and end in every way they can."""

import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3

from tests.controlplane.components.kubeconfig import write_kubeconfig
from tests.controlplane.kube import Kube, KubeError
from tests.controlplane.machines import pods
from tests.controlplane.machines.container_log import ContainerLog
from tests.controlplane.machines.kubelet import ScriptedKubelet
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.proxy import CuttableWire
from tests.controlplane.plane import ControlPlane

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"


@contextmanager
def _follow(kubeconfig: Path, pod: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [str(KUBECTL), f"--kubeconfig={kubeconfig}", "logs", "-f", pod, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as kubectl:
        try:
            yield kubectl
        finally:
            kubectl.kill()


def _line(kubectl: subprocess.Popen[str]) -> str:
    assert kubectl.stdout is not None
    return kubectl.stdout.readline()


@pytest.fixture
def scripted(
    kubelet: ScriptedKubelet, namespace: str, create_pod: Callable[..., str]
) -> tuple[ScriptedKubelet, ContainerLog]:
    """Run a pod on the node whose kubelet is the test, with one line in its log."""
    pod = create_pod(kubelet.name)
    kubelet.run(namespace, pod)
    log = kubelet.log(namespace, pod, "main")
    log.write("epoch 1")
    return kubelet, log


def test_kubectl_streams_what_a_fake_pod_writes(  # fixtures come by name
    kube: Kube,
    namespace: str,
    gpu_nodes: list[str],
    create_pod: Callable[..., str],
    kubeconfig: Path,
    fake_log: FakeLog,
) -> None:
    """``kubectl logs -f`` shows the lines of a pod on a fake node as they are written."""
    pod = create_pod(gpu_nodes[0])
    kube.wait_for("v1", "Pod", pod, namespace, until=pods.running)
    fake_log.wait_served(kube, namespace, pod)
    fake_log.write("epoch 1", "epoch 2")
    with _follow(kubeconfig, pod, "--tail=1") as kubectl:
        assert "epoch 2\n" == _line(kubectl)
        fake_log.write("epoch 3")
        assert "epoch 3\n" == _line(kubectl)


def test_a_stream_ends_with_its_container(
    scripted: tuple[ScriptedKubelet, ContainerLog], kube: Kube, namespace: str, kubeconfig: Path
) -> None:
    """Kubectl exits when the scripted kubelet ends the log, and the pod has Succeeded."""
    kubelet, log = scripted
    with _follow(kubeconfig, "pod") as kubectl:
        assert "epoch 1\n" == _line(kubectl)
        log.write("epoch 2")
        kubelet.finish(namespace, "pod")
        log.end()
        assert "epoch 2\n" == kubectl.communicate(timeout=150)[0]
        assert 0 == kubectl.returncode
    assert "Succeeded" == kube.get("v1", "Pod", "pod", namespace)["status"]["phase"]


@pytest.mark.parametrize("ending", ["close", "drop"])
def test_a_stream_can_end_while_its_container_runs(
    scripted: tuple[ScriptedKubelet, ContainerLog], kube: Kube, namespace: str, ending: str
) -> None:
    """A cut between API server and kubelet, clean or torn
    mid-line, ends the stream though the pod still runs.
    """
    _, log = scripted
    path = kube.path("v1", "Pod", namespace, "pod") + "/log"
    with kube.stream(path, {"follow": "true"}) as stream:
        log.wait_for_readers()
        log.write_partial("epoch 2, loss 0.")
        getattr(log, ending)()
        assert b"epoch 1\nepoch 2, loss 0." == stream.read()
    assert pods.running(kube.get("v1", "Pod", "pod", namespace))
    log.write("5")
    log.end()
    assert "epoch 1\nepoch 2, loss 0.5\n" == kube.request("GET", path, query={"follow": "true"})


def test_rotation_leaves_only_the_newest_file(
    scripted: tuple[ScriptedKubelet, ContainerLog], kube: Kube, namespace: str
) -> None:
    """A reader that comes after a rotation misses the older lines."""
    _, log = scripted
    log.rotate()
    log.write("epoch 2")
    text = kube.request(
        "GET", kube.path("v1", "Pod", namespace, "pod") + "/log", query={"timestamps": "true"}
    )
    stamp, _, line = text.partition(" ")
    assert ("epoch 2\n", len("2026-01-02T12:00:00.000000000Z")) == (line, len(stamp))


def test_a_kubelet_can_refuse(
    scripted: tuple[ScriptedKubelet, ContainerLog], kube: Kube, namespace: str
) -> None:
    """What a kubelet answers while a container is being created reaches the client as it is."""
    _, log = scripted
    log.refusal = 'container "main" in pod "pod" is waiting to start: ContainerCreating'
    with pytest.raises(KubeError, match="is waiting to start: ContainerCreating") as refused:
        kube.request("GET", kube.path("v1", "Pod", namespace, "pod") + "/log")
    assert 400 == refused.value.code


def test_the_wire_to_the_api_server_can_be_cut(
    scripted: tuple[ScriptedKubelet, ContainerLog], plane: ControlPlane, namespace: str
) -> None:
    """A client behind the wire sees its connection torn, and can connect again."""
    _, log = scripted
    site = plane.site
    with CuttableWire(site.api_port) as wire, Kube(wire.url, site.authority, site.admin) as kube:
        path = kube.path("v1", "Pod", namespace, "pod") + "/log"
        with kube.stream(path, {"follow": "true"}) as stream:
            assert b"epoch 1\n" == stream.readline()
            assert wire.cut() >= 1
            with pytest.raises(urllib3.exceptions.HTTPError):
                stream.read()
        assert "epoch 1\n" == kube.request("GET", path)
        log.end()


def test_a_kubeconfig_works_with_kubectl(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """The file for any user is one that kubectl accepts."""
    client = plane.kubeconfig("ann", ["system:masters"], namespace=namespace)
    copy = write_kubeconfig(tmp_path / "k", plane.site.url, plane.site.authority, plane.site.admin, namespace)
    for path in (client, copy):
        who = subprocess.run(
            [KUBECTL, f"--kubeconfig={path}", "get", "serviceaccount", "default", "-o", "name"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "serviceaccount/default\n" == who.stdout
