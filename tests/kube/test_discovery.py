"""What a server serves is read from its discovery documents."""

from typing import Any

import pytest

from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from tests.fakes import Answer, Call, FakeTransport, session


def serving(
    *versions: str, resources: dict[str, list[str]] | None = None
) -> tuple[ServedApis, FakeTransport]:
    """Return what a server serves: *versions* of
    things.example.com, each with the names of its *resources*.
    """

    def server(call: Call) -> Answer:
        if call.path == "/apis":
            listed = [{"groupVersion": f"things.example.com/{version}"} for version in versions]
            return Answer(body={"groups": [{"name": "things.example.com", "versions": listed}]})
        names = (resources or {}).get(call.path.rpartition("/")[2], [])
        return Answer(body={"resources": [{"name": name} for name in names]})

    asking, transport = session(server)
    return ServedApis(asking), transport


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (
            [{"name": "apps", "versions": [{"groupVersion": "apps/v1"}, {"groupVersion": "apps/v2"}]}],
            {"apps/v1", "apps/v2"},
        ),
        ([{"name": "batch", "versions": None}], set()),
        (None, set()),
    ],
    ids=["two versions", "no versions", "no groups"],
)
def test_every_version_of_every_group_is_served(groups: Any, expected: set[str]) -> None:
    """The list of groups or of versions may be null."""
    asking, _ = session(lambda _: Answer(body={"groups": groups}))

    assert expected == ServedApis(asking).versions


@pytest.mark.parametrize(
    ("versions", "expected"), [(("v2", "v1", "v1beta1"), "v1"), (("v1beta1", "v1"), "v1beta1"), (("v2",), "")]
)
def test_the_first_version_that_is_served_is_preferred(versions: tuple[str, ...], expected: str) -> None:
    """The caller orders them, best first."""
    apis, _ = serving("v1beta1", "v1")

    assert expected == apis.preferred("things.example.com", versions)


def test_a_resource_is_looked_for_in_the_served_versions_alone() -> None:
    """Until one of them has it; each document is read once."""
    apis, transport = serving("v1beta1", "v1", resources={"v1": ["others"], "v1beta1": ["gadgets"]})
    versions = ("v2", "v1", "v1beta1")

    assert "v1beta1" == apis.version_with("things.example.com", versions, "gadgets")
    assert "" == apis.version_with("things.example.com", ("v1",), "gadgets")
    assert ["/apis", "v1", "v1beta1"] == [
        call.path if call.path == "/apis" else call.path.rpartition("/")[2] for call in transport.calls
    ]


def test_a_command_that_runs_for_days_asks_again() -> None:
    """After a minute; and a process that never ends asks as a new command does."""
    clock = [0.0]
    transport = FakeTransport(lambda _: Answer(body={"groups": []}))
    asking = Session(transport, namespace="default", now=lambda: clock[-1])
    calls = []
    for seconds in (0.0, 59.0, 61.0):
        clock.append(seconds)
        assert set() == ServedApis(asking.within("other")).versions
        calls.append(len(transport.calls))
    assert set() == ServedApis(asking.anew()).versions

    assert [1, 1, 2, 3] == [*calls, len(transport.calls)]
