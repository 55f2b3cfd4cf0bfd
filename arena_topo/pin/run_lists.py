"""Where each worker of a gang belongs, as annotations of the one pod template that all of them share.

A list has a value for each worker, by its index, written as runs: ``0:node-a,4:node-b,8:`` says that workers 0 to 3
belong to ``node-a``, 4 to 7 to ``node-b``, and that the list ends before worker 8. A value may be empty: that worker
is not pinned. The admission policy (``arena_topo.pin.admission``) finds a worker's value in its own expression
language, which has no loop that counts: so each run names its first worker, not its length.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.keys import PIN_CLAIMS, PIN_GPUS, PIN_NODES

LONGEST = 240 * 1024
"""Bytes that pins may take. All annotations of an object have 262144 together (apimachinery, ValidateAnnotations)."""

_GPU_SEPARATOR = "+"


def encoded(values: Sequence[str]) -> str:
    """Return *values* as runs. A value must not have a comma; raises ``ValueError``."""
    if bad := [value for value in values if "," in value]:
        raise ValueError(f"{bad[0]!r} has a comma")
    starts = [at for at, value in enumerate(values) if at == 0 or values[at - 1] != value]
    return ",".join([*(f"{at}:{values[at]}" for at in starts), f"{len(values)}:"])


def decoded(text: str) -> tuple[str, ...]:
    """Return the values of *text*, one for each worker. Raises ``DocumentError`` when it is not a list of pins."""
    try:
        runs = [(int(start), value) for start, _, value in (run.partition(":") for run in text.split(","))]
        starts = [start for start, _ in runs]
        orderly = starts[0] == 0 and runs[-1][1] == "" and all(a < b for a, b in pairwise(starts))
    except ValueError:
        orderly, runs = False, []
    if not orderly:
        raise DocumentError(
            f"{text[:60]!r} is not a list of pins",
            hint="it is written by arena-topo submit, and by nothing else",
        )
    return tuple(value for (start, value), (end, _) in pairwise(runs) for _ in range(end - start))


def pins(
    *, nodes: Sequence[str] = (), gpus: Sequence[Sequence[str]] = (), claims: Sequence[str] = ()
) -> dict[str, str]:
    """Return the annotations for a worker template; what is not given is not pinned.

    *nodes* are values of the label ``kubernetes.io/hostname``, which may differ from the nodes' names; *gpus* are
    each worker's GPU UUIDs, for HAMi; *claims* are names of ResourceClaims. Raises ``UsageError`` when they would
    not fit into an object's annotations.
    """
    joined = [_GPU_SEPARATOR.join(each) for each in gpus]
    given = {PIN_NODES: nodes, PIN_GPUS: joined, PIN_CLAIMS: claims}
    made = {key: encoded(values) for key, values in given.items() if values}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in made.items())
    if size > LONGEST:
        raise UsageError(
            f"the pins of {max(map(len, given.values()))} workers take {size} bytes, and an object's annotations "
            f"have room for {LONGEST}",
            hint="pin nodes alone with --pin workers, or take fewer and larger workers",
        )
    return made


def pinned_nodes(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the host name that each worker is pinned to, empty where there are no such pins."""
    return decoded(annotations[PIN_NODES]) if PIN_NODES in annotations else ()


def pinned_gpus(annotations: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return the GPU UUIDs that each worker is pinned to, empty where there are no such pins."""
    if PIN_GPUS not in annotations:
        return ()
    return tuple(tuple(each.split(_GPU_SEPARATOR)) if each else () for each in decoded(annotations[PIN_GPUS]))
