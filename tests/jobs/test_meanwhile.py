"""What is read meanwhile is there, or fails, where it is needed."""

import threading

import pytest

from arena_topo.jobs.lists import Meanwhile


def test_it_is_read_while_the_caller_goes_on() -> None:
    """It waits here for what its caller does after it was started."""
    done = threading.Event()
    meanwhile = Meanwhile(lambda: done.wait(20))
    done.set()

    assert meanwhile.result()


def test_an_error_is_raised_where_the_value_is_needed() -> None:
    """And nowhere before; each time that it is asked for."""

    def fail() -> int:
        raise ValueError("no")

    meanwhile = Meanwhile(fail)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            meanwhile.result()
