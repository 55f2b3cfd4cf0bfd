"""An admin sets a real cluster up, doctor sees it, its
users have what they need, and nothing is left of it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena_topo.pin.admission import MPIJOBS_SINCE
from tests.controlplane.kube import Kube
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.pinning import acts

_API = "admissionregistration.k8s.io/v1"
_KINDS = {
    "admissionregistration.k8s.io/v1": (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ),
    "rbac.authorization.k8s.io/v1": ("ClusterRole", "ClusterRoleBinding", "RoleBinding"),
    "apps/v1": ("DaemonSet",),
    "v1": ("ServiceAccount",),
}
_SELECTOR = "app.kubernetes.io/managed-by=arena-topo"


@pytest.fixture
def admin(plane: ControlPlane) -> Iterator[Arena]:
    """Return the tool as an admin runs it; what is set up is taken away after the test."""
    arena = Arena(plane.admin_kubeconfig)
    yield arena
    assert 0 == arena("cluster", "remove", "--apply").code


def there(kube: Kube) -> set[str]:
    """Return the kinds of what bears our label."""
    return {
        kind
        for api, kinds in _KINDS.items()
        for kind in kinds
        if kube.list(api, kind, labelSelector=_SELECTOR)
    }


def findings(arena: Arena, *args: str) -> dict[str, list[Any]]:
    """Return what doctor finds, by topic."""
    outcome = arena("doctor", "-o", "json", *args)
    assert 0 == outcome.code, outcome.err
    found: dict[str, list[Any]] = {}
    for finding in json.loads(outcome.out):
        found.setdefault(finding["topic"], []).append(finding)
    return found


def test_the_policy_acts_once_it_is_applied(admin: Arena, kube: Kube) -> None:
    """An API server learns of it after a moment, for which the command waits."""
    assert 0 == admin("cluster", "setup", "--apply").code
    assert acts(kube)


def test_printing_changes_nothing(admin: Arena, kube: Kube) -> None:
    """It is for kubectl, or for reading first."""
    outcome = admin("cluster", "setup")

    assert (0, 4) == (outcome.code, outcome.out.count("apiVersion: "))
    assert set() == there(kube)


def test_everything_is_applied_and_taken_away(admin: Arena, kube: Kube, namespace: str) -> None:
    """After saying what; a second time brings it up to date and is no error."""
    args = ("cluster", "setup", "--apply", "--users=group:ml", f"-n{namespace}", "--agent-image=i", f"--agent-namespace={namespace}")  # fmt: skip
    first, second = admin(*args), admin(*args)
    assert (0, 0) == (first.code, second.code), first.err + second.err
    everything = {kind for kinds in _KINDS.values() for kind in kinds}
    assert everything == there(kube)
    assert first.out == second.out
    assert "applying to https://127.0.0.1:" in first.err

    named = admin("cluster", "remove")
    assert everything == there(kube)
    removed = admin("cluster", "remove", "--apply")
    assert {f"{line} deleted" for line in named.out.splitlines()} == set(removed.out.splitlines())
    assert set() == there(kube)
    assert "there is nothing to remove" in admin("cluster", "remove").err


def test_doctor_sees_the_policy_and_knows_an_old_one(admin: Arena, kube: Kube) -> None:
    """By its version; setting up again mends it."""
    state = [findings(admin)["Admission policy"][0]["state"]]
    admin("cluster", "setup", "--apply")
    state.append(findings(admin)["Admission policy"][0]["state"])
    label = {"metadata": {"labels": {"arena-topo.dev/policy-version": str(MPIJOBS_SINCE - 1)}}}
    kube.patch(_API, "MutatingAdmissionPolicy", "arena-topo", label)
    old = findings(admin)["Admission policy"][0]
    state.append(old["state"])
    admin("cluster", "setup", "--apply")
    state.append(findings(admin)["Admission policy"][0]["state"])

    assert ["absent", "ok", "problem", "ok"] == state
    assert f"version {MPIJOBS_SINCE - 1} installed" in old["found"]
    assert "arena-topo cluster setup --apply" == old["command"]


def test_doctor_reads_the_served_mpijob(admin: Arena) -> None:
    """mpi-operator 0.8.2 keeps gates and DRA claims, and drops scheduling groups."""
    found = findings(admin)

    assert "v2beta1 served" == found["MPIJob"][0]["found"]
    assert "keeps schedulingGates, resourceClaims" == found["Worker template"][0]["found"]
    assert "--gang means gates" == found["Gang"][0]["found"]


def test_a_user_has_all_rights_after_the_setup_and_few_before(
    admin: Arena, plane: ControlPlane, namespace: str
) -> None:
    """In their namespace; what they lack before is told, with what it is needed for."""
    rita = Arena(plane.kubeconfig(f"rita-{namespace}", namespace=namespace))
    before = findings(rita)
    assert "you cannot create mpijobs.kubeflow.org" in [each["found"] for each in before["Rights"]]
    assert 1 == rita("doctor", "--strict").code

    admin("cluster", "setup", "--apply", f"--users=user:rita-{namespace}", "-n", namespace)
    after = eventually(lambda: _granted(rita), "the roles to take effect")
    assert f"you may do everything in {namespace}" == after["Rights"][0]["found"]
    assert "ok" == after["Admission policy"][0]["state"]


def _granted(rita: Arena) -> dict[str, list[Any]] | None:
    """Return what doctor finds once every role has taken effect:
    the server learns of each after a moment of its own.
    """
    found = findings(rita)
    states = {found[topic][0]["state"] for topic in ("Rights", "Admission policy")}
    return found if states == {"ok"} else None


def test_a_user_with_the_role_submits_reads_and_deletes(
    admin: Arena, plane: ControlPlane, namespace: str, gpu_nodes: list[str], tmp_path: Path
) -> None:
    """With files, which take a right of their own."""
    del gpu_nodes
    file = tmp_path / "a.yaml"
    file.write_text("x")
    admin("cluster", "setup", "--apply", f"--users=user:ulla-{namespace}", "-n", namespace)
    ulla = Arena(plane.kubeconfig(f"ulla-{namespace}", namespace=namespace))
    eventually(lambda: _granted(ulla), "the roles to take effect")
    submitted = ulla("submit", "mpi", "--name=job", "--image=i", f"--config-file={file}:/a.yaml", "c")

    assert 0 == submitted.code, submitted.err
    assert 0 == ulla("get", "job").code
    assert 0 == ulla("topology").code
    assert 0 == ulla("delete", "job", "--wait=false").code


def test_who_is_no_admin_is_told(admin: Arena, plane: ControlPlane, namespace: str) -> None:
    """By the server's own refusal; nothing has been made."""
    del admin
    eve = Arena(plane.kubeconfig("eve", namespace=namespace))
    outcome = eve("cluster", "setup", "--apply")

    assert (1, "") == (outcome.code, outcome.out)
    assert "cannot patch resource" in outcome.err
