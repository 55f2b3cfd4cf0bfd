"""Controllers and users whose clocks are an hour wrong, each another way, on a real API server."""

import json
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from arena_topo.model.keys import CONTROLLER_NAMESPACE
from arena_topo.model.plan_record import Stage
from arena_topo.model.text.quantity import parse_instant
from tests.controlplane.kube import Kube
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import LEASE, end, holder, placed, plan, reasons, replica

pytestmark = pytest.mark.usefixtures("lease", "servers")

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
WRONG = {"ahead": "+1h", "behind": "-1h"}


@pytest.fixture
def wrong(arena: Arena, tmp_path: Path) -> Mapping[str, Arena]:
    """Return the tool on machines whose clocks are ahead, and behind; both count seconds as others do."""
    # libfaketime 0.9.10 refuses the call by which Python sleeps, where it leaves the monotonic clock alone.
    waits = "import sys, threading, time; time.sleep = lambda seconds: threading.Event().wait(seconds)"
    main = "from arena_topo.__main__ import main; sys.argv[0] = 'arena-topo'; sys.exit(main())"
    made = {}
    for name, offset in WRONG.items():
        script = tmp_path / name
        env = f"LD_PRELOAD={LIBRARY} FAKETIME={offset} FAKETIME_DONT_FAKE_MONOTONIC=1"
        script.write_text(f'#!/bin/sh\nexec env {env} {sys.executable} -c "{waits}; {main}" "$@"\n')
        script.chmod(0o755)
        made[name] = Arena(arena.kubeconfig, script)
    return made


def off(kube: Kube) -> float:
    """Return by how many seconds the Lease was renewed before or after now."""
    renewed = parse_instant(kube.get(*LEASE, CONTROLLER_NAMESPACE)["spec"]["renewTime"])
    return abs((datetime.now(UTC) - renewed).total_seconds())


@pytest.mark.full("two controllers and two users whose clocks are wrong by an hour")
@pytest.mark.skipif(LIBRARY is None, reason="needs faketime: make mpi-packages, or apt-get install faketime")
@pytest.mark.parametrize("first", WRONG)
def test_wrong_clocks_change_nothing(
    wrong: Mapping[str, Arena], kube: Kube, namespace: str, first: str
) -> None:
    """One replica leads, jobs are placed, nobody is moved or timed out, and ages are those of the server."""
    leading, other = wrong[first], next(arena for name, arena in wrong.items() if name != first)
    with replica(leading) as leader, replica(other, leads=False) as follower:
        # By its clock the Lease was renewed an hour ago, or will be in an hour.
        assert 0 == submit_gang(other, "first", 3, 8).code
        before = placed(kube, namespace, "first")
        assert 0 == submit_gang(leading, "late", 2, 8).code
        eventually(lambda: plan(kube, namespace, "late").position, "the job to wait")
        held = holder(kube)
        for arena in wrong.values():
            shown = arena("get", "first").out + arena("list").out
            assert "<invalid>" not in shown
            assert not re.search(r"\b\d+[hd]\b", shown), shown
            views = json.loads(arena("list", "-o", "json").out)
            assert {"first", "late"} == {view["name"] for view in views}
            assert all(0 <= int(view["duration"].rstrip("s")) < 600 for view in views), views
            assert "no controller" not in arena("doctor").out
        assert held == holder(kube), leader.err
        assert not follower.said("leading")
        assert off(kube) < 60
        # The other one takes over with its own clock, and starts what the first has left waiting.
        leader.process.kill()
        follower.until_said("leading", "the other one to lead")
        assert before == placed(kube, namespace, "first")
        end(kube, namespace, "first")
        assert 2 == len(placed(kube, namespace, "late"))
        assert Stage.CONFIRMED is plan(kube, namespace, "late").stage
        assert off(kube) < 60
        assert follower.process.poll() is None, follower.err
    told = {*reasons(kube, namespace, "first"), *reasons(kube, namespace, "late")}
    assert not {
        reason for reason in told if re.search("Moved|Expired|Lost|Withdrawn|InternalError", reason)
    }, told
