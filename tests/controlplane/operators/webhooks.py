"""Webhooks of an operator outside of the cluster: called by address, where a Service would name its pod."""

import base64
from collections.abc import Sequence
from pathlib import Path

from tests.controlplane.kube import Object


def by_address(configurations: Sequence[Object], operator: str, port: int, authority: Path) -> list[Object]:
    """Return the *configurations* of *operator*'s module so that the API server calls *port* on loopback.

    *authority* signed the certificate with which it answers.
    """
    bundle = base64.b64encode(authority.read_bytes()).decode()
    return [
        {
            **configuration,
            "metadata": {"name": f"{operator}-{configuration['kind'].lower()}"},
            "webhooks": [_called(webhook, port, bundle) for webhook in configuration["webhooks"]],
        }
        for configuration in configurations
    ]


def _called(webhook: Object, port: int, bundle: str) -> Object:
    path = webhook["clientConfig"]["service"]["path"]
    called = {**webhook, "clientConfig": {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}}
    if any("pods" in rule["resources"] for rule in webhook["rules"]):
        # JobSet's own kustomization says so: pods of everybody else are none of its business.
        own = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
        called["objectSelector"] = {"matchExpressions": [own]}
    return called
