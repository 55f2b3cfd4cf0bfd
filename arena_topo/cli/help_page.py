"""How help looks: flags under headings, the connection's once for all commands, and no word that is broken.

A line that does not fit is broken between words only, so that flags, images and paths can be copied; below 80 columns the text of a
flag stands under it. An example that does not fit goes on after a backslash, as a shell reads it.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

_STACKED_BELOW = 80
"""Columns; two columns side by side leave too little for words below that."""

_FEW = 20
"""Flags that are read at a glance, without headings."""

_WORD = r"""(?:[^\s"']|"[^"]*"?|'[^']*'?)+"""
"""A word of a shell's line, quoted parts whole."""

CONNECTION = "Connection"

_ROLES = ("worker", "ps", "chief", "evaluator")
_OF_A_ROLE = ("image", "port", "cpu", "cpu-limit", "memory", "memory-limit", "selector")

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Job": (
        "--name",
        "--image",
        "--workers",
        "--min-workers",
        "--max-workers",
        "--grow",
        "--gang",
        "--gang-scheduler",
        "--queue",
        "--priority",
        "--retry",
        "--clean-task-policy",
        "--ttl-after-finished",
        "--running-timeout",
        "--mpi-implementation",
        "--shell",
        "--working-dir",
        "--model-name",
        "--model-source",
        "--api-version",
        "--template",
        "--wait",
        "--follow",
        "--file",
    ),
    "Resources": (
        "--gpus",
        "--cpu",
        "--memory",
        "--share-memory",
        "--slots-per-worker",
        "--device",
        "--rdma",
        "--launcher-cpu",
        "--launcher-memory",
    ),
    "Roles": (
        "--ps",
        "--ps-gpus",
        "--chief",
        "--evaluator",
        "--evaluator-gpus",
        "--role-sequence",
        *(f"--{role}-affinity-{what}" for role in ("worker", "ps") for what in ("policy", "constraint")),
        *(f"--{role}-{what}" for role in _ROLES for what in _OF_A_ROLE),
    ),
    "Placement": (
        "--gputopology",
        "--topology-policy",
        "--parallel",
        "--require-topology",
        "--prefer-topology",
        "--topology-levels",
        "--objective",
        "--coalesce",
        "--share-gpus",
        "--nccl-version",
        "--measured",
        "--pin",
        "--expect-nodes",
        "--selector",
        "--launcher-selector",
        "--toleration",
        "--scheduler",
        "--from",
        "--product",
        "--compare",
        "--when",
    ),
    "Data": (
        "--data",
        "--data-dir",
        "--config-file",
        "--mounts-on-launcher",
        "--sync-mode",
        "--sync-source",
        "--sync-image",
        "--tensorboard",
        "--tensorboard-image",
        "--logdir",
    ),
    "Pod": (
        "--env",
        "--env-from",
        "--label",
        "--annotation",
        "--image-pull-policy",
        "--image-pull-secret",
        "--hostNetwork",
        "--hostIPC",
        "--hostPID",
        "--ssh-auth-mount-path",
    ),
    "Output": ("--output", "--dry-run", "--plan", "--save", "--diff"),
}
"""The headings of a page with many flags; one that stands nowhere comes under "Options"."""


class PageFormatter(click.HelpFormatter):
    """Lays help out by the rules above."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line that says how the command is typed."""
        begin = f"{prefix or 'Usage: '}{prog} "
        self.write(_filled(args, self.width, begin, " " * min(len(begin), 11)) + "\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs; those after a backspace keep their lines, which are examples."""
        indent = " " * self.current_indent
        paragraphs = text.strip("\n").split("\n\n")
        self.write("\n".join(_paragraph(each, self.width, indent) for each in paragraphs))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and what is said of each, side by side where there is room."""
        indent, rows = " " * self.current_indent, list(rows)
        if self.width < _STACKED_BELOW:
            for name, text in rows:
                self.write(_filled(name, self.width, indent, indent + "    ") + "\n")
                if text:
                    self.write(_filled(text, self.width, indent + "    ", indent + "    ") + "\n")
            return
        column = min(max(len(name) for name, _ in rows), col_max) + col_spacing
        beside = indent + " " * column
        for name, text in rows:
            begin = f"{indent}{name}"
            if len(name) > column - col_spacing:
                self.write(begin + "\n")
                begin = ""
            self.write(_filled(text, self.width, begin.ljust(len(beside)), beside).rstrip() + "\n")


class PageContext(click.Context):
    """A context whose help is laid out by ``PageFormatter``."""

    formatter_class = PageFormatter


def write_flags(
    rows: Iterable[tuple[Sequence[str], tuple[str, str]]], formatter: click.HelpFormatter
) -> None:
    """Write flags, each given as its spellings and its row: under headings where they are many."""
    sections: dict[str, list[tuple[str, str]]] = {}
    given = list(rows)
    for names, row in given:
        heading = _heading(names) if len(given) > _FEW else "Options"
        sections.setdefault(heading, []).append(row)
    for heading in (*_SECTIONS, "Options"):
        if heading in sections:
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


def write_connection_note(formatter: click.HelpFormatter) -> None:
    """Say where the connection's flags are listed."""
    with formatter.section(CONNECTION):
        formatter.write_text("-n NAMESPACE, --context NAME and others: arena-topo --help lists them.")


def _heading(names: Sequence[str]) -> str:
    return next((heading for heading, flags in _SECTIONS.items() if set(flags) & set(names)), "Options")


def _paragraph(text: str, width: int, indent: str) -> str:
    first, _, rest = text.lstrip("\n").partition("\n")
    if first.strip() == "\b":
        return "\n".join(_example_lines(rest.splitlines(), width, indent)) + "\n"
    return _filled(" ".join(text.split()), width, indent, indent) + "\n"


def _example_lines(lines: Iterable[str], width: int, indent: str) -> Iterator[str]:
    for line in lines:
        own = indent + line[: len(line) - len(line.lstrip())]
        words = re.findall(_WORD, line)
        # An option and its value, as a backslash of the line itself, stay with the word before.
        row, begin = "", own
        for index, word in enumerate(words):
            is_last = index == len(words) - 1
            room = width - len(begin) - (0 if is_last else 2)
            if row and len(row) + 1 + len(word) > room:
                yield f"{begin}{row} \\"
                row, begin = "", own + "    "
            row = f"{row} {word}".lstrip()
        yield f"{begin}{row}".rstrip()


def _filled(text: str, width: int, begin: str, rest: str) -> str:
    return textwrap.fill(
        text,
        width,
        initial_indent=begin,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
