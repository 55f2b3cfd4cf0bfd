"""The gang of a job: which back-end keeps it together on this cluster, and what that must know."""

from dataclasses import dataclass, replace

from arena_topo.errors import UsageError
from arena_topo.gang.auto import choose, known
from arena_topo.gang.backends import BACKENDS
from arena_topo.manifest.gang_of_job import gang_of
from arena_topo.model.job.gang import Gang
from arena_topo.model.job.mpijob import version_of
from arena_topo.model.objects import Object
from arena_topo.model.plan.capabilities import ClusterFacts


@dataclass(frozen=True, slots=True)
class GangChoice:
    """The back-end of a gang, the gang as that sees it, and why it was chosen."""

    backend: str
    gang: Gang
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GangWishes:
    """What the user asks of the gang: the back-end's name or ``auto``, a queue, and a level of the fabric."""

    scheduler: str = "auto"
    queue: str = ""
    level: str = ""
    required: bool = False


def choose_gang(job: Object, facts: ClusterFacts, wishes: GangWishes) -> GangChoice | None:
    """Return how the MPIJob *job* is kept together, None where this cluster has nothing that could.

    Raises ``UsageError`` for a back-end that does not exist.
    """
    if wishes.scheduler not in ("auto", *BACKENDS):
        raise UsageError(
            f"--gang-scheduler: {wishes.scheduler!r} is not a gang scheduler",
            hint=f"use auto, or one of {', '.join(BACKENDS)}",
        )
    asked = replace(gang_of(job), level=wishes.level, required=wishes.required, queue=wishes.queue)
    gang = known(asked, facts)
    if wishes.scheduler != "auto":
        return GangChoice(wishes.scheduler, gang)
    chosen = choose(facts, version=version_of(job), queue=wishes.queue)
    return GangChoice(chosen.backend, gang, chosen.reasons[-1:]) if chosen.backend else None
