"""What becomes of a gang that has its places when members come or go."""

from dataclasses import dataclass

from arena_topo.model.plan.placement import Slot, Step


@dataclass(frozen=True, slots=True)
class GangFigures:
    """Where a gang is: its level and domain, its number of nodes, and the busbw in GB/s of its slowest node.

    ``busbw`` is None where no two of its GPUs are on a node and no NIC has a known rate, or where links are not known.
    """

    level: str
    domain: str
    nodes: int
    busbw: float | None


@dataclass(frozen=True, slots=True)
class Growth:
    """Places for members that come.

    ``slots`` are theirs alone, those of the lost workers or of new ones with the next indices, in fabric order; ``before``
    and ``after`` are the whole gang. ``why`` names what decided.
    """

    slots: tuple[Slot, ...]
    before: GangFigures
    after: GangFigures
    why: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """Members that go.

    ``leaving`` are those that the operator takes away: the highest indices. ``cheapest`` are the workers whose end would
    cost the gang least, and ``if_cheapest`` what would be left of it then; they are the same where nothing is lost.
    """

    leaving: tuple[Slot, ...]
    before: GangFigures
    after: GangFigures
    cheapest: tuple[int, ...]
    if_cheapest: GangFigures
    why: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """What becomes of a job that runs: from ``before`` to ``after`` pods, of which ``pods`` come, or leave.

    ``resource`` is its kind and group as kubectl writes them. ``change`` is None for a job without a plan, and where nothing
    changes. ``enforced`` says what holds pods that came in their places.
    """

    name: str
    resource: str
    before: int
    after: int
    pods: tuple[str, ...] = ()
    change: Growth | Shrinkage | None = None
    enforced: str = ""
