"""The list of hosts that an elastic MPIJob reads, as a shell runs it."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.pods import SCRIPT, companions, config_name, host_lines
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model.job import JobSpec, WorkerRange
from tests.objects import mpijob

JOB = JobSpec(
    name="job", namespace="ml", image="i", command=("c",), workers=2, slots=8, elastic=WorkerRange(1, 3)
)
(LIST,) = companions(JOB, ApiVersion.V2BETA1)


def host(index: int) -> str:
    """Return the host name of a worker."""
    return f"job-worker-{index}.job.ml.svc"


def discovered(
    folder: Path, listed: Sequence[str], running: Sequence[str], unknown: Sequence[str] = ()
) -> list[str]:
    """Return what the script prints where *listed* are on our list and
    *running* on the operator's; *unknown* names do not resolve.
    """
    operators = folder / "operators.sh"
    operators.write_text("#!/bin/sh\n" + "".join(f"echo {name}\n" for name in running))
    resolver = folder / "getent"
    refused = "".join(f"[ $2 != {name} ] || exit 2\n" for name in unknown)
    resolver.write_text(f"#!/bin/sh\n{refused}")
    resolver.chmod(0o755)
    (folder / "hosts").write_text("".join(f"{name}:8\n" for name in listed))
    script = folder / SCRIPT
    text = LIST["data"][SCRIPT].replace("/etc/mpi/discover_hosts.sh", str(operators))
    script.write_text(text)
    done = subprocess.run(
        ["/bin/sh", str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("listed", "running", "unknown", "expected"),
    [
        ([0, 1, 2], [0, 1, 2], [], [0, 1, 2]),
        ([0, 1, 2], [2, 0], [], [0, 2]),
        ([0, 1], [0, 1, 2], [], [0, 1]),
        ([0, 1], [0, 1], [1], [0]),
        ([1], [10], [], []),
        ([0, 1], [], [], []),
    ],
    ids=["all", "some run", "one leaves", "no name yet", "a longer name", "none runs"],
)
def test_hosts_on_both_lists_are_named_with_their_slots_in_our_order(
    tmp_path: Path, listed: list[int], running: list[int], unknown: list[int], expected: list[int]
) -> None:
    """A host that Horovod cannot reach once is barred permanently, so that none is named too early."""
    found = discovered(
        tmp_path, *([host(index) for index in indices] for indices in (listed, running, unknown))
    )
    assert [f"{host(index)}:8" for index in expected] == found


def test_the_list_begins_with_all_workers_that_there_may_be() -> None:
    """The operator's own list names those that run."""
    assert "".join(f"{host(index)}:8\n" for index in range(3)) == LIST["data"]["hosts"]


def test_fewer_workers_are_the_first_ones() -> None:
    """The highest indices leave."""
    job = mpijob("job", workers=4)
    job["metadata"]["namespace"] = "ml"
    job["spec"]["slotsPerWorker"] = 8
    assert f"{host(0)}:8\n{host(1)}:8\n" == host_lines(job, 2)


def test_the_launcher_alone_mounts_the_list_as_a_folder() -> None:
    """A file that is mounted by itself never changes."""
    manifest = render(JOB, RenderContext())
    launcher, worker = (
        manifest.job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"] for role in ("Launcher", "Worker")
    )
    assert config_name("job") == launcher["volumes"][-1]["configMap"]["name"]
    mounts = {mount["name"]: mount for mount in launcher["containers"][0]["volumeMounts"]}
    assert {"name": "elastic", "mountPath": "/etc/elastic"} == mounts["elastic"]
    assert "elastic" not in {volume["name"] for volume in worker["volumes"]}
    assert ["ConfigMap"] == [companion["kind"] for companion in manifest.companions]
    assert "1:3" == manifest.job["metadata"]["annotations"]["arena-topo.dev/elastic"]
