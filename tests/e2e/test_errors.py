"""Each way in which a cluster says no has its own clear message, and nothing is left behind."""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import Arena
from tests.e2e.rights import grant

SUBMIT = ("submit", "mpi", "--name=job", "--image=i", "c")


RULES = {
    "jobs": {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"], "verbs": ["create", "get", "delete"]},
    "pods": {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    "logs": {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
}


def test_the_documented_permissions_are_enough(
    plane: ControlPlane, kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """With exactly them a user submits, reads and deletes."""
    del gpu_nodes
    grant(kube, "ann", list(RULES.values()), namespace)
    ann = Arena(plane.kubeconfig("ann", namespace=namespace))

    assert 0 == ann(*SUBMIT).code
    assert 0 == ann("get", "job").code
    assert 0 == ann("delete", "job").code


@pytest.mark.parametrize(
    ("verbs", "args", "words"),
    [
        ({"jobs": ["get"]}, SUBMIT, 'cannot create resource "mpijobs"'),
        ({"jobs": ["create"]}, SUBMIT, 'cannot get resource "mpijobs"'),
        ({"jobs": ["create", "get"], "pods": ["get"]}, ("get", "job"), 'cannot list resource "pods"'),
        ({"jobs": ["create", "get"]}, ("delete", "job"), 'cannot delete resource "mpijobs"'),
    ],
    ids=["create", "get", "list pods", "delete"],
)
def test_a_missing_permission_is_named(
    plane: ControlPlane,
    kube: Kube,
    arena: Arena,
    namespace: str,
    verbs: dict[str, list[str]],
    args: tuple[str, ...],
    words: str,
) -> None:
    """One verb less, and the message says which, for whom and where."""
    grant(kube, "bob", [{**RULES[key], "verbs": kept} for key, kept in verbs.items()], namespace)
    if args != SUBMIT:
        assert 0 == arena(*SUBMIT).code
    outcome = Arena(plane.kubeconfig("bob", namespace=namespace))(*args)

    assert (1, "") == (outcome.code, outcome.out)
    assert 'User "bob"' in outcome.err
    assert words in outcome.err
    assert "hint: ask the cluster's admin" in outcome.err
    jobs = kube.list("kubeflow.org/v2beta1", "MPIJob", namespace)
    assert ([] if args == SUBMIT else ["job"]) == [each["metadata"]["name"] for each in jobs]


def test_credentials_that_are_not_accepted_are_told(arena: Arena, plane: ControlPlane) -> None:
    """An expired token, say."""
    server, authority = plane.site.url, plane.site.authority
    outcome = arena(
        "get",
        "job",
        "--kubeconfig=/dev/null",
        f"--server={server}",
        f"--certificate-authority={authority}",
        "--token=old",
    )

    assert 1 == outcome.code
    assert "error: the server does not accept your credentials (Unauthorized)" in outcome.err
    assert "hint: your credentials have expired or are wrong" in outcome.err


def test_a_server_that_is_not_trusted_is_told(arena: Arena, plane: ControlPlane) -> None:
    """The certificate's own complaint, and where to look."""
    outcome = arena("get", "job", "--kubeconfig=/dev/null", f"--server={plane.site.url}", "--token=x")

    assert 1 == outcome.code
    assert "is not trusted" in outcome.err


def test_a_taken_name_is_told(arena: Arena) -> None:
    """And the first job is left alone."""
    assert 0 == arena(*SUBMIT).code
    outcome = arena(*SUBMIT)

    assert (1, "") == (outcome.code, outcome.out)
    assert "error: the job job already exists, please delete it first" in outcome.err
    assert "hint: use 'arena-topo delete job'" in outcome.err


def test_a_taken_name_is_no_matter_for_a_dry_run(arena: Arena) -> None:
    """As for kubectl's create: the manifest of a job that runs
    may be wanted, and the server's dry run refuses it.
    """
    assert 0 == arena(*SUBMIT).code
    rendered = arena("submit", "mpi", "--dry-run=client", "-o", "name", *SUBMIT[2:])
    refused = arena("submit", "mpi", "--dry-run=server", *SUBMIT[2:])

    assert (0, "mpijob.kubeflow.org/job\n") == (rendered.code, rendered.out)
    assert (1, True) == (refused.code, "the job job already exists" in refused.err)


def test_a_namespace_that_does_not_exist_is_told(arena: Arena) -> None:
    """With how to make it."""
    outcome = arena("-n", "nowhere", *SUBMIT)

    assert 1 == outcome.code
    assert "error: namespace nowhere does not exist" in outcome.err


def test_a_priority_that_does_not_exist_is_told(arena: Arena) -> None:
    """Before anything is made."""
    outcome = arena(*SUBMIT, "--priority=nope")

    assert 2 == outcome.code
    assert "error: the priority nope doesn't exist" in outcome.err


def test_what_a_job_names_and_nobody_has_created_is_said_of_who_may_see_it(
    arena: Arena, plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    """The job is submitted anyway: what is missing may come later."""
    names = ("--data=nowhere:/data", "--env-from=secret/none", "--env-from=configmap/there")
    kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}}, namespace)
    outcome = arena(*SUBMIT[:-1], *names, "--dry-run=server", "c")
    grant(kube, "ann", list(RULES.values()), namespace)
    of_ann = Arena(plane.kubeconfig("ann", namespace=namespace))(
        *SUBMIT[:-1], *names, "--dry-run=server", "c"
    )

    assert (0, 0) == (outcome.code, of_ann.code)
    assert f"warning: PersistentVolumeClaim nowhere does not exist in namespace {namespace}" in outcome.err
    assert f"warning: Secret none does not exist in namespace {namespace}" in outcome.err
    assert "ConfigMap" not in outcome.err
    assert "does not exist" not in of_ann.err


def test_missing_jobs_are_reported_and_the_others_deleted(arena: Arena, kube: Kube, namespace: str) -> None:
    """The exit code tells."""
    assert 0 == arena(*SUBMIT).code
    outcome = arena("del", "a", "job", "b", "--type=mpijob")

    assert (1, "The training job job has been deleted successfully\n") == (outcome.code, outcome.out)
    assert 2 == outcome.err.count("does not exist")
    assert [] == kube.list("kubeflow.org/v2beta1", "MPIJob", namespace)
    assert 0 == arena("delete", "a", "--ignore-not-found").code
