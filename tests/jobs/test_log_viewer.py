"""The page of a dashboard that shows a log, where one can be reached."""

from datetime import UTC, datetime
from typing import Any

import pytest

from arena_topo.errors import NotFound
from arena_topo.jobs.log_viewer import log_viewer_url
from arena_topo.model.job_view import Instance
from tests.fakes import Answer, Call, missing, session

CHIEF = Instance("job-launcher-x", "Running", True, 0, 1.0, datetime.now(UTC), node_ip="10.1.1.1")


def dashboard(namespace: str, kind: str, **status: Any) -> Any:
    """Return a script that has a dashboard in one namespace."""
    service = {
        "metadata": {"name": "kubernetes-dashboard"},
        "spec": {"type": kind, "ports": [{"port": 443, "nodePort": 30443}]},
        "status": status,
    }

    def script(call: Call) -> Answer:
        return Answer(body=service) if f"/{namespace}/services/" in call.path else missing("dashboard")

    return script


@pytest.mark.parametrize(
    ("script", "host"),
    [
        (dashboard("default", "NodePort"), "10.1.1.1:30443"),
        (dashboard("arena", "LoadBalancer", loadBalancer={"ingress": [{"ip": "1.2.3.4"}]}), "1.2.3.4:443"),
        (dashboard("kube-system", "LoadBalancer", loadBalancer={"ingress": [{"hostname": "h"}]}), "h:443"),
        (dashboard("kubernetes-dashboard", "NodePort"), "10.1.1.1:30443"),
    ],
)
def test_the_page_is_the_dashboards(script: Any, host: str) -> None:
    """At a load balancer, or at the chief's own node; in any of the namespaces."""
    opened, _ = session(script)
    url = log_viewer_url(opened, "job", CHIEF, container="mpi", arena_namespace="arena")

    assert f"http://{host}/#!/log/default/job-launcher-x/mpi?namespace=default" == url


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (dashboard("nowhere", "NodePort"), "no kubernetes-dashboard was found"),
        (dashboard("default", "ClusterIP"), "reached inside of the cluster only"),
        (dashboard("default", "LoadBalancer"), "reached inside of the cluster only"),
    ],
)
def test_without_a_page_the_log_is_printed_otherwise(script: Any, why: str) -> None:
    """The hint names the command."""
    opened, _ = session(script)
    with pytest.raises(NotFound, match=why) as caught:
        log_viewer_url(opened, "job", CHIEF, container="mpi", arena_namespace="arena")
    assert "arena-topo logs -f job " in caught.value.hint
