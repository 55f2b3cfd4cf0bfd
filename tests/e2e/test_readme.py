"""The README's commands run as they stand there, on a real cluster."""

import re
from pathlib import Path

from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.shapes import shape
from tests.paths import ROOT

README = ROOT / "README.md"


def shown(command: str) -> tuple[str, str]:
    """Return a command of the README that starts so, and the output that stands below it."""
    found = re.search(rf"^\$ (arena-topo {command}.*)\n((?:.*\n)*?)```", README.read_text(), re.MULTILINE)
    assert found is not None
    return found.group(1), found.group(2)


def line(command: str) -> str:
    """Return a command of the README that looks so."""
    found = re.search(rf"^\$ (arena-topo {command})", README.read_text(), re.MULTILINE)
    assert found is not None
    return found.group(1)


def test_the_readme_shows_what_happens(
    kubeconfig: Path, kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """Submit, get and delete print what is printed there."""
    del gpu_nodes
    arena = Arena(kubeconfig)
    for command in ("plan mpi --workers=4 --gpus=1$", "plan mpi .*--compare$", "doctor$", "cluster setup$"):
        assert 0 == arena.shell(line(command)).code
    submit, created = shown("submit mpi --gputopology")
    assert created == arena.shell(submit).out
    eventually(lambda: "RUNNING" in arena("get", "vgg16").out, "the job to run")
    get, table = shown("get")
    assert shape(table) == shape(arena.shell(get).out)
    assert 5 == len(pods.of_job(kube, namespace, "vgg16"))
    delete, deleted = shown("delete")
    assert deleted == arena.shell(delete).out
