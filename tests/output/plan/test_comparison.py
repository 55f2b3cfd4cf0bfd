"""The comparison of ways as a table and as a document."""

import json
from dataclasses import replace

from arena_topo.model.plan.comparison import Chance, Comparison, Figure, Scenario, TopologyUnaware
from arena_topo.model.plan.placement import Range
from arena_topo.output.plan.comparison import render_comparison

NOW = Scenario("", coalesce=False, workers=4, gpus=1, fits=True, level="example.com/rack", domain="r1", nodes=2, inside=93.15, across=11.5, isolated=True)  # fmt: skip
LATER = Scenario("node", coalesce=True, workers=4, gpus=1, fits=False, reason="no node", waits_for=("job n/a", "job n/b"))  # fmt: skip
NEVER = Scenario("node", coalesce=False, workers=4, gpus=1, fits=False, reason="4 workers do not fit")
LUCK = TopologyUnaware("random", 200, 4, (Chance("node", 0.25), Chance("cluster", 0.75)), 0.25, 3.5, 4, "cluster", Figure(40.0, 8.0, 0.5))  # fmt: skip
STUCK = TopologyUnaware("spread", 0, 3)
COMPARISON = Comparison(4, 1, (NOW, LATER, NEVER), (LUCK, STUCK), ("a note",))

TABLE = """\
vgg  4 workers of 1 GPU

WAY                        PODS   NOW  LEVEL          NODES  INSIDE            ACROSS  WAITS FOR         REMARK
best effort                4 x 1  yes  rack r1        2      93.15             11.5    -                 pods share a node*
required node, coalesced   4 x 1  no   -              -      -                 -       job n/a, job n/b
required node              4 x 1  no   -              -      -                 -       -                 4 workers do not fit
blind, any node: expected  4 x 1  yes  cluster (75%)  3.5    40 (50% of runs)  -       -                 25% as close as best effort
  worst of 200                         cluster        4      8                 -
blind, emptiest node       4 x 1  no   -              -      -                 -       -                 starts 3 of 4, which wait for the rest

INSIDE: busbw of the links between the gang's GPUs on a node, the lowest of the nodes, GB/s.
ACROSS: what the NICs give the GPUs of a node, the lowest of the nodes, GB/s.
*: INSIDE holds only if each pod sees all GPUs of the gang on its node; otherwise they use sockets. --coalesce packs them into larger pods.
blind: a simulated scheduler that knows neither topology nor gangs; it places each pod by itself, on any free GPUs.
a note
"""


def test_the_ways_are_one_table() -> None:
    """Every row has the same columns, and what is not known is a dash."""
    assert TABLE == render_comparison("vgg", COMPARISON)


def test_a_narrow_terminal_has_the_columns_that_decide() -> None:
    """Remarks go on below themselves, and what has no room is named."""
    table, _, rest = render_comparison("vgg", COMPARISON, width=70).partition("\nhidden: ")

    assert rest.startswith("PODS, LEVEL, NODES, INSIDE, ACROSS; a wider terminal shows them\n")
    assert "WAY" in table
    assert all(len(line) <= 70 for line in table.splitlines())


def test_what_is_predicted_has_a_column_of_its_own() -> None:
    """The busbw of the whole gang, and the images per second where the job runs a benchmark."""
    busbw, images = Range(1.7, 2.18, 2.9), Range(900.0, 1207.0, 1400.0)
    told = replace(COMPARISON, ways=(replace(NOW, busbw=busbw, images_per_second=images), LATER), blind=())
    lines = render_comparison("vgg", told).splitlines()

    assert ["NODES", "BUSBW", "IMAGES/S", "INSIDE"] == lines[2].split()[4:8]
    assert ["2", "2.18", "1207", "93.15"] == lines[3].split()[8:12]
    assert "BUSBW: predicted for the whole gang, GB/s." in lines
    assert "IMAGES/S: of the job's benchmark on all its GPUs, predicted from BUSBW." in lines


def test_a_blind_scheduler_has_the_same_figures() -> None:
    """The mean of its draws and the worst of them, so that the ways can be compared."""
    luck = replace(LUCK, busbw=Figure(0.91, 0.75, 1.0), images_per_second=Figure(700.4, 650.0, 1.0))
    told = replace(COMPARISON, ways=(replace(NOW, busbw=Range(1.7, 2.18, 2.9)),), blind=(luck,))
    lines = render_comparison("vgg", told).splitlines()

    assert ["3.5", "0.91", "700", "40"] == lines[4].split()[10:14]
    assert ["cluster", "4", "0.75", "650", "8"] == lines[5].split()[3:8]


def test_columns_in_which_nothing_differs_are_left_out() -> None:
    """One node has nothing across nodes, and what starts at once waits for nothing."""
    told = Comparison(4, 1, (replace(NOW, across=None, isolated=False),), ())
    lines = render_comparison("vgg", told).splitlines()

    assert "WAY PODS NOW LEVEL NODES INSIDE" == " ".join(lines[2].split())


def test_a_way_that_changes_nothing_is_a_line() -> None:
    """A level that best effort reaches already need not be required."""
    told = replace(COMPARISON, ways=(NOW, replace(NOW, required="node"), LATER), blind=())
    lines = render_comparison("vgg", told).splitlines()

    assert "required node: the same as best effort" in lines
    assert 1 == sum(line.startswith("required node") and "coalesced" not in line for line in lines)


def test_the_document_names_every_field() -> None:
    """As JSON with numbers in full."""
    found = json.loads(render_comparison("vgg", COMPARISON, "json"))

    assert ("arena-topo.dev/v1alpha1", "PlanComparison") == (found["apiVersion"], found["kind"])
    assert ("vgg", 4, 1) == (found["name"], found["workers"], found["gpus"])
    assert ["job n/a", "job n/b"] == found["ways"][1]["waits_for"]
    assert {"level": "node", "share": 0.25} == found["blind"][0]["levels"][0]
    assert {"mean": 40.0, "worst": 8.0, "share": 0.5} == found["blind"][0]["inside"]


def test_colour_changes_no_word() -> None:
    """The same table with a bold head."""
    coloured = render_comparison("vgg", COMPARISON, colour=True)

    assert "\x1b[1m" in coloured
    assert "25% as close as best effort" in coloured
