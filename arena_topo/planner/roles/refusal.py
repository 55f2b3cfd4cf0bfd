"""The answer for a gang that has no place: role by role why, and what would help."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from arena_topo.model.cluster.snapshot import Holder
from arena_topo.model.notation.words import plural
from arena_topo.model.plan.placement import Infeasible
from arena_topo.model.plan.roles import GangDemand, GangInfeasible, Role, UnplacedRole
from arena_topo.planner.explain.infeasible import infeasible
from arena_topo.planner.nodes.fleet import Fleet, changed, without_holders
from arena_topo.planner.nodes.levels import LevelLimits, closest_level, level_words
from arena_topo.planner.nodes.search import Effort
from arena_topo.planner.roles.board import Board, Seat, make_board
from arena_topo.planner.roles.gang_choice import Unplaced, choose_gang

_MOST_TRIALS = 60
"""Gangs and fleets that are tried for advice; on ten thousand nodes that is about a second."""


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
    return GangInfeasible(summary, unplaced, tuple(_remedies(gang, board, limits)), proven=proven)


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


def _remedies(gang: GangDemand, board: Board, limits: LevelLimits) -> Iterator[str]:
    """Yield what would give *gang* a place, the least change first; each was tried on the fleet."""
    fleet = board.fleet
    words = level_words(fleet)
    if limits.widest <= len(fleet.tiers):
        wider = choose_gang(board, limits.widest + 1, len(fleet.tiers) + 1)
        if not isinstance(wider, Unplaced):
            where = "the cluster" if wider.level > len(fleet.tiers) else f"one {words[wider.level]}"
            yield f"without --require-topology={words[limits.widest]} all roles fit in {where}"
    trials = _Trials(limits, Effort(_MOST_TRIALS))
    for role in gang.roles:
        if not role.slices and (most := _most_pods(gang, role, fleet, trials)):
            yield f"{plural(most, 'pod')} of {role.name} fit{'s' * (most == 1)} beside the other roles"
    for role in gang.roles:
        others = tuple(other for other in gang.roles if other is not role)
        is_free = not any(role.name in (other.serves, other.beside and other.beside.role) for other in others)
        if others and is_free and trials.fits(replace(gang, roles=others), fleet):
            yield f"without {role.name} all other roles fit"
    if ended := next((name for name, after in _endings(fleet) if trials.fits(gang, after)), ""):
        yield f"it fits when {ended} ends"


@dataclass(frozen=True, slots=True)
class _Trials:
    """Gangs and fleets that are tried until one fits, up to a number of them."""

    limits: LevelLimits
    effort: Effort

    def fits(self, gang: GangDemand, fleet: Fleet) -> bool:
        """Whether *gang* has a place on *fleet*; False where no more trials are left."""
        if not self.effort.spend(1):
            return False
        found = choose_gang(make_board(gang, fleet), self.limits.closest, self.limits.widest)
        return not isinstance(found, Unplaced)


def _most_pods(gang: GangDemand, role: Role, fleet: Fleet, trials: _Trials) -> int:
    """Return the most pods of *role*, fewer than it has, with which all roles fit; 0 where one is too many."""

    def fits(pods: int) -> bool:
        fewer = replace(role, pods=pods)
        roles = tuple(fewer if other is role else other for other in gang.roles)
        return trials.fits(replace(gang, roles=roles), fleet)

    # What holds so many pods holds fewer as well.
    return bisect_left(range(1, role.pods), 1, key=lambda pods: int(not fits(pods)))


def _endings(fleet: Fleet) -> Iterator[tuple[str, Fleet]]:
    """Yield the jobs that hold GPUs, the smallest first, each with the fleet once it has ended."""
    by_job: dict[str, list[tuple[int, Holder]]] = {}
    for position, node in enumerate(fleet.nodes):
        for holder in node.holders:
            if holder.job:
                by_job.setdefault(f"job {holder.namespace}/{holder.job}", []).append((position, holder))
    sizes = {name: sum(holder.gpus for _, holder in pods) for name, pods in by_job.items()}
    for name in sorted(by_job, key=lambda name: (sizes[name], name)):
        at: dict[int, list[Holder]] = {}
        for position, holder in by_job[name]:
            at.setdefault(position, []).append(holder)
        freed = {
            position: without_holders(fleet.nodes[position], holders) for position, holders in at.items()
        }
        yield name, changed(fleet, freed)


def _names(gang: GangDemand) -> str:
    *others, last = [f"{role.name} ({plural(role.pods, 'pod')})" for role in gang.roles]
    return f"{', '.join(others)} and {last}" if others else last
