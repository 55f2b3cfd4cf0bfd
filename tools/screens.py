"""Draw what commands print on terminals of 60, 80 and 120 columns: ``python -m tools.screens``.

They run on a sandbox with a home of its own, in a terminal of that width. The live view draws itself.
"""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from textual.widgets import Static

from arena_topo.cli.commands.top import LiveCluster
from arena_topo.jobs.overview import ClusterWatch
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.session import connect
from arena_topo.live.app import LiveView
from tools.terminal import drawing, shown, without_fonts

FOLDER = Path(__file__).parents[1] / "docs" / "screens"
WIDTHS = (60, 120)
SCREENS = {
    "list": "list",
    "get": "get vgg16",
    "describe": "describe gpt",
    "plan": "plan mpi --workers=2 --gpus=4",
    "submit": "submit mpi --name=bert --workers=2 --gpus=4 --gputopology --image=train:1.0 --dry-run=server --plan train",
    "compare": "plan mpi --workers=4 --gpus=1 --compare",
    "top-node": "top node",
    "help": "logs --help",
}
"""Each drawing by the command that it shows."""
MAIN = ("list", "get", "describe", "plan", "submit")
"""Those that are drawn at 80 columns too, which most terminals have."""
_JOBS = """
set -e
arena-topo sandbox start --layout racks --speed 20
at() { arena-topo sandbox run -- arena-topo "$@"; }
at submit mpi --name=resnet50 --workers=2 --gpus=1 --image=train:1.0 "exit 3"
at wait resnet50 --for=succeeded || true
sleep 1
at submit mpi --gputopology --gang --rdma --name=vgg16 --workers=2 --gpus=8 --image=train:1.0 "sleep 3600" --wait=running
sleep 1
at submit mpi --gputopology --gang --rdma --name=gpt --workers=16 --gpus=8 --image=train:1.0 "sleep 3600"
"""
"""One job that has failed, one that runs, and one that waits
for a place; lists have the newest first, by whole seconds.
"""


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
            f"{name}-{width}.svg": _screen(words, width, environment)
            for name, words in SCREENS.items()
            for width in (*WIDTHS, *((80,) if name in MAIN else ()))
        }
        config = folder / ".local" / "state" / "arena-topo" / "sandbox" / "kubeconfig"
        return drawings | {f"watch-{width}.svg": asyncio.run(live_view(config, width)) for width in WIDTHS}
    finally:
        _run(["arena-topo", "sandbox", "stop"], environment)


def _screen(words: str, width: int, environment: Mapping[str, str]) -> str:
    command = ["arena-topo", "sandbox", "run", "--", "arena-topo", *words.split()]
    line = f"arena-topo {words}"
    return drawing(line, f"$ {line}\n{shown(command, width, environment)}", width)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)


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
    return without_fonts(re.sub(r"terminal-\d+", "screen", svg))


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        for file, svg in drawn(Path(home)).items():
            (FOLDER / file).write_text(svg)
            sys.stdout.write(f"{file} written\n")
