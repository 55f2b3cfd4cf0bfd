"""Write what the commands of a page print below them: ``python -m tools.typed_pages``.

They run in the order of the page, in one shell with a home of its own.
"""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": (), "docs/tutorial/README.md": ("plan.svg",)}
"""Pages whose commands are typed as they stand, each with the files that its commands write and the page shows."""
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HOME = "/home/ann"
_PACKAGED = ("arena_topo", "templates", "pyproject.toml", "README.md", "LICENSE")


def commands(text: str) -> list[str]:
    """Return the commands of a page, in its order."""
    return [
        line[2:] for block in _BLOCK.findall(text) for line in block.splitlines() if line.startswith("$ ")
    ]


def typed(text: str, drawings: tuple[str, ...], folder: Path) -> tuple[str, dict[str, str]]:
    """Run the commands of the page *text* with *folder* as home; return the page with their output, and its *drawings*.

    They run in a copy of what a package is built from. Nothing comes from the network: pip finds here what it installs.
    """
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in _PACKAGED:
        source = ROOT / name
        if source.is_dir():
            copytree(source, checkout / name, ignore=ignore_patterns("__pycache__"))
        else:
            copy2(source, checkout)
    outputs = [f"{folder}/{number}.out" for number in range(len(commands(text)))]
    script = "".join(
        f"{{ {line}\n}} > {output} 2>&1\n" for line, output in zip(commands(text), outputs, strict=True)
    )
    bash = ["bash", "-c", script]
    subprocess.run(bash, cwd=checkout, env=_environment(folder), stdin=subprocess.DEVNULL, check=True)
    printed = (Path(output).read_text().replace(str(folder), _HOME) for output in outputs)
    page = _BLOCK.sub(lambda block: _with_output(block[1], printed), text)
    return page, {name: (checkout / name).read_text() for name in drawings}


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of a newcomer: no kubeconfig, profile or colours of the user, and a terminal of 120 columns."""
    return {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
        "LANG": "C.UTF-8",
        # What a package needs, to be built and to run, is installed beside this Python; an index is not asked.
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
    }


def _with_output(block: str, outputs: Iterator[str]) -> str:
    lines = [f"{line}\n{next(outputs)}" for line in block.splitlines() if line.startswith("$ ")]
    return f"```console\n{''.join(lines)}```"


def lasting(text: str) -> str:
    """Return *text* without what differs from run to run: times, addresses, process numbers, letters drawn by lot.

    The columns of a table are as wide as their longest value, so that runs of blanks and lines count as one.
    """
    text = re.sub(r"(?m)^(process: +)\d+", r"\1N", text)
    # Whoever reads sooner than the operator works is told so; the training's figures vary as real ones do.
    text = re.sub(r"(?m)^waiting for the operator .*\n", "", text)
    text = re.sub(r"(?m)(^Iter #\d: |^Img/sec per GPU: |^Total img/sec .*: )[\d.+ -]+", r"\1N ", text)
    text = re.sub(r"-launcher-\w{5}\b.*", "-launcher-XXXXX", text)
    text = re.sub(r"\b\d+(\.\d+)?(ms|s|m)\b", "Ns", text)
    text = re.sub(r"\b\d+(\.\d+){3}\b", "IP", text)
    return re.sub(r"([ -])\1+", r"\1", text)


def main() -> None:
    """Write the pages, each only where more has changed than differs from run to run."""
    for name, drawings in PAGES.items():
        page = ROOT / name
        text = page.read_text()
        with TemporaryDirectory() as folder:
            now, drawn = typed(text, drawings, Path(folder))
        if lasting(text) != lasting(now):
            page.write_text(now)
            sys.stdout.write(f"{name} written\n")
        for drawing, svg in drawn.items():
            (page.parent / drawing).write_text(svg)


if __name__ == "__main__":
    main()
