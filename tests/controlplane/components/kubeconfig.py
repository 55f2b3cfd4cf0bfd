"""Kubeconfig files for users of the test control plane."""

import base64
import json
from pathlib import Path

from tests.controlplane.components.pair import Pair


def write_kubeconfig(
    path: Path, server: str, authority: Path, client: Pair, namespace: str = "default"
) -> Path:
    """Write a kubeconfig with everything inside it (JSON is YAML) and return its path."""
    name = "arena-topo-test"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": _data(authority)}}
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _data(client.certificate),
                    "client-key-data": _data(client.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))
    return path


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
