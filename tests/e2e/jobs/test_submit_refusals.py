"""What submit refuses or says before anything is created, and what a real API server has to say in it."""

import json
from collections.abc import Iterator

import pytest

from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Outcome
from tests.e2e.pinning import mpijob

POLICY = "admissionregistration.k8s.io/v1"
REASON = "affinity is not allowed in this namespace"


def submit_eight_gpus_each(arena: Arena, *flags: str, workers: int = 2) -> Outcome:
    """Submit a job of workers with 8 GPUs each."""
    shape = ("--name=job", "--image=train", f"--workers={workers}", "--gpus=8")
    return arena("submit", "mpi", *shape, *flags, "--", "mpirun", "-bind-to", "none")


@pytest.mark.usefixtures("gpu_nodes")
def test_a_job_that_can_never_fit_is_not_created(arena: Arena, kube: Kube, namespace: str) -> None:
    """Exit code 3, how large the cluster is, what would fit, and what to do where it grows."""
    refused = submit_eight_gpus_each(arena, "--gputopology", workers=3)
    assert 3 == refused.code
    assert "the job job can never fit: the cluster has 16 GPUs" in refused.err
    assert "--workers=2 fits" in refused.err
    assert None is kube.find(*MPIJOB, "job", namespace)

    expected = submit_eight_gpus_each(arena, "--gputopology", "--expect-nodes", workers=3)
    assert (0, "mpijob.kubeflow.org/job created\n") == (expected.code, expected.out)
    assert "job waits for a placement" in expected.err


@pytest.mark.usefixtures("gpu_nodes")
def test_a_job_without_a_plan_that_can_never_fit_is_not_created_either(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """As far as counting goes; a dry run prints it anyway."""
    refused = submit_eight_gpus_each(arena, workers=3)
    assert (3, "") == (refused.code, refused.out)
    assert "the job job can never fit: the cluster has 16 GPUs, which hold 2 of 3 workers" in refused.err
    assert "--expect-nodes" in refused.err
    assert None is kube.find(*MPIJOB, "job", namespace)

    assert 0 == submit_eight_gpus_each(arena, "--dry-run=server", workers=3).code
    assert 0 == submit_eight_gpus_each(arena, "--expect-nodes", workers=3).code


@pytest.mark.usefixtures("gpu_nodes")
def test_a_dry_run_says_what_it_leaves_out_and_shows_it_with_plan(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """The server accepts both, and creates neither."""
    plain = submit_eight_gpus_each(arena, "--gputopology", "--dry-run=server", "-o", "json")
    planned = submit_eight_gpus_each(arena, "--gputopology", "--dry-run=server", "--plan", "-o", "json")
    assert (0, 0) == (plain.code, planned.code), planned.err
    assert "--dry-run=server --plan shows them" in plain.err
    assert " of 8 GPUs on " in planned.err

    def gated(outcome: Outcome) -> bool:
        worker = json.loads(outcome.out)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        return bool(worker.get("schedulingGates") == [{"name": "arena-topo.dev/gang"}])

    assert (False, True) == (gated(plain), gated(planned))
    assert "arena-topo.dev/plan" in json.loads(planned.out)["metadata"]["annotations"]
    assert None is kube.find(*MPIJOB, "job", namespace)


def test_a_gang_scheduler_that_is_not_installed_is_named(arena: Arena) -> None:
    """It used to be the server's 404 for its PodGroup."""
    outcome = submit_eight_gpus_each(arena, "--gang", "--gang-scheduler=koordinator")

    assert (2, "") == (outcome.code, outcome.out)
    assert "koordinator is not installed on this cluster" in outcome.err
    assert "leave out --gang-scheduler, which takes gates here" in outcome.err


def test_a_command_for_an_old_mpirun_gets_a_hint(arena: Arena, kube: Kube, namespace: str) -> None:
    """The job is created as it was typed."""
    outcome = submit_eight_gpus_each(arena)

    assert 0 == outcome.code
    assert "mpirun of Open MPI 5 ends with an error at -bind-to: write --bind-to" in outcome.err
    assert kube.find(*MPIJOB, "job", namespace)


@pytest.fixture
def refusing_policy(plane: ControlPlane, namespace: str) -> Iterator[None]:
    """Have a policy of the admin refuse jobs with node affinity in the namespace of the test."""
    match: Object = {
        "resourceRules": [
            {
                "apiGroups": ["kubeflow.org"],
                "apiVersions": ["*"],
                "operations": ["UPDATE"],
                "resources": ["mpijobs"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    worker = "object.spec.mpiReplicaSpecs.Worker.template.spec"
    name = f"no-affinity-{namespace}"
    policy = {
        "apiVersion": POLICY,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": match,
            "validations": [{"expression": f"!has({worker}.affinity)", "message": REASON}],
        },
    }
    binding = {
        "apiVersion": POLICY,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    plane.kube.create(policy)
    plane.kube.create(binding)
    eventually(lambda: _refuses_affinity(plane.kube, namespace), "the policy to act")
    yield
    plane.kube.delete(POLICY, "ValidatingAdmissionPolicyBinding", name)
    plane.kube.delete(POLICY, "ValidatingAdmissionPolicy", name)


def _refuses_affinity(kube: Kube, namespace: str) -> bool:
    """Whether the server refuses node affinity for a job that
    has none: it learns of a new policy after a moment.
    """
    name = "probe"
    if kube.find(*MPIJOB, name, namespace) is None:
        kube.create(mpijob(name, 1, {}, {}), namespace)
    pod: Object = {"spec": {"affinity": {"nodeAffinity": {}}}}
    path = kube.path(*MPIJOB, namespace, name)
    change = {"spec": {"mpiReplicaSpecs": {"Worker": {"template": pod}}}}
    try:
        kube.request(
            "PATCH", path, change, content_type="application/merge-patch+json", query={"dryRun": "All"}
        )
    except KubeError as error:
        kube.delete(*MPIJOB, name, namespace)
        return REASON in str(error)
    return False


@pytest.mark.usefixtures("gpu_nodes", "refusing_policy")
def test_a_plan_that_the_server_refuses_is_told_in_its_words(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """Nobody else was placing the job."""
    outcome = submit_eight_gpus_each(arena, "--gputopology", "--pin=nodes")

    assert 1 == outcome.code
    assert "the server does not accept the plan of the job job: " in outcome.err
    assert REASON in outcome.err
    assert "somebody else" not in outcome.err
    assert 0 == arena("delete", "job").code
    assert None is kube.find(*MPIJOB, "job", namespace)
