"""Write what the commands of a page print below them: ``python -m tools.typed_pages``.

They run in the order of the page, in one shell with a home of its own.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns
from tempfile import TemporaryDirectory

from tools import terminal
from tools.wheels import index, requirements

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Page:
    """A page whose commands are typed as they stand.

    It shows *drawings*, which its commands write, and *screens*: by the names of their files, the commands
    that are run once more at their place, on a terminal.
    """

    path: str
    drawings: tuple[str, ...] = ()
    screens: Mapping[str, str] = field(default_factory=dict)


PAGES = (
    Page("README.md"),
    Page(
        "docs/tutorial/README.md",
        ("plan.svg",),
        {
            "topology.svg": "arena-topo topology",
            "list.svg": "arena-topo list",
        },
    ),
)
_SCREEN_COLUMNS = 100
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HOME = "/home/ann"
_PACKAGED = ("arena_topo", "templates", "pyproject.toml", "README.md", "LICENSE")


def commands(text: str) -> list[str]:
    """Return the commands of a page, in its order."""
    return [
        line[2:] for block in _BLOCK.findall(text) for line in block.splitlines() if line.startswith("$ ")
    ]


def typed(page: Page, text: str, folder: Path) -> tuple[str, dict[str, str]]:
    """Run the commands of *text*, that of *page*, with *folder* as home; return it with their output, and its
    pictures by name.

    They run in a copy of what a package is built from. Nothing comes from the network: uv finds what it
    installs in an index of what is installed next to this Python.
    """
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in _PACKAGED:
        source = ROOT / name
        if source.is_dir():
            copytree(source, checkout / name, ignore=ignore_patterns("__pycache__"))
        else:
            copy2(source, checkout)
    environment = _environment(folder)
    if any(command.startswith("uv ") for command in commands(text)):
        environment["UV_DEFAULT_INDEX"] = index(folder / "index", [], requirements())
    bash = ["bash", "-c", "".join(_script(page, text, folder))]
    subprocess.run(bash, cwd=checkout, env=environment, stdin=subprocess.DEVNULL, check=True)
    printed = (
        (folder / f"{number}.out").read_text().replace(str(folder), _HOME)
        for number in range(len(commands(text)))
    )
    result = _BLOCK.sub(lambda block: _with_output(block[1], printed), text)
    return result, {name: (checkout / name).read_text() for name in (*page.drawings, *page.screens)}


def _script(page: Page, text: str, folder: Path) -> Iterator[str]:
    """Yield the lines of a script that types the commands, each with its own file for what it prints."""
    missing = {command: name for name, command in page.screens.items()}
    for number, line in enumerate(commands(text)):
        yield f"{{ {line}\n}} > {folder}/{number}.out 2>&1\n"
        # Of a command that is typed twice, the first time is shown.
        if name := missing.pop(line, ""):
            yield f"{sys.executable} {ROOT}/tools/terminal.py {name} {_SCREEN_COLUMNS} {line}\n"


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of a newcomer: no kubeconfig, profile
    or colours of the user, and a terminal of 120 columns.
    """
    return {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
    }


def _with_output(block: str, outputs: Iterator[str]) -> str:
    lines = [f"{line}\n{next(outputs)}" for line in block.splitlines() if line.startswith("$ ")]
    return f"```console\n{''.join(lines)}```"


def lasting(text: str) -> str:
    """Return *text* without what differs from run to run: times, addresses, process numbers, letters drawn by
    lot.

    The columns of a table are as wide as their longest value, so that runs of blanks and lines count as one.
    """
    text = re.sub(r"(?m)^(process: +)\d+", r"\1N", text)
    # Anyone who reads sooner than the operator works sees it; the training's figures vary as real ones do.
    text = re.sub(r"(?m)^waiting for .* to create .*\n", "", text)
    text = re.sub(r"(?m)(^Iter #\d: |^Img/sec per GPU: |^Total img/sec .*: )[\d.+ -]+", r"\1N ", text)
    text = re.sub(r"-launcher-\w{5}\b.*", "-launcher-XXXXX", text)
    text = re.sub(r"\b\d+(\.\d+)?(ms|s|m)\b", "Ns", text)
    text = re.sub(r"\b\d+(\.\d+){3}\b", "IP", text)
    return re.sub(r"([ -])\1+", r"\1", text)


def main() -> None:
    """Write the pages, and each page and screen only where more has changed than differs from run to run."""
    for page in PAGES:
        path = ROOT / page.path
        text = path.read_text()
        with TemporaryDirectory() as folder:
            now, pictures = typed(page, text, Path(folder))
        _write(path, now, lasting)
        for name, svg in pictures.items():
            _write(path.parent / name, svg, terminal.lasting if name in page.screens else str)


def _write(path: Path, text: str, what_lasts: Callable[[str], str]) -> None:
    if not path.exists() or what_lasts(path.read_text()) != what_lasts(text):
        path.write_text(text)
        sys.stdout.write(f"{path.relative_to(ROOT)} written\n")


if __name__ == "__main__":
    main()
