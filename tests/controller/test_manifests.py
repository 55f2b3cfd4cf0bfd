"""The objects of the controller ask for what is called, and for little else."""

from contextlib import suppress
from threading import Event

import pytest

from arena_topo.cluster.capabilities import controller_runs
from arena_topo.cluster.published import PART_NAMES, read_published
from arena_topo.controller.manifests import (
    CLUSTER_RULES,
    HANG_RULES,
    NAMESPACE_RULES,
    READER_RULES,
    controller_objects,
)
from arena_topo.controller.objects import Action, DeletePod, Notice, PatchStatus, ReleaseWorker, WritePlan
from arena_topo.controller.run import Lease, carry_out
from arena_topo.controller.state import watched
from arena_topo.controller.workloads import kueue_api, kueue_collections
from arena_topo.errors import Conflict
from arena_topo.kinds.table import KINDS
from arena_topo.kube.bulk_read import OPTIONAL
from arena_topo.kube.session import Session
from arena_topo.model.keys import PLAN
from arena_topo.model.kind import Kind, api_version
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, GpuEnforcement, PlanRecord, Slot, Stage
from arena_topo.pin.dra_claims import claim
from tests.fakes import Answer, Call, missing, refusal, session
from tests.objects import mpijob, pod

VERBS = {"GET": "get", "PATCH": "patch", "POST": "create", "DELETE": "delete"}


def rights(rules: list[Object]) -> set[tuple[str, str, str]]:
    """Return what *rules* allow: group, resource and verb."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right(call: Call) -> tuple[str, str, str]:
    """Return what is needed for a call on an object of a namespace, or on a list of them."""
    parts = call.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "namespaces":
        rest = rest[2:]
    return group, "/".join((rest[0], *rest[2:3])), VERBS[call.method]


def served(call: Call) -> Answer:
    """Answer discovery as a cluster that has everything."""
    if call.path == "/apis":
        groups = [
            {"versions": [{"groupVersion": f"{group}/{versions[0]}"}]}
            for group, _, versions in OPTIONAL.values()
        ]
        others = (*map(api_version, KINDS), "arena-topo.dev/v1alpha1")
        kinds = [{"versions": [{"groupVersion": version}]} for version in others]
        return Answer(body={"groups": [*groups, *kinds]})
    plurals = [*(plural for _, plural, _ in OPTIONAL.values()), *(kind.plural for kind in KINDS)]
    return Answer(body={"resources": [{"name": plural} for plural in plurals]})


def seen() -> set[tuple[str, str, str]]:
    """Return what is needed to see everything."""
    opened = session(served)[0]
    collections = watched(opened)
    queues = kueue_api(opened)
    assert queues
    collections |= kueue_collections(opened, queues)
    paths = [Call("GET", collection.path, {}, None) for collection in collections.values()]
    return {(*right(path)[:2], verb) for path in paths for verb in ("list", "watch")}


def job_of_kind(kind: Kind = KINDS[0]) -> Object:
    """Return a job with a plan; of another *kind* than the first it has no pods."""
    job = mpijob("job", workers=1)
    if kind is not KINDS[0]:
        # An indexed Job is nothing without its pods' template.
        spec: Object = {"template": {"spec": {}}} if kind.kind == "Job" else {}
        job = {**job, "apiVersion": api_version(kind), "kind": kind.kind, "spec": spec}
    job["metadata"]["annotations"] = {PLAN: "before"}
    return job


CLAIMED = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "n", (0,)),),
    enforcement=Enforcement.ADMISSION,
    gpu_enforcement=GpuEnforcement.CLAIMS,
)
WORKER = {**pod("job-worker-0"), "metadata": {**pod("job-worker-0")["metadata"], "resourceVersion": "7"}}
ACTIONS: list[Action] = [
    WritePlan(job_of_kind(), CLAIMED, {0: ("GPU-1",)}),
    *(
        WritePlan(job_of_kind(kind), PlanRecord(stage=Stage.PROPOSED), {})
        for kind in KINDS
        if kind.suspend and kind.kind != "MPIJob"
    ),
    ReleaseWorker(WORKER, "n"),
    DeletePod(WORKER),
    PatchStatus("/apis/kueue.x-k8s.io/v1beta2/namespaces/n/workloads/w/status", "u", []),
    PatchStatus("/apis/kueue.x-k8s.io/v1beta2/admissionchecks/c/status", "u", {}),
    Notice(job_of_kind(), "Placed", "1 worker"),
]


def sent() -> set[tuple[str, str, str]]:
    """Return what is needed for each action, where a claim of
    an earlier plan is in the way and the job has changed.
    """
    calls: set[tuple[str, str, str]] = set()

    def answer(call: Call) -> Answer:
        if call.path == "/apis":
            return served(call)
        is_first = right(call) not in calls
        calls.add(right(call))
        if call.method == "POST" and "resourceclaims" in call.path and is_first:
            return refusal(409, "AlreadyExists")
        if call.method == "GET" and "resourceclaims" in call.path:
            other = claim(job_of_kind(), 0, ("GPU-2",), "v1")
            return Answer(body={**other, "metadata": {**other["metadata"], "uid": "u"}})
        if call.method == "PATCH" and call.path.split("/")[-2] in {kind.plural for kind in KINDS}:
            return refusal(422, "Invalid")
        # The job is read before the write that starts it.
        if call.method == "GET" and call.path.endswith("/mpijobs/job") and is_first:
            return Answer(body=job_of_kind())
        metadata = {"name": "job", "uid": "uid-job", "namespace": "default"}
        return Answer(body={"metadata": metadata, "spec": {}})

    for action in ACTIONS:
        # The plan is refused, as by somebody else who was quicker.
        with suppress(Conflict):
            carry_out(session(answer)[0], action)
    return calls


def leased() -> set[tuple[str, str, str]]:
    """Return what is needed for the Lease: to make it, to renew it, and to give it up."""
    calls: set[tuple[str, str, str]] = set()
    stored: list[Object] = []

    def answer(call: Call) -> Answer:
        calls.add(right(call))
        if call.method == "POST":
            stored.append({**call.body, "metadata": {**call.body["metadata"], "resourceVersion": "1"}})
        return Answer(body=stored[0]) if stored else missing("lease")

    opened: Session = session(answer)[0]
    lease = Lease(opened, "me")
    assert lease.acquire(Event(), lambda _: None)
    assert lease.acquire(Event(), lambda _: None)
    lease.release()
    return calls


def test_the_rules_are_what_is_called() -> None:
    """Every right is needed by a call, and every call has its right."""
    # To find the served version of MPIJob a list of one is asked for, which the right to list is for.
    assert rights(CLUSTER_RULES) == seen() | sent()
    # An apply is a patch, and where there is no object yet the server asks for the right to create one as
    # well.
    publishes = {("", "configmaps", verb) for verb in ("patch", "create")}
    assert rights(NAMESPACE_RULES) == leased() | publishes


def test_the_policy_looks_at_all_that_is_written() -> None:
    """Of each right to write there is a rule, and none that the account does not have."""
    (policy,) = [each for each in controller_objects("i:1") if each["kind"] == "ValidatingAdmissionPolicy"]
    operations = {"CONNECT": ("create",), "CREATE": ("create",), "UPDATE": ("patch",), "DELETE": ("delete",)}
    looked_at = {
        (group, resource, verb)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for operation in rule["operations"]
        for verb in operations[operation]
    }
    reads = {"get", "list", "watch"}
    granted = rights([*CLUSTER_RULES, *NAMESPACE_RULES, *HANG_RULES])
    assert {each for each in granted if each[2] not in reads} == looked_at
    assert not [each for each in controller_objects("i:1", policy=False) if "Policy" in each["kind"]]


def test_ranks_are_looked_at_only_where_it_is_allowed() -> None:
    """The right to exec is granted in no other namespace, and the controller is told which they are."""
    items = controller_objects("i:1", hangs_in=["team-a", "team-b"])
    roles = [each for each in items if "pods/exec" in str(each.get("rules"))]
    assert [("Role", "team-a"), ("Role", "team-b")] == [
        (each["kind"], each["metadata"]["namespace"]) for each in roles
    ]
    (args,) = [
        each["spec"]["template"]["spec"]["containers"][0]["args"]
        for each in items
        if each["kind"] == "Deployment"
    ]
    assert ["--hangs-in", "team-a", "--hangs-in", "team-b"] == args[-4:]
    assert "pods/exec" not in str([each.get("rules") for each in controller_objects("i:1")])


def test_everybody_may_see_that_a_controller_runs_and_what_it_publishes() -> None:
    """By one Lease and a few ConfigMaps, and nothing else."""
    calls: set[tuple[str, str, str]] = set()

    def answer(call: Call) -> Answer:
        calls.add(right(call))
        return missing("lease")

    assert not controller_runs(session(answer)[0])
    assert None is read_published(session(answer)[0])
    assert rights(READER_RULES) == calls
    assert ["arena-topo-controller"] == READER_RULES[0]["resourceNames"]
    assert list(PART_NAMES) == READER_RULES[1]["resourceNames"]


@pytest.fixture
def deployment() -> Object:
    """Return the Deployment."""
    return next(item for item in controller_objects("i:1") if item["kind"] == "Deployment")


def test_the_pods_are_hardened(deployment: Object) -> None:
    """No root, no privileges, no capabilities, a read-only file system, the runtime's seccomp profile."""
    spec = deployment["spec"]["template"]["spec"]
    assert 2 == deployment["spec"]["replicas"]
    assert True is spec["securityContext"]["runAsNonRoot"]
    assert {"type": "RuntimeDefault"} == spec["securityContext"]["seccompProfile"]
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == spec["containers"][0]["securityContext"]


def test_the_objects_belong_together(deployment: Object) -> None:
    """Bindings name their roles, the budget and the Deployment
    select its pods, and all is in one namespace.
    """
    objects = controller_objects("i:1")
    by_kind = {(item["kind"], item["metadata"]["name"]) for item in objects}
    for item in objects:
        if "roleRef" in item:
            assert (item["roleRef"]["kind"], item["roleRef"]["name"]) in by_kind
        if item["kind"] == "ValidatingAdmissionPolicyBinding":
            assert ("ValidatingAdmissionPolicy", item["spec"]["policyName"]) in by_kind
    budget = next(item for item in objects if item["kind"] == "PodDisruptionBudget")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert budget["spec"]["selector"] == deployment["spec"]["selector"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert {"arena-topo-system"} == {
        item["metadata"]["namespace"] for item in objects if item["metadata"].get("namespace")
    }
