"""The answer for a gang that has no place."""

from collections.abc import Iterator

from arena_topo.model.notation.words import plural, written_amount
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Infeasible, Reason
from arena_topo.planner.explain.exclusions import reasons
from arena_topo.planner.explain.remedies import best_of_level, remedies
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import Bounds, Room, words

_NOTHING = Reason("no node has GPUs, or there are no nodes", 0)


def infeasible(demand: Demand, fleet: Fleet, space: Room, limits: Bounds) -> Infeasible:
    """Return why *demand* has no place within *limits*, how far each level gets, and what would help."""
    level = words(fleet)[limits.widest]
    most, _ = best_of_level(fleet, space, limits.widest)
    where = "the cluster" if limits.widest > len(fleet.tiers) else f"one {level}"
    return Infeasible(
        summary=f"{_asked(demand)} do not fit in {where}: {most} of {demand.workers} do"
        if demand.workers > 1
        else f"{_asked(demand)} does not fit on any node",
        reasons=(*reasons(demand, fleet), *_partly(demand, space)) or (_NOTHING,),
        levels=tuple(_levels(demand, fleet, space)),
        remedies=remedies(demand, fleet, space, limits),
    )


def no_launcher(demand: Demand) -> Infeasible:
    """Return the answer for a gang whose workers fit, and whose launcher then has no place."""
    asked = ", ".join(written_amount(name, amount) for name, amount in demand.launcher.items())
    labels = ", ".join(f"label {key}={value}" for key, value in demand.launcher_selector.items())
    wanted = ", ".join(filter(None, (asked, labels)))
    return Infeasible(
        summary=f"the workers fit, but then no node has room for the launcher ({wanted})",
        remedies=("ask less with --launcher-cpu and --launcher-memory, or use fewer workers",),
    )


def too_wide(demand: Demand, fleet: Fleet, level: int, ideal: int) -> Infeasible:
    """Return the answer for a gang that would get a wider level now than on the empty cluster."""
    known = words(fleet)
    return Infeasible(
        summary=f"{_asked(demand)} fit only across one {known[level]} now, and in one {known[ideal]} when it is free",
        remedies=(
            f"--topology-policy=best-effort takes the {known[level]}",
            f"wait until a {known[ideal]} has {plural(demand.workers, 'place')}",
        ),
    )


def _asked(demand: Demand) -> str:
    shape = f" of {plural(demand.gpus, 'GPU')}" if demand.gpus else ""
    return f"{plural(demand.workers, 'worker')}{shape}"


def _partly(demand: Demand, space: Room) -> Iterator[Reason]:
    taking = len(space.places) - space.places.count(0)
    if not taking:
        return
    verb = "takes" if taking == 1 else "take"
    if space.total < demand.workers:
        yield Reason(
            f"{plural(taking, 'node')} {verb} {space.total} of {demand.workers} workers together", taking
        )
    else:
        yield Reason(f"{plural(taking, 'node')} {verb} workers, but not close enough together", taking)


def _levels(demand: Demand, fleet: Fleet, space: Room) -> Iterator[str]:
    for level, name in enumerate(words(fleet)):
        most, domain = best_of_level(fleet, space, level)
        if most and level <= len(fleet.tiers):
            yield f"the best {name} fits {min(most, demand.workers)} of {demand.workers} workers ({domain})"
