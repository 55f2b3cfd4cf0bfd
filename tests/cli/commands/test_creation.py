"""What a submit prints of the job that it creates, and after Ctrl-C of what is left of it."""

import pytest

from arena_topo.errors import ConnectionFailed
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing

SUBMIT = ("submit", "mpi", "--name=job", "--image=train", "--workers=1", "--", "mpirun")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ConnectionFailed("the server api did not answer in time"), "the server api did not answer in time"),
        (KeyboardInterrupt(), "the cluster has not answered yet"),
    ],
    ids=["no answer", "Ctrl-C again"],
)
def test_where_the_last_look_fails_the_user_can_look_again(
    invoke: Invoke, serve: Serve, answer: BaseException, why: str
) -> None:
    """Ctrl-C came while the job was being created, and nobody tells what became of that."""
    created: list[str] = []

    def script(call: Call) -> Answer:
        if created:
            raise answer
        if call.method == "POST" and call.path.endswith("/mpijobs"):
            created.append(call.path)
            raise KeyboardInterrupt
        named = call.path.endswith("/job")
        return missing("job") if named else Answer(body={"items": [], "metadata": {}})

    serve(script)
    outcome = invoke(*SUBMIT)

    assert (130, "") == (outcome.code, outcome.out), outcome.err
    said = f"interrupted: the job job may have been created ({why}): arena-topo get job shows it, arena-topo delete job undoes it\n"
    assert said in outcome.err
