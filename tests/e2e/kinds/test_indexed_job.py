"""What is special to indexed Jobs, and to the JobSets that are made of them, on a real API server."""

import pytest

from tests.e2e.arena import Arena


@pytest.mark.usefixtures("gpu_nodes", "policy")
@pytest.mark.parametrize("kind", ["job", "jobset"])
def test_a_set_of_nodes_is_refused(arena: Arena, kind: str) -> None:
    """The affinity would come when the template takes none any more; nothing is created."""
    outcome = arena(
        "submit", kind, "--name=bert", "--workers=2", "--gpus=1", "--image=i", "--pin=nodes", "train"
    )

    assert 2 == outcome.code
    assert "takes no node affinity once it is created" in outcome.err
    assert "" == outcome.out
