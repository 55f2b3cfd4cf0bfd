"""What a server serves is read from its discovery documents."""

import pytest

from arena_topo.kube.discovery import preferred_version, served_versions, version_of_resource
from tests.fakes import Answer, Call, session

SERVED = frozenset({"apps/v1", "things.example.com/v1beta1", "things.example.com/v1"})


def test_every_version_of_every_group_is_served() -> None:
    """The list of groups or of versions may be null."""
    versions = [{"groupVersion": "apps/v1"}, {"groupVersion": "apps/v1beta1"}]
    body = {"groups": [{"name": "apps", "versions": versions}, {"name": "batch", "versions": None}]}
    asking, _ = session(lambda _: Answer(body=body))
    empty, _ = session(lambda _: Answer(body={"groups": None}))

    assert {"apps/v1", "apps/v1beta1"} == served_versions(asking)
    assert set() == served_versions(empty)


@pytest.mark.parametrize(
    ("versions", "expected"), [(("v2", "v1", "v1beta1"), "v1"), (("v1beta1", "v1"), "v1beta1"), (("v2",), "")]
)
def test_the_first_version_that_is_served_is_preferred(versions: tuple[str, ...], expected: str) -> None:
    """The caller orders them, best first."""
    assert expected == preferred_version(SERVED, "things.example.com", versions)


def test_a_resource_is_looked_for_in_the_served_versions_alone() -> None:
    """Until one of them has it."""

    def server(call: Call) -> Answer:
        plural = "gadgets" if call.path.endswith("v1beta1") else "others"
        return Answer(body={"resources": [{"name": plural}]})

    asking, transport = session(server)
    versions = ("v2", "v1", "v1beta1")

    assert "v1beta1" == version_of_resource(asking, SERVED, "things.example.com", versions, "gadgets")
    assert "" == version_of_resource(asking, SERVED, "things.example.com", ("v1",), "gadgets")
    assert ["v1", "v1beta1", "v1"] == [call.path.rpartition("/")[2] for call in transport.calls]
