"""Agents that read the real sources: NVML and the kubelet, or a saved matrix."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from itertools import count

from arena_topo.agent.hardware import SOCKET, gpu_users, list_pod_resources, read_hardware
from arena_topo.errors import ArenaTopoError
from arena_topo.extras import require
from arena_topo.model.cluster import Hardware
from arena_topo.model.keys import GPU_RESOURCES
from arena_topo.topology.files import parse_topology
from arena_topo.topology.objects import PodKey
from arena_topo.topology.sources.annotation import encode

# The agent's loop: read the node, publish what has changed, and continue through failures.

_FRESH_LOOK = 10
"""Every tenth reading is compared with the node, by a request; others with what was published."""

Users = Mapping[PodKey, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of one node; everything that does I/O is passed in.

    ``hardware`` reads the GPUs and their links, ``users`` which pods hold them, None where the kubelet is not
    asked. ``publish`` writes the annotation's value to the node; ``now`` returns the time as RFC 3339;
    ``report`` writes a line to the log, and ``found`` returns the value that the node has.
    """

    hardware: Callable[[], Hardware]
    users: Callable[[Hardware], Users] | None
    publish: Callable[[str], None]
    now: Callable[[], str]
    report: Callable[[str], None]
    found: Callable[[], str]

    def value(self) -> str:
        """Return the annotation's value at this moment. Raises ``ArenaTopoError``."""
        hardware = self.hardware()
        users = self.users(hardware) if self.users else {}
        return encode(hardware, users, self.now())

    def publish_if_changed(self, published: str = "") -> str:
        """Publish unless *published* says the same already; return the value that is published afterwards."""
        value = self.value()
        if published and _content(value) == _content(published):
            return published
        self.publish(value)
        self.report(f"published {len(value)} bytes")
        return value

    def run(self, published: str, wait: Callable[[], bool]) -> None:
        """Publish changes to *published* while *wait* returns True; report a failure once, and try again."""
        failure = ""
        for looks in count(1):
            try:
                # Anyone who deletes or overwrites the annotation hides the node's links only until then.
                if looks % _FRESH_LOOK == 0:
                    published = self.found()
                published = self.publish_if_changed(published)
                failure = ""
            except ArenaTopoError as error:
                # A driver that is down would fill the log with one line per interval.
                if error.message != failure:
                    failure = error.message
                    self.report(f"error: {failure}")
            # Looking comes first: a node that has just started is described at once.
            if not wait():
                return


def _content(value: str) -> object:
    """Return a value without its time, None if it cannot be read."""
    try:
        document = json.loads(value)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    # The time differs at each reading, and by itself is not worth a write.
    return {key: part for key, part in document.items() if key != "at"}


Publish = Callable[[str], None]


def node_agent(
    publish: Publish,
    report: Publish,
    *,
    found: Callable[[], str],
    skip_users: bool = False,
    socket: str = SOCKET,
    sysfs: str = "/sys",
) -> Agent:
    """Return the agent of this node, which reads NVML, and the kubelet unless *skip_users*.

    Raises ``ArenaTopoError`` when the packages of the extra ``agent`` are missing.
    """
    require("the agent", "pynvml", extra="agent")
    nvml = import_module("pynvml")
    if skip_users:
        return Agent(partial(read_hardware, nvml, sysfs), None, publish, _now, report, found)
    require("the agent", "grpc", extra="agent", instead="--skip-users leaves out which pods use the GPUs")
    import grpc  # of the extra, and only this agent needs it

    def users(hardware: Hardware) -> Users:
        uuids = [gpu.uuid for gpu in hardware.gpus]
        return gpu_users(list_pod_resources(grpc, socket), uuids, GPU_RESOURCES)

    return Agent(partial(read_hardware, nvml, sysfs), users, publish, _now, report, found)


def file_agent(
    text: str, source: str, product: str, publish: Publish, report: Publish, *, found: Callable[[], str]
) -> Agent:
    """Return an agent that publishes the topology saved in *text*, for nodes on which no agent may run.

    It says nothing about which pods use the GPUs. *source* names the file in errors, *product* the GPUs where
    the text does not.
    """
    return Agent(partial(parse_topology, text, source, product), None, publish, _now, report, found)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
