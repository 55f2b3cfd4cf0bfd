"""The objects that run the agent on every node with GPUs, with the fewest permissions that it needs."""

from arena_topo.model.objects import Object

NAME = "arena-topo-agent"
_LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "arena-topo"}


def agent_objects(image: str, namespace: str, *, interval: int = 30, runtime_class: str = "") -> list[Object]:
    """Return the agent's ServiceAccount, ClusterRole, ClusterRoleBinding and DaemonSet.

    It may get and patch nodes: RBAC cannot be narrowed to one annotation. It reads the node every *interval* seconds;
    *runtime_class* is the RuntimeClass that makes the GPUs visible, where the default one does not.
    """
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(namespace)},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": _meta(),
            "rules": [rule],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _meta(),
            "roleRef": role,
            "subjects": [subject],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": _meta(namespace),
            "spec": {
                # A selector can never be changed, so it has only the label that every version of the agent sets.
                "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
                "template": {"metadata": {"labels": _LABELS}, "spec": _pod(image, interval, runtime_class)},
            },
        },
    ]


def _meta(namespace: str = "") -> Object:
    return {"name": NAME, **({"namespace": namespace} if namespace else {}), "labels": _LABELS}


def _pod(image: str, interval: int, runtime_class: str) -> Object:
    container = {
        "name": "agent",
        "image": image,
        "args": ["agent", "run", "--interval", str(interval)],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            # NVIDIA's runtime shows these GPUs without allocating them: the jobs keep them all. NVML is in the part
            # "utility" of the driver, and CUDA is not needed.
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "pod-resources", "mountPath": "/var/lib/kubelet/pod-resources", "readOnly": True}
        ],
    }
    return {
        "serviceAccountName": NAME,
        **({"runtimeClassName": runtime_class} if runtime_class else {}),
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _gpu_nodes()}},
        # GPU nodes are tainted as a rule, and a node is described whatever its taints.
        "tolerations": [{"operator": "Exists"}],
        # On a node that jobs have filled the agent would otherwise wait for room, and the node stay unknown.
        "priorityClassName": "system-node-critical",
        "containers": [container],
        "volumes": [
            {
                "name": "pod-resources",
                "hostPath": {"path": "/var/lib/kubelet/pod-resources", "type": "Directory"},
            }
        ],
    }


def _gpu_nodes() -> Object:
    """Return the selector of nodes that a label says to have NVIDIA GPUs: NVIDIA's, Alibaba Cloud's or Google's."""
    keys = ("nvidia.com/gpu.present", "aliyun.accelerator/nvidia_count", "cloud.google.com/gke-accelerator")
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in keys]}
