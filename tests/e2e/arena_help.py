"""The commands and flags of kubeflow/arena, as its own help lists them."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.paths import ROOT

SURFACE = ROOT / "tests" / "data" / "arena-0.15.5.txt"
TRAINING = (
    "submit mpijob", "list", "get", "logs", "attach", "delete", "prune", "top job", "top node",
    "whoami", "version", "completion",
)  # fmt: skip
"""The commands for MPI jobs, whose flags count; of all others the name does."""
HIDDEN = {
    "submit mpijob": {
        "--workingDir", "--dataDir", "--syncMode", "--syncSource", "--syncImage", "--tensorboardImage",
    },
    "list": {"--allNamespaces"},
}  # fmt: skip
"""Older spellings, which Arena takes and its help leaves out
(``MarkDeprecated`` in pkg/argsbuilder and pkg/commands).
"""


def surface(program: Path) -> Mapping[str, set[str]]:
    """Return each command of *program*, by its words, with
    its flags; those of every command stand under ``""``.
    """
    top = _help(program)
    names = _commands(top) - {"help"}
    found = {"": _flags(top, "Flags")}
    for name in names | {f"submit {kind}" for kind in _commands(_help(program, "submit"))}:
        found[name] = set()
    for name in TRAINING:
        found[name] = _flags(_help(program, *name.split()), "Flags") | HIDDEN.get(name, set())
    return {name: found[name] for name in found if name not in {"submit", "top"}}


def as_text(commands: Mapping[str, set[str]]) -> str:
    """Return *commands* as the lines of a file, one for each command."""
    return "".join(f"{' '.join([name or '*', *sorted(commands[name])])}\n" for name in sorted(commands))


def recorded() -> Mapping[str, set[str]]:
    """Return what the file says."""
    lines = [line.split() for line in SURFACE.read_text().splitlines()]
    return {
        " ".join(word for word in line if not word.startswith("-")).replace("*", ""): {
            word for word in line if word.startswith("-")
        }
        for line in lines
    }


def _help(program: Path, *words: str) -> str:
    done = subprocess.run(
        [program, *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=150.0,
        env={"USER": "t"},
    )
    return done.stdout


def _section(text: str, title: str) -> str:
    """Return the last section of a title: above its usage,
    ``submit`` has a list of commands that do not exist.
    """
    found = re.findall(rf"^{title}:\n((?:  .*\n)+)", text, re.MULTILINE)
    return found[-1] if found else ""


def _commands(text: str) -> set[str]:
    return set(re.findall(r"^  (\w+) ", _section(text, "Available Commands"), re.MULTILINE))


def _flags(text: str, title: str) -> set[str]:
    lines = _section(text, title).splitlines()
    named = {name for line in lines for name in re.findall(r"(?<!\S)--?[A-Za-z][\w-]*", line[:34])}
    return named - {"-h", "--help"}
