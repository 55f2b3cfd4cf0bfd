"""How busy GPUs are, as the cluster's Prometheus has measured it.

The metrics are those of the exporter that Arena reads (``nvidia_gpu_*``) and those of NVIDIA's DCGM exporter.
The server is the one that the user names, else one that the API server can reach: a Service with one of the
usual labels in a namespace of the system's.

Source: kubeflow/arena 0.15.5, pkg/prometheus and pkg/apis/types/gpu_metric.go.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from arena_topo.cluster.capabilities import is_system
from arena_topo.errors import ApiError, ConnectionFailed, DocumentError
from arena_topo.kube import REQUEST_TIMEOUT
from arena_topo.kube.kubeconfig import Target
from arena_topo.kube.resources import SERVICES
from arena_topo.kube.session import Session
from arena_topo.kube.transport import Transport
from arena_topo.model.objects import Object
from arena_topo.model.text.words import natural_sort_key

_MIB = 1024.0 * 1024.0
# What a metric says, and in how many bytes, where it says bytes.
_METRICS = {
    "nvidia_gpu_duty_cycle": ("duty", 1.0),
    "nvidia_gpu_memory_used_bytes": ("used", 1.0),
    "nvidia_gpu_memory_total_bytes": ("total", 1.0),
    "DCGM_FI_DEV_GPU_UTIL": ("duty", 1.0),
    "DCGM_FI_DEV_FB_USED": ("used", _MIB),
    "DCGM_FI_DEV_FB_FREE": ("free", _MIB),
}
_POD_LABELS = ("pod_name", "pod", "exported_pod")
_NODE_LABELS = ("node_name", "Hostname", "node")
_INDEX_LABELS = ("minor_number", "gpu")
_SELECTORS = (
    "kubernetes.io/service-name in (prometheus-admin,prometheus-server)",
    "kubernetes.io/name=Prometheus",
    "app.kubernetes.io/name=prometheus",
)
_MOST_SERIES = 100_000
"""Results that are looked at: six for each of the GPUs of more than ten thousand nodes."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """One GPU: the share of time that it was busy, in percent, and its memory in bytes.

    0 where nothing was measured.
    """

    duty: float = 0.0
    used: float = 0.0
    total: float = 0.0


Uses = Mapping[str, Mapping[str, GpuUse]]
"""By pod or node, then by the GPU's index."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server of metrics: who asks, and the path of its API."""

    session: Session
    path: str


def named_prometheus(address: str, token: str = "") -> Prometheus:
    """Return the server at *address*, asked with a bearer *token* where there is one."""
    target = Target("", "", {"server": address}, {"token": token} if token else {})
    # The environment's proxy stands before API servers.
    transport = Transport(target, env={})
    return Prometheus(Session(transport, namespace="", timeout=REQUEST_TIMEOUT), "")


def find_prometheus(session: Session) -> Prometheus | None:
    """Return a server behind the API server, None without one that the user can see."""
    for selector in _SELECTORS:
        try:
            services = session.list(SERVICES.path(), labelSelector=selector)
        except ApiError:
            continue
        for service in services:
            meta = service["metadata"]
            # Anybody may label a Service of their own so, and would then decide how busy GPUs seem to
            # everybody.
            if is_system(meta["namespace"]) and (port := _port(service)):
                name = f"http:{meta['name']}:{port}"
                return Prometheus(session, f"{SERVICES.path(meta['namespace'])}/{name}/proxy")
    return None


def uses_of_pods(prometheus: Prometheus, pods: Sequence[str]) -> Uses:
    """Return how busy the GPUs of *pods* are. Raises what ``_ask`` raises."""
    return _ask(prometheus, _POD_LABELS, pods)


def uses_of_nodes(prometheus: Prometheus, nodes: Sequence[str]) -> Uses:
    """Return how busy the GPUs of *nodes* are. Raises what ``_ask`` raises."""
    return _ask(prometheus, _NODE_LABELS, nodes)


def _ask(prometheus: Prometheus, labels: Sequence[str], names: Sequence[str]) -> Uses:
    """Return what the server says of *names*. Raises ``DocumentError`` for anything that is not an answer."""
    if not names:
        return {}
    # Names of pods and nodes have no other character that means something in a regular expression.
    wanted = "|".join(names).replace(".", "\\\\.")
    metrics = "|".join(_METRICS)
    query = " or ".join(f'{{__name__=~"{metrics}",{label}=~"{wanted}"}}' for label in labels)
    try:
        answer = prometheus.session.get(f"{prometheus.path}/api/v1/query", query=query)
    except (ApiError, ConnectionFailed, DocumentError) as error:
        raise DocumentError(f"Prometheus does not answer: {error.message}", hint=error.hint) from error
    data = answer.get("data")
    results = data.get("result") if isinstance(data, dict) else None
    if answer.get("status") != "success" or not isinstance(results, list):
        raise DocumentError("Prometheus answers with something that is no result of a query")
    measured: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for name, index, what, value in _values(results[:_MOST_SERIES], labels, frozenset(names)):
        measured[name, index][what] = value
    uses: dict[str, dict[str, GpuUse]] = defaultdict(dict)
    for (name, index), values in sorted(measured.items(), key=lambda item: natural_sort_key(item[0][1])):
        used = values.get("used", 0.0)
        # DCGM says what is free instead of the total.
        total = values.get("total") or used + values.get("free", 0.0)
        uses[name][index] = GpuUse(values.get("duty", 0.0), used, total)
    return uses


def _values(
    results: Sequence[Any], labels: Sequence[str], names: frozenset[str]
) -> Iterator[tuple[str, str, str, float]]:
    """Yield name, GPU, what is said of it and the value of each result; what is none is passed over."""
    for result in results:
        metric = result.get("metric") if isinstance(result, dict) else None
        value = result.get("value") if isinstance(result, dict) else None
        if not (isinstance(metric, dict) and isinstance(value, list) and len(value) == 2):
            continue
        what, unit = _METRICS.get(str(metric.get("__name__")), ("", 0.0))
        # An exporter's own pod has the label pod too: of several names the one that was asked for counts.
        name = next((str(metric[label]) for label in labels if metric.get(label) in names), "")
        index = next((str(metric[label]) for label in _INDEX_LABELS if metric.get(label)), "")
        try:
            number = float(value[1])
        except (TypeError, ValueError):
            continue
        if what and name and index and isfinite(number):
            yield name, index, what, number * unit


def _port(service: Object) -> int:
    ports = [
        port.get("port") for port in (service.get("spec") or {}).get("ports") or () if isinstance(port, dict)
    ]
    numbers = [port for port in ports if isinstance(port, int)]
    return next((port for port in numbers if port in (9090, 9335)), next(iter(numbers), 0))
