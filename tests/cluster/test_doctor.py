"""Facts become findings: what was seen, where, what it means, and what would improve it."""

from dataclasses import replace
from typing import Any

import pytest

from arena_topo.cluster.doctor import diagnose, verdict
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.gang import AccessReview, ClusterFacts, Policy, Program
from arena_topo.model.reports import Finding, State
from arena_topo.output.reports import findings_document, findings_text
from arena_topo.pin.admission import VERSION

V2, ALPHA = ApiVersion.V2BETA1, ApiVersion.V1ALPHA1
GOOD = ClusterFacts(
    kubernetes="v1.36.3",
    versions=(V2,),
    worker_fields=frozenset({"schedulingGates", "resourceClaims"}),
    programs={"mpi-operator": Program("mpi-operator", "mpi", ready=True)},
    pod_groups="v1alpha2",
    policy=Policy(api="v1", version=VERSION, gangs=True, mpijobs=True, current=True),
    dra_drivers=("gpu.nvidia.com",),
    access=(AccessReview(what="create mpijobs.kubeflow.org", purpose="submit", allowed=True),),
)
SETUP = "arena-topo cluster setup --apply"
ABSENT = Policy(api="v1")


def of(topic: str, **facts: Any) -> Finding:
    """Return the finding on *topic* of a good cluster with other *facts*."""
    (finding,) = [each for each in diagnose(replace(GOOD, **facts), namespace="ml") if each.topic == topic]
    return finding


def test_a_good_cluster_lacks_nothing_but_a_second_scheduler() -> None:
    """And needs none."""
    findings = diagnose(GOOD, namespace="ml")

    assert {"Gang schedulers": State.ABSENT} == {
        each.topic: each.state for each in findings if each.state is not State.OK
    }
    assert all(each.evidence and each.follows for each in findings)


@pytest.mark.parametrize(
    ("topic", "facts", "state", "found", "command"),
    [
        ("MPIJob", {"versions": ()}, State.PROBLEM, "not served", "kubectl apply --server-side -f https://"),
        ("Worker template", {"worker_fields": None}, State.UNKNOWN, "its schema cannot be read", ""),
        ("Worker template", {"worker_fields": frozenset()}, State.ABSENT, "drops scheduling gates", ""),
        (
            "MPI operator",
            {"programs": None},
            State.UNKNOWN,
            "you cannot list",
            "kubectl auth can-i list deployments",
        ),
        ("MPI operator", {"programs": {}}, State.UNKNOWN, "no Deployment of it", ""),
        (
            "MPI operator",
            {"programs": {"mpi-operator": Program("op", "mpi", ready=False, gangs="volcano")}},
            State.PROBLEM,
            "is not ready, with --gang-scheduling=volcano",
            "kubectl describe deployment -n mpi op",
        ),
        ("Gang schedulers", {"programs": None}, State.UNKNOWN, "you cannot list", "kubectl auth can-i"),
        (
            "Gang schedulers",
            {"programs": {"kai": Program("kai", "kai", ready=True)}},
            State.OK,
            "kai runs",
            "",
        ),
        ("Gang", {"policy": ABSENT}, State.OK, "--gang means gates", ""),
        (
            "Gang",
            {"policy": ABSENT, "worker_fields": frozenset()},
            State.PROBLEM,
            "nothing here keeps a gang together",
            SETUP,
        ),
        ("Admission policy", {"policy": Policy()}, State.ABSENT, "MutatingAdmissionPolicy is not served", ""),
        ("Admission policy", {"policy": ABSENT}, State.ABSENT, "not installed", SETUP),
        (
            "Admission policy",
            {"policy": Policy(api="v1", version=None)},
            State.UNKNOWN,
            "you are not allowed to see",
            "kubectl auth can-i get mutatingadmissionpolicies",
        ),
        (
            "Admission policy",
            {"policy": Policy(api="v1", version=VERSION - 1, gangs=True, mpijobs=True)},
            State.PROBLEM,
            f"version {VERSION - 1} installed, and this program has version {VERSION}",
            SETUP,
        ),
        (
            "Admission policy",
            {"policy": Policy(api="v1", version=VERSION)},
            State.PROBLEM,
            f"version {VERSION} installed, from before this cluster served PodGroups",
            SETUP,
        ),
        ("Native gangs", {"policy": ABSENT}, State.ABSENT, "PodGroup of scheduling.k8s.io/v1alpha2", SETUP),
        ("Pins of workers", {"policy": ABSENT}, State.OK, "by scheduling gates", SETUP),
        (
            "Pins of workers",
            {"policy": Policy(), "worker_fields": frozenset()},
            State.ABSENT,
            "only by node affinity",
            "",
        ),
        ("Pins of GPUs", {}, State.OK, "by DRA claims", ""),
        ("Pins of GPUs", {"policy": ABSENT}, State.ABSENT, "nothing on this cluster can allocate", ""),
        ("Pins of GPUs", {"dra_drivers": None}, State.UNKNOWN, "nothing on this cluster can allocate", ""),
        ("Pins of GPUs", {"dra_drivers": (), "hami": True}, State.OK, "by HAMi's annotation", ""),
        ("Pins of GPUs", {"dra_drivers": (), "ack": True}, State.OK, "by ACK's scheduler", ""),
    ],
)
def test_a_fact_is_a_finding(
    topic: str, facts: dict[str, Any], state: State, found: str, command: str
) -> None:
    """With its state, and the command that would improve it."""
    finding = of(topic, **facts)

    assert state is finding.state
    assert finding.found.startswith(found)
    assert finding.command.startswith(command)
    assert bool(command) is bool(finding.command)


def test_the_oldest_mpijob_has_no_gang_on_a_stock_scheduler() -> None:
    """It drops gates; the policy would reach the scheduler's own groups."""
    stock = {"versions": (ALPHA,), "worker_fields": frozenset[str](), "policy": ABSENT}

    assert State.PROBLEM is of("Gang", **stock, pod_groups="").state
    assert SETUP == of("Gang", **stock).command


def test_every_missing_right_is_named_with_what_needs_it() -> None:
    """As kubectl takes it, so that it can be checked and asked for."""
    access = (
        AccessReview(what="create mpijobs.kubeflow.org", purpose="submit", allowed=False),
        AccessReview(what="list nodes -A", purpose="plan", allowed=False, optional=True),
        AccessReview(what="get pods", purpose="logs", allowed=True),
    )
    found = [
        each for each in diagnose(replace(GOOD, access=access), namespace="ml") if each.topic == "Rights"
    ]

    assert [State.PROBLEM, State.ABSENT] == [each.state for each in found]
    assert "kubectl auth can-i create mpijobs.kubeflow.org -n ml" == found[0].evidence
    assert "you cannot list nodes in the whole cluster" == found[1].found
    assert "needed for: submit" == found[0].follows


def test_rights_that_the_server_does_not_tell_are_unknown() -> None:
    """Neither granted nor refused."""
    access = (AccessReview(what="get pods", purpose="logs", allowed=None),)

    assert State.UNKNOWN is of("Rights", access=access).state


@pytest.mark.parametrize(
    ("version", "hinted"), [("v1.35.2", True), ("v1.36.3+x", False), ("v1.40.0", False), ("", False)]
)
def test_a_newer_kubernetes_is_advised_where_it_would_help(version: str, *, hinted: bool) -> None:
    """A cluster that has it already, and does not serve the policy, has other reasons."""
    finding = of("Admission policy", policy=Policy(), kubernetes=version)

    assert hinted == ("Kubernetes 1.36 serves it" in finding.follows)


def test_people_get_a_verdict_and_a_table() -> None:
    """With what would improve it in the second line, and with -v what follows from each finding."""
    findings = diagnose(replace(GOOD, policy=ABSENT), namespace="ml")
    short, whole = (findings_text(findings, verdict(findings), verbose=verbose) for verbose in (False, True))
    sentence, command = short.splitlines()[:2]

    assert sentence.startswith("No problems. MPIJob: v2beta1 served. Gang: --gang means ")
    assert command.startswith("for Admission policy")
    assert command.endswith(f": {SETUP}")
    assert "\n\nCHECK             STATE   FOUND\nKubernetes        ok      v1.36.3\n" in short
    assert short.endswith("\nevidence, and what follows: -v\n")
    assert (False, True) == (f"\n  try:      {SETUP}\n" in short, f"\n  try:      {SETUP}\n" in whole)
    assert sentence == whole.splitlines()[0]


def test_a_verdict_begins_with_what_is_wrong() -> None:
    """The number of problems and each of them, and then
    the command that mends it before those that improve.
    """
    findings = (of("Kubernetes"), of("Native gangs", policy=ABSENT), of("MPIJob", versions=()))

    assert "1 problem. MPIJob: not served." == verdict(findings)[0]
    assert verdict(findings)[1].startswith("for MPIJob: kubectl apply")
    assert f"for Native gangs: {SETUP}" == verdict(findings)[2]


def test_programs_get_every_field() -> None:
    """The command where there is one."""
    document = findings_document([of("Kubernetes"), of("Native gangs", policy=ABSENT)])

    assert {"topic", "state", "found", "evidence", "follows"} == set(document[0])
    assert ("absent", SETUP) == (document[1]["state"], document[1]["command"])
