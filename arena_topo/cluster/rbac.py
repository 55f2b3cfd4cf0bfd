"""The permissions that users of a cluster need, as RBAC objects.

docs/reference/permissions.md says what each rule is for.
"""

import re
from hashlib import sha256

from arena_topo.errors import UsageError
from arena_topo.model.keys import MANAGED_BY, OWN_NAME
from arena_topo.model.objects import Object

_GROUP = "rbac.authorization.k8s.io"
USER, TOPOLOGY = "arena-topo-user", "arena-topo-topology"
LABELS = {MANAGED_BY: OWN_NAME}
"""By them ``cluster remove`` finds what the setup installed."""


def _rule(groups: str, resources: str, verbs: str) -> Object:
    """Return a rule from lists in one text each; ``core`` stands for the group without a name."""
    api_groups = ["" if group == "core" else group for group in groups.split()]
    return {"apiGroups": api_groups, "resources": resources.split(), "verbs": verbs.split()}


USER_RULES = [
    _rule("kubeflow.org", "mpijobs pytorchjobs tfjobs", "create get list watch delete"),
    _rule("jobset.x-k8s.io", "jobsets", "create get list watch delete"),
    _rule("trainer.kubeflow.org", "trainjobs", "create get list watch delete"),
    _rule("batch", "jobs", "create get list watch delete"),
    _rule("core", "pods", "get list watch"),
    _rule("core", "pods/log", "get"),
    _rule("trainer.kubeflow.org", "trainingruntimes", "get"),
    _rule("core", "services", "create"),
    _rule("core", "events", "list watch"),
    _rule("kubeflow.org", "mpijobs pytorchjobs tfjobs", "patch"),
    _rule("core", "configmaps", "create patch"),
    _rule("core", "pods", "patch"),
    _rule("jobset.x-k8s.io", "jobsets", "patch"),
    _rule("trainer.kubeflow.org", "trainjobs", "patch"),
    _rule("batch", "jobs", "patch"),
    _rule("scheduling.x-k8s.io scheduling.volcano.sh scheduling.k8s.io", "podgroups", "create"),
    _rule("resource.k8s.io", "resourceclaims", "create"),
    _rule("kueue.x-k8s.io", "localqueues", "get"),
    _rule("kueue.x-k8s.io", "workloads", "list"),
]
"""In the namespace of the jobs: submit, get, logs and delete; then runtimes, Services, events, plans, files, gates, gangs,
exact GPUs and queues."""

TOPOLOGY_RULES = [
    _rule("core", "nodes pods", "list"),
    _rule("resource.k8s.io", "resourceslices resourceclaims", "list"),
    _rule("kubeflow.org", "mpijobs pytorchjobs tfjobs", "list"),
    _rule("jobset.x-k8s.io", "jobsets", "list"),
    _rule("trainer.kubeflow.org", "trainjobs", "list"),
    _rule("trainer.kubeflow.org", "clustertrainingruntimes", "get"),
    _rule("batch", "jobs", "list"),
    _rule("core", "resourcequotas", "list"),
    _rule("scheduling.koordinator.sh", "devices clusternetworktopologies", "list"),
    _rule("topology.node.k8s.io", "noderesourcetopologies", "list"),
    _rule("kueue.x-k8s.io kai.scheduler", "topologies", "list"),
    _rule("kueue.x-k8s.io", "clusterqueues", "get list"),
    _rule("kueue.x-k8s.io", "admissionchecks", "list"),
    _rule("topology.volcano.sh", "hypernodes", "list"),
    _rule("apps", "deployments", "list"),
    _rule("scheduling.k8s.io", "priorityclasses", "get"),
    _rule(
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies mutatingadmissionpolicybindings",
        "get",
    ),
]
"""In the whole cluster: for plan, topology and doctor."""


def roles() -> list[Object]:
    """Return the two ClusterRoles."""
    return [_role(USER, USER_RULES), _role(TOPOLOGY, TOPOLOGY_RULES)]


def bindings(user: str, namespace: str) -> list[Object]:
    """Return the bindings that let *user* submit in *namespace* and read the topology of the cluster.

    *user* is ``user:NAME``, ``group:NAME`` or ``serviceaccount:NAMESPACE/NAME``. Raises ``UsageError``.
    """
    subject = _subject(user)
    # Names of users may have characters that names of objects may not.
    suffix = sha256(user.encode()).hexdigest()[:8]
    return [
        _binding("RoleBinding", {"name": f"{USER}-{suffix}", "namespace": namespace}, USER, subject),
        _binding("ClusterRoleBinding", {"name": f"{TOPOLOGY}-{suffix}"}, TOPOLOGY, subject),
    ]


def _subject(user: str) -> Object:
    kind, _, name = user.partition(":")
    if kind in {"user", "group"} and name:
        return {"apiGroup": _GROUP, "kind": kind.capitalize(), "name": name}
    if kind == "serviceaccount" and (match := re.fullmatch(r"([^/]+)/([^/]+)", name)):
        return {"kind": "ServiceAccount", "namespace": match[1], "name": match[2]}
    raise UsageError(
        f"--users: {user!r} names nobody",
        hint="write user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME",
    )


def _role(name: str, rules: list[Object]) -> Object:
    metadata = {"name": name, "labels": LABELS}
    return {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _binding(kind: str, metadata: Object, role: str, subject: Object) -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": {**metadata, "labels": LABELS},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
