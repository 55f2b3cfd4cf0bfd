"""Which colour the users of GPUs have."""

from dataclasses import replace

from arena_topo.model.cluster import GpuNode, Holder
from arena_topo.output.svg import user_colours
from tests.output.clusters import machine


def test_a_job_has_one_colour_on_all_nodes() -> None:
    """Colours are given to all holders of a page at once."""
    nodes: list[GpuNode] = [machine("a", llama=(0,)), machine("b", bert=(1,), llama=(2,))]

    assert {"team-a/bert": 1, "team-a/llama": 2} == user_colours(nodes)


def test_a_plan_has_a_colour_of_its_own_on_every_page() -> None:
    """The first, which no job has, however many there are."""
    plan = Holder("plan", "vgg-worker-0", "vgg", 1, (5,), is_planned=True)
    busy = machine("a", a=(0,), b=(1,), c=(2,), d=(3,), e=(4,))
    colours = user_colours([replace(busy, holders=(*busy.holders, plan))])

    assert ["plan/vgg"] == [key for key, colour in colours.items() if colour == 0]
