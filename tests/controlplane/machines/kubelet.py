"""A node whose kubelet is the test itself: it says what state pods are in and what their logs are."""

from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from tests.controlplane.kube import Object
from tests.controlplane.machines import nodes
from tests.controlplane.machines.container_log import ContainerLog
from tests.controlplane.machines.kubelet_server import KubeletServer
from tests.controlplane.machines.nodes import NodeSpec
from tests.controlplane.plane import ControlPlane


class ScriptedKubelet:
    """A Ready node from entering the context to leaving it; KWOK leaves it and its pods alone."""

    def __init__(self, plane: ControlPlane, spec: NodeSpec) -> None:
        self.name = spec.name
        self._spec = spec
        self._kube = plane.kube
        self._server = KubeletServer(plane.site.server)

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._kube.create(nodes.manifest(self._spec, managed=False))
        status = nodes.ready_status(self._server.port)
        self._kube.patch("v1", "Node", self.name, {"status": status}, sub="status")
        self._kube.wait_for("v1", "Node", self.name, until=nodes.schedulable)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, error, trace)
        nodes.delete_nodes(self._kube, [self.name])

    def log(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> ContainerLog:
        """Return the log of a container, for the test to write and to cut."""
        return self._server.log(namespace, pod, container, previous=previous)

    def hold(self, namespace: str, pod: str, reason: str) -> Object:
        """Report all containers of a pod as waiting with ``reason`` (``ContainerCreating``)."""
        return self._report(namespace, pod, "Pending", {"waiting": {"reason": reason}}, restarts=0)

    def run(self, namespace: str, pod: str, *, restarts: int = 0) -> Object:
        """Report a pod as Running and Ready."""
        return self._report(namespace, pod, "Running", {"running": {"startedAt": _now()}}, restarts=restarts)

    def finish(self, namespace: str, pod: str, exit_code: int = 0, *, restarts: int = 0) -> Object:
        """Report all containers of a pod as terminated with
        ``exit_code``; logs end by themselves only if told to.
        """
        reason = "Error" if exit_code else "Completed"
        terminated = {"exitCode": exit_code, "reason": reason, "startedAt": _now(), "finishedAt": _now()}
        phase = "Failed" if exit_code else "Succeeded"
        return self._report(namespace, pod, phase, {"terminated": terminated}, restarts=restarts)

    def _report(self, namespace: str, pod: str, phase: str, state: dict[str, Any], restarts: int) -> Object:
        seen = self._kube.wait_for("v1", "Pod", pod, namespace, until=lambda pod: pod["spec"].get("nodeName"))
        ready = phase == "Running"
        containers = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": ready,
                "started": ready,
                "restartCount": restarts,
                "state": state,
            }
            for container in seen["spec"]["containers"]
        ]
        status = {
            "phase": phase,
            "startTime": seen["status"].get("startTime") or _now(),
            "conditions": _conditions(seen, ready=ready),
            "containerStatuses": containers,
        }
        return self._kube.patch("v1", "Pod", pod, {"status": status}, namespace, sub="status")


def _conditions(pod: Object, *, ready: bool) -> list[Object]:
    """Return the pod's conditions, those of a kubelet replaced: a merge patch replaces the whole list."""
    own = {"Initialized": True, "Ready": ready, "ContainersReady": ready}
    kept = [one for one in pod["status"].get("conditions", ()) if one["type"] not in own]
    times = {"lastProbeTime": _now(), "lastTransitionTime": _now()}
    return kept + [{"type": kind, "status": str(value), **times} for kind, value in own.items()]


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
