"""Logs of pods on fake nodes: files that KWOK serves through the API server.

KWOK's streams never end by themselves, not even when the pod has ended: for ends, drops and rotation use
kubelet.py.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from tests.controlplane.kube import Kube, KubeError
from tests.controlplane.polling import eventually

_API = "kwok.x-k8s.io/v1alpha1"


class FakeLog:
    """A file in the form that container runtimes write
    (``TIME STREAM F TEXT``), and the rule that serves it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def write(self, *lines: str, stream: str = "stdout", at: datetime | None = None) -> None:
        """Append whole lines, written now or ``at`` a time."""
        stamp = (at or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{stamp} {stream} F {line}\n" for line in lines)

    def wait_served(self, kube: Kube, namespace: str, pod: str) -> None:
        """Return once KWOK answers for a running pod: it learns of a new rule a moment after its creation."""
        path = kube.path("v1", "Pod", namespace, pod) + "/log"

        def answered() -> bool:
            try:
                kube.request("GET", path, query={"tailLines": "1"})
            except KubeError as error:
                if error.code not in {400, 500}:
                    raise
                return False
            return True

        eventually(answered, f"the log of {pod}")

    @classmethod
    def of_pod(cls, kube: Kube, folder: Path, namespace: str, pod: str) -> Self:
        """Serve a new file as the log of all containers of one pod."""
        log = cls(folder / f"{pod}.log")
        rule = {"metadata": {"name": pod, "namespace": namespace}, "spec": _spec(log.path, ())}
        kube.create({"apiVersion": _API, "kind": "Logs", **rule})
        return log

    @classmethod
    def of_namespace(cls, kube: Kube, folder: Path, namespace: str, containers: Sequence[str] = ()) -> Self:
        """Serve a new file as the log of the pods in ``namespace``: of all containers, or of those named.

        One such rule a namespace: KWOK takes any that matches. Delete it by ``forget`` after the test.
        """
        log = cls(folder / f"{namespace}.log")
        spec = {"selector": {"matchNamespaces": [namespace]}, **_spec(log.path, containers)}
        kube.create(
            {"apiVersion": _API, "kind": "ClusterLogs", "metadata": {"name": namespace}, "spec": spec}
        )
        return log

    @staticmethod
    def forget(kube: Kube, namespace: str) -> None:
        """Delete the rule of a namespace, which the namespace's own end would leave behind."""
        kube.delete(_API, "ClusterLogs", namespace)


def _spec(path: Path, containers: Sequence[str]) -> dict[str, object]:
    rule: dict[str, object] = {"logsFile": str(path), "follow": True}
    return {"logs": [rule | ({"containers": list(containers)} if containers else {})]}
