"""What the controller's token can change on a real API server, by trying: what it writes, and no more."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import pytest

from arena_topo.controller.manifests import HANG_RULES
from arena_topo.diagnosis.look import SCRIPTS
from arena_topo.jobs.enforce import rewritten
from arena_topo.jobs.evidence import evidence_object
from arena_topo.kinds.table import kind_of
from arena_topo.manifest.plan_on_job import changes, with_pins
from arena_topo.model.keys import (
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    GANG_GATE,
    HAMI_USE_GPUS,
    HOSTNAME,
    KUEUE_QUEUE,
    LAUNCHER_OF,
    MANAGED_BY,
    MOVES,
    OPERATOR_JOB_NAME,
    OPERATOR_JOB_ROLE,
    PIN_GPUS,
    PIN_NODES,
    PLAN,
    PLANNED,
    PLANNED_JOB,
)
from arena_topo.model.kind import Loose, is_suspended, planned_replicas
from arena_topo.model.plan_record import Enforcement, GpuEnforcement, PlanRecord, Slot, Stage, encode
from arena_topo.pin.dra_claims import claim
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.e2e.controller.planned_jobs import TRAINJOB, WAITING, job_of, specs
from tests.e2e.rights import controller_token, grant, token_client

pytestmark = pytest.mark.usefixtures("lease")

RECORD = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "a", (0,)), Slot(1, "b", (1,))),
    enforcement=Enforcement.ADMISSION,
    hostnames={"a": "a", "b": "b"},
    worker_requests={"nvidia.com/gpu": 1},
)


@pytest.fixture
def controller(plane: ControlPlane) -> Iterator[Kube]:
    """Return a client with the controller's token."""
    with controller_token(plane) as secret:
        yield token_client(plane, secret)


def words(*command: str) -> list[tuple[str, str]]:
    """Return the query by which a command is run."""
    return [("command", word) for word in command]


Operations = list[Object]


def add(path: str, value: Any) -> Operations:
    """Return the JSON patch that puts *value* at *path*."""
    return [{"op": "add", "path": path, "value": value}]


def escaped(key: str) -> str:
    """Return *key* as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def honest_changes(job: Object) -> Mapping[str, Operations]:
    """Return what the controller writes onto *job*, as the server has it."""
    confirmed, uuids = encode(RECORD), {0: ("GPU-a",), 1: ("GPU-b",)}
    shared = with_pins(
        job, rewritten(job, replace(RECORD, gpu_enforcement=GpuEnforcement.SHARED_CLAIMS), uuids)
    )
    by_policy = with_pins(job, rewritten(job, RECORD, {}))
    made = {
        "a plan that is only proposed": changes(
            job, with_pins(job, rewritten(job, replace(RECORD, stage=Stage.PROPOSED)))
        ),
        "a confirmed plan, with its pins": changes(job, by_policy),
        "a note of a move": add(f"/metadata/annotations/{escaped(MOVES)}", "x"),
        "other pins of a job that runs": [
            *changes(job, by_policy),
            *(
                operation
                for each in planned_replicas(kind_of(job), by_policy)
                for operation in add(f"{each.path}/metadata/annotations/{escaped(PIN_NODES)}", "0:c,1:d,2:")
            ),
        ],
    }
    assert confirmed in str(made)
    # A TrainJob has no containers of its own, and of a Job or a JobSet those stay as they are.
    if kind_of(job).kind in ("MPIJob", "PyTorchJob", "TFJob"):
        made["pins with shared GPUs"] = changes(job, shared)
        made["node affinity"] = changes(
            job, with_pins(job, rewritten(job, replace(RECORD, enforcement=Enforcement.AFFINITY)))
        )
    return made


def other_changes(job: Object) -> Mapping[str, Operations]:
    """Return what somebody with the token might write onto *job*, of ours, as the server has it."""
    suspend = "/".join(("/spec", *kind_of(job).suspend))
    made = {
        "a label": add("/metadata/labels/other", "x"),
        "another annotation": add("/metadata/annotations/other", "x"),
        "the user's annotation": add("/metadata/annotations/mine", "no"),
        "no plan any more": [{"op": "remove", "path": f"/metadata/annotations/{escaped(PLAN)}"}],
        "not planned any more": [{"op": "remove", "path": f"/metadata/labels/{escaped(PLANNED)}"}],
        "no finalizers": [{"op": "remove", "path": "/metadata/finalizers"}],
        "an owner": add(
            "/metadata/ownerReferences",
            [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}],
        ),
        "a field of the spec": [*add(suspend, not is_suspended(kind_of(job), job)), *_field(job)],
    }
    for each in planned_replicas(kind_of(job), job)[:1]:
        at = each.path
        made["a label of its pods"] = add(f"{at}/metadata/labels/other", "x")
        made["an annotation of its pods"] = add(
            f"{at}/metadata", {"annotations": {"other": "x"}, "labels": {PLANNED: "true"}}
        )
        made["the service account of its pods"] = add(
            f"{at}/spec", {**each.template.get("spec", {}), "serviceAccountName": "other"}
        )
        made["a volume of its pods"] = add(
            f"{at}/spec",
            {**each.template.get("spec", {}), "volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
        )
        made["a node selector of its pods"] = add(
            f"{at}/spec", {**each.template.get("spec", {}), "nodeSelector": {"x": "y"}}
        )
        if containers := each.template.get("spec", {}).get("containers"):
            first = f"{at}/spec/containers/0"
            made |= {
                "an image": add(f"{first}/image", "other"),
                "a command": add(f"{first}/command", ["sh"]),
                "a variable": add(f"{first}/env/-", {"name": "OTHER", "value": "x"}),
                "another value of our variable": add(
                    f"{first}/env/-", {"name": "NCCL_CUMEM_ENABLE", "value": "1"}
                ),
                "the user's value of our variable": add(f"{first}/env/1/value", "other"),
                "a container": add(f"{at}/spec/containers/-", {"name": "third", "image": "i"}),
                "a container in place of another": add(f"{at}/spec/containers/1/name", "third"),
                "no user's affinity": [{"op": "remove", "path": f"{at}/spec/affinity"}],
                "one more alternative of affinity": add(
                    f"{at}/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-",
                    {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["a"]}]},
                ),
                "a toleration of its pods": add(f"{at}/spec/tolerations", [{"operator": "Exists"}]),
                "a spread of others": add(
                    f"{at}/spec/topologySpreadConstraints",
                    [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
                ),
            }
            assert 2 == len(containers)
    if elastic := kind_of(job).elastic:
        made["more workers than its bounds"] = add(elastic.replicas, 4)
    if kind_of(job).kind == "TrainJob":
        made["the patch of somebody else"] = add("/spec/runtimePatches/0/manager", "example.com/third")
    return made


def _field(job: Object) -> Operations:
    """Return a change of a field of the spec that no plan has, which the API server itself would take."""
    field = {
        "MPIJob": ("/spec/slotsPerWorker", 7),
        "PyTorchJob": ("/spec/runPolicy/backoffLimit", 7),
        "TFJob": ("/spec/runPolicy/backoffLimit", 7),
        "JobSet": ("/spec/ttlSecondsAfterFinished", 7),
        "Job": ("/spec/backoffLimit", 7),
        "TrainJob": ("/spec/trainer/image", "other"),
    }
    return add(*field[job["kind"]])


def in_a_queue(job: Object) -> Mapping[str, tuple[Operations, bool]]:
    """Return what is tried with *job*, in a queue of Kueue and pinned to nodes, and whether it is made."""
    moves = f"/metadata/annotations/{escaped(MOVES)}"
    tried = {
        "a note of a move": (add(moves, "x"), True),
        "a plan": (add(f"/metadata/annotations/{escaped(PLAN)}", encode(WAITING)), False),
        "its start": (add("/".join(("/spec", *kind_of(job).suspend)), False), False),
        "no queue": ([{"op": "remove", "path": f"/metadata/labels/{escaped(KUEUE_QUEUE)}"}], False),
    }
    (first, *_) = planned_replicas(kind_of(job), job)
    lists = f"{first.path}/metadata/annotations"
    may_move = kind_of(job).loose is Loose.EVERYTHING
    return tried | {
        "other nodes": (add(f"{lists}/{escaped(PIN_NODES)}", "0:c,2:"), may_move),
        "GPUs, of which it has none": (add(f"{lists}/{escaped(PIN_GPUS)}", "0:c,2:"), False),
        "no nodes": ([{"op": "remove", "path": f"{lists}/{escaped(PIN_NODES)}"}], False),
        "another annotation of its pods": (add(f"{lists}/other", "x"), False),
    }


@dataclass(frozen=True)
class Tried:
    """Whether a write was made, or what refused it."""

    made: bool
    said: str

    @property
    def by_policy(self) -> bool:
        """Whether our policy refused it."""
        return "the controller of arena-topo may" in self.said


def attempt(
    client: Kube,
    method: str,
    path: str,
    body: Any = None,
    merge: bool = False,
    query: Sequence[tuple[str, str]] = (("dryRun", "All"),),
) -> Tried:
    """Try a write; nothing is stored."""
    how = {"PATCH": "application/merge-patch+json" if merge else "application/json-patch+json"}
    try:
        client.request(
            method,
            f"{path}?{urlencode(query)}",
            body,
            content_type=how.get(method, "application/json"),
        )
    except KubeError as error:
        return Tried(False, str(error))
    return Tried(True, "")


def unexpected(tried: Mapping[str, Tried], *, made: bool) -> Mapping[str, str]:
    """Return what of the attempts was not as it should be."""
    return {what: each.said or "made" for what, each in tried.items() if each.made is not made}


@pytest.mark.parametrize("kind", specs(), ids=lambda kind: kind[1])
def test_of_a_job_only_what_a_plan_needs_may_change(
    controller: Kube, kube: Kube, namespace: str, kind: tuple[str, str]
) -> None:
    """The plan, its pins, its size and whether it runs; of a job without a plan nothing."""
    ours = kube.create(job_of(kind, "ours"), namespace)
    theirs = kube.create(job_of(kind, "theirs", planned=False), namespace)
    paths = {
        job["metadata"]["name"]: kube.path(*kind, namespace, job["metadata"]["name"])
        for job in (ours, theirs)
    }
    suspend = "/".join(("/spec", *kind_of(ours).suspend))
    queued = _queued(kube, namespace, kind)
    tries = in_a_queue(queued)
    try:
        found = {
            what: attempt(controller, "PATCH", kube.path(*kind, namespace, "queued"), body)
            for what, (body, _) in tries.items()
        }
        allowed = {
            what: attempt(controller, "PATCH", paths["ours"], body)
            for what, body in honest_changes(ours).items()
        }
        allowed["it starts"] = attempt(controller, "PATCH", paths["ours"], add(suspend, False))
        if elastic := kind_of(ours).elastic:
            allowed["one more worker"] = attempt(controller, "PATCH", paths["ours"], add(elastic.replicas, 3))
        refused = {
            what: attempt(controller, "PATCH", paths["ours"], body)
            for what, body in other_changes(ours).items()
        }
        refused["a job without a plan"] = attempt(controller, "PATCH", paths["theirs"], add(suspend, False))
        refused["a plan on a job without one"] = attempt(
            controller,
            "PATCH",
            paths["theirs"],
            add(f"/metadata/annotations/{escaped(PLAN)}", encode(WAITING)),
        )
        refused["deleting it"] = attempt(controller, "DELETE", paths["ours"])
        refused["its status"] = attempt(controller, "PATCH", f"{paths['ours']}/status", add("/status", {}))
    finally:
        for name in (*paths, "queued"):
            kube.patch(*kind, name, {"metadata": {"finalizers": None}}, namespace)

    assert {} == unexpected(allowed, made=True)
    assert {} == unexpected(refused, made=False)
    assert {what: made for what, (_, made) in tries.items()} == {
        what: each.made for what, each in found.items()
    }
    # The API server itself keeps most of the spec of a Job or a TrainJob; RBAC grants no other verbs.
    by_policy = {"a label", "another annotation", "no plan any more", "a job without a plan"}
    by_policy |= {"a field of the spec"} if kind != TRAINJOB else set()
    assert by_policy <= {what for what, each in refused.items() if each.by_policy}


def _queued(kube: Kube, namespace: str, kind: tuple[str, str]) -> Object:
    """Return a suspended job in a queue, whose first planned role is pinned to nodes."""
    job = job_of(kind, "queued", planned=False)
    job["metadata"]["labels"][KUEUE_QUEUE] = "queue"
    (first, *_) = planned_replicas(kind_of(job), job)
    annotations = first.template.setdefault("metadata", {}).setdefault("annotations", {})
    annotations[PIN_NODES] = "0:a,2:"
    return kube.create(job, namespace)


def pod(name: str, *, planned: bool, gated: bool) -> Object:
    """Return a pod of a job, which waits at gates."""
    labels = {PLANNED: "true", PLANNED_JOB: "ours"} if planned else {"mine": "yes"}
    gates = [{"name": "example.com/other"}, *([{"name": GANG_GATE}] if gated else [])]
    spec = {
        "containers": [{"name": "main", "image": "i"}],
        "schedulingGates": gates,
        "nodeSelector": {"zone": "z"},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


OTHERS_GATE = [{"name": "example.com/other"}]
RELEASE = {"nodeSelector": {HOSTNAME: "a"}, "schedulingGates": OTHERS_GATE}
ON_PODS: Sequence[tuple[str, str, Object | None, bool]] = [
    ("gated", "a release to its node", {"spec": RELEASE}, True),
    ("gated", "a release with its GPUs", {"metadata": {"annotations": {HAMI_USE_GPUS: "GPU-a"}}, "spec": RELEASE}, True),
    ("gated", "its end", None, True),
    ("running", "its end", None, True),
    ("gated", "a release to any node", {"spec": {"schedulingGates": OTHERS_GATE}}, False),
    ("gated", "the gate of others", {"spec": {**RELEASE, "schedulingGates": []}}, False),
    ("gated", "another selector", {"spec": {**RELEASE, "nodeSelector": {HOSTNAME: "a", "x": "y"}}}, False),
    ("gated", "an image", {"spec": {**RELEASE, "containers": [{"name": "main", "image": "other"}]}}, False),
    ("gated", "a toleration", {"spec": {**RELEASE, "tolerations": [{"operator": "Exists"}]}}, False),
    ("gated", "a label", {"metadata": {"labels": {"x": "y"}}, "spec": RELEASE}, False),
    ("gated", "another annotation", {"metadata": {"annotations": {"x": "y"}}, "spec": RELEASE}, False),
    ("gated", "a finalizer", {"metadata": {"finalizers": ["example.com/x"]}, "spec": RELEASE}, False),
    ("running", "the GPUs of one that is released", {"metadata": {"annotations": {HAMI_USE_GPUS: "x"}}}, False),
    ("running", "an image of one that is released", {"spec": {"containers": [{"name": "main", "image": "x"}]}}, False),
    ("theirs", "a release", {"spec": RELEASE}, False),
    ("theirs", "an annotation", {"metadata": {"annotations": {HAMI_USE_GPUS: "x"}}}, False),
    ("theirs", "its end", None, False),
    ("pretended", "its end", None, False),
    ("launcher", "its end", None, True),
    ("their-launcher", "its end", None, False),
    ("launcher", "an annotation", {"metadata": {"annotations": {HAMI_USE_GPUS: "x"}}}, False),
]  # fmt: skip
"""A pod, what is tried with it (a patch, or nothing to delete it), and whether it is made."""


def test_of_pods_only_gates_of_planned_jobs_are_opened(controller: Kube, kube: Kube, namespace: str) -> None:
    """And only pods of planned jobs and their launchers are deleted."""
    pretended = pod("pretended", planned=False, gated=True)
    launcher, others = (pod(name, planned=False, gated=True) for name in ("launcher", "their-launcher"))
    others["metadata"]["labels"] = {OPERATOR_JOB_NAME: "x", OPERATOR_JOB_ROLE: "launcher"}
    launcher["metadata"]["labels"] = {**others["metadata"]["labels"], LAUNCHER_OF: "x"}
    for item in (
        launcher,
        others,
        pod("gated", planned=True, gated=True),
        pod("running", planned=True, gated=False),
        pod("theirs", planned=False, gated=True),
        {
            **pretended,
            "metadata": {**pretended["metadata"], "annotations": {PLANNED: "true", PLANNED_JOB: "x"}},
        },
    ):
        kube.create(item, namespace)
    found = {
        (name, what): attempt(
            controller,
            "PATCH" if body else "DELETE",
            kube.path("v1", "Pod", namespace, name),
            body,
            merge=True,
        ).made
        for name, what, body, _ in ON_PODS
    }

    assert {(name, what): made for name, what, _, made in ON_PODS} == found


def test_nothing_else_is_the_controllers(controller: Kube, kube: Kube, namespace: str) -> None:
    """Of claims, events, Leases and ConfigMaps it writes its own; no Secrets, nodes and roles."""
    api = "resource.k8s.io/v1"
    # What has no owner is collected as garbage.
    job = kube.create({**job_of(MPIJOB, "ours"), "metadata": {"name": "ours"}}, namespace)
    own = claim(job, 0, ["GPU-a"], "v1")
    kube.create(own, namespace)
    theirs = {**own, "metadata": {"name": "theirs", "labels": {"mine": "yes"}}}
    kube.create(theirs, namespace)
    other = claim(job, 1, ["GPU-b"], "v1")
    (request,) = other["spec"]["devices"]["requests"]
    claims = kube.path(api, "ResourceClaim", namespace)

    def of(name: str, **exactly: Any) -> Object:
        changed = {**request, "exactly": {**request["exactly"], **exactly}}
        metadata = {**other["metadata"], "name": name}
        return {**other, "metadata": metadata, "spec": {"devices": {"requests": [changed]}}}

    def event(component: str) -> Object:
        about = {"apiVersion": "v1", "kind": "Pod", "name": "x", "namespace": namespace}
        meta = {"name": "e", "namespace": namespace}
        source = {"component": component}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": meta,
            "involvedObject": about,
            "source": source,
        }

    def config(name: str, where: str) -> tuple[str, str, Object]:
        return (
            "POST",
            kube.path("v1", "ConfigMap", where),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}},
        )

    def lease(name: str, where: str) -> tuple[str, str, Object]:
        api = "coordination.k8s.io/v1"
        return (
            "POST",
            kube.path(api, "Lease", where),
            {"apiVersion": api, "kind": "Lease", "metadata": {"name": name}},
        )

    own_namespace = CONTROLLER_NAMESPACE
    allowed = {
        "a claim of a planned job": ("POST", claims, of("new")),
        "the end of such a claim": ("DELETE", f"{claims}/{own['metadata']['name']}", None),
        "an event": ("POST", kube.path("v1", "Event", namespace), event(CONTROLLER)),
        "its Lease": lease(CONTROLLER, own_namespace),
        "a part of what it publishes": config("arena-topo-snapshot-3", own_namespace),
    }
    node = kube.list("v1", "Node")[:1]
    refused = {
        "a claim of other devices": ("POST", claims, of("new", deviceClassName="example.com")),
        "a claim with an admin's access": ("POST", claims, of("new", adminAccess=True)),
        "a claim of nobody": ("POST", claims, {**of("new"), "metadata": {"name": "new", "labels": {MANAGED_BY: "x"}}}),
        "the end of a claim of others": ("DELETE", f"{claims}/theirs", None),
        "an event as somebody else": ("POST", kube.path("v1", "Event", namespace), event("kubelet")),
        "another Lease": lease("other", own_namespace),
        "a Lease elsewhere": lease(CONTROLLER, "kube-system"),
        "another ConfigMap": config("other", own_namespace),
        "a ConfigMap elsewhere": config("arena-topo-snapshot-3", namespace),
        "a pod": ("POST", kube.path("v1", "Pod", namespace), pod("new", planned=True, gated=True)),
        "a job": ("POST", kube.path(*MPIJOB, namespace), job_of(MPIJOB, "new")),
        "all pods at once": ("DELETE", kube.path("v1", "Pod", namespace), None),
        "its own policy": (
            "DELETE",
            kube.path("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", None, CONTROLLER),
            None,
        ),
        "its own role": ("DELETE", kube.path("rbac.authorization.k8s.io/v1", "ClusterRole", None, CONTROLLER), None),
        **{
            f"a node's {what}": ("PATCH", kube.path("v1", "Node", None, each["metadata"]["name"]), body)
            for each in node
            for what, body in {"label": add("/metadata/labels/x", "y"), "taint": add("/spec/unschedulable", True)}.items()
        },
    }  # fmt: skip

    tried: Callable[[Mapping[str, tuple[str, str, Any]]], Mapping[str, Tried]] = lambda cases: {  # noqa: E731
        what: attempt(controller, *case) for what, case in cases.items()
    }
    assert {} == unexpected(tried(allowed), made=True)
    assert {} == unexpected(tried(refused), made=False)
    with pytest.raises(KubeError, match="secrets is forbidden"):
        controller.list("v1", "Secret", namespace)


FIND, LOOK, _ = SCRIPTS
RUN_IN_PODS: Sequence[tuple[str, Sequence[tuple[str, str]], bool]] = [
    ("which ranks there are", words("sh", "-c", FIND), True),
    ("what they do", words("sh", "-c", LOOK, "sh", "3", "0.5", "5", "17", "18"), True),
    ("a shell", words("sh"), False),
    ("another script", words("sh", "-c", "env"), False),
    ("another script behind ours", words("sh", "-c", FIND, "sh", "env"), False),
    ("ours behind another", words("sh", "-c", "env", FIND), False),
    ("an argument that is none", words("sh", "-c", LOOK, "sh", "3", "0.5", "$(env)"), False),
    ("what somebody types", [*words("sh", "-c", FIND), ("stdin", "true")], False),
    ("a terminal", [*words("sh", "-c", FIND), ("tty", "true")], False),
]


def test_in_containers_only_our_scripts_are_run(controller: Kube, kube: Kube, namespace: str) -> None:
    """With the right to exec, which its admin gives it for a namespace: no other command passes."""
    pods = kube.path("v1", "Pod", namespace)
    kube.create({**pod("waits", planned=True, gated=True)}, namespace)
    grant(kube, f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}", HANG_RULES, namespace)
    found = {
        what: attempt(controller, "POST", f"{pods}/waits/exec", query=[*query, ("stdout", "true")])
        for what, query, _ in RUN_IN_PODS
    }
    # What passes comes to a pod that has no node.
    assert {what: allowed for what, _, allowed in RUN_IN_PODS} == {
        what: not each.by_policy and "does not have a host" in each.said for what, each in found.items()
    }


def test_evidence_is_the_only_config_map_of_users_that_it_makes(
    controller: Kube, kube: Kube, namespace: str
) -> None:
    """It belongs to a job, and is never changed."""
    grant(kube, f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}", HANG_RULES, namespace)
    job = kube.create({**job_of(MPIJOB, "ours"), "metadata": {"name": "ours"}}, namespace)
    job = {**job, "apiVersion": MPIJOB[0], "kind": MPIJOB[1]}
    made = evidence_object(job, {"state": "stuck"}, logs={}, looks={"p": b"x"})
    path = kube.path("v1", "ConfigMap", namespace)
    tries = {
        "evidence": attempt(controller, "POST", path, made),
        "another name": attempt(
            controller, "POST", path, {**made, "metadata": {**made["metadata"], "name": "settings"}}
        ),
        "of nobody": attempt(
            controller, "POST", path, {**made, "metadata": {**made["metadata"], "ownerReferences": []}}
        ),
        "changeable": attempt(controller, "POST", path, {**made, "immutable": False}),
    }
    assert ["evidence"] == [what for what, each in tries.items() if each.made], tries
    assert all(each.by_policy for what, each in tries.items() if what != "evidence")
