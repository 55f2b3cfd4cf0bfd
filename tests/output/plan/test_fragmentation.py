"""What free GPUs are good for, as tables and as a document."""

import json

from arena_topo.model.plan.fragmentation import (
    Fragmentation,
    Gain,
    JobShare,
    Move,
    ShapeCapacity,
    WholeNodeCapacity,
)
from arena_topo.output.plan.fragmentation import render_fragmentation

FOUND = Fragmentation(
    free=11,
    total=16,
    closed=4,
    levels=("node", "example.com/rack", "cluster"),
    shapes=(
        ShapeCapacity(1, 11, 16, (7, 11, 11), None, None),
        ShapeCapacity(8, 0, 2, (0, 0, 0), 0.0, 231.5),
    ),
    whole=(WholeNodeCapacity(1, (0, 0), (2, 2)),),
    moves=(
        Move(
            job="team-a/vgg",
            workers=1,
            gpus=1,
            source=(JobShare("a0", 1, (3,)),),
            target=(JobShare("a1", 1, None),),
            gains=(Gain(8, "", 0, 1), Gain(8, "example.com/rack", 0, 1), Gain(4, "", 2, 3)),
        ),
    ),
)

TEXT = """\
11 of 16 GPUs are free; 4 more on nodes that take no pods

GPUS EACH  WORKERS  IF EMPTY  USABLE  IN ONE NODE  IN ONE RACK  BUSBW  IF EMPTY
1          11       16        100%    7            11           -      -
8          0        2         0%      0            0            -      231.5

Gangs of wholly free nodes, side by side: now / on the empty cluster
NODES  RACK   CLUSTER
1      0 / 2  0 / 2

Moves that would help, in this order (advice; nothing is moved)
1. job team-a/vgg, 1 worker of 1 GPU
   from a0 (1 GPU: 3) to a1 (1 GPU)
   workers of 8 GPUs: 0 -> 1, 0 -> 1 in one rack
   workers of 4 GPUs: 2 -> 3
"""


def test_rooms_and_moves_are_tables_and_sentences() -> None:
    """What is not known is a dash."""
    assert TEXT == render_fragmentation(FOUND)


def test_a_narrow_terminal_has_no_places_in_one_domain() -> None:
    """The widest level goes first."""
    lines = render_fragmentation(FOUND, width=70).splitlines()

    assert "hidden: IN ONE RACK; a wider terminal shows them" in lines
    assert all(len(line) <= 70 for line in lines if line.startswith(("GPUS", "1 ", "8 ")))


def test_the_document_names_every_field() -> None:
    """With null where nothing is known."""
    found = json.loads(render_fragmentation(FOUND, "json"))

    assert (11, 16, 4) == (found["free"], found["total"], found["closed"])
    assert found["shapes"][0]["busbw"] is None
    assert {"node": "a1", "count": 1, "gpus": None} == found["moves"][0]["target"][0]
