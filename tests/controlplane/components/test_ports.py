"""Workers that start control planes at the same moment do not meet."""

from tests.controlplane.components.ports import ports_of


def test_workers_share_no_port() -> None:
    """And together have all of them."""
    shares = [set(ports_of(f"gw{index}", 4)) for index in range(4)]

    assert set(ports_of("", 1)) == set.union(*shares)
    assert len(ports_of("", 1)) == sum(map(len, shares))
