"""``-o`` of the commands that show jobs: words, and kubectl's forms that take an expression."""

import sys
from dataclasses import dataclass

import click

from arena_topo.cli.command import option
from arena_topo.cli.options.notations import Notation
from arena_topo.cli.terminal import say
from arena_topo.errors import UsageError
from arena_topo.model.notation.printable import printable, printable_lines

_EXPRESSIONS = ("jsonpath", "custom-columns")


@dataclass(frozen=True, slots=True)
class OutputForm:
    """A form, and for those that take one its expression."""

    word: str
    expression: str = ""


class OutputNotation(Notation[OutputForm]):
    """One of some words, ``jsonpath=TEMPLATE`` or ``custom-columns=SPEC``."""

    name = "form"

    def __init__(self, *words: str) -> None:
        self._words = words

    def read(self, text: str, flag: str) -> OutputForm:
        """Return the form, whose expression is checked before anything is asked of a cluster."""
        word, equals, expression = text.partition("=")
        if word in _EXPRESSIONS and equals:
            self._check(word, expression, flag)
            return OutputForm(word, expression)
        if text in self._words:
            return OutputForm(text)
        takes = [*self._words, *(f"{word}=..." for word in _EXPRESSIONS)]
        if word in _EXPRESSIONS:
            raise UsageError(
                f"{flag}: {word} needs an expression", hint=f"for example {flag} jsonpath='{{.name}}'"
            )
        raise UsageError(f"{flag}: unknown output format {text!r}", hint=f"use one of {', '.join(takes)}")

    @staticmethod
    def _check(word: str, expression: str, flag: str) -> None:
        if word == "jsonpath":
            from arena_topo.output.jsonpath import parse_template

            parse_template(expression, flag)
        else:
            from arena_topo.output.custom_columns import parse_columns

            parse_columns(expression, flag)


def output_form(*words: str, help: str) -> OutputForm | None:
    """Return ``-o`` for *words* and for expressions; None where it is not given."""
    names = "|".join((*words, *_EXPRESSIONS))
    return option(
        "-o", "--output", type=OutputNotation(*words), metavar="FORM", help=f"{help} One of {names}."
    )


def print_documents(form: OutputForm, documents: list[dict[str, object]], *, single: bool = False) -> bool:
    """Print *documents* in *form*, and return True; False where the form is a table or names."""
    from arena_topo.output.documents import document

    whole: object = documents[0] if single else documents
    if form.word in ("json", "yaml"):
        click.echo(document(whole, form.word), nl=False)
    elif form.word == "jsonpath":
        from arena_topo.output.jsonpath import parse_template

        # As in kubectl, a list stands below items, and nothing is added to what the template prints.
        text = parse_template(form.expression, "-o").text(whole if single else {"items": whole})
        # Programs get what was asked for; a terminal would obey what others wrote into names and messages.
        click.echo(printable_lines(text) if sys.stdout.isatty() else text, nl=False)
    elif form.word == "custom-columns":
        from arena_topo.output.custom_columns import parse_columns

        columns = parse_columns(form.expression, "-o")
        click.echo(columns.table(documents), nl=False)
        # Who knows kubectl types .metadata.name, and the documents are flat, as Arena's are.
        if documents and (absent := columns.absent(documents)):
            words = f"nothing has the field of {', '.join(absent)}; the fields are those of -o json, such as .name"
            say(f"hint: {printable(words)}", style="hint")
    else:
        return False
    return True
