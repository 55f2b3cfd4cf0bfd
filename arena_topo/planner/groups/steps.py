"""Why a gang with groups of ranks is placed as it is: a step for each axis, among those of every placement."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from arena_topo.model.notation.words import plural
from arena_topo.model.plan.placement import GroupPlaces, Placement, Step
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import level_names, level_words

_CROSSING = frozenset({"pp", "dp"})


def with_group_steps(
    answer: Placement, fleet: Fleet, groups: Sequence[GroupPlaces], *, exact: bool, fewest: bool
) -> Placement:
    """Return *answer* with its *groups*, and with their steps after the level's.

    *exact*: no spread is less; *fewest*: no fewer nodes of the domain hold the gang.
    """
    words = dict(zip(level_names(fleet), level_words(fleet), strict=True))
    steps: list[Step] = []
    for step in answer.why:
        match step.criterion:
            case "level":
                # The groups decide on the level, which a gang of other workers could have closer.
                steps += [replace(step, bound=""), *_steps(groups, words, exact=exact)]
            case "fits":
                steps.append(step)
            case "left over" if step.bound:
                steps.append(replace(step, proven=True))
            case "nodes" if fewest:
                steps.append(step)
            case _:
                # Among the placements that are equally good for the groups, not all were compared.
                steps.append(replace(step, bound="", runner_up="", proven=False))
    return replace(answer, why=tuple(steps), groups=tuple(groups))


def _steps(groups: Sequence[GroupPlaces], words: dict[str, str], *, exact: bool) -> Iterator[Step]:
    for axis in groups:
        # A single domain is the least, and units are counted exactly.
        proven = exact or axis.axis not in _CROSSING or axis.spread.most == 1
        within = "the cluster" if axis.within == "cluster" else f"one {words[axis.within]}"
        touched = plural(axis.spread.most, words[axis.level])
        yield Step(
            criterion=axis.axis,
            chosen=f"each of {plural(axis.count, 'group')} within {within}"
            if axis.spread.most == 1
            else f"each of {plural(axis.count, 'group')} over {touched} at most",
            bound="no arrangement of the groups has less" if proven and axis.spread.most > 1 else "",
            proven=proven,
        )
