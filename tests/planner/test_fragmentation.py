"""What free GPUs are good for, and whether the moves that are advised hold."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import GpuNode, Holder, LinkGraph, Snapshot, Taint
from arena_topo.model.reports import Fragmentation, JobShare, Move
from arena_topo.planner.advise import fragmentation
from tests.examples import examples
from tests.planner.fleets import NVIDIA, PCIE, SWITCHED, V100, cluster, node


def held(name: str, jobs: Mapping[str, tuple[int, ...]], *, links: LinkGraph = V100) -> GpuNode:
    """Return a node on which each of *jobs* has one pod with the given GPUs."""
    holders = [Holder("n", f"{job}-{name}", job, len(gpus), gpus) for job, gpus in jobs.items()]
    used = sorted(gpu for gpus in jobs.values() for gpu in gpus)
    return node(name, used, links, holders=holders)


FOUR = held("a1", {"y": (0, 1, 2, 3)}, links=SWITCHED)


def racks(*nodes: GpuNode) -> Snapshot:
    """Return *nodes* in the racks that their first letters name."""
    return cluster(nodes, {each.name: (each.name[0],) for each in nodes}, "rack")


def moved(snapshot: Snapshot, move: Move) -> Snapshot:
    """Return *snapshot* after *move*, which must take GPUs from the job and find the others free."""
    nodes = {each.name: each for each in snapshot.nodes}
    for part in move.source:
        nodes[part.node] = _given_back(nodes[part.node], move.job, part)
    for part in move.target:
        nodes[part.node] = _taken(nodes[part.node], move, part)
    return replace(snapshot, nodes=tuple(nodes.values()))


def _given_back(before: GpuNode, job: str, part: JobShare) -> GpuNode:
    mine = [each for each in before.holders if f"{each.namespace}/{each.job}" == job]
    assert before.used is not None
    assert part.gpus == tuple(sorted(gpu for each in mine for gpu in each.indices or ()))
    left = {name: count for name, count in before.requested.items() if name != NVIDIA}
    return replace(
        before,
        used=before.used - set(part.gpus),
        requested={**left, NVIDIA: before.requested[NVIDIA] - part.count},
        holders=tuple(each for each in before.holders if each not in mine),
    )


def _taken(before: GpuNode, move: Move, part: JobShare) -> GpuNode:
    assert before.used is not None
    assert part.gpus is not None
    assert not before.used & set(part.gpus)
    assert part.count == len(set(part.gpus))
    namespace, _, job = move.job.partition("/")
    holder = Holder(namespace, f"{job}-moved", job, part.count, part.gpus)
    return replace(
        before,
        used=before.used | set(part.gpus),
        requested={**before.requested, NVIDIA: before.requested[NVIDIA] + part.count},
        holders=(*before.holders, holder),
    )


def rooms(found: Fragmentation) -> dict[tuple[int, str], int]:
    """Return how many workers of each shape fit, in all and in one domain of each level."""
    counts = {(shape.gpus, ""): shape.workers for shape in found.shapes}
    for shape in found.shapes:
        counts |= {
            (shape.gpus, level): count for level, count in zip(found.levels, shape.in_one, strict=True)
        }
    return counts


def test_room_is_counted_by_shape_and_level() -> None:
    """Half of what is free is of no use to workers that need a whole machine."""
    found = fragmentation(racks(held("a0", {"x": (0, 1, 2, 3)}), held("a1", {"y": (0,)}), held("b0", {})))

    assert (19, 24, 0) == (found.free, found.total, found.closed)
    assert {1: 19, 2: 9, 4: 4, 8: 1} == {each.gpus: each.workers for each in found.shapes}
    assert {1: 24, 2: 12, 4: 6, 8: 3} == {each.gpus: each.empty for each in found.shapes}
    assert (8, 11, 19) == found.shapes[0].in_one
    assert 8 == found.shapes[3].usable


def test_whole_nodes_are_counted_side_by_side() -> None:
    """Two racks of two: a pair in each when empty, none when one node of each is in use."""
    found = fragmentation(
        racks(held("a0", {}), held("a1", {"x": (0,)}), held("b0", {}), held("b1", {"y": (3,)}))
    )

    assert [(1, (2, 2), (4, 4)), (2, (0, 1), (2, 2)), (4, (0, 0), (0, 1))] == [
        (each.nodes, each.now, each.empty) for each in found.whole
    ]


def test_the_best_busbw_falls_with_the_good_links_in_use() -> None:
    """A pair of a V100 machine with a single link is left."""
    found = fragmentation(racks(held("a0", {"x": (2, 3, 4, 5, 6, 7)})))

    pair = found.shapes[1]
    assert pair.busbw is not None
    assert pair.best is not None
    assert 0 < pair.busbw < pair.best


def test_free_gpus_of_closed_nodes_are_told_apart() -> None:
    """Cordoned, tainted and broken ones; a taint for GPU jobs does not close a node."""
    nodes = [
        node("a0", unschedulable=True),
        node("a1", taints=[Taint("team", "x", "NoSchedule")]),
        node("a2", ready=False),
        node("a3", taints=[Taint(NVIDIA, "", "NoSchedule")]),
    ]
    found = fragmentation(cluster(nodes))

    assert (8, 24, 32) == (found.free, found.closed, found.total)


def test_a_small_job_is_moved_out_of_a_whole_node() -> None:
    """Into the hole of another, and the gain is a worker of eight GPUs."""
    found = fragmentation(racks(held("a0", {"x": (2,)}), held("a1", {"y": (0, 1, 2, 3)})))

    (move,) = found.moves
    assert ("n/x", "a0", "a1") == (move.job, move.source[0].node, move.target[0].node)
    assert (8, "", 0, 1) == (
        move.gains[0].gpus,
        move.gains[0].level,
        move.gains[0].before,
        move.gains[0].after,
    )


def test_no_move_is_advised_where_none_helps() -> None:
    """A full cluster and an empty one."""
    assert () == fragmentation(racks(held("a0", {}), held("a1", {}))).moves
    assert () == fragmentation(racks(held("a0", {"x": tuple(range(8))}))).moves


def test_a_job_is_not_moved_to_slower_links() -> None:
    """The only hole is a machine without NVLink."""
    nodes = (held("a0", {"x": (0, 3)}), held("a1", {"y": (0, 1)}, links=PCIE))

    assert "n/x" not in {move.job for move in fragmentation(racks(*nodes)).moves}


def test_a_job_whose_gpus_are_not_told_stays() -> None:
    """Nobody could say what its move frees."""
    unknown = node("a0", [0], SWITCHED, holders=[Holder("n", "p", "x", 1, None)])

    assert ["n/y"] == [move.job for move in fragmentation(racks(unknown, FOUR)).moves]


def test_pods_without_a_job_stay() -> None:
    """Nobody would start them again."""
    alone = node("a0", [0], SWITCHED, holders=[Holder("n", "p", "", 1, (0,))])

    assert ["n/y"] == [move.job for move in fragmentation(racks(alone, FOUR)).moves]


def test_an_empty_cluster_of_no_nodes_has_nothing_to_tell() -> None:
    """And nodes without GPUs neither."""
    for snapshot in (Snapshot(), cluster([GpuNode("cpu-0", allocatable={"cpu": 4000})])):
        found = fragmentation(snapshot)
        assert (0, 0, (), ()) == (found.free, found.total, found.shapes, found.moves)


@st.composite
def occupied(draw: st.DrawFn) -> Snapshot:
    """Draw a few machines in racks with jobs of one to three alike pods on them."""
    count = draw(st.integers(2, 5))
    free = {i: draw(st.permutations(range(8))) for i in range(count)}
    jobs: list[dict[str, tuple[int, ...]]] = [{} for _ in range(count)]
    for job in range(draw(st.integers(1, 6))):
        gpus = draw(st.sampled_from([1, 1, 2, 3, 4]))
        for i in draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True)):
            if len(free[i]) >= gpus:
                jobs[i][f"j{job}"] = tuple(free[i][:gpus])
                free[i] = free[i][gpus:]
    kinds = [draw(st.sampled_from([V100, SWITCHED])) for _ in range(count)]
    return racks(*(held(f"{'ab'[i % 2]}{i}", jobs[i], links=kinds[i]) for i in range(count)))


@settings(max_examples=examples(150))
@given(occupied())
def test_every_move_gives_what_it_promises(snapshot: Snapshot) -> None:
    """Carried out one after the other, on free GPUs only, without loss for the job that is moved."""
    found = fragmentation(snapshot)
    event(f"{len(found.moves)} moves")
    assume(found.moves)
    for move in found.moves:
        before = rooms(fragmentation(snapshot))
        snapshot = moved(snapshot, move)
        after = rooms(fragmentation(snapshot))
        for gain in move.gains:
            key = (gain.gpus, gain.level)
            assert (before[key], after[key]) == (gain.before, gain.after)
        larger = {key for key, count in after.items() if count > before[key] and key[1] != "cluster"}
        assert larger == {(gain.gpus, gain.level) for gain in move.gains}
        assert len(move.target) <= len(move.source)
