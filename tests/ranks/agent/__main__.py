"""``python -m tests.ranks.agent CONFIG``: run the nodes of a test until killed.

It must be the first process of a PID namespace and have a mount namespace of its own, see
``tests/ranks/cluster.py``. CONFIG is a file of JSON: the fabric, the images, and how to reach the API server.
"""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.controlplane.components.pair import Pair
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import nodes
from tests.controlplane.machines.kubelet_server import KubeletServer
from tests.controlplane.machines.remote_streams import FEATURE, RemoteStreams
from tests.ranks.agent.containers.container import Image
from tests.ranks.agent.containers.executions import execute
from tests.ranks.agent.gpus import GpuPool
from tests.ranks.agent.names import Names
from tests.ranks.agent.pod import RunningPod
from tests.ranks.agent.services import Services
from tests.ranks.agent.watch import Key, watch
from tests.ranks.fabric import Fabric
from tests.ranks.network import Network

_ENDED = {"Succeeded", "Failed"}


class Pods:
    """The pods that are bound to the agent's nodes."""

    def __init__(self, services: Services, nodes_here: frozenset[str]) -> None:
        self._services = services
        self._nodes = nodes_here
        self._running: dict[str, RunningPod] = {}
        self._lock = threading.Lock()

    def set(self, found: Mapping[Key, Object]) -> None:
        """Take in all pods there are; those that are missing were removed."""
        uids = {pod["metadata"]["uid"] for pod in found.values()}
        for pod in found.values():
            self.change(pod, False)
        for uid, running in list(self._running.items()):
            if uid not in uids:
                running.removed()

    def change(self, pod: Object, deleted: bool) -> None:
        """Take in one pod."""
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") not in self._nodes:
            return
        with self._lock:
            running = self._running.get(uid)
            leaving = deleted or "deletionTimestamp" in pod["metadata"]
            if running is None and not deleted and (leaving or pod["status"].get("phase") not in _ENDED):
                self._running[uid] = RunningPod(self._services, pod, partial(self._forget, uid))
                return
        if running is not None and deleted:
            running.removed()
        elif running is not None:
            running.update(pod)

    def write_hosts(self) -> None:
        """Let all pods resolve what there is to resolve now."""
        for running in list(self._running.values()):
            running.write_hosts()

    def execute(
        self,
        names: Sequence[str],
        query: Mapping[str, Sequence[str]],
        accept: Callable[[], RemoteStreams],
    ) -> bool:
        """Carry out a user's command in the container (namespace, pod, container), if it runs."""
        for running in list(self._running.values()):
            container = running.container(*names)
            if container is not None:
                execute(container, query, accept())
                return True
        return False

    def _forget(self, uid: str) -> None:
        with self._lock:
            self._running.pop(uid, None)


def main() -> None:
    """Build the network, register the nodes, and run pods forever."""
    config = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    fabric = Fabric.from_document(config["fabric"])
    folder = Path(config["folder"])
    # The supervisor of the control plane ignores them, and what is ignored no shell of a pod could trap.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    # On a tmpfs of this mount namespace nothing is left of the pods' files, whatever ends the agent.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    kube = Kube(config["server"], Path(config["authority"]), _pair(config["admin"]))
    names, network = Names(), Network(fabric)
    stop = threading.Event()
    with KubeletServer(_pair(config["certificate"])) as logs:
        services = Services(
            kube=kube,
            network=network,
            names=names,
            logs=logs,
            gpus=GpuPool({node.name: node.gpus for node in fabric.nodes}),
            images={name: _image(image) for name, image in config["images"].items()},
            folder=folder,
        )
        pods = Pods(services, frozenset(node.name for node in fabric.nodes))
        logs.execute = pods.execute

        def slices_listed(found: Mapping[Key, Object]) -> None:
            names.set(found)
            pods.write_hosts()

        def slice_changed(item: Object, deleted: bool) -> None:
            names.change(item, deleted=deleted)
            pods.write_hosts()

        slices = kube.path("discovery.k8s.io/v1", "EndpointSlice")
        follow_slices = partial(watch, kube, slices, slices_listed, slice_changed, stop)
        threading.Thread(target=follow_slices, daemon=True).start()
        _register(kube, fabric, logs.port)
        watch(kube, kube.path("v1", "Pod"), pods.set, pods.change, stop)


def _register(kube: Kube, fabric: Fabric, port: int) -> None:
    for node in fabric.nodes:
        spec = nodes.NodeSpec(node.name, node.gpus, labels=node.labels)
        kube.create(nodes.manifest(spec, managed=False))
        kube.patch("v1", "Node", node.name, {"status": nodes.ready_status(port, [FEATURE])}, sub="status")


def _pair(paths: list[str]) -> Pair:
    return Pair(*map(Path, paths))


def _image(document: dict[str, Any]) -> Image:
    user, group = document["user"]
    hidden = tuple(document["hidden"])
    return Image(Path(document["layer"]), hidden, (user, group), document["environment"])


if __name__ == "__main__":
    main()
