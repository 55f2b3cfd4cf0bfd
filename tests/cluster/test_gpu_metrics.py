"""What Prometheus measured of GPUs is read from anyone who exports it, within bounds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.cluster.gpu_metrics import GpuUse, Prometheus, find_prometheus, uses_of_nodes, uses_of_pods
from arena_topo.errors import DocumentError
from tests.fakes import Answer, Call, in_turn, refusal, session

MIB = 1024.0 * 1024.0


def result(name: str, value: Any, **labels: str) -> Any:
    """Return one result of a query."""
    return {"metric": {"__name__": name, **labels}, "value": [1.0, value]}


def answering(*results: Any) -> Prometheus:
    """Return a server that answers every query with *results*."""
    body = {"status": "success", "data": {"resultType": "vector", "result": list(results)}}
    opened, _ = session(lambda _: Answer(body=body))
    return Prometheus(opened, "/prometheus")


def test_arenas_exporter_and_dcgm_are_read() -> None:
    """DCGM counts memory in MiB, and says what is free."""
    server = answering(
        result("nvidia_gpu_duty_cycle", "42.5", pod_name="w-0", minor_number="10"),
        result("nvidia_gpu_memory_used_bytes", "100", pod_name="w-0", minor_number="2"),
        result("nvidia_gpu_memory_total_bytes", "400", pod_name="w-0", minor_number="2"),
        result("DCGM_FI_DEV_GPU_UTIL", "7", pod="dcgm", exported_pod="w-1", gpu="0"),
        result("DCGM_FI_DEV_FB_USED", "3", pod="w-1", gpu="0"),
        result("DCGM_FI_DEV_FB_FREE", "5", pod="w-1", gpu="0"),
    )
    uses = uses_of_pods(server, ["w-0", "w-1"])

    assert {"2": GpuUse(0.0, 100.0, 400.0), "10": GpuUse(42.5)} == dict(uses["w-0"])
    assert ["2", "10"] == list(uses["w-0"])
    assert {"0": GpuUse(7.0, 3 * MIB, 8 * MIB)} == dict(uses["w-1"])


def test_the_query_names_what_is_wanted() -> None:
    """A dot of a name is a dot."""
    opened, transport = session(lambda _: Answer(body={"status": "success", "data": {"result": []}}))
    uses_of_nodes(Prometheus(opened, "/p"), ["a.b", "c"])

    assert "/p/api/v1/query" == transport.calls[0].path
    assert 'node_name=~"a\\\\.b|c"' in transport.calls[0].query["query"]


def test_nothing_is_asked_of_nobody() -> None:
    """No pods, no query."""
    opened, transport = session(lambda _: Answer(body={}))

    assert {} == uses_of_pods(Prometheus(opened, ""), [])
    assert [] == transport.calls


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body={"status": "error"}),
        Answer(body={"status": "success", "data": []}),
        refusal(503, "ServiceUnavailable", "no endpoints"),
    ],
    ids=["an error", "no result", "unavailable"],
)
def test_what_is_no_answer_is_an_error(answer: Answer) -> None:
    """One that a command can warn of."""
    opened, _ = session(lambda _: answer)
    with pytest.raises(DocumentError, match="Prometheus"):
        uses_of_pods(Prometheus(opened, ""), ["w"])


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metric", "value", "__name__", "pod"]), inner)
    ),
    max_leaves=8,
)


@given(st.lists(ANYTHING, max_size=4))
def test_whatever_others_write_is_passed_over(results: list[Any]) -> None:
    """Nothing that is no result counts."""
    assert {} == dict(uses_of_pods(answering(*results), ["w-0"]))


def service(port: int, namespace: str = "monitoring") -> Any:
    """Return a Service with one port."""
    return {"metadata": {"namespace": namespace, "name": "prom"}, "spec": {"ports": [{"port": port}]}}


def test_a_prometheus_is_found_behind_the_api_server() -> None:
    """By the labels of Arena's first, then by the usual one; what may not be listed is passed over."""
    opened, transport = session(
        in_turn(
            refusal(403, "Forbidden"), Answer(body={"items": []}), Answer(body={"items": [service(9090)]})
        )
    )
    found = find_prometheus(opened)

    assert found is not None
    assert "/api/v1/namespaces/monitoring/services/http%3Aprom%3A9090/proxy" in found.path.replace(":", "%3A")
    assert "app.kubernetes.io/name=prometheus" == transport.calls[-1].query["labelSelector"]


def test_a_tenants_service_is_not_asked() -> None:
    """Anybody may give a Service of their own the labels of a Prometheus."""
    found = Answer(body={"items": [service(9090, "team-a"), service(9335)]})
    prometheus = find_prometheus(session(in_turn(found))[0])

    assert prometheus is not None
    assert "monitoring" in prometheus.path


def test_without_a_prometheus_nothing_is_found() -> None:
    """A service without a port is none."""

    def script(call: Call) -> Answer:
        del call
        return Answer(body={"items": [{"metadata": {"namespace": "monitoring", "name": "p"}, "spec": {}}]})

    assert None is find_prometheus(session(script)[0])
