"""The words of a command line are read as click reads them, and no flag takes another for its value."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.cli.declare import FlagWord, as_click_takes, check_values, flags_before_values

OPTIONS = [
    click.Option(["-n", "--namespace"]),
    click.Option(["-f", "--follow"], is_flag=True),
    click.Option(["--env"], multiple=True),
]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["-n", "ml"], [FlagWord("-n", 0)]),
        (["a", "--namespace", "ml", "b", "--env", "A=b"], [FlagWord("--namespace", 1), FlagWord("--env", 4)]),
        (["--namespace=ml", "-nml", "-fnml", "--follow"], []),
        (["-fn", "ml"], [FlagWord("-n", 0)]),
        (["--env", "-n", "ml"], [FlagWord("--env", 0)]),
        (["--", "-n", "ml"], []),
        (["--namespace"], [FlagWord("--namespace", 0)]),
        (["-", "-x", "--unknown"], []),
    ],
)
def test_flags_are_found_before_their_values(words: list[str], found: list[FlagWord]) -> None:
    """Alone, at the end of joined letters, and never in a value or after --."""
    assert found == list(flags_before_values(OPTIONS, words))


@given(st.lists(st.sampled_from(["-n", "-f", "-fn", "-nml", "--env", "--env=a", "--follow", "x", "-"])))
def test_what_is_found_is_what_click_takes(words: list[str]) -> None:
    """On any line that click accepts, the flags with a value in the next word are as many as click's values."""
    command = click.Command("c", params=[*OPTIONS, click.Argument(["rest"], nargs=-1)])
    try:
        context = command.make_context("c", list(words))
    except click.UsageError:
        return
    flags = list(flags_before_values(OPTIONS, words))
    taken = {flag.index + 1 for flag in flags}
    left = [word for index, word in enumerate(words) if index not in taken]

    assert [word for word in left if not word.startswith("-") or word == "-"] == list(context.params["rest"])


@pytest.mark.parametrize("words", [["-n", "--follow"], ["--env", "--env=A=b"], ["--namespace", "--", "x"]])
def test_a_flag_is_not_the_value_of_another(words: list[str]) -> None:
    """It would be swallowed in silence."""
    with pytest.raises(click.UsageError, match="takes a value, and the next word is") as caught:
        check_values(OPTIONS, words)
    assert "=VALUE" in caught.value.message


@pytest.mark.parametrize(
    "words", [["--namespace=--x"], ["-n", "-1"], ["--env", "A=--b"], ["--", "-n", "--x"]]
)
def test_any_other_value_is_taken(words: list[str]) -> None:
    """After an equals sign whatever it is."""
    check_values(OPTIONS, words)


class Perhaps(click.ParamType[str]):
    """A type that may stand alone, or have the next word where that is short."""

    name = "text"
    bare = "alone"

    @staticmethod
    def may_be(word: str) -> bool:
        """Whether *word* is its value."""
        return len(word) == 1


@pytest.mark.parametrize(
    ("words", "taken", "off"),
    [
        (["--follow=true", "x"], ["--follow", "x"], set()),
        (["-f=true", "--follow=0"], ["-f"], {"--follow"}),
        (["-f", "-n", "-f", "--", "-f"], ["--follow", "--namespace", "-f", "--", "-f"], set()),
        (["-fn", "ml"], ["-fn", "ml"], set()),
        (["--follow=perhaps"], ["--follow=perhaps"], set()),
        (["--perhaps", "command"], ["--perhaps=alone", "command"], set()),
        (["--perhaps", "c"], ["--perhaps", "c"], set()),
        (["--perhaps", "--namespace", "ml", "c"], ["--perhaps=alone", "--namespace", "ml", "c"], set()),
        (["--env", "--perhaps", "--follow=false"], ["--env", "--perhaps"], {"--follow"}),
        (["--", "--perhaps", "--follow=true"], ["--", "--perhaps", "--follow=true"], set()),
    ],
)
def test_gos_flags_are_written_as_click_takes_them(words: list[str], taken: list[str], off: set[str]) -> None:
    """Alone or after an equals sign; values, and what follows --, stay as they are."""
    options = [*OPTIONS, click.Option(["--perhaps"], type=Perhaps())]
    found = as_click_takes(options, words)

    assert (taken, off) == (found.words, set(found.switched_off))
