"""Which pods hold which devices, as the kubelet tells over its pod-resources socket.

The API is gRPC, ``v1.PodResourcesLister/List``; of its messages only the few fields that are needed are read.
Source: k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from arena_topo.errors import ArenaTopoError
from arena_topo.topology.reading import PodKey

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
METHOD = "/v1.PodResourcesLister/List"
_REPLICA = "::"
_TIMEOUT = 10.0
_LARGEST = 64 * 2**20


def list_pod_resources(grpc: Any, socket: str = SOCKET) -> bytes:
    """Return the kubelet's answer to List; *grpc* is the package ``grpc``. Raises ``ArenaTopoError``."""
    options = [("grpc.max_receive_message_length", _LARGEST)]
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

    Replicas of shared GPUs (``UUID::n``) count as their GPU; ids of other devices are passed over. Raises
    ``ArenaTopoError`` when *answer* is no such message.
    """
    places = {uuid: index for index, uuid in enumerate(uuids)}
    users: dict[PodKey, tuple[int, ...]] = {}
    for pod in _messages(answer, 1):
        held = {
            places[device.partition(_REPLICA)[0]]
            for device in _devices(pod, resources)
            if device.partition(_REPLICA)[0] in places
        }
        if held:
            users[_first_text(pod, 2), _first_text(pod, 1)] = tuple(sorted(held))
    return users


def _devices(pod: bytes, resources: Sequence[str]) -> Iterator[str]:
    """Yield the device ids of all containers of a pod: PodResources.containers.devices.device_ids."""
    for container in _messages(pod, 3):
        for devices in _messages(container, 2):
            if _first_text(devices, 1) in resources:
                yield from (each.decode() for each in _messages(devices, 2))


def _first_text(message: bytes, number: int) -> str:
    return next((each.decode() for each in _messages(message, number)), "")


def _messages(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the length-delimited fields *number* of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            _, at = _varint(message, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            size, at = _varint(message, at)
            if at + size > len(message):
                raise ArenaTopoError("the kubelet's list of pod resources is cut off")
            if key >> 3 == number:
                yield message[at : at + size]
            at += size
        else:
            raise ArenaTopoError(f"the kubelet's list of pod resources has a field of type {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
    raise ArenaTopoError("the kubelet's list of pod resources is cut off")
