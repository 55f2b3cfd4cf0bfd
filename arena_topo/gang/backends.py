"""Every gang back-end by name; the one without a scheduler of its own, ``gates``, is here."""

from collections.abc import Callable, Mapping

from arena_topo.errors import UsageError
from arena_topo.gang import coscheduling, kai, kueue, native, pod_labels, volcano, yunikorn
from arena_topo.gang.pod_groups import operator_policy
from arena_topo.model.gang import Decoration, Gang
from arena_topo.model.kind import title


def check_backend(backend: str) -> None:
    """Raise ``UsageError`` unless *backend* exists."""
    if backend not in BACKENDS:
        raise UsageError(
            f"--gang-scheduler: {backend!r} is not a gang scheduler",
            hint=f"use auto, or one of {', '.join(BACKENDS)}",
        )


def decorate(backend: str, gang: Gang) -> Decoration:
    """Return what *backend* adds to the job. Raises ``UsageError`` if it cannot keep the gang together."""
    check_backend(backend)
    if why := gang.kind.refused_by.get(backend):
        raise _unsupported(gang, backend, why)
    return BACKENDS[backend](gang)


def _unsupported(gang: Gang, backend: str, why: str) -> UsageError:
    """Return the error for a kind of job, or a version of MPIJob, with which *backend* cannot work."""
    newer = ", or ask the cluster's admin for mpi-operator 0.5 or later (v2beta1)"
    return UsageError(
        f"--gang-scheduler {backend} cannot be used with {title(gang.kind)}: {why}",
        hint="use another gang scheduler (arena-topo doctor lists what this cluster has)"
        f"{newer if gang.kind.kind == 'MPIJob' else ''}",
    )


def _gated(gang: Gang) -> Decoration:
    """Return what a gang on a stock scheduler takes: workers wait behind gates until all of them fit.

    The gate belongs to the plan, whose pins set it. Raises ``UsageError`` if the gate would be dropped.
    Sources: KEP-3521, KEP-3838.
    """
    if not gang.kind.suspend:
        raise _unsupported(gang, "gates", "it drops the pods' scheduling gates")
    if not gang.keeps_gates:
        raise UsageError(
            f"--gang-scheduler gates cannot be used: the {title(gang.kind)} that this cluster serves drops "
            "the pods' scheduling gates",
            hint="they need mpi-operator >= 0.5 or training-operator >= 1.7; "
            "arena-topo doctor lists what this cluster has",
        )
    return Decoration(scheduling_policy=operator_policy(gang))


BACKENDS: Mapping[str, Callable[[Gang], Decoration]] = {
    "ack": pod_labels.decorate_for_ack,
    "coscheduling": coscheduling.decorate,
    "volcano": volcano.decorate,
    "kueue": kueue.decorate,
    "koordinator": pod_labels.decorate_for_koordinator,
    "kai": kai.decorate,
    "yunikorn": yunikorn.decorate,
    "native": native.decorate,
    "gates": _gated,
}
