"""Which colour the users of GPUs have."""

from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.output.topology.svg.users import user_colours
from tests.output.clusters import machine


def test_a_job_has_one_colour_on_all_nodes() -> None:
    """Colours are given to all holders of a page at once."""
    nodes: list[GpuNode] = [machine("a", llama=(0,)), machine("b", bert=(1,), llama=(2,))]

    assert {"team-a/bert": 0, "team-a/llama": 1} == user_colours(nodes)
