"""The objects that run the agent on every node with GPUs, with the fewest permissions that it needs."""

from arena_topo.cluster.permissions import account_subject, binding, named, role, rule, service_account
from arena_topo.model.keys import GPU_TOPOLOGY
from arena_topo.model.objects import Object

# The admission policy that keeps each agent to the one annotation of its own node.
#
# RBAC can grant nodes, and neither one annotation nor one's own node. The API server knows on which node a
# pod runs, and says so in every request with the token that is bound to that pod: the claim
# ``authentication.kubernetes.io/node-name`` (Kubernetes 1.30 or later, as is this policy's API).
#
# Sources: k8s.io/api/admissionregistration/v1; KEP-4193, bound service account token improvements.

_API_VERSION = "admissionregistration.k8s.io/v1"
_NODE_CLAIM = "authentication.kubernetes.io/node-name"


def _policy_spec(namespace: str, account: str) -> Object:
    """Return the policy for the agents that run as *account* in *namespace*."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    user = f"system:serviceaccount:{namespace}:{account}"
    return {
        # An agent whose rights cannot be checked changes nothing.
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        # No other user is matched, so that a fault of this policy stops only the agent.
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


_NAME = "arena-topo-agent"
_LABELS = {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/managed-by": "arena-topo"}


_VOLUME, _POD_RESOURCES = "pod-resources", "/var/lib/kubelet/pod-resources"
_NOBODY = 65532
"""The user of an agent without root, as images without a distribution call it."""


def agent_objects(
    image: str,
    namespace: str,
    *,
    interval: int = 30,
    runtime_class: str = "",
    skip_users: bool = False,
    policy: bool = True,
) -> list[Object]:
    """Return the agent's ServiceAccount, ClusterRole, admission policy, the bindings of both, and DaemonSet.

    RBAC lets it get and patch nodes, and the *policy* narrows that to the one annotation of its own node. It
    reads the node every *interval* seconds; *runtime_class* is the RuntimeClass that makes the GPUs visible,
    where the default one does not. With *skip_users* it does not ask the kubelet which pods use the GPUs, and
    needs neither root nor a path of the host.
    """
    account = service_account(named(_NAME, _LABELS, namespace))
    reader = role(named(_NAME, _LABELS), [rule("core", "nodes", "get patch")])
    return [
        account,
        reader,
        binding(reader["metadata"], account_subject(account), reader),
        *(_policy(namespace) if policy else ()),
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": named(_NAME, _LABELS, namespace),
            "spec": {
                # A selector can never be changed, so it has only the label that every version of the agent
                # sets.
                "selector": {"matchLabels": {"app.kubernetes.io/name": _NAME}},
                "template": {
                    "metadata": {"labels": _LABELS},
                    "spec": _pod(image, interval, runtime_class, skip_users=skip_users),
                },
            },
        },
    ]


def _policy(namespace: str) -> list[Object]:
    binding = {"policyName": _NAME, "validationActions": ["Deny"]}
    kind = "ValidatingAdmissionPolicy"
    return [
        {
            "apiVersion": _API_VERSION,
            "kind": kind,
            "metadata": named(_NAME, _LABELS),
            "spec": _policy_spec(namespace, _NAME),
        },
        {
            "apiVersion": _API_VERSION,
            "kind": f"{kind}Binding",
            "metadata": named(_NAME, _LABELS),
            "spec": binding,
        },
    ]


def _pod(image: str, interval: int, runtime_class: str, *, skip_users: bool) -> Object:
    # The kubelet's socket belongs to root, and without capabilities no other user may open it. NVML needs no
    # root.
    user = (
        {"runAsUser": _NOBODY, "runAsGroup": _NOBODY, "runAsNonRoot": True}
        if skip_users
        else {"runAsUser": 0}
    )
    container = {
        "name": "agent",
        "image": image,
        "args": ["agent", "run", "--interval", str(interval), *(["--skip-users"] if skip_users else [])],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            # NVIDIA's runtime shows these GPUs without allocating them: the jobs keep them all. NVML is in
            # the part "utility" of the driver, and CUDA is not needed.
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if not skip_users:
        container["volumeMounts"] = [{"name": _VOLUME, "mountPath": _POD_RESOURCES, "readOnly": True}]
    return {
        "serviceAccountName": _NAME,
        "automountServiceAccountToken": True,
        "securityContext": {**user, "seccompProfile": {"type": "RuntimeDefault"}},
        **({"runtimeClassName": runtime_class} if runtime_class else {}),
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _gpu_nodes()}},
        # GPU nodes are tainted as a rule, and a node is described whatever its taints.
        "tolerations": [{"operator": "Exists"}],
        # On a node that jobs have filled the agent would otherwise wait for room, and the node stay unknown.
        "priorityClassName": "system-node-critical",
        "containers": [container],
        **(
            {}
            if skip_users
            else {"volumes": [{"name": _VOLUME, "hostPath": {"path": _POD_RESOURCES, "type": "Directory"}}]}
        ),
    }


def _gpu_nodes() -> Object:
    """Return the selector of nodes with a label for NVIDIA GPUs: NVIDIA's, Alibaba Cloud's or Google's."""
    keys = ("nvidia.com/gpu.present", "aliyun.accelerator/nvidia_count", "cloud.google.com/gke-accelerator")
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in keys]}
