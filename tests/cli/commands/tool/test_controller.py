"""``arena-topo controller`` checks its flags, and prints what runs it."""

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("controller", "run", "--reserve-after=soon"), "--reserve-after: 'soon' is not a duration"),
        (("controller", "manifest"), "Missing option '--image'"),
    ],
)
def test_bad_input_gets_one_clear_error(invoke: Invoke, args: tuple[str, ...], message: str) -> None:
    """And nothing on stdout."""
    outcome = invoke(*args)

    assert (2, "") == (outcome.code, outcome.out)
    assert message in outcome.err


def test_the_manifest_is_a_list_of_objects(invoke: Invoke) -> None:
    """For kubectl apply, with the flags that the replicas run with."""
    outcome = invoke("controller", "manifest", "--image=arena-topo:1", "--reserve-after=10m")

    assert 0 == outcome.code
    assert 10 == outcome.out.count("apiVersion:")
    assert '- "600s"' in outcome.out
