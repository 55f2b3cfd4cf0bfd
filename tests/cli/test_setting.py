"""One name for each flag, on the command line, in a profile and in the environment."""

import pytest

from arena_topo.cli.defaults import key_of, variable_of


@pytest.mark.parametrize(
    ("flags", "variable", "key"),
    [
        (["--gpus"], "ARENA_TOPO_GPUS", "gpus"),
        (["-n", "--namespace"], "ARENA_TOPO_NAMESPACE", "namespace"),
        (["--image-pull-secret"], "ARENA_TOPO_IMAGE_PULL_SECRET", "image-pull-secret"),
        (["--hostNetwork"], "ARENA_TOPO_HOST_NETWORK", "hostNetwork"),
        (["--hostIPC"], "ARENA_TOPO_HOST_IPC", "hostIPC"),
        (["--working-dir", "--workingDir"], "ARENA_TOPO_WORKING_DIR", "working-dir"),
    ],
)
def test_a_flag_has_one_name_everywhere(flags: list[str], variable: str, key: str) -> None:
    """Its first long form, in the spelling of each place."""
    assert (variable, key) == (variable_of(flags), key_of(flags))
