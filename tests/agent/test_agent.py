"""The agent publishes on change only, and continues through failures; its objects ask for little."""

import json
from dataclasses import replace

import pytest

from arena_topo.agent.run import Agent
from arena_topo.errors import ArenaTopoError
from arena_topo.model.cluster import Hardware
from arena_topo.model.keys import GPU_TOPOLOGY
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from arena_topo.topology.objects import NodeFacts, PodKey
from arena_topo.topology.sources.annotation import read_annotation
from tests.topology.texts import saved


class World:
    """What an agent sees and does: its hardware and users may change or fail between looks."""

    def __init__(self) -> None:
        self.hardware: Hardware | None = parse_matrix(saved("dgx-a100-mlx5.txt"))
        self.users: dict[PodKey, tuple[int, ...]] = {}
        self.published: list[str] = []
        self.reports: list[str] = []
        self.looks = 0
        self.refused = False

    def agent(self) -> Agent:
        """Return an agent in this world."""
        return Agent(self.look, lambda _: self.users, self.publish, self.now, self.reports.append, self.found)

    def look(self) -> Hardware:
        """Return the hardware, or fail."""
        if self.hardware is None:
            raise ArenaTopoError("the driver is gone")
        return self.hardware

    def now(self) -> str:
        """Return a time that moves on with each look."""
        self.looks += 1
        return f"2026-11-21T08:00:{self.looks:02}Z"

    def found(self) -> str:
        """Return what the node has."""
        return self.published[-1] if self.published else ""

    def publish(self, value: str) -> None:
        """Take the annotation's value, or refuse it."""
        if self.refused:
            raise ArenaTopoError("nodes is forbidden")
        self.published.append(value)


def test_the_value_reads_back_as_hardware_and_users() -> None:
    """What the agent writes is what the reader of the annotation takes."""
    world = World()
    world.users = {("team-a", "worker-0"): (0, 1)}
    (reading,) = read_annotation(NodeFacts("n", annotations={GPU_TOPOLOGY: world.agent().value()}))
    assert world.hardware is not None

    assert (world.hardware.links, world.users) == (reading.links, reading.users)


def test_only_changes_are_published() -> None:
    """The time alone is no change; a new user is."""
    world = World()
    agent = world.agent()
    first = agent.publish_if_changed()
    same = agent.publish_if_changed(first)
    world.users = {("team-a", "worker-0"): (0,)}
    changed = agent.publish_if_changed(same)

    assert same is first
    assert [first, changed] == world.published
    assert json.loads(changed)["users"] == {"team-a/worker-0": [0]}


@pytest.mark.parametrize(
    "found", ["", "{", "[]", '{"v":0}'], ids=["nothing", "no JSON", "no object", "older"]
)
def test_whatever_else_stands_there_is_replaced(found: str) -> None:
    """After a restart the agent compares with what the node has."""
    world = World()
    world.agent().publish_if_changed(found)

    assert 1 == len(world.published)


def test_failures_are_reported_once_and_overcome() -> None:
    """The driver goes away for two looks, then the API server refuses, then all is well again."""
    world = World()
    hardware = world.hardware
    steps = iter(["gone", "gone", "refused", "well"])

    def wait() -> bool:
        step = next(steps, None)
        world.hardware = None if step == "gone" else hardware and replace(hardware, nics=())
        world.refused = step == "refused"
        return step is not None

    world.agent().run("", wait)

    assert [report.partition(" bytes")[0].rstrip("0123456789") for report in world.reports] == [
        "published ",
        "error: the driver is gone",
        "error: nodes is forbidden",
        "published ",
    ]
    assert 2 == len(world.published)


def test_without_a_kubelet_there_are_no_users() -> None:
    """A saved matrix can be published from anywhere."""
    world = World()
    agent = replace(world.agent(), users=None)

    assert json.loads(agent.value())["users"] == {}


@pytest.mark.parametrize("others", ["", "{}", "rubbish"])
def test_what_somebody_else_did_to_the_annotation_is_mended(others: str) -> None:
    """The tenth reading looks at the node; the nine before trust what was published."""
    world = World()
    node = [""]
    looks: list[int] = []

    def publish(value: str) -> None:
        world.published.append(value)
        node[0] = value

    def wait() -> bool:
        looks.append(len(world.published))
        node[0] = others
        return len(looks) < 12

    replace(world.agent(), publish=publish, found=lambda: node[0]).run("", wait)

    assert [1] * 9 + [2] * 3 == looks
