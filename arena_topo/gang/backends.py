"""Every gang back-end by name."""

from collections.abc import Callable, Mapping

from arena_topo.errors import UsageError
from arena_topo.gang import ack, coscheduling, gates, kai, koordinator, kueue, native, volcano, yunikorn
from arena_topo.gang.pod_groups import unsupported_version
from arena_topo.model.job import Decoration, Gang

BACKENDS: Mapping[str, Callable[[Gang], Decoration]] = {
    "ack": ack.decorate,
    "coscheduling": coscheduling.decorate,
    "volcano": volcano.decorate,
    "kueue": kueue.decorate,
    "koordinator": koordinator.decorate,
    "kai": kai.decorate,
    "yunikorn": yunikorn.decorate,
    "native": native.decorate,
    "gates": gates.decorate,
}


def check_backend(backend: str) -> None:
    """Raise ``UsageError`` unless *backend* exists."""
    if backend not in BACKENDS:
        raise UsageError(
            f"--gang-scheduler: {backend!r} is not a gang scheduler",
            hint=f"use auto, or one of {', '.join(BACKENDS)}",
        )


def decorate(backend: str, gang: Gang) -> Decoration:
    """Return what *backend* adds to the job. Raises ``UsageError`` where it cannot keep the gang together."""
    check_backend(backend)
    if why := gang.kind.refused_by.get(backend):
        raise unsupported_version(gang, backend, why)
    return BACKENDS[backend](gang)
