"""What is said of a job by looks at its ranks, and what is not."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.diagnosis.verdict import (
    Absent,
    Backlog,
    Finding,
    Frame,
    Rank,
    State,
    judge,
    judge_findings,
    judge_links,
    judge_shared,
    judge_speed,
)
from tests.diagnosis.looks import BARRIER, LOAD, REDUCE, TRAIN, rank

MISSING = (Absent(why="its node n2 is NotReady", pod="job-worker-2", ranks=(5,)),)


def waiting(count: int = 8, stack: tuple[Frame, ...] = REDUCE, but: Sequence[int] = (5,)) -> list[Rank]:
    """Return ranks that poll in a collective in both looks, without some of them."""
    return [rank(number, stack, stack, cpu=2.0) for number in range(count) if number not in but]


CASES: dict[str, tuple[list[Rank], tuple[Absent, ...], State, tuple[int | None, ...], str]] = {
    "a rank that stands still": (
        [*waiting(), rank(5, LOAD, LOAD)],
        (),
        State.WAITING,
        (5,),
        (
            "7 ranks wait in MPI_Allreduce for rank 5 (job-worker-2, n2, GPU 1), which has been at load (train.py:4), "
            "called by <module> (train.py:7) for 2s"
        ),
    ),
    "a rank that works": (
        [*waiting(), rank(5, TRAIN, TRAIN, cpu=2.0)],
        (),
        State.WAITING,
        (5,),
        (
            "7 ranks wait in MPI_Allreduce for rank 5 (job-worker-2, n2, GPU 1), which works at forward (train.py:30), "
            "called by <module> (train.py:7)"
        ),
    ),
    "a rank in another collective": (
        [*waiting(), rank(5, BARRIER, BARRIER)],
        (),
        State.WAITING,
        (5,),
        (
            "collectives do not match: 7 ranks in MPI_Allreduce, rank 5 (job-worker-2, n2, GPU 1), "
            "which has been in MPI_Barrier for 2s"
        ),
    ),
    "a stopped rank": (
        [*waiting(), rank(5, (), (), state="T")],
        (),
        State.STUCK,
        (5,),
        "rank 5 (job-worker-2, n2, GPU 1) is stopped by a signal (SIGSTOP)",
    ),
    "a pod that does not answer": (
        waiting(),
        MISSING,
        State.WAITING,
        (5,),
        "7 ranks wait in MPI_Allreduce for rank 5 (job-worker-2): its node n2 is NotReady",
    ),
    "both ranks of a node": (
        [*waiting(but=(4, 5)), rank(4, LOAD, LOAD), rank(5, LOAD, LOAD)],
        (),
        State.WAITING,
        (4, 5),
        (
            "6 ranks wait in MPI_Allreduce for ranks 4-5 (job-worker-2, n2), which have been at load (train.py:4), "
            "called by <module> (train.py:7) for 2s"
        ),
    ),
    "bytes flow": (
        [rank(number, REDUCE, REDUCE, moved=1 << 20) for number in range(7)] + [rank(7, LOAD, LOAD)],
        (),
        State.HEALTHY,
        (),
        "7 of 8 ranks made progress within 2s",
    ),
    "collectives come and go": (
        [rank(number, REDUCE, TRAIN, cpu=2.0, moved=None) for number in range(4)],
        (),
        State.HEALTHY,
        (),
        "4 of 4 ranks made progress within 2s",
    ),
    "the late one came and went": (
        [*waiting(), rank(5, LOAD, REDUCE)],
        (),
        State.HEALTHY,
        (),
        "rank 5 (job-worker-2, n2, GPU 1) came and went within 2s",
    ),
    "few bytes, again and again": (
        [rank(number, REDUCE, REDUCE, REDUCE, moved=9) for number in range(4)],
        (),
        State.HEALTHY,
        (),
        "4 of 4 ranks made progress within 4s",
    ),
    "all in one collective": (
        waiting(but=()),
        (),
        State.UNDECIDED,
        (),
        "all 8 ranks are in MPI_Allreduce, and none differs from the others",
    ),
    "two ranks": (
        [rank(0, REDUCE, REDUCE, cpu=2.0), rank(1, LOAD, LOAD)],
        (),
        State.UNDECIDED,
        (),
        "no majority of the 2 ranks does the same",
    ),
    "two halves": (
        [*waiting(4, but=()), *[rank(number, BARRIER, BARRIER) for number in range(4, 8)]],
        (),
        State.UNDECIDED,
        (),
        "no majority of the 8 ranks does the same",
    ),
    "others compute": (
        [*waiting(stack=TRAIN), rank(5, LOAD, LOAD)],
        (),
        State.UNDECIDED,
        (),
        (
            "7 of 8 ranks are at forward (train.py:30), called by <module> (train.py:7), "
            "and nothing shows that they wait for the others"
        ),
    ),
    "without stacks, one sleeps elsewhere": (
        [rank(number, (), (), wait="futex_wait_queue") for number in range(7)]
        + [rank(7, (), (), wait="hrtimer_nanosleep")],
        (),
        State.WAITING,
        (7,),
        (
            "7 of 8 ranks stand still sleeping in futex_wait_queue; rank 7 (job-worker-3, n3, GPU 1), "
            "which has been sleeping in hrtimer_nanosleep for 2s"
        ),
    ),
    "without stacks, two are elsewhere": (
        [rank(number, (), (), wait="futex_wait_queue") for number in range(6)]
        + [rank(number, (), (), wait="hrtimer_nanosleep") for number in (6, 7)],
        (),
        State.UNDECIDED,
        (),
        "6 of 8 ranks are sleeping in futex_wait_queue, and nothing shows that they wait for the others",
    ),
    "nothing can be read": (
        [rank(number, (), (), moved=None) for number in range(4)],
        (),
        State.UNDECIDED,
        (),
        "what the 4 ranks do cannot be read",
    ),
    "nobody": (
        [],
        MISSING,
        State.UNDECIDED,
        (5,),
        "no rank was seen; rank 5 (job-worker-2): its node n2 is NotReady",
    ),
}


@pytest.mark.parametrize(("ranks", "absent", "state", "named", "message"), CASES.values(), ids=CASES)
def test_a_verdict_says_who_and_where(
    ranks: list[Rank], absent: tuple[Absent, ...], state: State, named: tuple[int | None, ...], message: str
) -> None:
    """No more than two looks show: nobody is called stuck who may only be late."""
    verdict = judge(ranks, absent)
    assert (state, message) == (verdict.state, verdict.message)
    assert named == tuple(suspect.rank for suspect in verdict.suspects)


@pytest.mark.parametrize(
    ("late", "patience", "state"),
    [
        (rank(5, LOAD, LOAD, pause=60.0), 60.0, State.STUCK),
        (rank(5, LOAD, LOAD, pause=60.0), None, State.WAITING),
        (rank(5, LOAD, LOAD, pause=60.0), 90.0, State.WAITING),
        (rank(5, LOAD, LOAD, pause=60.0, cpu=30.0), 60.0, State.WAITING),
        (rank(5, LOAD, LOAD, pause=60.0, moved=9), 60.0, State.WAITING),
        (rank(5, LOAD, LOAD, pause=60.0, moved=None), 60.0, State.WAITING),
        (rank(5, LOAD, TRAIN, pause=60.0), 60.0, State.WAITING),
        (rank(5, BARRIER, BARRIER, pause=60.0, cpu=60.0), 60.0, State.STUCK),
    ],
    ids=["still", "not asked", "too early", "works", "reads", "unknown", "continues", "another collective"],
)
def test_only_a_rank_that_stands_still_for_long_is_stuck(
    late: Rank, patience: float | None, state: State
) -> None:
    """Its stack, its CPU time and its bytes, or a collective that the others are not in."""
    ranks = [rank(number, REDUCE, REDUCE, cpu=60.0, pause=60.0) for number in range(8) if number != 5]
    verdict = judge([*ranks, late], patience=patience)
    assert (state, [5]) == (verdict.state, [suspect.rank for suspect in verdict.suspects])


BEHIND = Finding(5, "has launched AllReduce 60 and not the next", "7 ranks have launched 64")
ALL_ALIKE = "all 8 ranks are in MPI_Allreduce, and none differs from the others"


@pytest.mark.parametrize(
    ("answers", "state", "named", "message"),
    [
        (
            [{BEHIND}, {BEHIND}],
            State.WAITING,
            [5],
            "rank 5 (job-worker-2, n2, GPU 1) has launched AllReduce 60 and not the next; 7 ranks have launched 64",
        ),
        (
            [{BEHIND, replace(BEHIND, rank=4)}] * 2,
            State.WAITING,
            [4, 5],
            "ranks 4-5 (job-worker-2, n2) have launched AllReduce 60 and not the next; 7 ranks have launched 64",
        ),
        (
            [{BEHIND, Finding(3, "is not reached by NCCL")}] * 2,
            State.WAITING,
            [3, 5],
            "rank 3 (job-worker-1, n1, GPU 1) is not reached by NCCL; 1 further rank in the table",
        ),
        (
            [{BEHIND}, {replace(BEHIND, what="has launched AllReduce 61 and not the next")}],
            State.UNDECIDED,
            [],
            ALL_ALIKE,
        ),
        ([{BEHIND}, set()], State.UNDECIDED, [], ALL_ALIKE),
        ([{BEHIND}], State.UNDECIDED, [], ALL_ALIKE),
        ([], State.UNDECIDED, [], ALL_ALIKE),
        ([{replace(BEHIND, rank=rank) for rank in range(3)}] * 2, State.UNDECIDED, [], ALL_ALIKE),
        ([{replace(BEHIND, rank=9)}] * 2, State.UNDECIDED, [], ALL_ALIKE),
    ],
    ids=[
        "behind",
        "two",
        "two reasons",
        "continues",
        "a moment",
        "one answer",
        "none",
        "too many",
        "unknown",
    ],
)
def test_the_rank_that_is_behind_is_named_where_all_seem_to_wait(
    answers: list[set[Finding]], state: State, named: list[int], message: str
) -> None:
    """A rank that did one collective too few hangs with the stack of the others: only counts show it."""
    ranks = waiting(but=())
    verdict = judge_findings(judge(ranks), ranks, answers)
    assert (state, message) == (verdict.state, verdict.message)
    assert named == [suspect.rank for suspect in verdict.suspects]


def test_counts_support_what_the_looks_show() -> None:
    """They change neither who is named nor what is known of a job that runs."""
    ranks = [*waiting(), rank(5, LOAD, LOAD)]
    before = judge(ranks)
    verdict = judge_findings(before, ranks, [{BEHIND}, {BEHIND}])
    assert (before.state, before.suspects) == (verdict.state, verdict.suspects)
    assert verdict.message.startswith(f"{before.message}; rank 5 (job-worker-2, n2, GPU 1) has launched")
    running = [rank(number, REDUCE, REDUCE, moved=1 << 20) for number in range(8)]
    assert judge(running) == judge_findings(judge(running), running, [{BEHIND}, {BEHIND}])


@pytest.mark.parametrize(
    ("patience", "state"), [(60.0, State.STUCK), (90.0, State.WAITING), (None, State.WAITING)]
)
def test_only_a_rank_that_is_behind_for_long_and_idle_is_stuck(patience: float | None, state: State) -> None:
    """Like one that the stacks name."""
    ranks = [rank(number, REDUCE, REDUCE, pause=60.0) for number in range(8)]
    verdict = judge_findings(judge(ranks, patience=patience), ranks, [{BEHIND}] * 4, patience=patience)
    assert (state, [5]) == (verdict.state, [suspect.rank for suspect in verdict.suspects])


STACKS = st.sampled_from([REDUCE, BARRIER, LOAD, TRAIN, ()])


@given(
    st.lists(
        st.tuples(STACKS, STACKS, st.sampled_from([0, 9, 1 << 20, None]), st.sampled_from("RSDT")),
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_ranks_changes_nothing(
    looks: list[tuple[tuple[Frame, ...], tuple[Frame, ...], int | None, str]], shuffle: random.Random
) -> None:
    """Answers come in any order."""
    ranks = [
        rank(number, *stacks, moved=moved, state=state)
        for number, (*stacks, moved, state) in enumerate(looks)
    ]
    shuffled = list(ranks)
    shuffle.shuffle(shuffled)
    assert judge(ranks) == judge(shuffled)


@given(st.integers(1, 64), STACKS, STACKS, st.booleans())
def test_a_healthy_group_is_never_named(
    count: int, first: tuple[Frame, ...], last: tuple[Frame, ...], flows: bool
) -> None:
    """Neither one whose bytes flow, whatever else is seen of it, nor one that does the same everywhere."""
    moved = 1 << 16 if flows else None
    late = rank(count, LOAD, LOAD, moved=1 << 20) if flows else rank(count, first, last, moved=None)
    verdict = judge([*(rank(number, first, last, moved=moved) for number in range(count)), late])
    assert () == verdict.suspects
    assert verdict.state in ({State.HEALTHY} if flows else {State.HEALTHY, State.UNDECIDED})


@given(st.integers(3, 64), st.data())
def test_one_among_ranks_that_wait_is_named(count: int, data: st.DataObject) -> None:
    """Whichever it is, and whether it works or not."""
    culprit = data.draw(st.integers(0, count - 1))
    cpu = data.draw(st.sampled_from([0.0, 2.0]))
    verdict = judge([*waiting(count, but=(culprit,)), rank(culprit, LOAD, LOAD, cpu=cpu)])
    assert (State.WAITING, [culprit]) == (verdict.state, [suspect.rank for suspect in verdict.suspects])


def test_groups_show_all_ranks() -> None:
    """The largest first, so that the reader can decide what the looks do not."""
    ranks = [*waiting(4, but=()), rank(4, LOAD, LOAD), rank(5, LOAD, TRAIN), rank(6, LOAD, LOAD)]
    verdict = judge(ranks)
    assert [
        ("in MPI_Allreduce", (0, 1, 2, 3)),
        ("at load (train.py:4), called by <module> (train.py:7)", (4, 6)),
        ("changing place", (5,)),
    ] == [(group.doing, group.ranks) for group in verdict.groups]


def test_collectives_have_the_names_that_users_call() -> None:
    """The outermost: one of Python's objects is made of several of MPI's, which differ by rank."""
    library = "mpi4py/MPI.cpython-311-x86_64-linux-gnu.so"
    lower = [rank(n, (Frame("PMPI_Bcast", "libmpi.so"), Frame("allreduce", library)), ()) for n in range(2)]
    torch = (Frame("all_reduce", "torch/distributed/distributed_c10d.py:2501"), Frame("step", "train.py:2"))
    mine = (Frame("all_reduce", "mine.py:1"),)
    for stack, doing in ((lower[0].looks[0].stack, "in allreduce"), (torch, "in all_reduce")):
        (group,) = judge([rank(n, stack, stack) for n in range(4)]).groups
        assert doing == group.doing
    (group,) = judge([rank(n, mine, mine) for n in range(4)]).groups
    assert "at all_reduce (mine.py:1)" == group.doing


def sampled(number: int, outside: int, of: int = 10) -> Rank:
    """Return a rank that was out of the collective in so many looks."""
    return rank(
        number, *(TRAIN if place < outside else REDUCE for place in range(of)), moved=1 << 20, pause=0.5
    )


@pytest.mark.parametrize(
    ("outside", "slow"),
    [
        ([1, 2, 0, 10], [3]),
        ([5, 8, 6, 7, 5, 6, 7, 10], []),
        ([1, 2, 1, 7], []),
        ([10, 10, 1, 0], []),
        ([10, 0], []),
        ([0, 0, 0, 0], []),
    ],
    ids=["one late", "steps without a wait", "a little late", "half of them", "two ranks", "nobody"],
)
def test_the_rank_that_comes_late_to_most_collectives_is_slow(outside: list[int], slow: list[int]) -> None:
    """Where half of the others mostly wait."""
    verdict = judge_speed([sampled(number, count) for number, count in enumerate(outside)])
    assert slow == ([suspect.rank for suspect in verdict.suspects] if verdict else [])
    if verdict:
        assert State.SLOW is verdict.state
        assert (
            "3 ranks wait again and again for rank 3 (job-worker-1, n1, GPU 1), mostly at forward"
            in verdict.message
        )
        assert verdict.message.endswith(", 10.0 times as long outside the collectives as the others")


def test_without_stacks_nobody_is_slow() -> None:
    """CPU time tells nothing: those that poll use as much."""
    ranks = [sampled(0, 10), *(sampled(number, 0) for number in (1, 2, 3))]
    blind = replace(ranks[2], looks=tuple(replace(look, stack=()) for look in ranks[2].looks))
    assert judge_speed(ranks) is not None
    assert judge_speed([*ranks[:2], blind, ranks[3]]) is None


RACKS = {f"n{number}": ("zone z0", f"rack r{number // 2}") for number in range(16)}


@pytest.mark.parametrize(
    ("late", "domains", "shared"),
    [
        ((4, 5), {}, "node n2"),
        ((4, 5, 6, 7), RACKS, "rack r1"),
        ((4, 5, 6, 7), {}, ""),
        ((4, 5, 6), RACKS, ""),
        ((4, 5, 8, 9), RACKS, ""),
        ((4, 5, 6, 7), {**RACKS, "n2": ("zone z0", ""), "n3": ("zone z0", "")}, ""),
        ((5,), RACKS, ""),
    ],
    ids=["a node", "a rack", "unknown racks", "a part of a node", "two racks", "no rack", "one rank"],
)
def test_a_rack_or_a_node_is_named_where_all_of_it_is_late(
    late: tuple[int, ...], domains: dict[str, tuple[str, ...]], shared: str
) -> None:
    """And nothing else of it: then a machine, a switch or an uplink is likelier than so many ranks."""
    ranks = [*waiting(16, but=late), *(rank(number, LOAD, LOAD) for number in late)]
    others = [one.node for one in ranks if one.number not in late]
    before = judge(ranks)
    verdict = judge_shared(before, others, domains)
    assert shared == verdict.shared
    if shared:
        place = f"{'on' if 'node' in shared else 'in'} {shared}"
        assert f"{before.message}; they are all that the job has {place}" == verdict.message
        assert verdict.advice.startswith("look at ")
    else:
        assert before == verdict


def between(*pairs: tuple[int, int], waiting: int = 10, unanswered: int = 0) -> list[Backlog]:
    """Return what waited in so many of ten looks, from the pod of one node to that of another."""
    return [
        Backlog(f"w{a}", f"n{a}", f"w{b}", f"n{b}", looks=10, waiting=waiting, unanswered=unanswered)
        for a, b in pairs
    ]


DEAD = between((1, 2), (2, 3), waiting=10, unanswered=10)
SLOW = between((1, 2), (2, 3))
RING = between((0, 1), (1, 2), (2, 3), (3, 0))


@pytest.mark.parametrize(
    ("backlogs", "named"),
    [
        (DEAD, ["w2"]),
        ([*DEAD, *between((0, 1), waiting=4)], ["w2"]),
        (between((0, 1), (1, 2), (2, 3), (3, 0), waiting=10, unanswered=10), []),
        (between((1, 2), (2, 3), waiting=5, unanswered=3), []),
        ([], []),
    ],
    ids=["a node", "next to one that is busy", "all links", "some losses", "nothing"],
)
def test_a_node_is_named_whose_data_nobody_acknowledges(backlogs: list[Backlog], named: list[str]) -> None:
    """Where all ranks wait alike; it may be slow, so that it is not called stuck."""
    before = judge(waiting(16, but=()))
    verdict = judge_links(before, waiting(16, but=()), backlogs)
    assert named == [suspect.pod for suspect in verdict.suspects]
    if named:
        assert verdict.state is State.WAITING
        assert verdict.message.startswith(f"{before.message}; data between n2 and the others is not ack")
    else:
        assert before == verdict


def test_of_two_nodes_it_is_said_that_nothing_passes_between_them() -> None:
    """It may be the link of either, so that none is named."""
    before = judge(waiting(16, but=()))
    verdict = judge_links(before, waiting(16, but=()), DEAD[:1])
    assert (
        f"{before.message}; data between n1 and n2 is not acknowledged: the link of one of them is down"
        == verdict.message
    )
    assert () == verdict.suspects


def test_ranks_that_are_named_stay_and_the_link_is_said_next_to_them() -> None:
    """One that hangs sends nothing: both may be so."""
    ranks = [*waiting(16, but=(5,)), rank(5, LOAD, LOAD)]
    verdict = judge_links(judge(ranks), ranks, DEAD)
    assert [5] == [suspect.rank for suspect in verdict.suspects]
    assert "data between n2 and the others is not acknowledged" in verdict.message


@pytest.mark.parametrize(
    ("backlogs", "stack", "named"),
    [
        (SLOW, REDUCE, ["w2"]),
        (SLOW, LOAD, []),
        (RING, REDUCE, []),
        ([*SLOW, *between((0, 1), waiting=2)], REDUCE, ["w2"]),
        ([*SLOW, *between((0, 1), waiting=4)], REDUCE, []),
        (between((1, 2), (2, 3), waiting=5), REDUCE, []),
        (SLOW[:1], REDUCE, []),
    ],
    ids=[
        "a node",
        "ranks that compute",
        "all alike",
        "next to calm ones",
        "next to busy ones",
        "now and then",
        "one of two",
    ],
)
def test_a_slow_link_is_named_where_its_data_always_waits(
    backlogs: list[Backlog], stack: tuple[Frame, ...], named: list[str]
) -> None:
    """Of ranks that are mostly in collectives; a job that fills all links has no slow one."""
    ranks = [rank(number, stack, stack, moved=1 << 20) for number in range(16)]
    verdict = judge_links(judge(ranks), ranks, backlogs)
    assert named == [suspect.pod for suspect in verdict.suspects]
    assert (State.SLOW if named else State.HEALTHY) is verdict.state
