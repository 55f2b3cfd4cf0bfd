"""The control plane on a developer's own terms."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.controlplane.polling import eventually
from tests.paths import ROOT


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_up_leaves_nothing_behind(how: signal.Signals) -> None:
    """``python -m tests.controlplane up`` serves until it is stopped, by Ctrl-C or by the kernel."""
    command = [sys.executable, "-m", "tests.controlplane", "up", "--nodes=none"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        line = up.stdout.readline()
        assert line.startswith("export KUBECONFIG="), up.communicate()[1]
        kubeconfig = Path(line.strip().removeprefix("export KUBECONFIG="))
        port = urlsplit(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]).port
        assert port is not None
        assert _listens(port)
        up.send_signal(how)
        up.communicate(timeout=150)
    eventually(lambda: not kubeconfig.parent.exists(), "the end of all components")
    assert not _listens(port)
