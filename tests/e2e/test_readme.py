"""The README's job, typed as it stands there, on a real cluster of the same servers."""

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

README = ROOT / "README.md"


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


def shown(command: str) -> tuple[str, str]:
    """Return a command of the README that starts so, and the output that stands below it."""
    found = re.search(
        rf"^\$ (arena-topo {command}.*)\n((?:(?!\$ ).*\n)*?)(?=```|\$ )", README.read_text(), re.MULTILINE
    )
    assert found is not None
    return found.group(1), found.group(2)


def rows(table: str) -> list[str]:
    """Return the shape of a table without the launcher's node, which is the scheduler's choice."""
    return [re.sub(r"(launcher-xxxxx .*) \S+$", r"\1 NODE", line) for line in shape(table)]


def test_the_readme_shows_what_happens(
    kubeconfig: Path, kube: Kube, namespace: str, racks: list[str]
) -> None:
    """Plan, submit, wait, get and delete print what is printed there."""
    arena = Arena(kubeconfig)
    plan, planned = shown("plan")
    assert planned.splitlines()[0] == arena.shell(plan).out.splitlines()[0]
    submit, created = shown("submit")
    assert created.splitlines()[0] == arena.shell(submit).out.strip()
    wait, running = shown("wait")
    assert running == arena.shell(wait).out
    get, table = shown("get")
    looked = arena.shell(get)
    assert rows(table) == rows(looked.out + looked.err)
    bound = {pod["spec"]["nodeName"] for pod in pods.of_job(kube, namespace, "vgg16")}
    assert set(racks[:4]) <= bound
    delete, deleted = shown("delete")
    assert deleted == arena.shell(delete).out
