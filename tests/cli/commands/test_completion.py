"""``arena-topo completion`` prints a script for each shell."""

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(invoke: Invoke, shell: str) -> None:
    """For each shell, without running one."""
    assert "_ARENA_TOPO_COMPLETE" in invoke("completion", shell).out
