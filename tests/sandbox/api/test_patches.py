"""Strategic merge patches, as ``kubectl apply`` and ``kubectl label`` send them for built-in kinds."""

import pytest

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.patches import strategic_patch
from arena_topo.sandbox.api.resources import StatusError
from arena_topo.sandbox.api.schema import BUILT_IN, root_schema

_POD = root_schema(next(kind for kind in BUILT_IN if kind.kind == "Pod"))
_SIDE = {"name": "side", "image": "s"}


def _containers(*containers: Object) -> Object:
    return {"spec": {"containers": list(containers)}}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"name": "main", "image": "b"}, [{"name": "main", "image": "b"}, _SIDE], id="changed"),
        pytest.param({"name": "side", "$patch": "delete"}, [{"name": "main", "image": "a"}], id="deleted"),
        pytest.param({"name": "main", "image": None}, [{"name": "main"}, _SIDE], id="a field removed"),
        pytest.param(
            {"name": "new", "image": "n"},
            [{"name": "main", "image": "a"}, _SIDE, {"name": "new", "image": "n"}],
            id="added",
        ),
    ],
)
def test_containers_are_merged_by_name(patch: Object, expected: list[Object]) -> None:
    """A patch changes the containers that it names and keeps the others in their order."""
    pod = _containers({"name": "main", "image": "a"}, _SIDE)

    assert _containers(*expected) == strategic_patch(pod, _containers(patch), _POD)


def test_the_order_that_kubectl_sends_changes_nothing() -> None:
    """``$setElementOrder`` is ignored."""
    order = {"spec": {"$setElementOrder/containers": [{"name": "side"}], "priority": 1}}

    assert {"spec": {"priority": 1}} == strategic_patch({"spec": {}}, order, _POD)


def test_another_directive_is_refused() -> None:
    """To ignore it would leave something else than what was asked for."""
    with pytest.raises(StatusError) as caught:
        strategic_patch(_containers(_SIDE), {"spec": {"$patch": "replace"}}, _POD)

    assert 'the sandbox does not know the directive $patch: "replace" here' == caught.value.message
