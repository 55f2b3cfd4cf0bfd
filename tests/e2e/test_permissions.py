"""With exactly the documented rights everything works; with one less the tool says which."""

import copy
from collections.abc import Callable, Iterator

import pytest

from arena_topo.cluster.setup import TOPOLOGY_RULES, USER_RULES
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Outcome
from tests.e2e.rights import GROUP, Rule, grant

GANG = ("submit", "mpi", "--gang", "--gputopology", "--workers=2", "--gpus=2", "--image=train")


@pytest.fixture
def user(plane: ControlPlane, kube: Kube, namespace: str) -> Iterator[Callable[..., Arena]]:
    """Return a function that makes a user with the documented
    rights, less those named as ``verb resource``.
    """
    made: list[str] = []

    def make(*lacking: str) -> Arena:
        name = f"user-{len(made)}-{namespace}"
        made.append(name)
        grant(kube, name, without(USER_RULES, lacking), namespace)
        grant(kube, name, without(TOPOLOGY_RULES, lacking))
        return Arena(plane.kubeconfig(name, namespace=namespace))

    yield make
    for name in made:
        for kind in ("ClusterRole", "ClusterRoleBinding"):
            kube.delete(f"{GROUP}/v1", kind, name)


def without(rules: list[Rule], lacking: tuple[str, ...]) -> list[Rule]:
    """Return *rules* less the rights named as ``verb resource``."""
    left = []
    for rule in copy.deepcopy(rules):
        for resource in rule["resources"]:
            verbs = [verb for verb in rule["verbs"] if f"{verb} {resource}" not in lacking]
            if verbs:
                left.append({**rule, "resources": [resource], "verbs": verbs})
    return left


def submit(arena: Arena, name: str, *flags: str) -> Outcome:
    """Submit a gang that is planned."""
    return arena(*GANG, f"--name={name}", *flags, "--", "mpirun")


def bound_workers(kube: Kube, namespace: str) -> list[Object]:
    """Return the workers of the job that have a node: a
    scheduler gives it to them some time after their release.
    """
    return [pod for pod in pods.of_job(kube, namespace, "job", "worker") if pod["spec"].get("nodeName")]


@pytest.mark.usefixtures("gpu_nodes")
def test_the_documented_rights_are_enough(user: Callable[..., Arena], kube: Kube, namespace: str) -> None:
    """To plan, submit, get, resume and delete a gang."""
    arena = user()
    assert 0 == arena("plan", "mpi", "--workers=2", "--gpus=2").code
    outcome = submit(arena, "job")
    assert (0, "mpijob.kubeflow.org/job created\n") == (outcome.code, outcome.out), outcome.err
    warnings = [line for line in outcome.err.splitlines() if line.startswith("warning")]
    assert ["isolated pods"] == [line[9:22] for line in warnings]
    eventually(lambda: 2 == len(bound_workers(kube, namespace)), "both workers to have a node")
    assert "2 of 2 workers where planned" in arena("get", "job").err
    for command in (
        ("list",),
        ("top", "job"),
        ("describe", "job"),
        ("events", "job"),
        ("wait", "job", "--for=running"),
        ("resume", "job"),
        ("topology",),
        ("top", "node"),
        ("doctor", "--strict"),
        ("delete", "job"),
    ):
        assert 0 == arena(*command).code, command


@pytest.mark.usefixtures("gpu_nodes")
def test_the_documented_rights_are_enough_to_scale_horovod(
    user: Callable[..., Arena], kube: Kube, namespace: str
) -> None:
    """Its framework reads in a ConfigMap which of the workers it may use."""
    arena = user()
    outcome = submit(arena, "job", "--min-workers=1", "--max-workers=3")
    assert 0 == outcome.code, outcome.err
    for workers in (3, 1):
        outcome = arena("scale", "job", f"--workers={workers}", "--grace=1ms")
        assert 0 == outcome.code, outcome.err
        hosts = kube.get("v1", "ConfigMap", "job-elastic", namespace)["data"]["hosts"]
        assert workers == len(hosts.splitlines())


@pytest.mark.usefixtures("gpu_nodes")
@pytest.mark.parametrize(
    ("lacking", "told"),
    [
        (("list nodes",), "list nodes -A"),
        (("list mpijobs",), "list mpijobs.kubeflow.org -A"),
        (("patch mpijobs",), "patch mpijobs.kubeflow.org"),
        (("patch pods",), "patch pods"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_one_right_less_is_told(
    user: Callable[..., Arena], kube: Kube, namespace: str, lacking: tuple[str, ...], told: str
) -> None:
    """The job is submitted as on any cluster, with a warning; asked for by a flag, a plan is refused."""
    arena = user(*lacking)
    outcome = submit(arena, "job")
    assert 0 == outcome.code
    assert f"you cannot {told}" in outcome.err
    assert "arena-topo.dev/plan" not in kube.get("kubeflow.org/v2beta1", "MPIJob", "job", namespace)[
        "metadata"
    ].get("annotations", {})
    refused = submit(arena, "pinned", "--pin=workers")
    assert 1 == refused.code
    assert f"error: the job cannot be planned: you cannot {told}" in refused.err
    assert "Traceback" not in refused.err
    assert None is kube.find("kubeflow.org/v2beta1", "MPIJob", "pinned", namespace)


@pytest.mark.usefixtures("gpu_nodes")
@pytest.mark.parametrize(
    ("lacking", "command"),
    [
        ("create mpijobs", ("submit", "mpi", "--name=x", "--image=i", "c")),
        ("get mpijobs", ("get", "job")),
        ("delete mpijobs", ("delete", "job")),
        ("list pods", ("get", "job")),
        ("list mpijobs", ("list",)),
        ("watch mpijobs", ("wait", "job")),
        ("list events", ("events", "job")),
        ("get pods/log", ("logs", "job")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_that_lacks_a_right_names_it(
    user: Callable[..., Arena], arena: Arena, lacking: str, command: tuple[str, ...]
) -> None:
    """One error, exit code 1, and the verb and the resource in it."""
    assert 0 == submit(arena, "job").code
    # A log is asked for once there can be one.
    eventually(lambda: "RUNNING" in arena("get", "job").out, "the job to run")
    limited = user(lacking)
    outcome = limited(*command)
    verb, _, resource = lacking.partition(" ")
    assert 1 == outcome.code
    assert f"cannot {verb} resource" in outcome.err
    assert resource.split("/")[0] in outcome.err
    assert "Traceback" not in outcome.err
