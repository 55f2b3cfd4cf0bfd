"""The agent leaves nothing behind, however it ends, and pods are to it what they are to a kubelet."""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.ranks.cluster import RankCluster


def pod_with_script(script: str, **spec: object) -> Object:
    """Return a pod whose container ``main`` runs *script*."""
    container = {"name": "main", "image": "ranks", "command": ["bash", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod"},
        "spec": {"containers": [container], "restartPolicy": "Never", **spec},
    }


def processes_below(pid: int) -> set[int]:
    """Return the processes that *pid* has started, and those that they have."""
    children: dict[int, set[int]] = {}
    for each in everybody():
        with suppress(OSError):
            parent = int(Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, set()).add(each)
    found, todo = set[int](), [pid]
    while todo:
        fresh = children.get(todo.pop(), set()) - found
        found |= fresh
        todo += fresh
    return found


def namespaces_of(processes: Iterable[int]) -> set[Path]:
    """Return the mount, network and PID namespaces that *processes* are in, apart from this machine's own."""
    kinds = ("mnt", "net", "pid")
    own = {Path(f"/proc/self/ns/{kind}").readlink() for kind in kinds}
    found = set[Path]()
    for pid in processes:
        # One that has ended meanwhile is in none.
        with suppress(OSError):
            found |= {Path(f"/proc/{pid}/ns/{kind}").readlink() for kind in kinds}
    return found - own


def everybody() -> Iterable[int]:
    """Return all processes of this machine."""
    return (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))


def command_line(pid: int) -> bytes:
    """Return the words of a process; one that has ended has none, reaped or not."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_nothing_is_left_of_a_killed_agent(nodes: RankCluster, kube: Kube, namespace: str) -> None:
    """After SIGKILL its processes, namespaces, bridges and mounts are gone, and so are those of its pods."""
    mounts_before = Path("/proc/self/mountinfo").read_text()
    links_before = set(Path("/sys/class/net").iterdir())
    kube.create(pod_with_script("sleep 600 & sleep 600"), namespace)
    kube.wait_for("v1", "Pod", "pod", namespace, until=pods.running)
    processes = eventually(lambda: _with_sleepers(nodes.pid), "the pod's processes")
    namespaces = namespaces_of(processes)
    assert namespaces
    agent = min(pid for pid in processes if b"tests.ranks.agent" in command_line(pid))
    os.kill(agent, signal.SIGKILL)

    eventually(lambda: not any(map(command_line, processes)), "the end of all processes")
    eventually(lambda: not namespaces & namespaces_of(everybody()), "the end of all namespaces")
    assert mounts_before == Path("/proc/self/mountinfo").read_text()
    assert links_before == set(Path("/sys/class/net").iterdir())
    assert [] == list(nodes.folder.glob("pods/*"))


def _with_sleepers(pid: int) -> set[int] | None:
    found = processes_below(pid)
    return found if sum(command_line(each).startswith(b"sleep\x00600") for each in found) == 2 else None


@pytest.mark.usefixtures("nodes")
def test_a_pod_sees_its_volumes_and_variables(kube: Kube, namespace: str) -> None:
    """ConfigMap, Secret and downward API, as files with
    their modes and as variables that refer to each other.
    """
    kube.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"k": "v1"}}, namespace
    )
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"key": "hidden"},
    }
    kube.create(secret, namespace)
    script = (
        'echo "$A|$B|$C|$D|$(cat /cm/k)|$(stat -Lc %a /s/id)|$(cat /s/id)|$(cat /etc/labels)|$(hostname)"; '
        "exit 7"
    )
    manifest = pod_with_script(script)
    manifest["metadata"]["labels"] = {"colour": "blue"}
    manifest["spec"]["volumes"] = [
        {"name": "cm", "configMap": {"name": "cm"}},
        {"name": "s", "secret": {"secretName": "s", "items": [{"key": "key", "path": "id", "mode": 0o600}]}},
        {
            "name": "down",
            "downwardAPI": {
                "items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels['colour']"}}]
            },
        },
    ]
    container = manifest["spec"]["containers"][0]
    container["volumeMounts"] = [
        {"name": "cm", "mountPath": "/cm"},
        {"name": "s", "mountPath": "/s", "readOnly": True},
        {"name": "down", "mountPath": "/etc/labels", "subPath": "labels"},
    ]
    container["env"] = [
        {"name": "A", "value": "a"},
        {"name": "B", "value": "$(A)-$(NOBODY)-$$(A)"},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    kube.create(manifest, namespace)
    ended = kube.wait_for("v1", "Pod", "pod", namespace, until=pods.ended)

    node = ended["spec"]["nodeName"]
    assert f"a|a-$(NOBODY)-$(A)|v1|{node}|v1|600|hidden|blue|pod\n" == log_of(kube, namespace)
    state = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ("Failed", 7, "Error") == (ended["status"]["phase"], state["exitCode"], state["reason"])


def log_of(kube: Kube, namespace: str, **query: str) -> str:
    """Return the log of the pod."""
    return str(kube.request("GET", f"{kube.path('v1', 'Pod', namespace, 'pod')}/log", query=query))


@pytest.mark.usefixtures("nodes")
def test_init_containers_run_first_and_containers_again(kube: Kube, namespace: str) -> None:
    """An init container leaves a file in a volume; the container fails once, and is started again."""
    script = "cat /shared/word; [ -f /shared/again ] && exit 0; touch /shared/again; echo once; exit 1"
    mount = [{"name": "shared", "mountPath": "/shared"}]
    manifest = pod_with_script(
        script, restartPolicy="OnFailure", volumes=[{"name": "shared", "emptyDir": {}}]
    )
    manifest["spec"]["containers"][0]["volumeMounts"] = mount
    first = {"name": "first", "image": "ranks", "command": ["bash", "-c", "echo hello > /shared/word"]}
    manifest["spec"]["initContainers"] = [{**first, "volumeMounts": mount}]
    kube.create(manifest, namespace)
    ended = kube.wait_for("v1", "Pod", "pod", namespace, until=pods.ended)

    assert ("Succeeded", 1) == (
        ended["status"]["phase"],
        ended["status"]["containerStatuses"][0]["restartCount"],
    )
    assert "hello\n" == log_of(kube, namespace)
    assert "hello\nonce\n" == log_of(kube, namespace, previous="true")


@pytest.mark.usefixtures("nodes")
def test_a_pod_is_ready_when_its_probe_says_so(kube: Kube, namespace: str, tmp_path: Path) -> None:
    """Until then it runs and is not Ready; asked to end, it may say a last word and choose its code."""
    manifest = pod_with_script("trap 'exit 3' TERM; touch /host/trap; while :; do sleep 0.1; done")
    manifest["spec"]["volumes"] = [{"name": "host", "hostPath": {"path": str(tmp_path)}}]
    probe = {"exec": {"command": ["test", "-f", "/host/ready"]}, "periodSeconds": 1, "timeoutSeconds": 10}
    container = manifest["spec"]["containers"][0]
    container |= {"readinessProbe": probe, "volumeMounts": [{"name": "host", "mountPath": "/host"}]}
    manifest["metadata"]["finalizers"] = ["arena-topo.dev/test"]
    kube.create(manifest, namespace)
    eventually((tmp_path / "trap").exists, "the container to run")
    seen = kube.wait_for("v1", "Pod", "pod", namespace, until=lambda pod: pod["status"]["phase"] == "Running")
    assert not pods.running(seen)
    (tmp_path / "ready").touch()
    kube.wait_for("v1", "Pod", "pod", namespace, until=pods.running)
    kube.delete("v1", "Pod", "pod", namespace)
    ended = kube.wait_for("v1", "Pod", "pod", namespace, until=pods.ended)
    kube.patch("v1", "Pod", "pod", {"metadata": {"finalizers": None}}, namespace)

    assert 3 == ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]


@pytest.mark.usefixtures("nodes")
def test_other_probes_wait_for_the_startup_probe(kube: Kube, namespace: str, tmp_path: Path) -> None:
    """A container that takes its time is neither Ready nor
    killed by its liveness probe before it has started.
    """
    manifest = pod_with_script("touch /host/runs; while :; do sleep 0.1; done")
    manifest["spec"]["volumes"] = [{"name": "host", "hostPath": {"path": str(tmp_path)}}]
    started = {"exec": {"command": ["test", "-f", "/host/started"]}, "failureThreshold": 1000}
    alive = {"exec": {"command": ["bash", "-c", "echo . >> /host/asked; test -f /host/started"]}}
    often = {"periodSeconds": 1, "timeoutSeconds": 10}
    container = manifest["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "host", "mountPath": "/host"}]
    container |= {"startupProbe": started | often, "livenessProbe": alive | often | {"failureThreshold": 1}}
    kube.create(manifest, namespace)
    eventually((tmp_path / "runs").exists, "the container to run")
    seen = kube.wait_for("v1", "Pod", "pod", namespace, until=lambda pod: pod["status"]["phase"] == "Running")
    state = seen["status"]["containerStatuses"][0]
    assert (False, False) == (state["started"], state["ready"])
    assert not (tmp_path / "asked").exists()

    (tmp_path / "started").touch()
    kube.wait_for("v1", "Pod", "pod", namespace, until=pods.running)
    eventually((tmp_path / "asked").exists, "the liveness probe")
    (tmp_path / "started").unlink()
    ended = kube.wait_for("v1", "Pod", "pod", namespace, until=pods.ended)
    assert 137 == ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
