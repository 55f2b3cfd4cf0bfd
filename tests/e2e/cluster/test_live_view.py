"""The live view follows a real API server: its racks, a
job from its pods' start to its end, and its pages.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from arena_topo.cli.commands.top import LiveCluster
from arena_topo.jobs.overview import ClusterWatch
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.session import connect
from arena_topo.live.app import LiveView, Pane, Rows
from tests.controlplane.kube import Kube


def rows(view: LiveView, name: str) -> str:
    """Return the rows of the table *name*."""
    table = view.screen_stack[0].query_one(f"#{name}", Pane).query_one(Rows)
    return "\n".join(" ".join(str(cell) for cell in table.get_row_at(row)) for row in range(table.row_count))


async def until(view: LiveView, holds: Callable[[], bool]) -> None:
    """Wait for a fact that the cluster brings about; where
    it does not come, fail with the rows that there are.
    """
    try:
        async with asyncio.timeout(300):
            while not holds():  # noqa: ASYNC110  # another thread's fact sets no event of this loop
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"still not so; {view.screen}\n{rows(view, 'cluster')}\n{rows(view, 'jobs')}")


def test_a_job_is_followed_from_its_start_to_its_end(
    create_mpijob: Callable[..., Any], kube: Kube, namespace: str, gpu_nodes: list[str], kubeconfig: Path
) -> None:
    """With its node, its page, and its place among the links; a job that is deleted leaves the screen."""
    session = connect(ConnectionFlags(kubeconfig=str(kubeconfig)))
    view = LiveView(LiveCluster(session, ClusterWatch(session)), first="jobs", cluster="")

    async def act() -> None:
        async with view.run_test(size=(160, 50)) as pilot:
            await until(view, lambda: gpu_nodes[0] in rows(view, "cluster"))
            # The jobs of other tests on this cluster may have the same name.
            await pilot.press("colon", *"ns", "space", *namespace, "enter")
            await asyncio.to_thread(create_mpijob, 2, 1)
            await until(view, lambda: "job RUNNING" in rows(view, "jobs"))
            await until(view, lambda: "2/2" in rows(view, "jobs"))
            await pilot.press("slash", *"job", "enter", "enter")
            await until(
                view, lambda: any("Instances:" in str(each.content) for each in view.screen.query(Static))
            )
            await pilot.press("escape", "escape")
            await asyncio.to_thread(kube.delete, "kubeflow.org/v2beta1", "MPIJob", "job", namespace)
            await until(view, lambda: "job RUNNING" not in rows(view, "jobs"))

    asyncio.run(act())
    session.close()
    assert None is view.failure
