"""Following a log loses no line and repeats none, whatever happens to the connection."""

from typing import Any

import pytest

from arena_topo.errors import ArenaTopoError, Forbidden, NotFound, Unauthorized
from arena_topo.jobs.logs.follow import LogOptions, read
from arena_topo.jobs.logs.wait import LogTarget
from tests.fakes import Answer, Broken, Call, Line, Silent, missing, refusal, session
from tests.jobs.logs.scripted import LAUNCHER, Cluster, followed, launcher, line
from tests.objects import condition, mpijob


def test_a_log_ends_with_its_container() -> None:
    """The end of the stream makes us look, and the rest is drained."""
    cluster = Cluster([[line(1, "a"), line(2, "b")], [line(2, "b"), line(3, "c")]], [launcher(ended=0)])
    text, said, _, _ = followed(cluster)

    assert b"a\nb\nc\n" == text
    assert [] == said
    assert [("true", None), (None, "2026-11-21T01:00:01Z")] == [
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


def test_a_missing_permission_ends_the_following() -> None:
    """It does not heal by waiting."""
    with pytest.raises(Forbidden):
        followed(Cluster([refusal(403, "Forbidden", "no")], []))


def test_a_401_is_answered_by_fresh_credentials_until_they_are_wrong() -> None:
    """Tokens are read again for every request; those that are refused five times in a row are wrong."""
    refused = [refusal(401, "Unauthorized") for _ in range(5)]
    looks = [*[launcher()] * 4, launcher(ended=0)]

    assert b"a\n" == followed(Cluster([*refused[:4], [line(1, "a")], []], looks))[0]
    with pytest.raises(Unauthorized):
        followed(Cluster(refused, [launcher()] * 5))


def test_refusals_that_are_not_in_a_row_do_not_count_together() -> None:
    """A log that is followed for days meets more tokens that expire than that."""
    streams = [each for at in range(1, 9) for each in (refusal(401, "Unauthorized"), [line(at, "a"), Broken])]
    text, *_ = followed(Cluster([*streams, []], [*[launcher()] * 15, launcher(ended=0)]))

    assert b"a\n" * 8 == text


@pytest.mark.parametrize(
    "failure",
    [
        refusal(429, "TooManyRequests", "slow down"),
        refusal(500, "InternalError", "etcd"),
        refusal(502, "", "bad gateway"),
        refusal(503, "ServiceUnavailable", "no etcd"),
        refusal(401, "Unauthorized"),
    ],
    ids=lambda failure: str(failure.status),
)
def test_a_look_that_fails_is_repeated(failure: Answer) -> None:
    """With a notice: the API server is upgraded while people follow logs."""
    streams = [[line(1, "a"), Broken], [line(2, "b")], []]
    text, said, _, _ = followed(Cluster(streams, [failure, launcher(), launcher(ended=0)]))

    assert b"a\nb\n" == text
    assert said[1].startswith(f"{LAUNCHER}: ")
    assert said[1].endswith("; trying again")


def test_the_tail_of_an_ended_log_survives_a_connection_that_fails_while_it_is_read() -> None:
    """The rest is asked for until it has come to its end."""
    streams = [
        [line(1, "a")],
        [line(1, "a"), line(2, "b"), Broken],
        refusal(500, "InternalError", "dial tcp"),
        [line(1, "a"), line(2, "b"), line(3, "c")],
    ]

    assert b"a\nb\nc\n" == followed(Cluster(streams, [launcher(ended=0)]))[0]


def test_a_tail_that_cannot_be_read_is_an_error() -> None:
    """A log without its end must not look like a whole one."""
    refused: list[Any] = [refusal(500, "InternalError", "dial tcp") for _ in range(10)]
    with pytest.raises(ArenaTopoError, match=f"the end of the log of {LAUNCHER} could not be read") as caught:
        followed(Cluster([[line(1, "a")], *refused], [launcher(ended=0)]))
    assert f"arena-topo logs job -i {LAUNCHER} -c mpi" in caught.value.hint


def test_a_kubelet_that_reports_an_end_late_is_not_talked_about() -> None:
    """The stream ends seconds before the status says so, at nearly every job's end."""
    streams: list[Any] = [[line(1, "a")], [line(1, "a")], [line(1, "a")], []]
    _, said, slept, _ = followed(Cluster(streams, [launcher(), launcher(), launcher(ended=0)]))

    assert ([], [1.0]) == (said, slept)


def test_a_stream_that_keeps_ending_while_the_container_runs_is_talked_about() -> None:
    """Once, until there is a new line."""
    streams: list[Any] = [[line(1, "a")]] + [[] for _ in range(6)]
    _, said, _, _ = followed(Cluster(streams, [launcher() for _ in range(5)] + [launcher(ended=0)]))

    assert [f"{LAUNCHER}: the log's stream ended and the container runs; resuming"] == said


def test_a_stamp_that_is_older_than_the_one_before_is_no_reason_to_drop_a_line() -> None:
    """The writers of stdout and stderr race, and clocks step back."""
    stream = [line(5, "a"), line(4, "b"), line(1, "c"), line(5, "d")]

    assert b"a\nb\nc\nd\n" == followed(Cluster([stream, stream], [launcher(ended=0)]))[0]


@pytest.mark.parametrize(
    "labels",
    [{"training.kubeflow.org/job-role": "launcher"}, {"batch.kubernetes.io/job-completion-index": "0"}],
    ids=["launcher", "worker 0 of an indexed Job"],
)
def test_a_chief_that_is_retried_is_followed_on(labels: dict[str, str]) -> None:
    """The batch Job creates a new pod, whose log is printed whole."""
    first, failed, second = launcher(), launcher(ended=1), launcher()
    for each in (first, failed, second):
        each["metadata"]["labels"] = labels
    second["metadata"].update(name="job-launcher-y", uid="uid-y", creationTimestamp="2026-11-21T01:09:00Z")
    ended = launcher(ended=0)
    ended["metadata"] = second["metadata"]
    cluster = Cluster([[line(1, "a")], [], [line(2, "b")], []], [failed], waits=[[first], [failed], [second]])

    def script(call: Call) -> Answer:
        return Answer(body=ended) if call.path.endswith("/pods/job-launcher-y") else cluster(call)

    text, said, _, _ = followed(script, LogOptions(tail=1))

    assert b"a\nb\n" == text
    assert [f"{LAUNCHER} exited with code 1 (Error)"] == said


def test_a_job_whose_launcher_is_retried_no_more_ends_quietly() -> None:
    """Once its condition says so."""
    failed = mpijob("job", status={"conditions": [condition("Failed")]})
    cluster = Cluster([[line(1, "a")], []], [launcher(ended=1)], job=[mpijob("job")] * 3 + [failed])

    assert [f"{LAUNCHER} exited with code 1 (Error)"] == followed(cluster)[1]


def test_a_container_that_backs_off_is_waited_for() -> None:
    """Its policy says that the kubelet starts it again."""
    backing_off, running, over = launcher(ended=1), launcher(restarts=1), launcher(ended=0, restarts=1)
    for look in (backing_off, running, over):
        look["spec"]["restartPolicy"] = "OnFailure"
    status = backing_off["status"]["containerStatuses"][0]
    status["lastState"] = status["state"]
    status["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    cluster = Cluster([[line(1, "a")], [], [line(2, "b")], []], [backing_off, backing_off, running, over])
    text, said, _, _ = followed(cluster)

    assert b"a\nb\n" == text
    assert f"waiting for {LAUNCHER} to be restarted: CrashLoopBackOff" in said


def test_a_long_line_is_passed_on_in_pieces_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the stream breaks off within it."""
    monkeypatch.setattr("arena_topo.jobs.logs.follow.LONGEST_LINE", 40)
    long = line(1, "x" * 100)
    streams = [[long[:90], Broken], [long, line(2, "b")], []]

    assert b"x" * 100 + b"\nb\n" == followed(Cluster(streams, [launcher(), launcher(ended=0)]))[0]


def test_lines_of_a_gap_come_though_none_was_seen_before_it() -> None:
    """``--tail 0`` begins where the first stream did, not where the second one does."""
    cluster = Cluster([[Broken], [line(1, "a")], []], [launcher(), launcher(ended=0)])
    followed(cluster, LogOptions(tail=0))

    assert "0" == cluster.asked[0]["tailLines"]
    assert "tailLines" not in cluster.asked[1]
    assert "sinceTime" in cluster.asked[1]


def test_a_container_that_was_started_again_is_followed_on() -> None:
    """What is left of the run before comes from the previous
    container, then the new run's log from its beginning.
    """
    cluster = Cluster(
        [[line(1, "a"), Broken], [line(1, "a"), line(2, "b")], [line(0, "c")], []],
        [launcher(restarts=1), launcher(restarts=1, ended=0)],
    )
    text, said, _, _ = followed(cluster, LogOptions(tail=5))

    assert b"a\nb\nc\n" == text
    assert ["true", None] == [each.get("previous") for each in cluster.asked[1:3]]
    assert "tailLines" not in cluster.asked[2]
    assert f"{LAUNCHER} was restarted: its next run follows" == said[-1]


@pytest.mark.parametrize(
    "look",
    [missing(LAUNCHER), {"metadata": {"name": LAUNCHER, "uid": "another"}}],
    ids=["gone", "another pod"],
)
def test_a_pod_that_is_gone_ends_the_log(look: Any) -> None:
    """With a word about it, where the job is gone as well."""
    text, said, _, _ = followed(Cluster([[line(1, "a")]], [look], job=[mpijob("job"), missing("job")]))

    assert b"a\n" == text
    assert [f"{LAUNCHER} is gone: its log ends here"] == said


def terminated() -> Any:
    """Return a launcher that was sent SIGTERM because it is deleted."""
    made = launcher(ended=143)
    made["metadata"]["deletionTimestamp"] = "2026-11-21T01:10:00Z"
    return made


@pytest.mark.parametrize(
    ("look", "streams", "notices"),
    [
        (missing(LAUNCHER), [[line(1, "a")]], [f"{LAUNCHER} is gone: its log ends here"]),
        (terminated(), [[line(1, "a")], []], [f"{LAUNCHER} exited with code 143 (Error)"]),
        (
            terminated(),
            [[line(1, "a")], missing(LAUNCHER)],
            [
                f"{LAUNCHER} is gone: its log may have had more lines",
                f"{LAUNCHER} exited with code 143 (Error)",
            ],
        ),
    ],
    ids=["gone", "deleted", "gone meanwhile"],
)
def test_what_is_cleaned_up_after_the_end_of_the_job_goes_quietly(
    look: Any, streams: list[Any], notices: list[str]
) -> None:
    """Every job's end has that; of a job that runs, the same is news."""
    succeeded = mpijob("job", status={"conditions": [condition("Succeeded")]})
    suspended = mpijob("job", status={"conditions": [condition("Suspended")]})
    said = {
        job: followed(Cluster([*streams], [look], job=[mpijob("job"), after, after, missing("job")]))[1]
        for job, after in (("ended", succeeded), ("runs", suspended))
    }

    assert {"ended": [], "runs": notices} == said


def test_a_failure_is_reported() -> None:
    """On the side, after the last line; a job whose launcher is not tried again ends with it."""
    job = mpijob("job")
    job["spec"]["runPolicy"] = {"backoffLimit": 0}
    _, said, _, _ = followed(Cluster([[line(1, "a")], []], [launcher(ended=3)], job=job))

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

    assert b"a\nb" == b"".join(each.text for each in read(opened, "job", LogTarget(), LogOptions(tail=2)))
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


def test_reading_an_instance_that_the_job_cannot_have_says_so() -> None:
    """It will never exist, and nobody is told to wait for it."""
    opened, _ = session(Cluster([], [], waits=[[]]))
    with pytest.raises(NotFound, match="invalid instance name job-worker-99 in job job"):
        list(read(opened, "job", LogTarget("job-worker-99"), LogOptions()))
