"""Agents that read the real sources: NVML and the kubelet, or a saved matrix."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib import import_module

from arena_topo.agent.agent import Agent, Users
from arena_topo.agent.nvml import read_hardware
from arena_topo.agent.pod_resources import SOCKET, gpu_users, list_pod_resources
from arena_topo.extras import require
from arena_topo.model.cluster.hardware import Hardware
from arena_topo.model.keys import GPU_RESOURCES
from arena_topo.topology.formats.parse import parse_topology

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
    require("the agent", "grpc", extra="agent", instead="--skip-users leaves out who uses the GPUs")
    import grpc  # of the extra, and only this agent needs it

    def users(hardware: Hardware) -> Users:
        uuids = [gpu.uuid for gpu in hardware.gpus]
        return gpu_users(list_pod_resources(grpc, socket), uuids, GPU_RESOURCES)

    return Agent(partial(read_hardware, nvml, sysfs), users, publish, _now, report, found)


def file_agent(
    text: str, source: str, product: str, publish: Publish, report: Publish, *, found: Callable[[], str]
) -> Agent:
    """Return an agent that publishes the topology saved in *text*, for nodes where no agent may run.

    It says nothing about who uses the GPUs. *source* names the file in errors, *product* the GPUs where the text does
    not.
    """
    return Agent(partial(parse_topology, text, source, product), None, publish, _now, report, found)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
