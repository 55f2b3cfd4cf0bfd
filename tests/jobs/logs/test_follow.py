"""Following a log loses no line and repeats none, whatever happens to the connection."""

from typing import Any

import pytest

from arena_topo.errors import ArenaTopoError, Forbidden, NotFound, Unauthorized
from arena_topo.jobs.logs.follow import LogOptions, read
from arena_topo.jobs.logs.wait import LogTarget
from tests.fakes import Answer, Broken, Line, Silent, missing, refusal, session
from tests.jobs.logs.scripted import LAUNCHER, Cluster, followed, launcher, line


def test_a_log_ends_with_its_container() -> None:
    """The end of the stream makes us look, and the rest is drained."""
    cluster = Cluster([[line(1, "a"), line(2, "b")], [line(2, "b"), line(3, "c")]], [launcher(ended=0)])
    text, said, _, _ = followed(cluster)

    assert b"a\nb\nc\n" == text
    assert [] == said
    assert [("true", None), (None, "2026-11-21T01:00:02Z")] == [
        (each.get("follow"), each.get("sinceTime")) for each in cluster.asked
    ]


@pytest.mark.parametrize("end", [Broken, Silent, b""], ids=["reset", "silence", "clean end"])
def test_a_stream_that_ends_while_the_container_runs_is_resumed(end: Line) -> None:
    """However it ends."""
    streams = [[line(1, "a"), line(2, "b"), end], [line(2, "b"), line(3, "c")], []]
    text, _, slept, _ = followed(Cluster(streams, [launcher(), launcher(ended=0)]))

    assert b"a\nb\nc\n" == text
    assert [] == slept


def test_a_line_that_broke_off_is_printed_once_and_whole() -> None:
    """Half a line waits for the next stream."""
    streams = [[line(1, "a"), b"2026-11-21T01:00:02.5Z ha", Broken], [line(1, "a"), line(2, "half")], []]

    assert b"a\nhalf\n" == followed(Cluster(streams, [launcher(), launcher(ended=0)]))[0]


def test_a_last_line_without_an_end_is_printed() -> None:
    """When the container is done there is no more of it to come."""
    streams = [[b"2026-11-21T01:00:02.5Z done"], [b"2026-11-21T01:00:02.5Z done"]]

    assert b"done" == followed(Cluster(streams, [launcher(ended=0)]))[0]


def test_pauses_grow_while_nothing_comes_and_start_anew_with_a_line() -> None:
    """At once, then 1, 2, 4 seconds, then a line, then at once again."""
    streams: list[Any] = [[Broken] for _ in range(4)] + [[line(1, "a"), Broken], [], []]
    looks = [launcher() for _ in range(5)] + [launcher(ended=0)]

    assert [1.0, 2.0, 4.0] == followed(Cluster(streams, looks))[2]


def test_a_node_that_does_not_answer_is_given_time() -> None:
    """The API server's 500 for an unreachable kubelet is reported, and the stream tried again."""
    streams = [refusal(500, "InternalError", "dial tcp 10.0.0.1:10250: connect: refused"), [line(1, "a")], []]
    text, said, _, _ = followed(Cluster(streams, [launcher(), launcher(ended=0)]))

    assert b"a\n" == text
    assert "dial tcp" in said[0]


@pytest.mark.parametrize(
    ("answer", "error"),
    [(refusal(403, "Forbidden", "no"), Forbidden), (refusal(401, "Unauthorized"), Unauthorized)],
)
def test_a_refusal_ends_the_following(answer: Answer, error: type[Exception]) -> None:
    """No permission does not heal by waiting."""
    with pytest.raises(error):
        followed(Cluster([answer], []))


def test_a_container_that_was_started_again_ends_its_log() -> None:
    """What is left of the run that was followed comes from the previous container."""
    cluster = Cluster([[line(1, "a"), Broken], [line(1, "a"), line(2, "b")]], [launcher(restarts=1)])

    assert b"a\nb\n" == followed(cluster)[0]
    assert "true" == cluster.asked[1]["previous"]


@pytest.mark.parametrize(
    "look",
    [missing(LAUNCHER), {"metadata": {"name": LAUNCHER, "uid": "another"}}],
    ids=["gone", "another pod"],
)
def test_a_pod_that_is_gone_ends_the_log(look: Any) -> None:
    """With a word about it."""
    text, said, _, _ = followed(Cluster([[line(1, "a")]], [look]))

    assert b"a\n" == text
    assert [f"{LAUNCHER} is gone: its log ends here"] == said


def test_a_failure_is_reported() -> None:
    """On the side, after the last line."""
    _, said, _, _ = followed(Cluster([[line(1, "a")], []], [launcher(ended=3)]))

    assert [f"{LAUNCHER} exited with code 3 (Error)"] == said


def test_the_options_reach_the_first_stream_alone() -> None:
    """A resumed stream starts where the last one broke, not ten lines before the end again."""
    options = LogOptions(tail=10, since=60, timestamps=True)
    cluster = Cluster(
        [[line(1, "a"), Broken], [line(1, "a"), line(2, "b")], []], [launcher(), launcher(ended=0)]
    )
    text = followed(cluster, options)[0]

    assert line(1, "a") + line(2, "b") == text
    assert ("10", "60") == (cluster.asked[0]["tailLines"], cluster.asked[0]["sinceSeconds"])
    assert {"sinceTime", "container", "follow", "timestamps"} == set(cluster.asked[1])


def test_reading_prints_what_there_is() -> None:
    """One stream, as it comes, and no look at the pod."""
    cluster = Cluster([[b"a\n", b"b"]], [])
    opened, _ = session(cluster)

    assert b"a\nb" == b"".join(read(opened, "job", LogTarget(), LogOptions(tail=2)))
    assert {"container": "mpi", "tailLines": "2"} == cluster.asked[0]


def test_reading_does_not_wait() -> None:
    """It says how to."""
    opened, _ = session(Cluster([], [], waits=[[launcher(phase="Pending", node="")]]))
    with pytest.raises(
        ArenaTopoError, match=f"instance {LAUNCHER} is not running: not scheduled yet"
    ) as caught:
        list(read(opened, "job", LogTarget(), LogOptions()))
    assert "logs -f" in caught.value.hint


def test_reading_without_a_launcher_says_so() -> None:
    """There is nothing to read."""
    opened, _ = session(Cluster([], [], waits=[[]]))
    with pytest.raises(NotFound, match="the launcher of job job does not exist yet"):
        list(read(opened, "job", LogTarget(), LogOptions()))
