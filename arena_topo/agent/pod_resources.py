"""Which pods hold which devices, by the kubelet's pod-resources socket.

The API is gRPC, ``v1.PodResourcesLister/List``. Four fields of its messages are needed, so that they are read by hand
here instead of by generated code and the protobuf package.
Source: k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from arena_topo.errors import ArenaTopoError
from arena_topo.topology.reading import PodKey

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
METHOD = "/v1.PodResourcesLister/List"
_REPLICA = "::"
"""Separates a GPU's UUID from the number of its replica, where NVIDIA's device plugin shares the GPU."""

_TIMEOUT = 10.0
"""Seconds for an answer of the kubelet on the same node."""

_LARGEST = 64 * 2**20
"""Bytes of an answer; gRPC's own limit of 4 MiB is too small for a node with many pods and devices."""


def list_pod_resources(grpc: Any, socket: str = SOCKET) -> bytes:
    """Return the kubelet's answer to List; *grpc* is the package ``grpc``. Raises ``ArenaTopoError``."""
    options = [("grpc.max_receive_message_length", _LARGEST)]
    # The kubelet serves plain gRPC on this socket, which the permissions of its folder protect.
    with grpc.insecure_channel(f"unix://{socket}", options=options) as channel:
        try:
            answer: bytes = channel.unary_unary(METHOD)(b"", timeout=_TIMEOUT)
        except grpc.RpcError as error:
            raise ArenaTopoError(
                f"the kubelet does not answer on {socket}: {error.details()}",
                hint="mount /var/lib/kubelet/pod-resources of the host into the agent's pod",
            ) from error
    return answer


def gpu_users(answer: bytes, uuids: Sequence[str], resources: Sequence[str]) -> dict[PodKey, tuple[int, ...]]:
    """Return the GPUs that each pod holds by one of *resources*; *uuids* gives the GPUs' order.

    Replicas of shared GPUs (``UUID::n``) count as their GPU; ids of other devices are skipped. Raises
    ``ArenaTopoError`` when *answer* is not such a message.
    """
    indices = {uuid: index for index, uuid in enumerate(uuids)}
    users: dict[PodKey, tuple[int, ...]] = {}
    for pod in _messages(answer, 1):
        # Slices of a GPU have UUIDs of their own (MIG-...), which are in no list of whole GPUs and drop out.
        devices = (device.partition(_REPLICA)[0] for device in _devices(pod, resources))
        gpus = {indices[device] for device in devices if device in indices}
        if gpus:
            namespace, name = _first_text(pod, 2), _first_text(pod, 1)
            users[namespace, name] = tuple(sorted(gpus))
    return users


def _devices(pod: bytes, resources: Sequence[str]) -> Iterator[str]:
    """Yield the device ids of all containers of a pod: PodResources.containers.devices.device_ids."""
    for container in _messages(pod, 3):
        for devices in _messages(container, 2):
            if _first_text(devices, 1) in resources:
                yield from (device.decode() for device in _messages(devices, 2))


def _first_text(message: bytes, number: int) -> str:
    """Return the first field *number* as text, empty if there is none."""
    return next((text.decode() for text in _messages(message, number)), "")


def _messages(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the length-delimited fields *number* of a protobuf message.

    A key holds a field's number above its wire type: ``0a 02 68 69`` is field 1 of type 2, two bytes long, ``hi``.
    Source: protobuf.dev/programming-guides/encoding.
    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        wire_type = key & 7
        # Fields of no interest are skipped by their size, so that newer kubelets may add fields.
        if wire_type == 0:
            _, position = _varint(message, position)
        elif wire_type in (1, 5):
            position += 8 if wire_type == 1 else 4
        elif wire_type == 2:
            size, position = _varint(message, position)
            if position + size > len(message):
                raise ArenaTopoError("the kubelet's list of pod resources is cut off")
            if key >> 3 == number:
                yield message[position : position + size]
            position += size
        else:
            raise ArenaTopoError(f"the kubelet's list of pod resources has a field of type {wire_type}")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the number at *position*, seven bits per byte and the lowest first, and the position behind it."""
    value = shift = 0
    while position < len(message):
        byte = message[position]
        value |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return value, position
        shift += 7
    raise ArenaTopoError("the kubelet's list of pod resources is cut off")
