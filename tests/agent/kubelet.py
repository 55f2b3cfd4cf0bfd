"""Messages of the kubelet's pod-resources API."""

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
