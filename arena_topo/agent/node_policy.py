"""The admission policy that keeps each agent to the one annotation of its own node.

RBAC can grant nodes, and neither one annotation nor one's own node. The API server knows on which node a pod runs, and
says so in every request with the token that is bound to that pod: the claim ``authentication.kubernetes.io/node-name``
(Kubernetes 1.30 or later, as is this policy's API).

Sources: k8s.io/api/admissionregistration/v1; KEP-4193, bound service account token improvements.
"""

from arena_topo.model.keys import GPU_TOPOLOGY
from arena_topo.model.objects import Object

API_VERSION = "admissionregistration.k8s.io/v1"
_NODE_CLAIM = "authentication.kubernetes.io/node-name"


def policy_spec(namespace: str, account: str) -> Object:
    """Return the policy for the agents that run as *account* in *namespace*."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    user = f"system:serviceaccount:{namespace}:{account}"
    return {
        # An agent whose rights cannot be checked changes nothing.
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        # Nobody else is looked at, so that a fault of this policy stops nobody else.
        "matchConditions": [{"name": "is-an-agent", "expression": f"request.userInfo.username == '{user}'"}],
        "variables": [
            {"name": "node", "expression": f"request.userInfo.?extra[?'{_NODE_CLAIM}'].orValue([''])[0]"},
            {"name": "now", "expression": "object.metadata.?annotations.orValue({})"},
            {"name": "before", "expression": "oldObject.metadata.?annotations.orValue({})"},
        ],
        "validations": [
            {
                "expression": "variables.node == object.metadata.name",
                "message": "an agent may change the node that it runs on, with the token of its pod, and no other",
                "reason": "Forbidden",
            },
            {
                "expression": " && ".join((_same_annotations(), *map(_same, _OTHERS))),
                "message": f"an agent may change the annotation {GPU_TOPOLOGY} of its node, and nothing else",
                "reason": "Forbidden",
            },
        ],
    }


_OTHERS = ("spec", "metadata.?labels", "metadata.?finalizers", "metadata.?ownerReferences")
"""What else a write of a node can change: its status is a resource of its own."""


def _same(path: str) -> str:
    return f"object.?{path} == oldObject.?{path}"


def _same_annotations() -> str:
    kept = "key in variables.now && variables.now[key] == variables.before[key]"
    return (
        f"variables.before.all(key, key == '{GPU_TOPOLOGY}' || {kept})"
        f" && variables.now.all(key, key == '{GPU_TOPOLOGY}' || key in variables.before)"
    )
