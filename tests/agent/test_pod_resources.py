"""The kubelet's pod-resources API, over a real gRPC socket."""

import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from arena_topo.agent.pod_resources import METHOD, gpu_users, list_pod_resources
from arena_topo.agent.start import file_agent, node_agent
from arena_topo.errors import ArenaTopoError
from tests.agent.fake_nvml import FakeNvml
from tests.topology.formats.test_nvidia_smi import uniform
from tests.topology.texts import saved

UUIDS = ["GPU-a", "GPU-b", "GPU-c"]


def field(number: int, value: str | bytes) -> bytes:
    """Return a length-delimited field of a protobuf message."""
    body = value.encode() if isinstance(value, str) else value
    size, length = len(body), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + body


def pod(name: str, resource: str, *devices: str) -> bytes:
    """Return PodResources of a pod with one container; CPU ids and NUMA nodes are in it too."""
    listed = (
        field(1, resource)
        + b"".join(field(2, device) for device in devices)
        + field(3, field(1, b"\x08\x01"))
    )
    container = field(1, "mpi") + field(2, listed) + b"\x18\x96\x01" + b"\x29" + bytes(8) + b"\x2d" + bytes(4)
    return field(1, field(1, name) + field(2, "team-a") + field(3, container))


ANSWER = (
    pod("worker-0", "nvidia.com/gpu", "GPU-c", "GPU-a")
    + pod("shared", "nvidia.com/gpu", "GPU-b::3")
    + pod("network", "rdma/hca", "GPU-a")
    + pod("mig", "nvidia.com/gpu", "MIG-1")
    + field(1, field(1, "none") + field(2, "x" * 200))
)


def test_pods_and_their_gpus_are_read() -> None:
    """Replicas count as their GPU; other resources and unknown devices are passed over."""
    users = gpu_users(ANSWER, UUIDS, ["nvidia.com/gpu"])

    assert {("team-a", "worker-0"): (0, 2), ("team-a", "shared"): (1,)} == users


@pytest.mark.parametrize("cut", [ANSWER[:-5], b"\x0a", b"\x0a\xff"], ids=["field", "length", "varint"])
def test_a_message_that_is_cut_off_is_an_error(cut: bytes) -> None:
    """It is not taken for a shorter list."""
    with pytest.raises(ArenaTopoError, match="is cut off"):
        gpu_users(cut, UUIDS, ["nvidia.com/gpu"])


def test_a_field_of_an_unknown_type_is_an_error() -> None:
    """Groups went out of use long ago; what has them is no such message."""
    with pytest.raises(ArenaTopoError, match="a field of type 3"):
        gpu_users(b"\x0b", UUIDS, ["nvidia.com/gpu"])


@pytest.fixture
def socket() -> Iterator[str]:
    """Serve List on a Unix socket as a kubelet does; its path must be short."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "kubelet.sock")
        server = grpc.server(ThreadPoolExecutor(1))
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
            lambda _request, _context: ANSWER
        )
        service, _, name = METHOD.strip("/").rpartition("/")
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {name: handler})])
        server.add_insecure_port(f"unix://{path}")
        server.start()
        yield path
        server.stop(None).wait()


def test_the_kubelet_is_asked_over_its_socket(socket: str) -> None:
    """The bytes of its answer come back whole."""
    assert ANSWER == list_pod_resources(grpc, socket)


def test_the_agent_of_a_node_joins_nvml_and_the_kubelet(socket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices are those of NVML, users those of the kubelet."""
    nvml = FakeNvml(uniform("NV4", 3))
    monkeypatch.setattr(FakeNvml, "nvmlDeviceGetUUID", lambda _, handle: UUIDS[handle])
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr("arena_topo.agent.start.require", lambda *_: None)
    published: list[str] = []
    node_agent(published.append, lambda _: None, socket=socket, sysfs="/nowhere").publish_if_changed()

    assert {"team-a/shared": [1], "team-a/worker-0": [0, 2]} == json.loads(published[0])["users"]


def test_a_saved_matrix_is_published_without_users() -> None:
    """For nodes on which no agent may run."""
    name = "h200-hgx-8gpu-12nic.txt"
    published: list[str] = []
    file_agent(saved(name), name, "NVIDIA H200", published.append, lambda _: None).publish_if_changed()
    value = json.loads(published[0])

    assert (8, "NVIDIA H200", {}) == (len(value["gpus"]), value["product"], value["users"])
    assert value["at"].endswith("Z")


def test_a_kubelet_that_does_not_answer_is_an_error() -> None:
    """The socket and the way out are named."""
    with pytest.raises(ArenaTopoError, match=r"does not answer on /nowhere/kubelet\.sock") as caught:
        list_pod_resources(grpc, "/nowhere/kubelet.sock")

    assert "mount /var/lib/kubelet/pod-resources" in caught.value.hint
