"""``arena-topo sandbox`` from outside, as its user types it."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_commands_of_a_first_try(tmp_path: Path) -> None:
    """start, run, status and stop work with nothing but the user's state folder."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}

    def tool(*arguments: str) -> str:
        command = [sys.executable, "-m", "arena_topo", "sandbox", *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=150
        )
        return done.stdout

    started = tool("start", "--layout", "hami", "--speed", "20")
    try:
        shown = tool("run", "--", str(Path(sys.executable).parent / "kubectl"), "get", "nodes", "-o", "name")
        status = tool("status")
    finally:
        stopped = tool("stop")

    assert f"export KUBECONFIG={tmp_path}/arena-topo/sandbox/kubeconfig" in started
    assert shown == "node/hami-v100-1\nnode/hami-v100-2\n"
    assert "layout:     hami (2 nodes, 0 pods, speed 20)" in status
    assert stopped == "The sandbox has stopped.\n"
    assert "not running" in tool("status")
