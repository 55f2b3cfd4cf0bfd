"""What an admin sets up once, so that the plans of all users can be enforced.

Printed, applied and removed.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from arena_topo.cluster.capabilities import KUEUE_GROUP, KUEUE_VERSIONS, pod_group_api, policy_api
from arena_topo.cluster.permissions import RBAC_API, RBAC_GROUP, binding, named, role, rule
from arena_topo.errors import ArenaTopoError, NotFound, UsageError, WaitTimeout
from arena_topo.kube.resources import PODS, path_of, resource_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.model.keys import (
    CHECK_CONTROLLER,
    COMPLETION_INDEX,
    HOSTNAME,
    MANAGED_BY,
    OUR_DOMAIN,
    OWN_NAME,
)
from arena_topo.model.objects import Object
from arena_topo.model.text.words import written_duration
from arena_topo.pin.admission import APIS, GROUP, policy_objects
from arena_topo.pin.run_lists import pin_annotations

# The permissions that users of a cluster need.

_USER, _TOPOLOGY = "arena-topo-user", "arena-topo-topology"
_LABELS = {MANAGED_BY: OWN_NAME}
"""By them ``cluster remove`` finds what the setup installed."""

USER_RULES = [
    rule("kubeflow.org", "mpijobs pytorchjobs tfjobs", "create get list watch delete"),
    rule("jobset.x-k8s.io", "jobsets", "create get list watch delete"),
    rule("trainer.kubeflow.org", "trainjobs", "create get list watch delete"),
    rule("batch", "jobs", "create get list watch delete"),
    rule("core", "pods", "get list watch"),
    rule("core", "pods/log", "get"),
    rule("trainer.kubeflow.org", "trainingruntimes", "get"),
    rule("core", "services", "create"),
    rule("core", "events", "list watch"),
    rule("kubeflow.org", "mpijobs pytorchjobs tfjobs", "patch"),
    rule("core", "configmaps", "create patch"),
    rule("core", "pods", "patch"),
    rule("jobset.x-k8s.io", "jobsets", "patch"),
    rule("trainer.kubeflow.org", "trainjobs", "patch"),
    rule("batch", "jobs", "patch"),
    rule("scheduling.x-k8s.io scheduling.volcano.sh scheduling.k8s.io", "podgroups", "create"),
    rule("resource.k8s.io", "resourceclaims", "create"),
    rule("kueue.x-k8s.io", "localqueues", "get"),
    rule("kueue.x-k8s.io", "workloads", "list"),
]
"""In the namespace of the jobs: submit, get, logs and delete; then runtimes, Services, events, plans, files,
gates, gangs, exact GPUs and queues."""

TOPOLOGY_RULES = [
    rule("core", "nodes pods", "list"),
    rule("resource.k8s.io", "resourceslices resourceclaims", "list"),
    rule("kubeflow.org", "mpijobs pytorchjobs tfjobs", "list"),
    rule("jobset.x-k8s.io", "jobsets", "list"),
    rule("trainer.kubeflow.org", "trainjobs", "list"),
    rule("trainer.kubeflow.org", "clustertrainingruntimes", "get"),
    rule("batch", "jobs", "list"),
    rule("core", "resourcequotas", "list"),
    rule("scheduling.koordinator.sh", "devices clusternetworktopologies", "list"),
    rule("topology.node.k8s.io", "noderesourcetopologies", "list"),
    rule("kueue.x-k8s.io kai.scheduler", "topologies", "list"),
    rule("kueue.x-k8s.io", "clusterqueues", "get list"),
    rule("kueue.x-k8s.io", "admissionchecks", "list"),
    rule("topology.volcano.sh", "hypernodes", "list"),
    rule("apps", "deployments", "list"),
    rule("scheduling.k8s.io", "priorityclasses", "get"),
    rule(
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies mutatingadmissionpolicybindings "
        "validatingadmissionpolicies validatingadmissionpolicybindings",
        "get",
    ),
]
"""In the whole cluster: for plan, topology and doctor."""


def _roles() -> list[Object]:
    return [role(named(_USER, _LABELS), USER_RULES), role(named(_TOPOLOGY, _LABELS), TOPOLOGY_RULES)]


def bindings(user: str, namespace: str) -> list[Object]:
    """Return the bindings that let *user* submit in *namespace* and read the topology of the cluster.

    *user* is ``user:NAME``, ``group:NAME`` or ``serviceaccount:NAMESPACE/NAME``. Raises ``UsageError``.
    """
    subject = _subject(user)
    # Names of users may have characters that names of objects may not.
    suffix = sha256(user.encode()).hexdigest()[:8]
    user_role, topology_role = _roles()
    return [
        binding(named(f"{_USER}-{suffix}", _LABELS, namespace), subject, user_role),
        binding(named(f"{_TOPOLOGY}-{suffix}", _LABELS), subject, topology_role),
    ]


def _subject(user: str) -> Object:
    kind, _, name = user.partition(":")
    if kind in {"user", "group"} and name:
        return {"apiGroup": RBAC_GROUP, "kind": kind.capitalize(), "name": name}
    if kind == "serviceaccount" and (match := re.fullmatch(r"([^/]+)/([^/]+)", name)):
        return {"kind": "ServiceAccount", "namespace": match[1], "name": match[2]}
    raise UsageError(
        f"--users: {user!r} is not a user",
        hint="write user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME",
    )


_REMOVED = (
    *((f"admissionregistration.k8s.io/{api}", "MutatingAdmissionPolicyBinding") for api in APIS),
    *((f"admissionregistration.k8s.io/{api}", "MutatingAdmissionPolicy") for api in APIS),
    *((f"{KUEUE_GROUP}/{version}", "AdmissionCheck") for version in KUEUE_VERSIONS),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apps/v1", "DaemonSet"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    (RBAC_API, "RoleBinding"),
    (RBAC_API, "ClusterRoleBinding"),
    (RBAC_API, "ClusterRole"),
    ("v1", "ServiceAccount"),
)
"""Kinds in the order in which they are removed: nothing that is left refers to what is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupFacts:
    """What a cluster serves that decides the form of the setup; the defaults are those of a current one.

    ``policy_api`` is the version of the policy's API, empty where it is not served; ``gangs`` says whether
    pods can belong to kube-scheduler's own PodGroups. ``validates`` says whether a policy can keep agents to
    their own nodes. ``kueue`` is the version of Kueue's API.
    """

    policy_api: str = "v1"
    gangs: bool = False
    validates: bool = True
    kueue: str = KUEUE_VERSIONS[0]


def setup_facts(session: Session) -> SetupFacts:
    """Return what the cluster of *session* serves."""
    apis = ServedApis(session)
    return SetupFacts(
        policy_api=policy_api(apis),
        gangs=bool(pod_group_api(apis)),
        validates=bool(apis.version_with(GROUP, ("v1",), "validatingadmissionpolicies")),
        kueue=apis.preferred(KUEUE_GROUP, KUEUE_VERSIONS),
    )


def setup_objects(
    facts: SetupFacts, users: Sequence[str], namespace: str
) -> tuple[list[Object], tuple[str, ...]]:
    """Return the objects of the setup, and notes on them for the admin.

    Each of *users* (see ``bindings``) may submit in *namespace*. Raises ``UsageError`` for a text that is not
    a user.
    """
    policy = policy_objects(facts.policy_api, gangs=facts.gangs) if facts.policy_api else ()
    user_bindings = [each for user in users for each in bindings(user, namespace)]
    notes = []
    if not facts.policy_api:
        notes.append(
            "this cluster does not serve MutatingAdmissionPolicy: the admission policy is left out, and workers are "
            "pinned by gates or node affinity"
        )
    if not users:
        notes.append("the roles are not bound to anyone: --users binds them")
    return [*policy, *_roles(), *user_bindings], tuple(notes)


def apply(session: Session, objects: Iterable[Object]) -> Iterator[Object]:
    """Apply *objects* one by one, and yield each once the server has it."""
    for item in objects:
        session.apply(path_of(item), item)
        yield item


def installed_objects(session: Session) -> list[Object]:
    """Return the objects of the setup that the cluster has, in the order in which to remove them."""
    objects: dict[str, Object] = {}
    for api_version, kind in _REMOVED:
        path = resource_of(api_version, kind).path()
        try:
            items = session.list(path, labelSelector=f"{MANAGED_BY}={OWN_NAME}")
        except NotFound:
            # Of the versions of the policy's API a cluster serves some, or none.
            continue
        for item in items:
            # What another object owns goes with that one.
            if item["metadata"].get("ownerReferences"):
                continue
            # The policy is listed in each version that is served; items of a list do not say their kind.
            typed = {"apiVersion": api_version, "kind": kind, "metadata": item["metadata"]}
            objects.setdefault(item["metadata"]["uid"], typed)
    return list(objects.values())


def remove(session: Session, objects: Iterable[Object]) -> Iterator[Object]:
    """Delete *objects* one by one, each only if it still has its uid, and yield it once it is deleted."""
    for item in objects:
        try:
            session.delete(path_of(item), uid=item["metadata"]["uid"])
        except NotFound:
            continue
        yield item


# What an admin sets up so that our planner answers Kueue: the admission check, and the kind of its
# parameters.

_CHECK = "arena-topo"
"""The name that setup gives the check; the controller knows its checks by their ``controllerName``."""

_PARAMETERS_KIND, _PARAMETERS = "PlannerParameters", "plannerparameters"


def kueue_objects(version: str) -> list[Object]:
    """Return the definition of PlannerParameters and an AdmissionCheck in *version* of Kueue's API."""
    check = {
        "apiVersion": f"{KUEUE_GROUP}/{version}",
        "kind": "AdmissionCheck",
        "metadata": {"name": _CHECK, "labels": _LABELS},
        "spec": {"controllerName": CHECK_CONTROLLER},
    }
    return [_parameters_definition(), check]


def queue_line() -> str:
    """Return what an admin writes into a ClusterQueue for it."""
    return (
        "a ClusterQueue asks the planner once it names the check: kubectl patch clusterqueue NAME --type=merge -p "
        f'\'{{"spec":{{"admissionChecksStrategy":{{"admissionChecks":[{{"name":"{_CHECK}"}}]}}}}}}\''
    )


def _parameters_definition() -> Object:
    reserve_after = {
        "type": "string",
        "maxLength": 32,
        "description": "How long a job with quota waits for room before room is reserved for it, such as 10m.",
    }
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {"type": "object", "properties": {"reserveAfter": reserve_after}}},
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{_PARAMETERS}.{OUR_DOMAIN}", "labels": _LABELS},
        "spec": {
            "group": OUR_DOMAIN,
            "scope": "Cluster",
            "names": {
                "kind": _PARAMETERS_KIND,
                "plural": _PARAMETERS,
                "singular": _PARAMETERS,
                "listKind": f"{_PARAMETERS_KIND}List",
            },
            "versions": [version],
        },
    }


# Whether the API server applies the admission policy: it learns of a new one about a second after it is
# stored.

_NODE = "arena-topo-probe"
_SECONDS, _PAUSE = 30.0, 0.2


def wait_until_applied(
    session: Session,
    namespace: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Return once the API server pins a worker that is tried out in *namespace*; nothing is stored there.

    False where nothing shows it, for example because the user cannot create pods. Raises ``WaitTimeout``
    where it still does not.
    """
    deadline = clock() + _SECONDS
    while True:
        try:
            tried = session.create(PODS.path(namespace), _worker(namespace), dry_run=True)
        except ArenaTopoError:
            # A quota, or the policy of another tool, that refuses such a pod says nothing of ours.
            return False
        if (tried["spec"].get("nodeSelector") or {}).get(HOSTNAME) == _NODE:
            return True
        if clock() > deadline:
            raise WaitTimeout(
                f"the API server does not apply the admission policy after {written_duration(_SECONDS)}",
                hint="workers that are created now are not pinned; look again with: arena-topo doctor",
            )
        sleep(_PAUSE)


def _worker(namespace: str) -> Object:
    """Return a pod with a pin, which every Pod Security Standard admits.

    It is known by its label, as a policy from before other kinds of jobs than MPIJobs would not: while that
    one is replaced, it must not pass for the new one.
    """
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    annotations = pin_annotations(nodes=[_NODE])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _NODE,
            "namespace": namespace,
            "labels": {COMPLETION_INDEX: "0"},
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": "mpi", "image": "probe", "securityContext": restricted}]},
    }
