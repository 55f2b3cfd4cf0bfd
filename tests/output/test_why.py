"""What ``why`` prints fits a screen, hides nothing from programs, and does nothing to a terminal."""

import json
from dataclasses import replace

import jsonschema
import pytest

from arena_topo.diagnosis.verdict import Absent, Rank, judge
from arena_topo.output.why import why_document, why_text
from tests.diagnosis.looks import LOAD, REDUCE, rank
from tests.paths import ROOT

SCHEMA = json.loads((ROOT / "docs/reference/schemas/why.json").read_text("utf-8"))
LATE = [*(rank(number, REDUCE, REDUCE, cpu=2.0) for number in range(7)), rank(7, LOAD, LOAD)]


def test_the_answer_comes_first_and_then_who() -> None:
    """The whole of it."""
    expected = """\
job is waiting: 7 ranks wait in MPI_Allreduce for rank 7 (job-worker-3, n3, GPU 1), \
which has been at load (train.py:4), called by <module> (train.py:7) for 2s

RANK  INSTANCE      NODE  GPU  WHAT IT DOES
7     job-worker-3  n3    1    has been at load (train.py:4), called by <module> (train.py:7) for 2s

RANKS  HOW MANY  WHAT THEY DO
0-6    7 ranks   in MPI_Allreduce
7      1 rank    at load (train.py:4), called by <module> (train.py:7)
"""
    assert expected == why_text("job", judge(LATE))


def test_a_thousand_ranks_take_one_screen() -> None:
    """JSON has all of them."""
    ranks = [rank(number, REDUCE, REDUCE, cpu=2.0) for number in range(800)]
    ranks += [
        replace(one, number=number) for number, one in ((at, rank(7, LOAD, LOAD)) for at in range(800, 1000))
    ]
    verdict = judge(ranks)
    text = why_text("job", verdict)
    assert len(text.splitlines()) < 24
    assert "and 192 more: -o json has all" in text
    assert 200 == len(why_document("job", "ns", verdict)["suspects"])


@pytest.mark.parametrize(
    ("ranks", "absent"),
    [
        (LATE, ()),
        (LATE[:7], (Absent(why="it \x1b[2Jis\ngone", pod="job-worker-3"),)),
        ([], ()),
        ([rank(number, (), (), wait="\x1b[2J") for number in range(3)], ()),
    ],
    ids=["late", "absent", "none", "hostile"],
)
def test_documents_have_the_documented_shape(ranks: list[Rank], absent: tuple[Absent, ...]) -> None:
    """What containers and servers say comes out printable as text."""
    verdict = judge(ranks, absent)
    jsonschema.Draft202012Validator(SCHEMA).validate(why_document("job", "ns", verdict))
    assert why_text("job", verdict).replace("\n", "").isprintable()
