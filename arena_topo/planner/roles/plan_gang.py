"""A gang of unlike roles onto a cluster: ``plan_gang`` answers with a place for every pod of every role, or why not.

A gang of one plain role is planned as ``planner.plan`` plans it, by the same code and with the same answer.
"""

from dataclasses import replace

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.demand import Demand, TopologyPolicy
from arena_topo.model.plan.placement import Infeasible
from arena_topo.model.plan.roles import (
    GangDemand,
    GangInfeasible,
    GangPlacement,
    GangVerdict,
    Role,
    RolePlacement,
    Spread,
    UnplacedRole,
)
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.fleet import Fleet, emptied, make_fleet
from arena_topo.planner.nodes.levels import LevelLimits, level_limits
from arena_topo.planner.plan import plan_shape
from arena_topo.planner.roles.answer import gang_placement
from arena_topo.planner.roles.board import make_board
from arena_topo.planner.roles.gang_choice import Unplaced, choose_gang
from arena_topo.planner.roles.refusal import refusal, too_wide_for_gang


def plan_gang(gang: GangDemand, snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> GangVerdict:
    """Return the place of every pod of *gang* on the cluster in *snapshot*, or why the gang has none.

    Chosen in this order: all roles fit; the closest level that holds the roles that exchange data; then the best nodes
    for each role in turn, those with most GPUs first, of the choices that leave the rest a place. Raises ``UsageError``
    for roles that contradict each other and for levels that the fabric does not have.
    """
    return plan_gang_on(gang, make_fleet(snapshot, model))


def plan_gang_on(gang: GangDemand, fleet: Fleet) -> GangVerdict:
    """Return what ``plan_gang`` does, on a fleet that is laid out already."""
    if alone := _planned_alone(gang, fleet):
        return alone
    board = make_board(gang, fleet)
    limits = _limits(gang, fleet)
    found = choose_gang(board, limits.closest, limits.widest)
    if isinstance(found, Unplaced):
        return refusal(gang, board, limits, proven=found.proven)
    if gang.policy is TopologyPolicy.RESTRICTED and (wider := _too_wide(gang, fleet, found.level, limits)):
        return wider
    return gang_placement(gang, board, found)


def _limits(gang: GangDemand, fleet: Fleet) -> LevelLimits:
    asked = Demand(1, 0, required_level=gang.required_level, preferred_level=gang.preferred_level)
    limits = level_limits(asked, fleet)
    # Without a policy all levels count as the widest one.
    return LevelLimits(limits.widest, limits.widest) if gang.policy is TopologyPolicy.NONE else limits


def _too_wide(gang: GangDemand, fleet: Fleet, level: int, limits: LevelLimits) -> GangInfeasible | None:
    """Return the answer for a gang that would get a closer level on the empty cluster, None where it would not."""
    empty = emptied(fleet)
    ideal = choose_gang(make_board(gang, empty), limits.closest, limits.widest)
    if isinstance(ideal, Unplaced) or ideal.level >= level:
        return None
    return too_wide_for_gang(gang, fleet, level, ideal.level)


def _planned_alone(gang: GangDemand, fleet: Fleet) -> GangVerdict | None:
    """Return the plan of a gang of one role that asks for nothing but places; None for any other gang."""
    if len(gang.roles) != 1 or not _is_plain(gang.roles[0]) or gang.roles[0].pods < 1:
        return None
    role = gang.roles[0]
    demand = replace(
        role.demand,
        policy=gang.policy,
        required_level=gang.required_level,
        preferred_level=gang.preferred_level,
        objective=gang.objective,
    )
    answer = plan_shape(demand, fleet)
    if isinstance(answer, Infeasible):
        return GangInfeasible(answer.summary, (UnplacedRole(role.name, answer),), answer.remedies)
    placed = RolePlacement(
        role.name, role.gpus, answer.slots, answer.shares, answer.level, answer.domain, answer.why
    )
    return GangPlacement((placed,), answer.level, answer.domain, answer.why[1:2])


def _is_plain(role: Role) -> bool:
    return not (
        role.slices
        or role.beside
        or role.serves
        or role.preferences
        or role.anywhere
        or (role.spread is not Spread.NONE and not role.demand.one_per_node)
    )
