"""The page of kubernetes-dashboard that shows a job's log, as Arena finds it.

Source: kubeflow/arena 0.15.5, ``GetJobDashboards`` in pkg/training/trainer_mpi.go.
"""

from typing import Any
from urllib.parse import quote

from arena_topo.errors import Forbidden, NotFound
from arena_topo.kube.resources import SERVICES
from arena_topo.kube.session import Session
from arena_topo.model.job_view import Instance
from arena_topo.model.objects import Object

_DASHBOARD = "kubernetes-dashboard"


def log_viewer_url(
    session: Session, name: str, chief: Instance, *, container: str, arena_namespace: str
) -> str:
    """Return the address of the log of *chief*, the pod whose log is that of the job *name*, and of its *container*.

    Raises ``NotFound`` where there is no dashboard, or none that can be reached from outside of the cluster.
    """
    namespaces = (session.namespace, arena_namespace, "kube-system", _DASHBOARD)
    services = [service for each in dict.fromkeys(namespaces) if (service := _service(session, each))]
    address = next((found for service in services if (found := _address(service, chief.node_ip))), "")
    if not address:
        found = (
            f"{_DASHBOARD} is reached inside of the cluster only"
            if services
            else f"no {_DASHBOARD} was found"
        )
        raise NotFound(
            f"there is no page that shows the log: {found}",
            hint=f"arena-topo logs -f {name} prints it here",
            status=404,
        )
    namespace, pod = quote(session.namespace, safe=""), quote(chief.name, safe="")
    return f"http://{address}/#!/log/{namespace}/{pod}/{container}?namespace={namespace}"


def _service(session: Session, namespace: str) -> Object | None:
    try:
        return session.get(SERVICES.path(namespace, _DASHBOARD))
    except (NotFound, Forbidden):
        return None


def _address(service: Object, node: str) -> str:
    """Return host and port of a service for everybody: a load balancer's, or its port on *node*."""
    spec: dict[str, Any] = service.get("spec") or {}
    port: dict[str, Any] = next(iter(spec.get("ports") or ()), {})
    if spec.get("type") == "NodePort" and node:
        return f"{node}:{port.get('nodePort')}"
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    entry: dict[str, Any] = next(iter(ingress), {})
    host = entry.get("ip") or entry.get("hostname")
    return f"{host}:{port.get('port')}" if host else ""
