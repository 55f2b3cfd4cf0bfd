"""Each command against each hostile answer, to its first request and to those after it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import le
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet  # pytest has no public name for it

from tests.e2e.arena import Outcome
from tests.hostile.answers import ANSWERS, SLOW
from tests.hostile.commands import ASKS_NOTHING, COMMANDS, LASTING, asking
from tests.hostile.conftest import JOBS, ON_CTRL_C, Perform, typed
from tests.hostile.front import Front

# A command leaves its connection to the end of its process, which here is that of the test.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_SHORT = "--request-timeout=200ms"
_ALL_PAIRS = os.environ.get("HOSTILE_PAIRS") == "all"
"""Whether all pairs of an answer and a command are run, and not a part of them that is always the same."""
_FIRST = (1, 3)
"""Which request of a command that lasts meets a hostile answer, and all after it."""
_WHY = "a hostile answer to one more command, or to another of its requests"
_PAUSE = 0.1
_MOST_AT_ONCE = 20
"""Requests after a hostile answer without a pause of so many
seconds: more than that hammer a server that is in trouble.
"""
_LONGEST_ERROR = 5000


def test_every_command_that_asks_a_server_is_here() -> None:
    """A new one is not forgotten."""
    assert COMMANDS.keys() | {"wait", "controller run"} | ASKS_NOTHING == set(asking())


def met() -> list[ParameterSet]:
    """Return which answers meet which commands: in the first
    tier every answer one of them, in the second another.
    """
    again = 1 if _ALL_PAIRS else len(COMMANDS) // 2
    turns = {
        (name, command): row + column
        for row, name in enumerate(ANSWERS)
        for column, command in enumerate(COMMANDS)
    }
    return [
        _in_tier(turn % len(COMMANDS) == 0, name, command)
        for (name, command), turn in turns.items()
        if turn % len(COMMANDS) == 0 or turn % again == 0
    ]


def met_while_lasting() -> list[ParameterSet]:
    """Return which answers meet which command that lasts,
    from which request on: every answer one, each by turns.
    """
    count = len(LASTING)
    return [
        _in_tier((row + column) % count == 0 and turn == row // count % len(_FIRST), name, command, first)
        for row, name in enumerate(ANSWERS)
        for column, command in enumerate(LASTING)
        for turn, first in enumerate(_FIRST)
        if _ALL_PAIRS or (row + column) % count == 0
    ]


def _in_tier(is_first: bool, *values: object) -> ParameterSet:
    return pytest.param(*values, marks=() if is_first or _ALL_PAIRS else pytest.mark.full(_WHY))


@pytest.mark.parametrize(
    ("commands", "cases"), [(COMMANDS, met()), (LASTING, met_while_lasting())], ids=["commands", "lasting"]
)
def test_every_answer_and_every_command_is_in_the_first_tier(
    commands: Mapping[str, object], cases: Sequence[ParameterSet]
) -> None:
    """However small a share of all pairs that is."""
    first = [case.values for case in cases if not case.marks]

    assert (set(ANSWERS), set(commands)) == ({case[0] for case in first}, {case[1] for case in first})


def test_every_command_that_lasts_meets_an_answer_to_each_of_its_requests() -> None:
    """In the first tier too: to its first, and to a later one."""
    first = {case.values[1:] for case in met_while_lasting() if not case.marks}

    assert {(command, request) for command in LASTING for request in _FIRST} == first


def faults(done: Outcome, *allowed: int) -> list[str]:
    """Return what no command may do, whatever a server answers."""
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    return [
        fault
        for fault, is_so in {
            "an internal error": "internal error" in done.err or "Traceback" in done.err,
            f"exit code {done.code}": done.code not in (0, 1, 3, 4, *allowed),
            # A plan that does not fit is a result, on stdout.
            # Ctrl-C may come behind an error, which is one as well.
            f"{len(errors)} errors": len(errors) != (1 if done.code else 0)
            and (done.code, len(errors)) not in ((3, 0), (ON_CTRL_C, 0)),
            f"{len(done.err)} characters of errors": len(done.err) > _LONGEST_ERROR,
            "the user's token": "secret-of-the-user" in done.err + done.out,
        }.items()
        if is_so
    ]


def later(count: int) -> list[int]:
    """Return which of *count* requests are answered by a
    hostile server: the first, one in the middle, the last.
    """
    return sorted({1, (count + 1) // 2, count} & set(range(1, count + 1)))


def words_create(command: str) -> bool:
    """Whether *command* leaves something in the cluster."""
    return command.split(maxsplit=1)[0] in ("submit", "cluster", "resume", "delete")


@pytest.mark.parametrize(("name", "command"), met())
def test_a_hostile_answer_is_one_error(
    cluster: Front, perform: Perform, tmp_path: Path, command: str, name: str
) -> None:
    """From the first request on, and from a later one on:
    no internal error, no leak, and nothing half created.
    """
    if command not in cluster.counts:
        cluster.tell(lambda _: False)
        perform(typed(command, cluster, tmp_path))
        cluster.counts[command] = len(cluster.paths)
    count = cluster.counts[command]
    found = {}
    for first in later(count):
        # What takes as long as it is waited for is put to the first request, and to the last one that may
        # create.
        if name in SLOW and first not in (1, count if words_create(command) else 1):
            continue
        words = typed(command, cluster, tmp_path)
        cluster.tell(partial(le, first), answer=ANSWERS[name])
        done = perform(words, _SHORT)
        path = cluster.paths[first - 1] if len(cluster.paths) >= first else ""
        allowed: tuple[int, ...] = ()
        if command == "cluster setup":
            # A cluster that serves no admission policy is asked for what it cannot have: 2.
            allowed = (2,)
        if command == "diff mpi":
            # 1 is a difference and no error, as for kubectl; errors are 2.
            done, allowed = replace(done, code=0 if done.code == 1 else done.code), (2,)
        if told := [*faults(done, *allowed), *leftovers(cluster, words.job)]:
            found[f"request {first}, {path}"] = (told, done.err[-600:])
    assert {} == found


@pytest.mark.parametrize(("name", "command", "first"), met_while_lasting())
def test_a_command_that_lasts_ends_by_one_error_or_ctrl_c(
    cluster: Front, perform_lasting: Perform, tmp_path: Path, command: str, name: str, first: int
) -> None:
    """Whether it gives up or tries again: Ctrl-C ends it, and it does not ask without a pause."""
    words = typed(command, cluster, tmp_path)
    cluster.tell(partial(le, first), answer=ANSWERS[name])
    done = perform_lasting(words, _SHORT, reached=first)
    asked = cluster.most_at_once(first, _PAUSE)
    told = [*faults(done, ON_CTRL_C), *leftovers(cluster, words.job)]
    if asked > _MOST_AT_ONCE:
        told.append(f"{asked} requests at once")

    assert [] == told, (cluster.paths[first - 1 : first], done.err[-600:])


_JOBS = frozenset({"mpijobs", "pytorchjobs", "tfjobs", "jobsets", "jobs"})
_OWNERLESS = {
    "mpijobs": JOBS,
    "pytorchjobs": "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs",
    "tfjobs": "/apis/kubeflow.org/v1/namespaces/default/tfjobs",
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
    "jobs": "/apis/batch/v1/namespaces/default/jobs",
    "configmaps": "/api/v1/namespaces/default/configmaps",
    "services": "/api/v1/namespaces/default/services",
    "podgroups": "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups",
}
"""What commands create by themselves."""


def leftovers(cluster: Front, job: str) -> list[str]:
    """Return what would stay forever after *job*, where there is no such job; then take away what the test
    has created.

    What the job owned is collected by the cluster, sooner or later.
    """
    names = {
        resource: {
            item["metadata"]["name"]
            for item in cluster.client.get(path).body.get("items") or ()
            if not item["metadata"].get("ownerReferences")
        }
        for resource, path in _OWNERLESS.items()
    }
    jobs = set().union(*(names[resource] for resource in _JOBS))
    orphans = [
        f"{resource}/{name} is left"
        for resource in sorted(names.keys() - _JOBS)
        for name in names[resource]
        if job and name.startswith(job) and job not in jobs
    ]
    # Jobs that stayed would fill the cluster, and slow down all that follow.
    for resource in _JOBS:
        for name in names[resource] - {"there"}:
            cluster.client.send("DELETE", f"{_OWNERLESS[resource]}/{name}")
    return orphans
