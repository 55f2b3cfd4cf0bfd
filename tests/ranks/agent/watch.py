"""Following all objects of a kind, over lost connections."""

import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from typing import TypeAlias

import urllib3

from tests.controlplane.kube import Kube, KubeError, Object

_SECONDS = "50"

Key: TypeAlias = tuple[str, str]
OnList: TypeAlias = Callable[[Mapping[Key, Object]], None]
OnChange: TypeAlias = Callable[[Object, bool], None]
"""(object, whether it was deleted)."""


def watch(kube: Kube, path: str, on_list: OnList, on_change: OnChange, stop: threading.Event) -> None:
    """List the objects at *path* and follow their changes until *stop*; whatever breaks is begun again."""
    while not stop.is_set():
        with contextlib.suppress(KubeError, urllib3.exceptions.HTTPError):
            listed = kube.request("GET", path)
            on_list(
                {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in listed["items"]}
            )
            _follow(kube, path, listed["metadata"]["resourceVersion"], on_change)
        stop.wait(0.1)


def _follow(kube: Kube, path: str, version: str, on_change: OnChange) -> None:
    query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": _SECONDS}
    with kube.stream(path, query) as stream:
        rest = b""
        for chunk in stream.stream(amt=None):
            *lines, rest = (rest + chunk).split(b"\n")
            for event in map(json.loads, lines):
                if event["type"] == "ERROR":
                    return
                on_change(event["object"], event["type"] == "DELETED")
