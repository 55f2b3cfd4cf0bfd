"""The documented jobs, from submit to delete, on a real API server with the real MPI operator."""

import re
from collections.abc import Iterator

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.kubelet import ScriptedKubelet
from tests.controlplane.machines.nodes import SEED_NODES, NodeSpec, create_nodes, delete_nodes
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob
from tests.e2e.arena import Arena
from tests.e2e.shapes import shape


@pytest.fixture
def vendor_nodes(plane: ControlPlane) -> Iterator[list[str]]:
    """Names of two servers with the vendor's topology scheduling switched on."""
    labels = {"ack.node.gpu.schedule": "topology"}
    names = create_nodes(
        plane.kube, [NodeSpec(name, resource="aliyun.com/gpu", labels=labels) for name in SEED_NODES]
    )
    yield names
    delete_nodes(plane.kube, names)


def submit_documented(arena: Arena, documented: DocumentedJob) -> None:
    """Type the documented command, with the tool's own name."""
    outcome = arena.shell(documented.command.replace("arena ", "arena-topo ", 1))
    assert (0, f"mpijob.kubeflow.org/{documented.name} created\n") == (outcome.code, outcome.out), outcome.err


def table_of_running(arena: Arena, documented: DocumentedJob) -> str:
    """Return what get shows of a job that runs, nothing before."""
    table = arena("get", documented.name, "--type", "mpijob").out
    return table if "Status:    RUNNING" in table else ""


def names(kube: Kube, kind: str, namespace: str) -> list[str]:
    """Return the names of all objects of a *kind*."""
    return [item["metadata"]["name"] for item in kube.list("v1", kind, namespace)]


@pytest.mark.parametrize("documented", DOCUMENTED_JOBS, ids=lambda documented: documented.name)
def test_a_documented_job_runs_from_submit_to_delete(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str], documented: DocumentedJob
) -> None:
    """The command is taken verbatim, the table is the documented one, and nothing is left in the end."""
    submit_documented(arena, documented)
    table = eventually(lambda: table_of_running(arena, documented), f"{documented.name} to run")

    assert shape(documented.table) == shape(table)
    assert set(gpu_nodes) >= set(re.findall(r"cn-shanghai\.[\d.]+", table))
    outcome = arena("delete", documented.name)
    assert (0, f"The training job {documented.name} has been deleted successfully\n") == (
        outcome.code,
        outcome.out,
    )
    assert None is kube.find(*MPIJOB, documented.name, namespace)
    assert [] == kube.list("v1", "Pod", namespace)
    leftovers = [("batch/v1", "Job"), ("v1", "Secret"), ("v1", "Service")]
    eventually(
        lambda: not any(kube.list(*kind, namespace) for kind in leftovers), "the operator's objects to go"
    )
    eventually(lambda: ["kube-root-ca.crt"] == names(kube, "ConfigMap", namespace), "Arena's record to go")


def test_on_the_vendors_nodes_the_vendors_resource_is_asked_for(
    arena: Arena, kube: Kube, namespace: str, vendor_nodes: list[str]
) -> None:
    """The pods run there, where nvidia.com/gpu is not offered, and the table counts their GPUs."""
    submit_documented(arena, DOCUMENTED_JOBS[0])
    table = eventually(lambda: table_of_running(arena, DOCUMENTED_JOBS[0]), "the job to run")
    workers = pods.of_job(kube, namespace, DOCUMENTED_JOBS[0].name, "worker")

    assert [{"aliyun.com/gpu": "1"}] * 4 == [
        pod["spec"]["containers"][0]["resources"]["limits"] for pod in workers
    ]
    assert set(vendor_nodes) >= {pod["spec"]["nodeName"] for pod in workers}
    assert shape(DOCUMENTED_JOBS[0].table) == shape(table)


@pytest.mark.parametrize("documented", DOCUMENTED_JOBS, ids=lambda documented: documented.name)
def test_the_log_is_followed_from_submit_to_the_end(
    arena: Arena,
    kube: Kube,
    namespace: str,
    gpu_nodes: list[str],
    kubelet: ScriptedKubelet,
    documented: DocumentedJob,
) -> None:
    """Started right after submit it waits, prints the documented lines, and ends with the launcher."""
    there = f"--selector=kubernetes.io/hostname={gpu_nodes[0]}"
    flag = f" {there} --launcher-selector=kubernetes.io/hostname={kubelet.name} "
    outcome = arena.shell(documented.command.replace("arena submit mpi", f"arena-topo submit mpi {flag}", 1))
    assert 0 == outcome.code, outcome.err
    with arena.running("logs", "-f", documented.name) as following:
        launcher = eventually(
            lambda: pods.of_job(kube, namespace, documented.name, "launcher"), "a launcher"
        )[0]["metadata"]["name"]
        kubelet.hold(namespace, launcher, "ContainerCreating")
        following.until_said("ContainerCreating", "the reason for waiting")
        log = kubelet.log(namespace, launcher, "mpi")
        kubelet.run(namespace, launcher)
        for line in documented.log.splitlines():
            log.write(line)
        eventually(lambda: "".join(following.out) == documented.log, "the documented lines")
        assert None is following.process.poll()
        kubelet.finish(namespace, launcher)
        log.end()
        ended = following.wait()

    assert (0, documented.log) == (ended.code, ended.out)
    eventually(lambda: "SUCCEEDED" in arena("get", documented.name).out, "the job to have succeeded")
