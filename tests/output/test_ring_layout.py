"""Where GPUs stand on the ring of a drawing."""

import pytest

from arena_topo.output.svg import ring_of
from tests.output.clusters import machine


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("h200", [(0, (0, 1, 2, 3)), (1, (4, 5, 6, 7))]),
        ("dgxa100", [(1, (2, 3)), (3, (0, 1)), (5, (6, 7)), (7, (4, 5))]),
        ("v100", [(0, (0, 3, 2, 1)), (1, (4, 7, 6, 5))]),
    ],
)
def test_gpus_are_grouped_by_socket(kind: str, expected: list[tuple[int, tuple[int, ...]]]) -> None:
    """Within a group linked GPUs stand near each other."""
    node = machine("gpu-1", kind)

    assert expected == list(ring_of(node, node.gpu_total).groups)
