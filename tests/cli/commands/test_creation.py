"""What a submit prints of the job that it creates, and after Ctrl-C of what is left of it."""

import pytest

from arena_topo.errors import ConnectionFailed
from tests.cli.conftest import Invoke, Serve, Typed
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


@pytest.mark.parametrize(("answer", "created"), [("y\n", True), ("n\n", False)])
def test_a_submit_that_asks_creates_nothing_before_the_answer(
    invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch, answer: str, created: bool
) -> None:
    """The server tries the job first, so that what it refuses is known before the question."""

    def script(call: Call) -> Answer:
        if call.method == "POST":
            metadata = {**call.body["metadata"], "namespace": "default", "uid": "u"}
            return Answer(body={**call.body, "metadata": metadata})
        named = call.path.endswith("/job")
        return missing("job") if named else Answer(body={"items": [], "metadata": {}})

    transport = serve(script)
    monkeypatch.setattr("sys.stdin", Typed(answer))
    outcome = invoke(*SUBMIT[:-2], "--ask", *SUBMIT[-2:])

    assert 0 == outcome.code, outcome.err
    assert "Create? [y/N]" in outcome.err
    posts = [
        "dryRun" in call.query
        for call in transport.calls
        if call.path.endswith("/mpijobs") and call.method == "POST"
    ]
    assert ([True, False] if created else [True]) == posts
    assert created != ("nothing was created" in outcome.err)


ARENAS = (
    "The Job job has been submitted successfully\n"
    "You can run `arena-topo get job --type mpijob -n default` to check the job status\n"
)


@pytest.mark.parametrize(
    ("terminal", "flags", "said"),
    [
        (False, (), ARENAS),
        (True, (), "next: arena-topo logs -f job\n"),
        (True, ("-n", "default"), "next: arena-topo logs -f job -n default\n"),
    ],
    ids=["programs", "people", "people of another namespace"],
)
def test_people_read_what_is_next_and_programs_what_arena_says(
    invoke: Invoke,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    flags: tuple[str, ...],
    said: str,
) -> None:
    """Arena's two sentences to the byte in a pipe, one line on a terminal."""

    def script(call: Call) -> Answer:
        if call.method == "POST":
            metadata = {**call.body["metadata"], "namespace": "default", "uid": "u"}
            return Answer(body={**call.body, "metadata": metadata})
        named = call.path.endswith("/job")
        return missing("job") if named else Answer(body={"items": [], "metadata": {}})

    serve(script)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    outcome = invoke(*SUBMIT[:-2], *flags, *SUBMIT[-2:])

    assert (0, "mpijob.kubeflow.org/job created\n") == (outcome.code, outcome.out), outcome.err
    assert said == outcome.err
