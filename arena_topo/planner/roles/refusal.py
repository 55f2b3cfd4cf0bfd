"""The answer for a gang that has no place: role by role why, and what would help."""

from collections.abc import Iterator

from arena_topo.model.notation.words import plural
from arena_topo.model.plan.placement import Infeasible
from arena_topo.model.plan.roles import GangDemand, GangInfeasible, UnplacedRole
from arena_topo.planner.explain.infeasible import infeasible
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import LevelLimits, closest_level, level_words
from arena_topo.planner.roles.board import Board, Seat
from arena_topo.planner.roles.gang_choice import Unplaced, choose_gang


def refusal(gang: GangDemand, board: Board, limits: LevelLimits, *, proven: bool) -> GangInfeasible:
    """Return why *gang* has no place within *limits*, role by role, and what would help."""
    answers = {name: _alone(board, seat, limits) for seat in board.seats for name, _ in seat.roles}
    unplaced = tuple(UnplacedRole(role.name, answers[role.name]) for role in gang.roles)
    alone = [role.answer.summary for role in unplaced if role.answer]
    if alone:
        summary = "; ".join(dict.fromkeys(alone))
    else:
        where = (
            ""
            if limits.widest > len(board.fleet.tiers)
            else f" in one {level_words(board.fleet)[limits.widest]}"
        )
        summary = f"each role fits by itself, but {_names(gang)} do not fit together{where}"
    return GangInfeasible(summary, unplaced, tuple(_remedies(board, limits)), proven=proven)


def too_wide_for_gang(gang: GangDemand, fleet: Fleet, level: int, ideal: int) -> GangInfeasible:
    """Return the answer for a gang that would get a wider level now than on the empty cluster."""
    words = level_words(fleet)
    now = "the whole cluster" if level > len(fleet.tiers) else f"one {words[level]}"
    return GangInfeasible(
        summary=f"{_names(gang)} would need {now} now; one idle {words[ideal]} would hold them",
        roles=tuple(UnplacedRole(role.name) for role in gang.roles),
        remedies=(f"--topology-policy=best-effort takes the {words[level]}",),
    )


def _alone(board: Board, seat: Seat, limits: LevelLimits) -> Infeasible | None:
    """Return why the pods of *seat* have no place by themselves, None where they have one."""
    fleet = board.fleet
    # What goes anywhere is not bound to a level.
    within = limits if seat.decides_domain else LevelLimits(len(fleet.tiers) + 1, len(fleet.tiers) + 1)
    if closest_level(fleet, seat.capacity, seat.role.pods, within) is not None:
        return None
    answer = infeasible(seat.demand, fleet, seat.capacity, within)
    names = " and ".join(name for name, _ in seat.roles)
    summary = f"{names}: {answer.summary.replace('worker', 'pod')}"
    # The flags of remedies are those of a gang of workers, which this role may have others for.
    remedies = tuple(remedy for remedy in answer.remedies if not remedy.startswith("--"))
    return Infeasible(summary, answer.reasons, answer.levels, remedies)


def _remedies(board: Board, limits: LevelLimits) -> Iterator[str]:
    """Yield the wider level that would hold the gang, and the roles without one of which the others fit."""
    fleet = board.fleet
    words = level_words(fleet)
    if limits.widest <= len(fleet.tiers):
        wider = choose_gang(board, limits.widest + 1, len(fleet.tiers) + 1)
        if not isinstance(wider, Unplaced):
            where = "the cluster" if wider.level > len(fleet.tiers) else f"one {words[wider.level]}"
            yield f"without --require-topology={words[limits.widest]} all roles fit in {where}"


def _names(gang: GangDemand) -> str:
    *others, last = [f"{role.name} ({plural(role.pods, 'pod')})" for role in gang.roles]
    return f"{', '.join(others)} and {last}" if others else last
