"""What goes wrong with one object stays with that object: it is said once, and everything else goes on.

Whoever may write an object may find what this program has not foreseen, and the decisions are those of everybody. So each
step that reads, plans or writes one object is carried out within ``Faults.at``, for example

===================  =================================================================
a job                it waits; its event, the metric and the log say that it cannot be planned
a Workload           it stays Pending, as one does whose check says nothing
a pod or a node      it counts as if it were not there
===================  =================================================================

``Faults`` gathers what was caught; the course of the controller says it.
"""

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from types import TracebackType
from typing import Generic, Self, TypeVar

from arena_topo.errors import ArenaTopoError
from arena_topo.model.notation.bounded_json import cut, reason_of
from arena_topo.model.notation.printable import printable
from arena_topo.model.objects import Object
from arena_topo.topology.raw_objects import identity

AFTER_FAULT = 60.0
"""Seconds before an object is looked at again at which something failed: what failed may lie in the cluster, which changes."""

SAID_AGAIN = 3600.0
"""Seconds after which the same fault of the same object is said again, where it is still there."""

_MOST_KNOWN = 10_000
"""Faults of which is known that they were said; beyond that the oldest are forgotten, and may be said again."""

_MOST_SAID = 300
"""Characters of what is said of an error: it may quote what others wrote."""

_FRAMES = 15
"""Frames of a trace from either end: an endless recursion has thousands."""

_MOST_SEARCHED = 8
"""Objects that are looked for one by one among those that fail together."""

Value = TypeVar("Value")
Item = TypeVar("Item")
Key = tuple[str, str]
"""A collection, and the uid of an object in it."""

Typed = tuple[str, str]
"""The apiVersion and the kind of objects that do not say theirs, as in lists of built-in kinds; empty where unknown."""

NODE: Typed = ("v1", "Node")
POD: Typed = ("v1", "Pod")
QUOTA: Typed = ("v1", "ResourceQuota")
_UNTYPED: Typed = ("", "")


@dataclass(frozen=True, slots=True)
class Fault:
    """What was caught at *item*, of which only what names it is kept; ``trace`` is where it was raised."""

    item: Object
    message: str
    trace: str
    reason: str = "InternalError"

    @property
    def is_named(self) -> bool:
        """Whether the API server knows an object by what is kept of *item*, so that it may have an event."""
        meta = self.item["metadata"]
        return bool(self.item["apiVersion"] and self.item["kind"] and meta["name"] and meta["uid"])


@dataclass(slots=True)
class Attempt:
    """One step with one object; it has ``failed`` once an error was caught."""

    faults: "Faults"
    item: Object
    typed: Typed = _UNTYPED
    failed: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        # The end of the process, and of a generator, is nobody's fault.
        if not isinstance(error, Exception):
            return False
        self.failed = True
        self.faults.note(self.item, error, self.typed)
        return True


@dataclass(slots=True)
class Faults:
    """What was caught, of any thread; *clock* counts seconds, and nobody sets it."""

    clock: Callable[[], float] = time.monotonic
    _noted: SimpleQueue[tuple[tuple[str, str], Fault]] = field(default_factory=SimpleQueue, init=False)
    _said: dict[tuple[str, str], float] = field(default_factory=dict, init=False)

    def at(self, item: Object, typed: Typed = _UNTYPED) -> Attempt:
        """Return what to enter for a step with *item*: an error in it is noted, and raised no further."""
        return Attempt(self, item, typed)

    def note(self, item: Object, error: Exception, typed: Typed = _UNTYPED) -> None:
        """Note that *error* was raised at *item*."""
        self._noted.put(((_uid(item), _place(error)), _fault(item, error, typed)))

    def taken(self) -> list[Fault]:
        """Return what has to be said: what was noted since the last call, each fault of an object once."""
        found: list[Fault] = []
        for _ in range(self._noted.qsize()):
            key, fault = self._noted.get()
            if self.is_news(*key):
                found.append(fault)
        return found

    def is_news(self, uid: str, what: str) -> bool:
        """Whether *what* has to be said of the object with this *uid*: it was not for an hour."""
        key, now = (uid, what), self.clock()
        if now - self._said.get(key, float("-inf")) < SAID_AGAIN:
            return False
        self._said.pop(key, None)
        self._said[key] = now
        if len(self._said) > _MOST_KNOWN:
            del self._said[next(iter(self._said))]
        return True


@dataclass(slots=True)
class Together(Generic[Item]):
    """What is made of many objects at once, less those at which that fails; they are kept ``apart`` until they change."""

    faults: Faults
    apart: dict[Key, Item] = field(default_factory=dict)

    def of(
        self,
        items: Mapping[Key, Item],
        make: Callable[[Mapping[Key, Item]], Value],
        described: Callable[[Key, Item], tuple[Object, Typed]],
    ) -> Value:
        """Return what *make* makes of *items*, by a key for each; *described* returns the object that one is, and its type.

        Raises what *make* raises where no few objects are the reason.
        """
        self.apart = {key: item for key, item in self.apart.items() if items.get(key) is item}
        left = {key: item for key, item in items.items() if key not in self.apart} if self.apart else items
        for _ in range(_MOST_SEARCHED):
            try:
                return make(left)
            except Exception as error:  # noqa: BLE001  # one object among many, which is looked for
                culprit = self._culprit(left, make)
                item, typed = described(culprit, left[culprit])
                self.faults.note(item, error, typed)
                self.apart[culprit] = left[culprit]
                left = {key: item for key, item in left.items() if key != culprit}
        return make(left)

    @staticmethod
    def _culprit(items: Mapping[Key, Item], make: Callable[[Mapping[Key, Item]], object]) -> Key:
        """Return the last one of the fewest first of *items* with which *make* fails."""
        keys = list(items)
        low, high = 0, len(keys)
        while high - low > 1:
            half = (low + high) // 2
            try:
                make({key: items[key] for key in keys[:half]})
            except Exception:  # noqa: BLE001  # see above
                high = half
            else:
                low = half
        return keys[high - 1]


def said_of(error: Exception) -> str:
    """Return what a user reads of *error*, which may be one that nobody foresaw."""
    if isinstance(error, ArenaTopoError):
        return cut(error.message, _MOST_SAID)
    return f"internal error: {type(error).__name__}: {reason_of(error)}"


def _fault(item: Object, error: Exception, typed: Typed) -> Fault:
    meta = item.get("metadata") if isinstance(item.get("metadata"), dict) else None
    named = {key: str((meta or {}).get(key) or "") for key in ("name", "namespace", "uid")}
    api, kind = (
        str(item.get(key) or given) for key, given in zip(("apiVersion", "kind"), typed, strict=True)
    )
    return Fault(
        {"apiVersion": api, "kind": kind, "metadata": named},
        said_of(error),
        "".join(_trace(error)),
        # What is wrong with an object is its writer's to mend; anything else is this program's.
        "NotPlanned" if isinstance(error, ArenaTopoError) else "InternalError",
    )


def _uid(item: Object) -> str:
    meta = item.get("metadata")
    return str((meta.get("uid") if isinstance(meta, dict) else "") or identity(item))


def _place(error: Exception) -> str:
    """Return what tells one fault from another, whatever values are in its message: its type, and where it was raised."""
    last = error.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    at = f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}" if last else ""
    return f"{type(error).__name__} {at}"


def _trace(error: Exception) -> Sequence[str]:
    frames = traceback.extract_tb(error.__traceback__)
    if len(frames) > 2 * _FRAMES:
        frames = traceback.StackSummary.from_list([*frames[:_FRAMES], *frames[-_FRAMES:]])
    return [
        "".join(printable(line, keep="\n") for line in frames.format()),
        f"{type(error).__name__}: {printable(reason_of(error))}\n",
    ]
