"""``arena-topo agent`` checks its flags, and prints what runs it."""

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("agent", "run"), 2, "the node has no name"),
        (("agent", "run", "--node=a", "--interval=often"), 2, "--interval: 'often' is not a duration"),
        (("agent", "run", "--node=a", "--interval=0"), 2, "--interval: 0 is less than 1 s"),
        (("agent", "manifest"), 2, "Missing option '--image'"),
    ],
)
def test_bad_input_gets_one_clear_error(
    invoke: Invoke, args: tuple[str, ...], code: int, message: str
) -> None:
    """And nothing on stdout."""
    outcome = invoke(*args)

    assert (code, "") == (outcome.code, outcome.out)
    assert message in outcome.err


def test_the_agents_manifest_is_a_list_of_objects(invoke: Invoke) -> None:
    """For kubectl apply, with the rights that the agent needs and no more."""
    outcome = invoke("agent", "manifest", "--image=arena-topo:1", "-n", "gpu", "--interval=60")

    assert 6 == outcome.out.count("apiVersion:")
    assert 'kind: "DaemonSet"' in outcome.out
    assert '- "patch"' in outcome.out
    assert "list" not in outcome.out
