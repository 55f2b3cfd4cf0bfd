"""Draw what commands print on a terminal of 60 and of 120 columns: ``python docs/screens/generate.py``.

They run on a sandbox with a home of its own, in a terminal of that width. The live view draws itself.
"""

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from html import unescape
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text
from textual.widgets import Static

from arena_topo.cli.commands.cluster.top_watch import LiveCluster
from arena_topo.jobs.overview import ClusterWatch
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.kube.session import connect
from arena_topo.output.live.app import LiveView

FOLDER = Path(__file__).parent
WIDTHS = (60, 120)
SCREENS = {
    "list": "list",
    "get": "get vgg16",
    "describe": "describe gpt",
    "plan": "plan mpi --workers=2 --gpus=4",
    "compare": "plan mpi --workers=4 --gpus=1 --compare",
    "top-node": "top node",
    "help": "logs --help",
}
"""Each drawing by the command that it shows."""
_JOBS = """
set -e
arena-topo sandbox start --layout racks --speed 20
at() { arena-topo sandbox run -- arena-topo "$@"; }
at submit mpi --name=resnet50 --workers=2 --gpus=1 --image=train:1.0 "exit 3"
at wait resnet50 --for=succeeded || true
at submit mpi --gputopology --gang --rdma --name=vgg16 --workers=2 --gpus=8 --image=train:1.0 "sleep 3600" --wait=running
at submit mpi --gputopology --gang --rdma --name=gpt --workers=16 --gpus=8 --image=train:1.0 "sleep 3600"
"""
"""One job that has failed, one that runs, and one that waits for a place."""


def drawn(folder: Path) -> dict[str, str]:
    """Return the drawings by name, of commands that run with *folder* as their home."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        "HOME": str(folder),
        "PATH": path,
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "TZ": "UTC",
    }
    try:
        _run(["bash", "-c", _JOBS], environment)
        drawings = {
            f"{name}-{width}.svg": drawing(words, shown(words, width, environment), width)
            for name, words in SCREENS.items()
            for width in WIDTHS
        }
        config = folder / ".local" / "state" / "arena-topo" / "sandbox" / "kubeconfig"
        return drawings | {f"watch-{width}.svg": asyncio.run(live_view(config, width)) for width in WIDTHS}
    finally:
        _run(["arena-topo", "sandbox", "stop"], environment)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)  # noqa: S603  # one of ours


def shown(words: str, width: int, environment: Mapping[str, str]) -> str:
    """Return what a command prints on a terminal of *width* columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    command = ["arena-topo", "sandbox", "run", "--", "arena-topo", *words.split()]
    with subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:  # noqa: S603  # one of ours
        os.close(theirs)
        printed = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return (
        f"$ arena-topo {words}\n" + printed.decode().replace("\r\n", "\n") if process.returncode == 0 else ""
    )


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    # The terminal is gone with the last process that had it open.
    except OSError:
        return b""


def drawing(title: str, text: str, width: int) -> str:
    """Return *text*, with a terminal's codes in it, as an SVG of *width* columns, which longer lines go on below."""
    console = Console(width=width, record=True, file=StringIO(), highlight=False)
    for line in Text.from_ansi(text).split("\n", allow_blank=False):
        for part in line.divide(range(width, len(line), width)):
            console.print(part, soft_wrap=True)
    return _without_fonts(console.export_svg(title=f"arena-topo {title}", unique_id="screen"))


async def live_view(config: Path, width: int) -> str:
    """Return the screen of ``top --watch`` at *width* columns, as an SVG."""
    session = connect(ConnectionFlags(kubeconfig=str(config)))
    view = LiveView(LiveCluster(session, ClusterWatch(session)), first="cluster", cluster="")
    async with view.run_test(size=(width, 36)) as pilot:
        while "GPUs free" not in str(view.screen.query_one("#summary", Static).content):
            await pilot.pause(0.05)
        await pilot.pause()
        svg = view.export_screenshot(title="arena-topo top --watch")
    session.close()
    return _without_fonts(re.sub(r"terminal-\d+", "screen", svg))


def _without_fonts(svg: str) -> str:
    """Return *svg* without fonts from elsewhere, as rich names them: whoever looks at it has a font."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def lasting(svg: str) -> str:
    """Return the text of a drawing without what differs from run to run: times, letters drawn by lot, blanks."""
    text = unescape(" ".join(re.findall(r"<text [^>]*>(.*?)</text>", svg))).replace("\xa0", " ")
    text = re.sub(r"-launcher-\w{5}", "-launcher-XXXXX", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d|\b\d\d:\d\d:\d\d\b|\b\d+[smh]\b", "TIME", text)
    return "".join(text.split())


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        for file, svg in drawn(Path(home)).items():
            (FOLDER / file).write_text(svg)
            sys.stdout.write(f"{file} written\n")
