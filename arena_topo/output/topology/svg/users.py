"""Who uses the GPUs of a node, and in which colour every drawing of a page shows them."""

from collections.abc import Sequence
from typing import NamedTuple

from arena_topo.kinds.mpijob import parse_worker_name
from arena_topo.model.cluster.snapshot import GpuNode, Holder
from arena_topo.output.topology.svg.elements import USERS


class GpuUser(NamedTuple):
    """Who uses a GPU: a job or pod as ``namespace/name``, and the number of the MPIJob's worker where it is one."""

    key: str
    worker: int | None
    is_planned: bool = False

    @property
    def words(self) -> str:
        """The user as people say it."""
        return self.key if self.worker is None else f"{self.key}, worker {self.worker}"


def user_colours(nodes: Sequence[GpuNode]) -> dict[str, int]:
    """Return the number of a colour for each user of GPUs, so that the pods of one job look alike on all *nodes*.

    Colour 0 is a plan's, in every drawing.
    """
    holders = {_key(holder): holder.is_planned for node in nodes for holder in node.holders}
    others = sorted(key for key, is_planned in holders.items() if not is_planned)
    return {**dict.fromkeys(holders, 0), **{key: 1 + index % (USERS - 1) for index, key in enumerate(others)}}


def planned_gpus(node: GpuNode) -> int:
    """Return how many GPUs of *node* a plan takes that is drawn on it."""
    return sum(holder.gpus for holder in node.holders if holder.is_planned)


def users_of(node: GpuNode) -> dict[int, GpuUser]:
    """Return the user of each GPU of *node* whose user is known."""
    return {index: _user(holder) for holder in node.holders for index in holder.indices or ()}


def _key(holder: Holder) -> str:
    name = holder.job or holder.pod
    return f"{holder.namespace}/{name}" if holder.namespace else name


def _user(holder: Holder) -> GpuUser:
    # A pod of no MPIJob may be called like a worker by chance.
    worker = parse_worker_name(holder.pod)
    index = worker.index if worker and worker.job == holder.job else None
    return GpuUser(_key(holder), index, holder.is_planned)
