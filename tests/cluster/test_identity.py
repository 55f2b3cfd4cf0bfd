"""The user is who the API server says, with what Arena makes of the name."""

import pytest

from arena_topo.cluster.doctor import Identity, whoami
from tests.fakes import Answer, in_turn, missing, refusal, session

ANN = Answer(body={"status": {"userInfo": {"username": "ann"}}})
# printf ann | md5sum
ANN_ID = "7e0d7f8a5d96c24ffcc840f31bce72b2"


@pytest.mark.parametrize(
    ("config", "admin"),
    [
        (Answer(body={"data": {"adminUsers": "bob, ann"}}), True),
        (Answer(body={"data": {"adminUsers": "anna"}}), False),
        (Answer(body={}), False),
        (missing("arena-config"), False),
        (refusal(403, "Forbidden"), False),
    ],
    ids=["named", "another", "no data", "no Arena", "not allowed"],
)
def test_arenas_configuration_names_its_admins(config: Answer, admin: bool) -> None:
    """In the namespace that is asked; it may be missing."""
    opened, transport = session(in_turn(ANN, config))

    assert Identity("ann", ANN_ID, admin) == whoami(opened, arena_namespace="arena")
    assert ["POST", "GET"] == [call.method for call in transport.calls]
    assert "/api/v1/namespaces/arena/configmaps/arena-config" == transport.calls[1].path
