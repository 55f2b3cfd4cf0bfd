"""The node, GPUs and claim of each worker of a gang, as annotations of the pod template that all share.

A list has a value for each worker, by its index, written as runs: ``0:node-a,4:node-b,8:`` says that workers
0 to 3 belong to ``node-a``, 4 to 7 to ``node-b``, and that the list ends before worker 8. A worker whose
value is empty is not pinned. The admission policy (``arena_topo.pin.admission``) looks a worker up in CEL,
which has no counting loop: so each run stores its first index, and not its length.
"""

from collections.abc import Sequence
from itertools import pairwise

from arena_topo.errors import UsageError
from arena_topo.model.keys import PIN_CLAIMS, PIN_GPUS, PIN_NODES
from arena_topo.model.text.json import cut, whole_number

LONGEST = 240 * 1024
"""Bytes that pins may take; all annotations together have 262144 (apimachinery, ValidateAnnotations)."""

_GPU_SEPARATOR = "+"
_SHOWN = 60
"""Characters of a list that an error shows."""


def encoded(values: Sequence[str]) -> str:
    """Return *values* as runs: ``["a", "a", "b"]`` becomes ``0:a,2:b,3:``. A comma raises ``ValueError``."""
    if bad := [value for value in values if "," in value]:
        raise ValueError(f"{bad[0]!r} has a comma")
    starts = [i for i, value in enumerate(values) if i == 0 or values[i - 1] != value]
    return ",".join([*(f"{i}:{values[i]}" for i in starts), f"{len(values)}:"])


def decoded(text: str, most: int) -> list[str]:
    """Return the values of the runs *text*, at most *most*. Raises ``ValueError`` for any other text.

    >>> decoded("0:a,2:b,3:", 8)
    ['a', 'a', 'b']
    """
    values: list[str] = []
    # The value of the last run is that of no worker.
    runs = [run.partition(":") for run in text.split(",")]
    for (start, colon, value), (end, _, _) in pairwise(runs):
        first, last = whole_number(start, most), whole_number(end, most)
        if not colon or first != len(values) or last <= first:
            raise ValueError(f"{cut(text, _SHOWN)!r} is no list of runs")
        values += [value] * (last - first)
    if not values or runs[-1][2]:
        raise ValueError(f"{cut(text, _SHOWN)!r} is no list of runs")
    return values


def joined(uuids: Sequence[str]) -> str:
    """Return the GPUs of one worker as their list has them."""
    return _GPU_SEPARATOR.join(uuids)


def pin_annotations(
    *, nodes: Sequence[str] = (), gpus: Sequence[Sequence[str]] = (), claims: Sequence[str] = ()
) -> dict[str, str]:
    """Return the annotations for a worker template; what is not given is not pinned.

    *nodes* are values of the label ``kubernetes.io/hostname``, which may differ from the nodes' names; *gpus*
    are each worker's GPU UUIDs, for HAMi; *claims* are names of ResourceClaims. Raises ``UsageError`` when
    they would not fit into an object's annotations.
    """
    lists = {PIN_NODES: nodes, PIN_GPUS: [joined(uuids) for uuids in gpus], PIN_CLAIMS: claims}
    annotations = {key: encoded(values) for key, values in lists.items() if values}
    # Checked here: the API server's refusal would not mention pins.
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > LONGEST:
        raise UsageError(
            f"the pins of {max(map(len, lists.values()))} workers take {size} bytes, "
            f"and an object's annotations have room for {LONGEST}",
            hint="pin only nodes, with --pin workers, or request fewer and larger workers",
        )
    return annotations
