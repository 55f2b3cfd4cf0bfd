"""The logs of many instances come whole, each line once, whatever happens to any of them."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.errors import ArenaTopoError, ConnectionFailed, Forbidden, NotFound, UsageError
from arena_topo.jobs.logs.follow import Instances, LogOptions
from arena_topo.jobs.logs.many import JobLogs
from arena_topo.jobs.logs.wait import Waiter
from tests.fakes import Answer, Call, missing, refusal, session
from tests.jobs.logs.torture import Event, Torments, TorturedJob
from tests.objects import condition, mpijob, pod


class EventStream(Answer):
    """An answer whose body comes as events of a tortured log."""

    def __init__(self, events: Iterator[Event]) -> None:
        super().__init__()
        self._events, self._buffer = events, b""

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line; half a line where the stream ends in it."""
        while b"\n" not in self._buffer:
            event = next(self._events, None)
            if event == "drop":
                raise ConnectionFailed("reset by peer")
            if event is None:
                rest, self._buffer = self._buffer, b""
                return rest
            self._buffer += event
        line, _, self._buffer = self._buffer.partition(b"\n")
        assert limit < 0 or len(line) < limit
        return line + b"\n"


def gang_log(script: Any, instances: Instances | None = None, **extra: Any) -> tuple[JobLogs, list[Any]]:
    """Return the log of a gang that *script* serves, and the errors that it will report."""
    opened, _ = session(script)
    errors: list[ArenaTopoError] = []
    waiter = Waiter(lambda _: None, lambda _: None)
    log = JobLogs(
        session=opened,
        names=extra.pop("names", ("job",)),
        instances=instances or Instances(every=True),
        container="",
        options=extra.pop("options", LogOptions()),
        waiter=waiter,
        report=errors.append,
        most=extra.pop("most", 128),
        period=0.01,
    )
    return log, errors


def tortured(job: TorturedJob) -> Any:
    """Return the script that serves *job*."""

    def script(call: Call) -> Answer:
        status, answer = job.answer(call.path, call.query)
        return EventStream(answer) if isinstance(answer, Iterator) else Answer(status, answer)

    return script


def by_instance(lines: Any) -> dict[str, list[bytes]]:
    """Return the texts of *lines* by their instance."""
    texts: dict[str, list[bytes]] = {}
    for line in lines:
        texts.setdefault(line.instance, []).append(line.text.removesuffix(b"\n"))
    return texts


@settings(deadline=None)
@given(
    seed=st.integers(min_value=0, max_value=2**32),
    workers=st.integers(min_value=0, max_value=3),
    restarts=st.integers(min_value=0, max_value=2),
    recreations=st.integers(min_value=0, max_value=2),
)
def test_no_line_is_lost_or_repeated(seed: int, workers: int, restarts: int, recreations: int) -> None:
    """Over any interleaving of cuts, refusals, rotations, restarts and recreations."""
    torments = Torments(lines=12, restarts=restarts, recreations=recreations)
    job = TorturedJob(workers, seed, torments)
    log, errors = gang_log(tortured(job))

    assert job.expected == by_instance(log.follow())
    assert [] == errors


def serving(
    logs: dict[str, Any], *, ended: bool = True, workers: int = 2, over: bool = False
) -> tuple[Any, list[Call]]:
    """Return a script that serves the *logs* of pods by name, and the calls that it gets."""
    calls: list[Call] = []
    pods = {name: pod(name, role="launcher" if "launcher" in name else "worker") for name in logs}
    if over:
        for each in pods.values():
            each["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 0}}
    status = {"conditions": [condition("Succeeded")]} if ended else {}

    def script(call: Call) -> Answer:
        calls.append(call)
        parts = call.path.split("/")
        if "mpijobs" in parts:
            return Answer(body=mpijob("job", workers=workers, status=status))
        if parts[-1] == "pods":
            return Answer(body={"items": list(pods.values())})
        if parts[-1] != "log":
            return Answer(body=pods[parts[-1]])
        log = logs[parts[-2]]
        return log if isinstance(log, Answer) else Answer(lines=list(log))

    return script, calls


LOGS = {
    "job-worker-1": [b"2026-11-21T01:00:01Z b\n"],
    "job-launcher-x": [b"2026-11-21T01:00:01Z a\n"],
    "job-worker-0": [b"2026-11-21T01:00:01Z c\n"],
}


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        (Instances(every=True), ["job-launcher-x", "job-worker-0", "job-worker-1"]),
        (Instances(role="worker"), ["job-worker-0", "job-worker-1"]),
        (Instances(indices=(range(2),)), ["job-worker-0", "job-worker-1"]),
    ],
)
def test_what_is_asked_for_is_read(instances: Instances, expected: list[str]) -> None:
    """The launcher first, one after the other; and followed all at once."""
    script, _ = serving(LOGS, over=True)
    log, _ = gang_log(script, instances, options=LogOptions(timestamps=True))

    assert expected == [line.instance for line in log.read()]
    assert expected == sorted(by_instance(gang_log(script, instances)[0].follow()))


def two_jobs(*, ended: bool = True) -> Any:
    """Return a script that serves the jobs a and b, whose launchers and workers have printed their names."""
    pods = {f"{job}-{rest}": job for job in "ab" for rest in ("launcher-x", "worker-0")}

    def served(name: str) -> Any:
        made = pod(name, role="launcher" if "launcher" in name else "worker")
        made["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 0}}
        return made

    def script(call: Call) -> Answer:
        parts = call.path.split("/")
        if "mpijobs" in parts:
            if parts[-1] not in "ab":
                return missing(parts[-1])
            status = {"conditions": [condition("Succeeded")]} if ended else {}
            return Answer(body=mpijob(parts[-1], workers=1, status=status))
        if parts[-1] == "pods":
            selected = next(job for job in "ab" if f"={job}" in call.query["labelSelector"])
            return Answer(body={"items": [served(name) for name, job in pods.items() if job == selected]})
        if parts[-1] != "log":
            return Answer(body=served(parts[-1])) if parts[-1] in pods else missing(parts[-1])
        return Answer(lines=[b"2026-11-21T01:00:01Z " + parts[-2].encode() + b"\n"])

    return script


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        (Instances(), ["b-launcher-x", "a-launcher-x"]),
        (Instances(indices=(range(1),)), ["b-worker-0", "a-worker-0"]),
        (Instances(every=True), ["b-launcher-x", "b-worker-0", "a-launcher-x", "a-worker-0"]),
    ],
    ids=["launchers", "one worker of each", "all"],
)
def test_logs_of_several_jobs_are_read_in_their_order(instances: Instances, expected: list[str]) -> None:
    """As they were named; and followed all at once, until each job has ended."""
    log, errors = gang_log(two_jobs(), instances, names=("b", "a"), options=LogOptions(timestamps=True))

    assert expected == [line.instance for line in log.read()]
    log, errors = gang_log(two_jobs(), instances, names=("b", "a"))
    assert {name: [name.encode()] for name in expected} == by_instance(log.follow())
    assert [] == errors


def test_one_job_that_does_not_exist_is_reported_and_the_others_go_on() -> None:
    """Alone it is an error of the command."""
    log, errors = gang_log(two_jobs(), names=("gone", "a"), options=LogOptions(timestamps=True))
    assert ["a-launcher-x", "a-worker-0"] == [line.instance for line in log.read()]
    assert [NotFound] == [type(error) for error in errors]

    log, errors = gang_log(two_jobs(), names=("gone", "a"))
    assert {"a-launcher-x", "a-worker-0"} == set(by_instance(log.follow()))
    assert [NotFound] == [type(error) for error in errors]
    with pytest.raises(NotFound):
        list(gang_log(two_jobs(), names=("gone",))[0].follow())


def test_the_logs_of_all_jobs_together_are_bounded() -> None:
    """Each is a connection."""
    log, _ = gang_log(two_jobs(ended=False), names=("a", "b"), most=0)

    with pytest.raises(UsageError, match="more than 0 logs would be followed at once"):
        list(log.follow())


def test_one_that_fails_is_reported_and_the_others_go_on() -> None:
    """With the error of the one."""
    script, _ = serving({**LOGS, "job-worker-0": refusal(403, "Forbidden", "no")}, over=True)
    log, errors = gang_log(script)

    assert {"job-launcher-x": [b"a"], "job-worker-1": [b"b"]} == by_instance(log.follow())
    assert [Forbidden] == [type(error) for error in errors]
    log, errors = gang_log(script, options=LogOptions(timestamps=True))
    assert {"job-launcher-x", "job-worker-1"} == set(by_instance(log.read()))
    assert [Forbidden] == [type(error) for error in errors]


def test_whoever_may_read_no_log_does_not_wait_for_the_jobs_end() -> None:
    """Though the job runs."""
    script, _ = serving(dict.fromkeys(LOGS, refusal(403, "Forbidden", "no")), ended=False)
    log, errors = gang_log(script)

    assert [] == list(log.follow())
    assert 3 == len(errors)


def test_more_logs_than_may_be_open_are_refused() -> None:
    """With the way to allow them."""
    script, _ = serving(LOGS, ended=False)
    log, _ = gang_log(script, most=0)
    with pytest.raises(UsageError, match="more than 0 logs would be followed at once") as caught:
        list(log.follow())
    assert "--max-log-requests" in caught.value.hint


def test_an_instance_that_cannot_be_is_an_error() -> None:
    """Instead of being waited for."""
    script, _ = serving(LOGS)
    log, _ = gang_log(script, Instances(indices=(range(9),)))
    with pytest.raises(NotFound, match="invalid instance name job-worker-8 in job job, which has 2 workers"):
        list(log.follow())
    # Nor is it left out of a range without a word.
    with pytest.raises(NotFound, match="invalid instance name job-worker-8 in job job, which has 2 workers"):
        list(log.read())


def test_without_any_instance_that_has_started_there_is_nothing_to_read() -> None:
    """And the user learns how to wait for them."""
    script, _ = serving({})
    log, _ = gang_log(script)
    with pytest.raises(NotFound, match="no instance of job job that is asked for has started") as caught:
        list(log.read())
    assert "logs -f" in caught.value.hint


def test_who_only_reads_does_not_wait_for_a_server_that_is_away() -> None:
    """As kubectl does not: only who follows tries again."""

    def away(_: Call) -> Answer:
        raise ConnectionFailed("refused")

    with pytest.raises(ConnectionFailed, match="refused"):
        list(gang_log(away)[0].read())
