"""TFJobs with parameter servers from submit to delete, on a real API server with the real training operator."""

import json
import re
from collections.abc import Iterator, Sequence

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes
from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import Arena
from tests.e2e.kinds.places import (
    assert_deleted,
    nodes_of,
    places_by_name,
    plan_on,
    running_pods,
    suspend_and_resume,
    tried,
)

TFJOB, MPIJOB = ("kubeflow.org/v1", "TFJob"), ("kubeflow.org/v2beta1", "MPIJob")
SELECTOR = "training.kubeflow.org/job-name=wide"
SUBMIT = (
    "submit",
    "tf",
    "--name=wide",
    "--image=i",
    "--workers=3",
    "--gpus=4",
    "--ps=2",
    "--ps-cpu=4",
    "--chief",
)
COMMAND = "python train.py --note='a  b'"
NAMES = ["wide-chief-0", "wide-worker-0", "wide-worker-1", "wide-worker-2", "wide-ps-0", "wide-ps-1"]
CPU_NODES = ["cpu-a", "cpu-b"]


@pytest.fixture
def cpu_nodes(plane: ControlPlane) -> Iterator[list[str]]:
    """Names of two servers without GPUs."""
    names = create_nodes(plane.kube, [NodeSpec(name, gpus=0) for name in CPU_NODES])
    yield names
    delete_nodes(plane.kube, names)


def planned_places(kube: Kube, namespace: str, names: Sequence[str] = NAMES) -> dict[str, str]:
    """Return the planned node of each pod by its name."""
    return dict(zip(names, nodes_of(plan_on(kube, namespace, TFJOB, "wide")), strict=True))


def running_places(kube: Kube, namespace: str) -> dict[str, str]:
    """Return the nodes of the pods of the job by their names, once all of them run."""
    return places_by_name(running_pods(kube, namespace, 6, selector=SELECTOR))


@pytest.mark.usefixtures("policy")
def test_every_role_runs_in_its_places_from_submit_to_delete(
    arena: Arena, kube: Kube, namespace: str, fake_log: FakeLog, gpu_nodes: list[str], cpu_nodes: list[str]
) -> None:
    """Servers on nodes without GPUs, each pod of each role on its own node; all commands know the job by its name alone.

    No pod is deleted here: this operator counts a running pod that is being deleted as failed, and with it mostly the job.
    """
    outcome = arena(*SUBMIT, "--gputopology", "--pin=workers", "--retry=3", COMMAND)
    assert (0, "tfjob.kubeflow.org/wide created\n") == (outcome.code, outcome.out), outcome.err
    assert "wide  1 chief, 3 worker, 2 ps" in outcome.err

    places, plan = running_places(kube, namespace), plan_on(kube, namespace, TFJOB, "wide")
    assert planned_places(kube, namespace) == places
    assert set(gpu_nodes) == {places[name] for name in NAMES[:4]}
    assert set(cpu_nodes) == {places[name] for name in NAMES[4:]}
    assert ("admission", ["chief", "worker", "ps"]) == (
        plan["means"],
        [role["name"] for role in plan["roles"]],
    )

    chief = kube.get("v1", "Pod", "wide-chief-0", namespace)
    (container,) = chief["spec"]["containers"]
    assert ["sh", "-c", COMMAND] == container["command"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert {"chief": 1, "worker": 3, "ps": 2} == {
        role: len(hosts) for role, hosts in json.loads(env["TF_CONFIG"])["cluster"].items()
    }

    assert "tfjob.kubeflow.org/wide running\n" == arena("wait", "wide", "--for=running").out
    table = arena("get", "wide").out
    assert "Trainer:   TFJOB" in table
    assert sorted(NAMES) == sorted(re.findall(r"^  (wide-\S+)", table, re.MULTILINE))
    assert 1 == len(re.findall(r"wide-chief-0 .*true ", table))
    for found in (arena("list").out, arena("list", "--type=tf").out, arena("top", "job").out):
        assert re.search(r"^wide +RUNNING +TFJOB +\w+ +16 +16 ", found, re.MULTILINE), found
    assert 1 == arena("get", "wide", "--type", "mpijob").code
    described = arena("describe", "wide").out
    assert all(name in described for name in NAMES)
    assert "6 of 6 pods where planned (admission)" in described
    assert 0 == arena("events", "wide").code
    fake_log.write("step 1")
    assert "step 1" in arena("logs", "wide").out
    assert "step 1" in arena("logs", "wide", "-i", "wide-ps-0").out

    assert_deleted(arena, kube, namespace, "wide")
    assert kube.find(*TFJOB, "wide", namespace) is None


@pytest.mark.usefixtures("gpu_nodes", "cpu_nodes")
def test_without_the_policy_gates_hold_all_roles_until_each_has_a_place(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """Each is released to its own node; suspend frees them, and resume plans the job again."""
    outcome = arena(*SUBMIT, "--gang", "--gang-scheduler=gates", COMMAND)
    assert 0 == outcome.code, outcome.err

    assert planned_places(kube, namespace) == running_places(kube, namespace)
    suspend_and_resume(arena, kube, namespace, "wide")
    assert planned_places(kube, namespace) == running_places(kube, namespace)


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_a_job_with_servers_and_an_mpi_job_never_get_the_same_gpus(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """Servers with GPUs of their own among them, twelve in all, are planned while no pod of the namespace can be created."""
    kube.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "no-pods"},
            "spec": {"hard": {"count/pods": "0"}},
        },
        namespace,
    )
    servers = ("--ps-gpus=2", "--gputopology")
    first = arena(
        "submit", "tf", "--name=wide", "--workers=2", "--gpus=4", "--ps=2", "--image=i", *servers, COMMAND
    )
    mpi = ("submit", "mpi", "--image=i", "--gputopology", "--workers=1")
    beside = arena(*mpi, "--name=beside", "--gpus=4", "c")
    too_many = arena(*mpi, "--name=too-many", "--gpus=1", "c")
    assert (0, 0, 0) == (first.code, beside.code, too_many.code), first.err + beside.err + too_many.err

    def gpus(kind: tuple[str, str], name: str) -> list[tuple[str, str]]:
        plan = plan_on(kube, namespace, kind, name)
        nodes = [node for node, count in plan["nodes"] for _ in range(count)]
        indices = [text for text, count in plan["gpus"] for _ in range(count)]
        return [(node, gpu) for node, text in zip(nodes, indices, strict=True) for gpu in text.split(",")]

    taken = [*gpus(TFJOB, "wide"), *gpus(MPIJOB, "beside")]
    assert 16 == len(taken) == len(set(taken))
    assert "waiting" == plan_on(kube, namespace, MPIJOB, "too-many")["stage"]
    # Their reservations last as long as they do, and other tests plan on the same nodes.
    assert 0 == arena("delete", "wide", "beside", "too-many").code


@pytest.mark.usefixtures("gpu_nodes")
def test_the_server_takes_every_flag(arena: Arena, kube: Kube, namespace: str) -> None:
    """Under strict validation against the operator's own definition, and by its webhook."""
    roles = [
        flag
        for role in ("worker", "ps", "chief", "evaluator")
        for flag in (
            f"--{role}-cpu=2",
            f"--{role}-cpu-limit=4",
            f"--{role}-memory=1Gi",
            f"--{role}-memory-limit=2Gi",
            f"--{role}-selector=role={role}",
        )
    ]
    everything = (
        *("--evaluator", "--evaluator-gpus=1", "--worker-image=w", "--ps-image=p", "--ps-gpus=1"),
        *("--worker-port=2222", "--ps-port=2223", "--chief-port=2224", "--role-sequence=w,p,c,e"),
        *("--worker-affinity-policy=spread", "--worker-affinity-constraint=required"),
        *("--ps-affinity-policy=spread", "--success-policy=AllWorkers", "--clean-task-policy=All"),
        *("--retry=2", "--ttl-after-finished=1h", "--running-timeout=2h", "--env=A=1", "--label=team=x"),
        *("--annotation=note=y", "--selector=a=b", "--toleration=all", "--share-memory=1Gi", "--rdma"),
    )
    outcome = arena(*SUBMIT, *roles, *everything, "--dry-run=client", "-o", "yaml", COMMAND)
    assert 0 == outcome.code, outcome.err
    stored = tried(kube, namespace, outcome.out)["TFJob"]
    assert {"Chief", "Worker", "PS", "Evaluator"} == stored["spec"]["tfReplicaSpecs"].keys()
    assert {"role": "ps"} == stored["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["nodeSelector"]


@pytest.mark.usefixtures("gpu_nodes", "policy")
def test_the_server_tries_a_job_with_the_pins_of_every_role(arena: Arena, kube: Kube, namespace: str) -> None:
    """Nothing is created; the lists are the same in each template, and the offset says where a role begins in them."""
    outcome = arena(*SUBMIT, "--gputopology", "--dry-run=server", "--plan", "-o", "json", COMMAND)
    assert 0 == outcome.code, outcome.err

    specs = json.loads(outcome.out)["spec"]["tfReplicaSpecs"]
    annotations = {role: spec["template"]["metadata"]["annotations"] for role, spec in specs.items()}
    assert {"Chief": None, "Worker": "1", "PS": "4"} == {
        role: each.get("arena-topo.dev/pin-offset") for role, each in annotations.items()
    }
    assert 1 == len({each["arena-topo.dev/pin-nodes"] for each in annotations.values()})
    assert kube.find(*TFJOB, "wide", namespace) is None
