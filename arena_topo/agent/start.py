"""Agents made of the real things: NVML and the kubelet, or a saved matrix."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib import import_module

from arena_topo.agent.agent import Agent, Users, require
from arena_topo.agent.nvml import read_hardware
from arena_topo.agent.pod_resources import SOCKET, gpu_users, list_pod_resources
from arena_topo.model.cluster.hardware import Hardware
from arena_topo.model.keys import GPU_RESOURCES
from arena_topo.topology.formats.parse import parse_topology

Publish = Callable[[str], None]


def node_agent(publish: Publish, report: Publish, *, socket: str = SOCKET, sysfs: str = "/sys") -> Agent:
    """Return the agent of this node, which asks NVML and the kubelet.

    Raises ``DocumentError`` when the packages of the extra ``agent`` are missing.
    """
    require("pynvml", "agent")
    require("grpc", "agent")
    import grpc

    nvml = import_module("pynvml")

    def users(hardware: Hardware) -> Users:
        uuids = [gpu.uuid for gpu in hardware.gpus]
        return gpu_users(list_pod_resources(grpc, socket), uuids, GPU_RESOURCES)

    return Agent(partial(read_hardware, nvml, sysfs), users, publish, _now, report)


def file_agent(text: str, source: str, product: str, publish: Publish, report: Publish) -> Agent:
    """Return an agent that publishes the topology saved in *text*, for nodes where no agent may run.

    It tells no users of GPUs.
    """
    return Agent(partial(parse_topology, text, source, product), None, publish, _now, report)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
