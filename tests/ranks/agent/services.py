"""What all pods of an agent share, and what one of them reads from the API server."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines.kubelet_server import KubeletServer
from tests.ranks.agent.containers.container import Image
from tests.ranks.agent.gpus import GpuPool
from tests.ranks.agent.names import Names
from tests.ranks.network import Network

_STRATEGIC = "application/strategic-merge-patch+json"
_ENDED = "may not be transitioned to non-terminated state"
_OUTDATED = (404, 409)
"""The pod is gone, or another one has its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The agent's parts. ``images`` by name; the one without a name is any other."""

    kube: Kube
    network: Network
    names: Names
    logs: KubeletServer
    gpus: GpuPool
    images: Mapping[str, Image]
    folder: Path

    def data(self, kind: str, name: str, namespace: str) -> Mapping[str, bytes] | None:
        """Return the data of a ConfigMap or a Secret, None while there is none of that name."""
        found = self.kube.find("v1", kind, name, namespace)
        if found is None:
            return None
        secret = kind == "Secret"
        encoded: Mapping[str, str] = found.get("data" if secret else "binaryData") or {}
        plain: Mapping[str, str] = {} if secret else found.get("data") or {}
        decoded = {key: base64.b64decode(text) for key, text in encoded.items()}
        return decoded | {key: text.encode() for key, text in plain.items()}

    def token(self, pod: Object) -> str:
        """Return a token of the pod's service account."""
        meta = pod["metadata"]
        account = pod["spec"].get("serviceAccountName", "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        path = self.kube.path("v1", "ServiceAccount", meta["namespace"], account)
        spec = {"expirationSeconds": 3600, "boundObjectRef": bound}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self.kube.request("POST", f"{path}/token", request)
        return str(answer["status"]["token"])

    def report(self, pod: Object, status: Object) -> None:
        """Write the status of *pod*, if it still exists."""
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            self.kube.request("PATCH", f"{self._path(pod)}/status", body, content_type=_STRATEGIC)
        except KubeError as error:
            # Others end a pod too, whose node is gone or full.
            if error.code not in _OUTDATED and _ENDED not in str(error):
                raise

    def remove(self, pod: Object) -> None:
        """Remove *pod* from the API server, as a kubelet does when nothing of it is left."""
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        try:
            self.kube.request("DELETE", self._path(pod), body)
        except KubeError as error:
            if error.code not in _OUTDATED:
                raise

    def _path(self, pod: Object) -> str:
        return self.kube.path("v1", "Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
