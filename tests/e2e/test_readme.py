"""The job of README and tutorial, typed as it stands there, on a real cluster of the same servers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.nodes import A100, NodeSpec, create_nodes, delete_nodes
from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import Arena
from tests.e2e.shapes import shape
from tests.paths import ROOT

README = (ROOT / "README.md").read_text()
TUTORIAL = (ROOT / "docs" / "tutorial" / "README.md").read_text()


@pytest.fixture
def racks(plane: ControlPlane) -> Iterator[list[str]]:
    """Names of the sixteen servers of the layout that the README starts."""
    labels = [f"topology.kubernetes.io/{tier}" for tier in ("zone", "rack")]
    names = create_nodes(
        plane.kube,
        [
            NodeSpec(
                f"dgx-a100-{number + 1}",
                model=A100,
                labels=dict(zip(labels, (f"hall-{1 + number // 8}", f"rack-{1 + number // 4}"), strict=True)),
                capacity={"rdma/hca": "8"},
            )
            for number in range(16)
        ],
    )
    yield names
    delete_nodes(plane.kube, names)


def shown(page: str, command: str) -> tuple[str, str]:
    """Return the first command of *page* that starts so, and the output that stands below it."""
    found = re.search(rf"^\$ (.*arena-topo {command}.*)\n((?:(?!\$ ).*\n)*?)(?=```|\$ )", page, re.MULTILINE)
    assert found is not None
    return found.group(1).removeprefix("arena-topo sandbox run -- "), found.group(2)


def rows(table: str) -> list[str]:
    """Return the shape of a table without the launcher's node, which is the scheduler's choice."""
    return [re.sub(r"(launcher-xxxxx .*) \S+$", r"\1 NODE", line) for line in shape(table)]


def test_the_readme_shows_what_happens(
    kubeconfig: Path, kube: Kube, namespace: str, racks: list[str]
) -> None:
    """The README's plan and its command for a real cluster; then the tutorial's wait, get and delete."""
    arena = Arena(kubeconfig)
    plan, planned = shown(README, "plan")
    assert planned.splitlines()[0] == arena.shell(plan).out.splitlines()[0]
    submit = re.search(r"^```sh\n((?:[^`\n]+\n)+)```$", README, re.MULTILINE)
    assert submit is not None
    assert shown(TUTORIAL, "submit")[1].splitlines()[0] == arena.shell(submit[1]).out.strip()
    wait, running = shown(TUTORIAL, "wait")
    assert running == arena.shell(wait).out
    get, table = shown(TUTORIAL, "get")
    looked = arena.shell(get)
    assert rows(table) == rows(looked.out + looked.err)
    bound = {pod["spec"]["nodeName"] for pod in pods.of_job(kube, namespace, "vgg16")}
    assert set(racks[:4]) <= bound
    assert arena.shell("arena-topo delete vgg16").out in shown(TUTORIAL, "delete vgg16")[1]
