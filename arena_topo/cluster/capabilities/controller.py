"""Whether a controller of ours places the jobs of a cluster: it then holds a Lease."""

from datetime import UTC, datetime

from arena_topo.errors import ArenaTopoError
from arena_topo.kube.resources import LEASES
from arena_topo.kube.session import Session
from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE
from arena_topo.model.notation.durations import parse_instant

TAKES_OVER = 30.0
"""Seconds in which another replica takes over, three times a Lease: a job of the meantime is placed then."""


def controller_runs(session: Session) -> bool:
    """Whether a controller holds the Lease by the server's clock; False where the user may not see it."""
    try:
        spec = session.get(LEASES.path(CONTROLLER_NAMESPACE, CONTROLLER)).get("spec") or {}
        renewed = parse_instant(str(spec.get("renewTime")))
    # Without a controller there is no Lease, and nobody has been given the right to look.
    except (ArenaTopoError, ValueError):
        return False
    now = session.server_time or datetime.now(UTC)
    return bool(spec.get("holderIdentity")) and abs((now - renewed).total_seconds()) < TAKES_OVER
