"""How commands are declared, their words read, and their help laid out."""

from dataclasses import FrozenInstanceError, dataclass

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.cli.declare import argument, as_click_takes, command, many, option, switch, text

# A command receives its flags as one frozen value.


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """Flags that several commands share."""

    labels: tuple[str, ...] = many("-l", type=click.STRING, metavar="TEXT", help="Labels.")
    count: int | None = option("--count", type=click.INT, help="A number.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Flags of one command, and those that it shares."""

    name: str = argument()
    image: str = text("--image-name", default="i", help="An image.")
    is_loud: bool = switch("--loud", help="Loud.")
    inner: Inner


def received(*args: str) -> Flags:
    """Return what a command receives for *args*."""
    values: list[Flags] = []

    @command("test", Flags)
    def run(flags: Flags) -> int:
        """Do nothing."""
        values.append(flags)
        return 3

    assert 3 == run.main(list(args), standalone_mode=False)
    return values[0]


def test_fields_have_the_values_that_were_typed() -> None:
    """By the fields' names, whatever the flags are called, and those of a shared value within it."""
    flags = received("job", "--image-name=x", "--loud", "-l", "a", "-l", "b", "--count", "2")

    assert Flags(name="job", image="x", is_loud=True, inner=Inner(labels=("a", "b"), count=2)) == flags


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreInner(Inner):
    """The shared flags, and one more."""

    colour: str = text("--colour", help="A colour.")


def test_a_command_may_have_more_flags_in_a_part() -> None:
    """As ``submit`` has for each kind of job."""
    values: list[Flags] = []

    @command("test", Flags, parts={"inner": MoreInner})
    def run(flags: Flags) -> None:
        """Do nothing."""
        values.append(flags)

    run.main(["job", "--colour=red", "--count=2"], standalone_mode=False)

    assert MoreInner(labels=(), count=2, colour="red") == values[0].inner


def test_fields_have_their_flags_defaults() -> None:
    """None where there is no default."""
    assert Flags(name="job", image="i", is_loud=False, inner=Inner(labels=(), count=None)) == received("job")


def test_flags_cannot_be_changed() -> None:
    """What was typed stays what was typed."""
    with pytest.raises(FrozenInstanceError):
        received("job").name = "other"  # type: ignore[misc]


def test_the_docstring_is_the_help() -> None:
    """And shared flags are listed with the command's own."""

    @command("test", Flags)
    def run(flags: Flags) -> None:
        """Do nothing."""
        del flags

    text = run.get_help(click.Context(run))
    assert "Do nothing." in text
    assert all(flag in text for flag in ("--image-name", "--loud", "-l", "--count"))


def test_a_switch_that_is_typed_as_false_comes_before_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go's --loud=false is a value like any other."""
    monkeypatch.setenv("ARENA_TOPO_LOUD", "true")

    assert received("job").is_loud
    assert received("job", "--loud=true").is_loud
    assert not received("job", "--loud=false").is_loud


@dataclass(frozen=True, slots=True, kw_only=True)
class Clashing:
    """A command's own flag, and shared flags of which one has the same letter."""

    length: int | None = option("-l", "--length", type=click.INT, help="A length.")
    name: str = argument()
    inner: Inner


def test_a_commands_own_flag_has_the_letter_that_two_claim() -> None:
    """The other has no such letter, and none is read twice."""
    values: list[Clashing] = []

    @command("test", Clashing)
    def run(flags: Clashing) -> None:
        """Do nothing."""
        values.append(flags)

    run.main(["job", "-l", "2"], standalone_mode=False)

    assert (2, ()) == (values[0].length, values[0].inner.labels)


# The words of a command line are read as click reads them, and no flag takes another for its value.

OPTIONS = [
    click.Option(["-n", "--namespace"]),
    click.Option(["-f", "--follow"], is_flag=True),
    click.Option(["--env"], multiple=True),
]


@given(st.lists(st.sampled_from(["-n", "-f", "-fn", "-nml", "--env", "--env=a", "--follow", "x", "-"])))
def test_click_takes_the_same_of_the_words_as_of_those_that_were_typed(words: list[str]) -> None:
    """On any line that click accepts flags have the same values:
    alone, at the end of joined letters, never in a value.
    """
    command = click.Command("c", params=[*OPTIONS, click.Argument(["rest"], nargs=-1)])
    try:
        context = command.make_context("c", list(words))
    except click.UsageError:
        return

    assert context.params == command.make_context("c", as_click_takes(OPTIONS, words).words).params


@pytest.mark.parametrize(
    "words", [["-n", "--follow"], ["-fn", "--follow"], ["--env", "--env=A=b"], ["--namespace", "--", "x"]]
)
def test_a_flag_is_not_the_value_of_another(words: list[str]) -> None:
    """It would be swallowed in silence."""
    with pytest.raises(click.UsageError, match="takes a value, and the next word is") as caught:
        as_click_takes(OPTIONS, words, checked=True)
    assert "=VALUE" in caught.value.message


@pytest.mark.parametrize(
    "words", [["--namespace=--x"], ["-n", "-1"], ["--env", "A=--b"], ["--", "-n", "--x"]]
)
def test_any_other_value_is_taken(words: list[str]) -> None:
    """After an equals sign whatever it is."""
    as_click_takes(OPTIONS, words, checked=True)


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
