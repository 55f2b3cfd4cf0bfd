"""The objects that run the controller in a cluster, with the fewest permissions that it needs.

docs/reference/permissions.md says what each rule is for.
"""

from collections.abc import Sequence

from arena_topo.cluster.permissions import (
    RBAC_GROUP,
    account_subject,
    binding,
    named,
    role,
    rule,
    service_account,
)
from arena_topo.cluster.published import PART_NAMES, Detail
from arena_topo.controller.policy import policy_objects
from arena_topo.kinds.table import KINDS
from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE, MANAGED_BY, OWN_NAME
from arena_topo.model.objects import Object

_SELECTED = {"app.kubernetes.io/name": CONTROLLER}
_LABELS = {**_SELECTED, MANAGED_BY: OWN_NAME}
_READER = f"{CONTROLLER}-reader"
_REPLICAS = 2
_NOBODY = 65532
"""The user of a process without root, as images without a distribution call it."""


def _planned_jobs() -> dict[str, list[str]]:
    """Return the resources of the kinds of jobs that may wait, by API group."""
    groups: dict[str, list[str]] = {}
    for kind in KINDS:
        of_group = groups.setdefault(kind.group, [])
        if kind.suspend and kind.plural not in of_group:
            of_group.append(kind.plural)
    return groups


CLUSTER_RULES = [
    rule("core", "nodes pods resourcequotas", "list watch"),
    rule("core", "pods", "patch delete"),
    rule("core", "events", "create"),
    *(rule(group, " ".join(jobs), "get list watch patch") for group, jobs in _planned_jobs().items()),
    rule("resource.k8s.io", "resourceslices", "list watch"),
    rule("resource.k8s.io", "resourceclaims", "list watch create get delete"),
    rule("scheduling.koordinator.sh", "devices clusternetworktopologies", "list watch"),
    rule("topology.node.k8s.io", "noderesourcetopologies", "list watch"),
    rule("kueue.x-k8s.io", "topologies workloads admissionchecks resourceflavors", "list watch"),
    rule("kueue.x-k8s.io", "workloads/status admissionchecks/status", "patch"),
    rule("arena-topo.dev", "plannerparameters", "list watch"),
    rule("kai.scheduler", "topologies", "list watch"),
    rule("topology.volcano.sh", "hypernodes", "list watch"),
]
"""In the whole cluster: to see it, move and release workers, and write events, plans, claims and answers."""

NAMESPACE_RULES = [
    rule("coordination.k8s.io", "leases", "create"),
    rule("coordination.k8s.io", "leases", "get patch", CONTROLLER),
    rule("core", "configmaps", "create"),
    rule("core", "configmaps", "patch", *PART_NAMES),
]
"""In its own namespace: the Lease by which one replica decides, and what it publishes of the cluster."""

HANG_RULES = [
    rule("core", "pods", "get"),
    rule("core", "pods/exec", "get create"),
    rule("core", "pods/log", "get"),
    rule("core", "configmaps", "create"),
]
"""In namespaces whose admin allows it: to look at the ranks of jobs that ask for it, and keep what it saw."""

READER_RULES = [
    rule("coordination.k8s.io", "leases", "get", CONTROLLER),
    rule("core", "configmaps", "get", *PART_NAMES),
]
"""For all users: to see that a controller runs, which then places their jobs, and what it publishes."""


def controller_objects(
    image: str,
    *,
    reserve_after: float = 300.0,
    publish: Detail = Detail.USAGE,
    metrics_port: int = 0,
    policy: bool = True,
    hangs_in: Sequence[str] = (),
) -> list[Object]:
    """Return the objects that run two replicas of the controller, of *image*; *reserve_after* is in seconds.

    *publish* is how much all users may read of the use of GPUs. Prometheus reads metrics at *metrics_port*,
    unless it is 0. RBAC lets the controller patch jobs and pods, and the *policy* narrows that to what it
    writes. In the namespaces *hangs_in* it may look at the ranks of jobs that ask for it.
    """
    meta = named(CONTROLLER, _LABELS, CONTROLLER_NAMESPACE)
    account = service_account(meta)
    subject = account_subject(account)
    everybody = {"apiGroup": RBAC_GROUP, "kind": "Group", "name": "system:authenticated"}
    cluster_role, own_role = role(named(CONTROLLER, _LABELS), CLUSTER_RULES), role(meta, NAMESPACE_RULES)
    reader = role(named(_READER, _LABELS, CONTROLLER_NAMESPACE), READER_RULES)
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": CONTROLLER_NAMESPACE,
                "labels": {MANAGED_BY: OWN_NAME, "pod-security.kubernetes.io/enforce": "restricted"},
            },
        },
        account,
        cluster_role,
        binding(cluster_role["metadata"], subject, cluster_role),
        own_role,
        binding(meta, subject, own_role),
        reader,
        binding(reader["metadata"], everybody, reader),
        *(item for namespace in hangs_in for item in _look_at_ranks(namespace, subject)),
        *(policy_objects(_LABELS) if policy else ()),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {"minAvailable": 1, "selector": {"matchLabels": _SELECTED}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "replicas": _REPLICAS,
                "selector": {"matchLabels": _SELECTED},
                "template": {
                    "metadata": {"labels": _LABELS, **_scraped(metrics_port)},
                    "spec": _pod(image, reserve_after, publish, metrics_port, hangs_in),
                },
            },
        },
    ]


def _scraped(port: int) -> Object:
    """Return the annotations by which Prometheus finds pods: a convention that most installations follow."""
    if not port:
        return {}
    return {"annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)}}


def _look_at_ranks(namespace: str, subject: Object) -> list[Object]:
    """Return the role by which the controller looks at ranks in *namespace*, and its binding."""
    looks = role(named(f"{CONTROLLER}-hangs", _LABELS, namespace), HANG_RULES)
    return [looks, binding(looks["metadata"], subject, looks)]


def _pod(
    image: str, reserve_after: float, publish: Detail, metrics_port: int, hangs_in: Sequence[str]
) -> Object:
    container: Object = {
        "name": "controller",
        "image": image,
        "args": ["controller", "run", "--reserve-after", f"{reserve_after:g}s", "--publish", publish.value],
        # Nothing is written to the file system, which is read-only.
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    container["args"] += [word for namespace in hangs_in for word in ("--hangs-in", namespace)]
    if metrics_port:
        container["args"] += ["--metrics-port", str(metrics_port)]
        container["ports"] = [{"name": "metrics", "containerPort": metrics_port}]
    return {
        "serviceAccountName": CONTROLLER,
        "automountServiceAccountToken": True,
        "securityContext": {
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # The two replicas are to outlive a node; on a cluster of one they still both start.
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _SELECTED},
            }
        ],
        "containers": [container],
    }
