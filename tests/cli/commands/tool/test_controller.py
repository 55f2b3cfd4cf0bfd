"""``arena-topo controller`` checks its flags, and prints what runs it."""

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("controller", "run", "--reserve-after=soon"), "--reserve-after: 'soon' is not a duration"),
        (("controller", "manifest"), "Missing option '--image'"),
        (("controller", "run", "--metrics-port=70000"), "70000 is not in the range 0<=x<=65535"),
    ],
)
def test_bad_input_gets_one_clear_error(invoke: Invoke, args: tuple[str, ...], message: str) -> None:
    """And nothing on stdout."""
    outcome = invoke(*args)

    assert (2, "") == (outcome.code, outcome.out)
    assert message in outcome.err


def test_the_manifest_is_a_list_of_objects(invoke: Invoke) -> None:
    """For kubectl apply, with the flags that the replicas run with."""
    outcome = invoke("controller", "manifest", "--image=arena-topo:1", "--reserve-after=10m")

    assert 0 == outcome.code
    assert 10 == outcome.out.count("apiVersion:")
    assert '- "600s"' in outcome.out


def test_metrics_are_served_where_a_port_is_given(invoke: Invoke) -> None:
    """The replicas get the flag, and Prometheus finds them by the annotations of their pods."""
    outcome = invoke("controller", "manifest", "--image=arena-topo:1", "--metrics-port=9090")

    assert 0 == outcome.code
    assert 'prometheus.io/port: "9090"' in outcome.out
    assert "containerPort: 9090" in outcome.out
    assert '- "--metrics-port"\n' in outcome.out
    assert "9090" not in invoke("controller", "manifest", "--image=arena-topo:1").out


def test_metrics_without_their_package_say_what_to_install(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything else is done."""
    monkeypatch.setattr("arena_topo.extras.find_spec", lambda _: None)
    outcome = invoke("controller", "run", "--metrics-port=9090")

    assert (1, "") == (outcome.code, outcome.out)
    assert (
        "error: --metrics-port needs prometheus_client, which is not installed\nhint: pip install 'arena-topo[controller]'"
        in outcome.err
    )
