"""Lines of text with styles, printed plain or in a terminal's colours."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line and its style in rich's words; ``column`` marks the names that are aligned."""

    text: str
    style: str
    column: bool = False


Line = list[Span]


def rendered(lines: Iterable[Line], *, colour: bool) -> str:
    """Return *lines*, each ended by a newline and without spaces at its end; in *colour* with ANSI codes."""
    if not colour:
        return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)
    from io import StringIO  # a plain table needs neither of the two

    from rich.console import Console
    from rich.text import Text

    target = StringIO()
    console = Console(
        file=target, force_terminal=True, color_system="standard", width=10_000, highlight=False
    )
    for line in lines:
        console.print(Text.assemble(*((span.text, span.style) for span in line)), soft_wrap=True)
    return target.getvalue()
