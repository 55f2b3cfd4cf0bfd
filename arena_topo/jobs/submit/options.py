"""What the user asks of a submit, besides the job itself."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.plan.plan_record import Pin

if TYPE_CHECKING:
    # It is defined with the view of a job, which a submit that waits for nothing does not import.
    from arena_topo.model.job.job_view import Goal


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """How a job is submitted; ``version`` None means the one that the cluster serves."""

    version: ApiVersion | None = None
    template: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRequest:
    """What the user asks of the gang: the back-end's name or ``auto``, a queue, and a level of the fabric."""

    scheduler: str = "auto"
    queue: str = ""
    level: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOptions:
    """What the user asks of gang and placement.

    ``requested``: a flag of the placement was typed, so that the job is planned even without ``--gputopology``.
    ``timeout`` is how long a job may wait for a place, in seconds: None for not at all, 0 for as long as it takes.
    ``goal`` is what the user waits for in the end, None where submit returns at once. ``expects_nodes``: the cluster
    grows, so that a job may be created that its nodes of today could never hold.
    """

    plan: PlanOptions = field(default_factory=PlanOptions)
    gang: GangRequest = field(default_factory=GangRequest)
    pin: Pin = Pin.AUTO
    requested: bool = False
    timeout: float | None = None
    goal: "Goal | None" = None
    expects_nodes: bool = False

    @property
    def waits_for_a_place(self) -> bool:
        """Whether the user waits for a place, rather than for the job wherever it starts."""
        if self.timeout is None:
            return False
        from arena_topo.model.job.job_view import Goal

        return self.goal in (None, Goal.PLACED)
