"""A fleet that was derived from another one is the one that a new look at all nodes gives."""

from dataclasses import replace
from random import Random

import pytest

from arena_topo.model.cluster import Fabric, GpuNode, Snapshot
from arena_topo.model.keys import HOSTNAME
from arena_topo.planner.fleet import Fleet, Fleets, make_fleet

GPU = "nvidia.com/gpu"
NODES = 12


def some_node(random: Random, number: int) -> GpuNode:
    """Return a node in some state."""
    labels = {HOSTNAME: f"n{number}"} if random.random() < 0.9 else {}
    return GpuNode(
        name=f"n{number}",
        labels=labels,
        unschedulable=random.random() < 0.2,
        allocatable={GPU: random.choice([4, 8]), "cpu": 96000, "pods": 110},
        requested={GPU: random.randrange(5), "cpu": random.randrange(9) * 1000},
    )


def facts(fleet: Fleet) -> dict[str, object]:
    """Return what a fleet says, by itself and of what is derived from it."""
    given = ("nodes", "state_ids", "states", "tiers", "domains", "paths")
    derived = (
        "without_hostname",
        "nodes_by_state",
        "free_gpus_before",
        "free_rates",
        "parents",
        "hardware_ids",
    )
    return {
        **{name: getattr(fleet, name) for name in (*given, *derived)},
        "free": [fleet.free[resource] for resource in (GPU, "cpu", "pods")],
        "unused": fleet.unused,
        "parts": [fleet.parts[tier] for tier in range(len(fleet.tiers) + 1)],
        "least": [fleet.least_free[resource] for resource in (GPU, "cpu", "pods")],
    }


@pytest.mark.parametrize("seed", range(20))
def test_a_fleet_of_one_snapshot_after_the_other_is_a_new_one(seed: int) -> None:
    """Some nodes change, now and then the fabric, or which nodes there are."""
    random = Random(seed)
    paths = {f"n{number}": (f"row{number % 2}", f"rack{number % 4}") for number in range(NODES)}
    fabric = Fabric(("row", "rack"), paths)
    snapshot = Snapshot(tuple(some_node(random, number) for number in range(NODES)), fabric)
    fleets = Fleets()
    for _ in range(30):
        nodes = list(snapshot.nodes)
        for _ in range(random.randrange(3)):
            at = random.randrange(len(nodes))
            nodes[at] = some_node(random, int(nodes[at].name[1:]))
        if random.random() < 0.1:
            nodes = [some_node(random, number) for number in range(random.randrange(1, NODES))]
        if random.random() < 0.1:
            fabric = replace(fabric, paths={**paths, "n3": ("row0", "rack0")})
        snapshot = Snapshot(tuple(nodes), fabric)
        assert facts(make_fleet(snapshot)) == facts(fleets.of(snapshot))


def test_a_fleet_is_approached_in_steps() -> None:
    """However far the next snapshot is, and the fleet is the one of that snapshot then."""
    random, many = Random(1), 500
    first, last = (Snapshot(tuple(some_node(random, number) for number in range(many))) for _ in range(2))
    # As two states of one cluster have it.
    last = replace(last, fabric=first.fabric)
    fleets = Fleets()
    fleets.of(first)
    assert len(list(fleets.approach(last))) > 2
    assert facts(make_fleet(last)) == facts(fleets.of(last))
    assert [] == list(fleets.approach(last))


def test_where_nothing_is_known_nothing_is_approached() -> None:
    """Neither before the first snapshot, nor where the nodes are others."""
    snapshot = Snapshot((some_node(Random(1), 1),))
    fleets = Fleets()
    assert [] == list(fleets.approach(snapshot))
    fleets.of(Snapshot())
    assert [] == list(fleets.approach(snapshot))


def test_fleets_that_are_far_from_each_other_are_kept() -> None:
    """Anyone who looks at what is free now, and at what will be, has both of them at hand."""
    random, many = Random(1), 300
    now = Snapshot(tuple(some_node(random, number) for number in range(many)))
    later = replace(now, nodes=tuple(some_node(random, number) for number in range(many)))
    fleets = Fleets()
    of_now, of_later = fleets.of(now), fleets.of(later)
    assert of_now is fleets.of(now)
    assert of_later is fleets.of(later)
