"""Write what the commands of the tutorial print below them: ``python docs/tutorial/generate.py``.

They run in the order of the page, in one shell with a home of its own.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

PAGE = Path(__file__).parent / "README.md"
DRAWINGS = ("plan.svg",)
"""Files that commands of the page write, and that the page shows."""
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HOME = "/home/ann"


def commands(text: str) -> list[str]:
    """Return the commands of a page, in its order."""
    return [
        line[2:] for block in _BLOCK.findall(text) for line in block.splitlines() if line.startswith("$ ")
    ]


def written(text: str, folder: Path) -> tuple[str, dict[str, str]]:
    """Run the commands of the page *text* in *folder*; return the page with their output, and the drawings by name."""
    script = "".join(f"{{ {line}\n}} > {number}.out 2>&1\n" for number, line in enumerate(commands(text)))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Neither the user's kubeconfig and profile, nor colours or the width of a terminal.
    environment = {"HOME": str(folder), "PATH": path, "COLUMNS": "120", "LANG": "C.UTF-8"}
    bash = ["bash", "-c", script]
    subprocess.run(bash, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=True)  # noqa: S603  # the commands of our own page
    outputs = (
        (folder / f"{number}.out").read_text().replace(str(folder), _HOME)
        for number in range(len(commands(text)))
    )
    return _BLOCK.sub(lambda block: _with_output(block[1], outputs), text), {
        name: (folder / name).read_text() for name in DRAWINGS
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


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        page, drawings = written(PAGE.read_text(), Path(name))
    PAGE.write_text(page)
    for drawing, text in drawings.items():
        (PAGE.parent / drawing).write_text(text)
    sys.stdout.write(f"{PAGE.name} written\n")
