"""A cluster whose nodes run pods for real, from entering a context to leaving it."""

import json
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.controlplane.machines.nodes import delete_nodes, schedulable
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.paths import ROOT
from tests.ranks.fabric import Fabric
from tests.ranks.images import ImageSpec

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class RankCluster:
    """The nodes of *fabric* on *plane*; an agent runs their pods. Nothing of it is left afterwards."""

    def __init__(self, plane: ControlPlane, fabric: Fabric, images: Mapping[str, ImageSpec]) -> None:
        self.plane = plane
        self.fabric = fabric
        self._images = images
        self._name = f"node-agent-{uuid.uuid4().hex[:6]}"
        self.folder = plane.folder / self._name

    def __enter__(self) -> Self:
        pods = self.folder / "pods"
        pods.mkdir(parents=True)
        config = self.folder / "config.json"
        config.write_text(json.dumps(self._config(pods)), "utf-8")
        isolate = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        agent = [sys.executable, "-m", "tests.ranks.agent", str(config)]
        self.plane.processes.start(
            self._name, [*isolate, "env", f"PYTHONPATH={ROOT}", f"PATH={_PATH}", *agent]
        )
        eventually(self._ready, "the nodes of the agent")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.plane.processes.stop(self._name)
        delete_nodes(self.plane.kube, self.nodes)

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes."""
        return [node.name for node in self.fabric.nodes]

    @property
    def pid(self) -> int:
        """The process that holds the agent's namespaces."""
        return self.plane.processes.pids[self._name]

    @property
    def log(self) -> str:
        """What the agent has printed."""
        return self.plane.processes.log(self._name).read_text("utf-8", "replace")

    def _ready(self) -> bool:
        self.plane.processes.check()
        found = {node["metadata"]["name"]: node for node in self.plane.kube.list("v1", "Node")}
        return all(name in found and schedulable(found[name]) for name in self.nodes)

    def _config(self, pods: Path) -> dict[str, object]:
        site = self.plane.site
        return {
            "fabric": self.fabric.document(),
            "folder": str(pods),
            "server": site.url,
            "authority": str(site.authority),
            "admin": [str(site.admin.certificate), str(site.admin.key)],
            "certificate": [str(site.server.certificate), str(site.server.key)],
            "images": {name: image.document() for name, image in self._images.items()},
        }
