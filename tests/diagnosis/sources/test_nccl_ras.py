"""What NCCL answers of a job, in real answers that others recorded.

``STRAGGLER`` and ``EXITED`` are NVIDIA's, of 2.30.7 with the names of nodes masked:
https://github.com/NVIDIA/nccl, docs/examples/08_ras. ``STOPPED`` is that of its user guide, of 2.24, and
``AHEAD`` is a user's, of 2.26.2: https://github.com/NVIDIA/nccl/issues/1911.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.diagnosis.sources.nccl_ras import ASK, find_behind, read_answer
from arena_topo.diagnosis.verdict import Finding
from tests.diagnosis.sources.serving import printed_of

SUMMARY = """\
SERVER PROTOCOL 2
OK
NCCL version 2.30.7 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 13000

Job summary
===========

  Nodes    Processes          GPUs  Processes      GPUs
  (total)   per node   per process    (total)   (total)
      2            4             1          8         8

Communicators... (0.002s)
=============

Group     Comms      Nodes     Ranks     Ranks     Ranks   Status  Errors
    #  in group   per comm  per node  per comm  in group
"""
HEALTHY = f"""\
{SUMMARY}    0         1          2         4         8         8  RUNNING      OK

Errors
======


Warnings
========
"""
STRAGGLER = f"""\
{SUMMARY}    0         1          2         4         8         8  RUNNING  MISMATCH

Errors
======


Warnings
========

#0-0 (78db921d1c117b4a) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1
"""
EXITED = f"""\
{SUMMARY}    0         1          2       3-4         8         7  RUNNING  INCOMPLETE

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3748990 on node node1 managing GPU 3

#0-0 (1bdb83b038775869) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 7 -- GPU 3 managed by process 3748990 on node node1

Warnings
========
"""
OF_32 = """\
Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
"""
STOPPED = f"""\
{OF_32}    0         1         4       7-8        32        32   RUNNING  INCOMPLETE

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data
"""
COUNTS = f"""\
{OF_32}    0         1         4         8        32        32   RUNNING  MISMATCH

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  6 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
"""
AHEAD = f"""\
{OF_32}    0         1         4         8        32        32   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllGather operation counts
  30 ranks have launched up to operation 640
  2 ranks have launched up to operation 641
  Rank 12 -- GPU 4 managed by process 323032 on node 10.137.190.124
  Rank 13 -- GPU 5 managed by process 323033 on node 10.137.190.124
"""
TEARDOWN = f"""\
{OF_32}    0         1         4       1-2        32        32  FINALIZE  MISMATCH
    1         7         4         1         4        28   RUNNING      OK
    2         1         4         1         4         4      INIT      OK

Warnings
========

#0-0 (9e17999afaa87dbb) MISMATCH
  Communicator ranks have different status
  26 ranks have status UNKNOWN
  4 ranks have status RUNNING
  Rank 0 -- GPU 0 managed by process 507285 on node 172.16.64.210
  2 ranks have status FINALIZE
  Rank 4 -- GPU 4 managed by process 507289 on node 172.16.64.210
"""
BEHIND = Finding(7, "has launched AllReduce 60 and not the next", "7 ranks have launched 64")


@pytest.mark.parametrize(
    ("text", "size", "found"),
    [
        (HEALTHY, 8, []),
        (STRAGGLER, 8, [(7, "has launched AllReduce 60 and not the next", "7 ranks have launched 64")]),
        (EXITED, 8, [(7, "is not reached by NCCL", "")]),
        (STOPPED, 32, [(21, "is not reached by NCCL", "")]),
        (
            COUNTS,
            32,
            [
                (rank, "has launched collective 6,649 and not the next", "26 ranks have launched 6,650")
                for rank in (0, 2)
            ],
        ),
        (AHEAD, 32, []),
        (TEARDOWN, 32, []),
        (STRAGGLER, 16, []),
        ("No such command\n", 8, []),
        ("", 8, []),
    ],
    ids=[
        "healthy",
        "behind",
        "exited",
        "stopped",
        "of an old NCCL",
        "ahead",
        "an end",
        "another job's",
        "an error",
        "nothing",
    ],
)
def test_ranks_that_are_behind_or_not_reached_are_read(
    text: str, size: int, found: list[tuple[int, str, str]]
) -> None:
    """Those that are ahead of the others are not: the others wait for somebody else."""
    answer = read_answer(text.splitlines())
    seen = find_behind(answer, size, {}) if answer else ()
    assert found == [(one.rank, one.what, one.others) for one in seen]


def test_the_rank_is_that_of_the_process_where_its_address_is_known() -> None:
    """A communicator of some ranks numbers them in its own way, and may not be of use without it."""
    text = STRAGGLER.replace("node1", "10.0.0.7").replace(
        "4         8         8  RUNNING", "1         4         4  RUNNING"
    )
    text = text.replace("7 ranks have", "3 ranks have").replace("Rank 7 has", "Rank 1 has")
    answer = read_answer(text.splitlines())
    assert answer is not None
    assert () == find_behind(answer, 8, {})
    (found,) = find_behind(answer, 8, {("10.0.0.7", 1650386): 5})
    assert (5, "3 ranks have launched 64") == (found.rank, found.others)


def test_errors_that_ranks_reported_are_read() -> None:
    """By the form that the source of NCCL 2.28 prints; no recorded answer has one."""
    text = EXITED.replace("INCOMPLETE\n  Missing communicator data from 1 rank", "ERROR").replace(
        "Rank 7 --", "Rank 7 reported Remote process error --"
    )
    answer = read_answer(text.splitlines())
    assert answer is not None
    assert (Finding(7, "reports remote process error to NCCL"),) == find_behind(answer, 8, {})


def test_an_answer_comes_through_the_shell_of_a_container() -> None:
    """By bash alone, behind the number of the question; nothing is printed where nothing listens."""
    asked, printed = printed_of(f"{ASK}nccl 1", 28028, STRAGGLER.encode(), b"STATUS\n")
    assert b"CLIENT PROTOCOL 2\nTIMEOUT 1\nVERBOSE STATUS\n" == asked
    lines = [line.removeprefix("1 0 nccl ") for line in printed.splitlines()]
    answer = read_answer(lines)
    assert answer is not None
    assert (BEHIND,) == find_behind(answer, 8, {})
    assert "" == printed_of(f"{ASK}nccl 1", 28028, None)[1]


PIECES = [line for text in (STRAGGLER, EXITED, COUNTS, TEARDOWN) for line in text.splitlines()]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=80), max_size=40), st.integers(0, 64))
def test_any_answer_can_be_read(lines: list[str], size: int) -> None:
    """Whatever listens on that port, no rank is made up."""
    if answer := read_answer(lines):
        assert all(one.rank < size for one in find_behind(answer, size, {}))
