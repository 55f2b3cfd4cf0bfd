"""Agents are made of NVML and the kubelet, or of a saved matrix."""

import json
import sys

import pytest

from arena_topo.agent.run import file_agent, node_agent
from tests.agent.fake_nvml import FakeNvml
from tests.agent.kubelet import UUIDS
from tests.topology.formats.test_nvidia_smi import uniform
from tests.topology.texts import saved


def test_the_agent_of_a_node_joins_nvml_and_the_kubelet(socket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices are those of NVML, users those of the kubelet."""
    nvml = FakeNvml(uniform("NV4", 3))
    monkeypatch.setattr(FakeNvml, "nvmlDeviceGetUUID", lambda _, handle: UUIDS[handle])
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr("arena_topo.agent.run.require", lambda *_, **__: None)
    published: list[str] = []
    node_agent(
        published.append, lambda _: None, found=str, socket=socket, sysfs="/nowhere"
    ).publish_if_changed()

    assert {"team-a/shared": [1], "team-a/worker-0": [0, 2]} == json.loads(published[0])["users"]


def test_a_saved_matrix_is_published_without_users() -> None:
    """For nodes on which no agent may run."""
    name = "h200-hgx-8gpu-12nic.txt"
    published: list[str] = []
    file_agent(
        saved(name), name, "NVIDIA H200", published.append, lambda _: None, found=str
    ).publish_if_changed()
    value = json.loads(published[0])

    assert (8, "NVIDIA H200", {}) == (len(value["gpus"]), value["product"], value["users"])
    assert value["at"].endswith("Z")
