"""Reading jobs on a real API server, while its operator and scheduler act on them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.e2e.arena import Arena

COLUMNS = "custom-columns=N:.metadata.name,K:.kind,NOTHING:.status.nothing"


@pytest.fixture
def running(create_mpijob: Callable[..., Any], gpu_nodes: Any) -> None:
    """Have job ``job`` run, with two workers of one GPU each."""
    del gpu_nodes
    create_mpijob(2, 1)


@pytest.mark.usefixtures("running")
def test_list_and_get_agree(arena: Arena) -> None:
    """About the status, the GPUs and the launcher's node."""
    document = json.loads(arena("get", "job", "-o", "json").out)
    # What rerun takes is printed for one job alone.
    del document["manifest"]
    header, row = (line.split() for line in arena("list").out.splitlines())

    assert ["NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE"] == header
    launcher = next(instance for instance in document["instances"] if instance["chief"])
    expected = [
        document["name"],
        document["status"],
        "MPIJOB",
        str(document["requestGPUs"]),
        str(document["allocatedGPUs"]),
    ]
    assert [*expected, launcher["nodeIP"]] == [*row[:3], *row[4:]]
    assert ("RUNNING", 2, 2) == (document["status"], document["requestGPUs"], document["allocatedGPUs"])
    assert document == json.loads(arena("list", "-o", "json").out)[0] | {
        key: document[key] for key in ("duration", "instances")
    }
    assert "job" in arena("list", "-A").out


@pytest.mark.usefixtures("running")
def test_a_job_is_watched_until_it_ends(arena: Arena, kube: Kube, namespace: str) -> None:
    """By list, get and wait at the same time; wait ends with the job's exit code."""
    launcher = pods.of_job(kube, namespace, "job", "launcher")[0]["metadata"]["name"]
    with (
        arena.running("list", "-w") as listing,
        arena.running("get", "job", "-w") as watching,
        arena.running("wait", "job") as waiting,
    ):
        listing.until_said("RUNNING", "the table of list", of=listing.out)
        watching.until_said("RUNNING", "the table of get", of=watching.out)
        pods.finish(kube, namespace, launcher, exit_code=7)
        outcome = waiting.wait()
        assert 5 == outcome.code
        assert "the launcher exited with code 7" in outcome.err
        assert 0 == watching.wait().code
        assert watching.said("Status: FAILED", of=watching.out)
        listing.until_said("FAILED", "the line of the job that failed", of=listing.out)
    failed = arena("get", "job")
    assert "failed: the launcher exited with code 7" in failed.err
    assert "hint: see arena-topo logs job" in failed.err


@pytest.mark.usefixtures("running")
def test_waiting_for_a_job_to_run_or_to_be_gone(arena: Arena) -> None:
    """The one is true already, and the other when delete is through."""
    assert (0, "mpijob.kubeflow.org/job running\n") == (
        (outcome := arena("wait", "job", "--for=running", "--timeout=60s")).code,
        outcome.out,
    )
    late = arena("wait", "job", "--timeout=1ms")
    assert 4 == late.code
    with arena.running("wait", "job", "--for=deleted") as waiting:
        assert 0 == arena("delete", "job").code
        assert 0 == waiting.wait().code
    assert 1 == arena("wait", "job").code


def test_custom_columns_are_laid_out_as_kubectl_does(arena: Arena, kube: Kube, namespace: str) -> None:
    """On the same objects, to the byte."""
    from arena_topo.output.text import parse_columns

    for name in ("a", "a-longer-name"):
        kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}, namespace)
    items = [
        item for item in kube.list("v1", "ConfigMap", namespace) if item["metadata"]["name"].startswith("a")
    ]
    theirs = arena.shell(f"kubectl get configmaps a a-longer-name -o {COLUMNS}")

    documents = [{"kind": "ConfigMap", **item} for item in items]
    assert theirs.out == parse_columns(COLUMNS.partition("=")[2], "-o").table(documents)
