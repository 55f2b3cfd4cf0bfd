"""The kubelet's pod-resources API, over a real gRPC socket."""

import grpc
import pytest

from arena_topo.agent.hardware import gpu_users, list_pod_resources
from arena_topo.errors import ArenaTopoError
from tests.agent.kubelet import ANSWER, UUIDS


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


def test_the_kubelet_is_asked_over_its_socket(socket: str) -> None:
    """The bytes of its answer come back whole."""
    assert ANSWER == list_pod_resources(grpc, socket)


def test_a_kubelet_that_does_not_answer_is_an_error() -> None:
    """The socket and the way out are named."""
    with pytest.raises(ArenaTopoError, match=r"does not answer on /nowhere/kubelet\.sock") as caught:
        list_pod_resources(grpc, "/nowhere/kubelet.sock")

    assert "mount /var/lib/kubelet/pod-resources" in caught.value.hint
