"""The packages of optional extras: where one is missing, its user learns what to install."""

import pytest

from arena_topo.errors import ArenaTopoError
from arena_topo.extras import require


@pytest.mark.parametrize(
    ("packages", "instead", "expected"),
    [
        (
            ("json", "none_called_so"),
            "",
            (
                "the live view needs none_called_so, which is not installed",
                "in the checkout of arena-topo: pip install '.[live]'",
            ),
        ),
        (
            ("none_called_so", "nor_so"),
            "use the other one",
            (
                "the live view needs none_called_so and nor_so, which are not installed",
                "in the checkout of arena-topo: pip install '.[live]'; without it, use the other one",
            ),
        ),
    ],
)
def test_what_is_missing_is_named_with_its_extra(
    packages: tuple[str, ...], instead: str, expected: tuple[str, str]
) -> None:
    """What is installed is not."""
    with pytest.raises(ArenaTopoError) as caught:
        require("the live view", *packages, extra="live", instead=instead)

    assert expected == (caught.value.message, caught.value.hint)


def test_nothing_is_said_where_all_are_installed() -> None:
    """Nor imported: an extra may take long."""
    require("the live view", "json", "click", extra="live")
