"""Which GPUs of a node are given to which pod: the lowest
that are free, as a device plugin's allocator may choose.
"""

import threading
from collections.abc import Mapping, Sequence

from tests.controlplane.kube import Object

_RESOURCE = "nvidia.com/gpu"


class GpuPool:
    """The GPUs of each node by index."""

    def __init__(self, gpus: Mapping[str, int]) -> None:
        self._free = {node: set(range(count)) for node, count in gpus.items()}
        self._lock = threading.Lock()

    def take(self, node: str, container: Object) -> Sequence[int]:
        """Return the GPUs that *container* gets; the scheduler has seen to it that there are enough."""
        wanted = int(((container.get("resources") or {}).get("limits") or {}).get(_RESOURCE, 0))
        with self._lock:
            taken = sorted(self._free[node])[:wanted]
            if len(taken) < wanted:
                raise ValueError(f"{node} has {len(taken)} GPUs left, {container['name']} asks for {wanted}")
            self._free[node] -= set(taken)
        return taken

    def give_back(self, node: str, gpus: Sequence[int]) -> None:
        """Free the GPUs of a container that has ended."""
        with self._lock:
            self._free[node] |= set(gpus)
