"""What py-spy 0.4.3 prints of ranks, recorded from Python
3.11 under Open MPI 4.1.4, and what is read of it.
"""

import pytest

from arena_topo.diagnosis.sources.py_spy import read_stack

WAITING = """\
Python v3.11.7 (/root/.pyenv/versions/3.11.7/bin/python3.11)

Thread 32051 (active)
    sched_yield (libc.so.6)
    ompi_sync_wait_mt (libopen-pal.so.40.30.2)
    ompi_coll_base_bcast_intra_generic (libmpi.so.40.30.4)
    PMPI_Bcast (libmpi.so.40.30.4)
    MPI_PyMPI_bcast_p2p.constprop.0 (mpi4py/MPI.openmpi.cpython-311-x86_64-linux-gnu.so)
    allreduce (mpi4py/MPI.openmpi.cpython-311-x86_64-linux-gnu.so)
    step (t.py:5)
    <module> (t.py:8)
    0x7f2662c4524a (libc.so.6)
"""
THREADS = """\
Python v3.11.7 (/usr/bin/python3.11)

Thread 77 (idle): "Thread-1 (work)"
    wait (threading.py:320)
Thread 51 (active+gil): "MainThread"
    std::vector<int, std::allocator<int> >::at(unsigned long) (libtorch.so)
    <module> (t.py:8)
Thread 78 (idle)
    poll (libc.so.6)
"""
UNNAMED = THREADS.replace(': "MainThread"', "").replace(': "Thread-1 (work)"', "")
NEITHER = UNNAMED.replace("Thread 51", "Thread 52")


@pytest.mark.parametrize(
    ("text", "pid", "innermost", "count"),
    [
        (WAITING, 32051, "sched_yield (libc.so.6)", 9),
        (THREADS, 51, "std::vector<int, std::allocator<int> >::at(unsigned long) (libtorch.so)", 2),
        (UNNAMED, 51, "std::vector<int, std::allocator<int> >::at(unsigned long) (libtorch.so)", 2),
        (NEITHER, 51, "wait (threading.py:320)", 1),
        ("Error: Failed to get stack traces\nReason: EPERM: Operation not permitted\n", 51, "", 0),
        ("", 51, "", 0),
    ],
    ids=["native", "by name", "by number", "the first", "an error", "nothing"],
)
def test_the_main_threads_calls_are_read(text: str, pid: int, innermost: str, count: int) -> None:
    """The innermost first; a thread that works for the main one says nothing of the rank."""
    stack = read_stack(text.splitlines(), pid)
    assert count == len(stack)
    assert innermost == (str(stack[0]) if stack else "")


def test_both_ends_of_a_long_stack_are_kept() -> None:
    """A recursion has a thousand calls, and a hostile program names of any length."""
    calls = "".join(f"    f{number} (t.py:1)\n" for number in range(1000))
    stack = read_stack(f'Thread 1 (idle): "MainThread"\n{calls}    {"x" * 9999} (t.py:2)\n'.splitlines(), 1)
    assert (64, "f0", "x" * 200) == (len(stack), stack[0].function, stack[-1].function)
