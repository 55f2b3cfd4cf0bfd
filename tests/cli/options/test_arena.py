"""The flags that stand before and behind every command of Arena."""

import pytest

from arena_topo.cli.terminal import Level, show_from
from tests.cli.conftest import Invoke

SUBMIT = ("submit", "mpi", "--name=job", "--image=i", "--dry-run=client", "c")


@pytest.mark.parametrize(
    ("level", "notes", "errors"), [("debug", True, True), ("info", True, True), ("error", False, True)]
)
def test_the_level_says_what_is_printed(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, level: str, notes: bool, errors: bool
) -> None:
    """Errors always are; the data on stdout is the same."""
    monkeypatch.delenv("ARENA_TOPO_DEBUG", raising=False)
    outcome = invoke("--loglevel", level, *SUBMIT)

    assert (0, "mpijob.kubeflow.org/job created (dry run)\n") == (outcome.code, outcome.out)
    assert notes is ("no cluster reachable" in outcome.err)
    assert errors is ("error: " in invoke("get", "job", f"--loglevel={level}").err)
    show_from(Level.INFO)


def test_a_level_that_arena_has_not_is_an_error(invoke: Invoke) -> None:
    """With those that it has."""
    outcome = invoke(*SUBMIT, "--loglevel=loud")

    assert (2, True) == (outcome.code, "use one of debug, info, warn, error" in outcome.err)


@pytest.mark.parametrize("flag", ["--trace", "--pprof", "--helm-binary"])
def test_what_only_arenas_program_can_do_is_refused(invoke: Invoke, flag: str) -> None:
    """Before or behind the command."""
    for line in ((flag, *SUBMIT), (*SUBMIT[:2], flag, *SUBMIT[2:])):
        outcome = invoke(*line)
        assert 2 == outcome.code
        assert f"error: {flag!r} is not supported: " in outcome.err


def test_arenas_namespace_is_taken_everywhere(invoke: Invoke) -> None:
    """Where nothing is read from it, it changes nothing."""
    assert invoke(*SUBMIT).out == invoke("--arena-namespace", "arena", *SUBMIT).out
