"""From the nodes that the roles chose to a place for every pod, and why they are where they are."""

from collections.abc import Iterator
from math import isinf

from arena_topo.model.notation.words import plural
from arena_topo.model.plan.placement import NodeShare, Slot, Step
from arena_topo.model.plan.roles import GangDemand, GangPlacement, RolePlacement, Spread, StepTraffic
from arena_topo.planner.assign import node_part
from arena_topo.planner.nodes.levels import level_names, level_words, spanned
from arena_topo.planner.roles.board import Board, Seat
from arena_topo.planner.roles.gang_choice import GangChoice
from arena_topo.planner.roles.servers import step_traffic
from arena_topo.planner.roles.taken import Taken
from arena_topo.planner.roles.turn import RoleChoice, Turn


def gang_placement(gang: GangDemand, board: Board, found: GangChoice) -> GangPlacement:
    """Return the placement of *gang* that *found* is."""
    placed: dict[str, RolePlacement] = {}
    traffic: StepTraffic | None = None
    turn = Turn(board, 0, {}, Taken())
    while turn.number < len(board.seats):
        choice = found.choices[turn.number]
        served = None if turn.seat.serves is None else step_traffic(turn, choice.counts)
        placed |= _of_seat(turn, choice, tuple(_steps(turn, choice, served, exact=found.exact)))
        # A gang has one set of parameter servers, and where it has several the first of them is compared.
        traffic = traffic or served
        turn = turn.after(choice)
    deciding = [number for number, seat in enumerate(board.seats) if seat in board.deciding]
    positions = [position for number in deciding for position, _ in found.choices[number].chosen]
    level, domain = spanned(board.fleet, min(positions), max(positions))
    return GangPlacement(
        roles=tuple(placed[role.name] for role in gang.roles),
        level=level_names(board.fleet)[level],
        domain=domain.name,
        why=(_level_step(board, found, level, domain.name),),
        notes=tuple(_notes(board)),
        traffic=traffic,
    )


def _of_seat(turn: Turn, choice: RoleChoice, steps: tuple[Step, ...]) -> dict[str, RolePlacement]:
    """Return the placements of the roles whose *turn* it is, by name: they get its places in rank order, for *steps*."""
    seat, fleet = turn.seat, turn.board.fleet
    slots, gpu_parts = list[tuple[int, tuple[int, ...] | None]](), {}
    for position, offer in choice.chosen:
        part = node_part(fleet.nodes[position], turn.taken.state(fleet, position), offer, seat.role.gpus)
        slots += [(position, gpus) for gpus in part.by_worker]
        gpu_parts[position] = part
    placed, first = {}, 0
    for name, pods in seat.roles:
        own = slots[first : first + pods]
        first += pods
        by_node: dict[int, list[int]] = {}
        for pod, (at, _) in enumerate(own):
            by_node.setdefault(at, []).append(pod)
        shares = []
        for position, indices in by_node.items():
            part = gpu_parts[position]
            gpus = part.gpus
            if len(seat.roles) > 1 and gpus is not None:
                # The node's GPUs are one communicator of all roles that choose as one; each shows its own.
                gpus = tuple(gpu for pod in indices for gpu in own[pod][1] or ())
            shares.append(
                NodeShare(
                    fleet.nodes[position].name,
                    tuple(indices),
                    gpus,
                    part.busbw,
                    part.best,
                    fleet.paths[position],
                )
            )
        level, domain = spanned(fleet, own[0][0], own[-1][0])
        placed[name] = RolePlacement(
            role=name,
            gpus=seat.role.gpus,
            slots=tuple(Slot(pod, fleet.nodes[at].name, gpus) for pod, (at, gpus) in enumerate(own)),
            shares=tuple(shares),
            level=level_names(fleet)[level],
            domain=domain.name,
            why=steps,
        )
    return placed


def _level_step(board: Board, found: GangChoice, level: int, name: str) -> Step:
    words = level_words(board.fleet)
    others = found.rivals - 1
    return Step(
        criterion="level",
        chosen="the whole cluster" if level > len(board.fleet.tiers) else f"one {words[level]}: {name}",
        runner_up=f"{plural(others, 'other ' + words[found.level])} may do" if others > 0 else "",
        bound=f"no {words[found.level - 1]} holds all roles" if found.level else "no level is closer",
        proven=found.level_exact,
    )


def _steps(turn: Turn, choice: RoleChoice, served: StepTraffic | None, *, exact: bool) -> Iterator[Step]:
    board, seat, nodes = turn.board, turn.seat, len(choice.chosen)
    proven = choice.exact and (exact or seat not in board.deciding)
    spread = seat.role.spread is not Spread.NONE
    if served is not None:
        workers = f"the least beside the nodes of {seat.role.serves}"
        yield Step(
            "step time", f"{served.servers:.3g} s for each GB of parameters", bound=workers, proven=proven
        )
    yield Step("nodes", plural(nodes, "node"), bound=_together(seat, spread=spread), proven=proven)
    busbw = choice.busbw
    if seat.role.gpus and not isinf(busbw):
        yield Step("busbw", f"{busbw:.3g} GB/s" if busbw else "unknown links", proven=proven)
    if served is not None:
        return
    if any(state.total for state in board.fleet.states):
        yield Step("left over", f"{plural(choice.stranded, 'GPU')} free on these nodes", proven=proven)


def _together(seat: Seat, *, spread: bool) -> str:
    if len(seat.roles) > 1:
        return f"{' and '.join(name for name, _ in seat.roles)} are alike, and chosen for together"
    if spread:
        return "spread as far as there are nodes"
    if seat.beside:
        return "beside the pods that it is tied to"
    return "in whole slices" if seat.slices or seat.whole > 1 else ""


def _notes(board: Board) -> Iterator[str]:
    if any(seat.beside or seat.slices or seat.whole > 1 for seat in board.seats):
        yield "ties and slices hold where every pod is pinned to its node"
