"""What users ask of a placement: policy, objective, enforcement, and which ranks form groups."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from math import prod

from arena_topo.errors import UsageError
from arena_topo.model.text.json import cut
from arena_topo.model.text.quantity import parse_duration
from arena_topo.model.text.words import plural, written_duration


class TopologyPolicy(Enum):
    """Which levels of the fabric will do.

    ``BEST_EFFORT`` takes the closest that there is now, ``RESTRICTED`` only the one that an empty cluster
    would give, and ``NONE`` any: the gang only has to fit, as with a topology-unaware scheduler.
    """

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"


class Objective(Enum):
    """What decides between placements of one level on as few nodes.

    ``BANDWIDTH``: the highest predicted busbw, then the fewest GPUs left over. ``PACK``: the fewest GPUs left
    over on the nodes taken, then the highest busbw.
    """

    BANDWIDTH = "bandwidth"
    PACK = "pack"


class NodeLoss(Enum):
    """What happens to a job that has lost a node, and for whose workers there is no room near enough.

    ``WAIT``: they wait, and the others continue. ``SUSPEND``: it gives up what it has, and waits in its queue
    for room for all of it. ``FAIL``: it is stopped until its user resumes it.
    """

    WAIT = "wait"
    SUSPEND = "suspend"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class HangRule:
    """What happens to a job whose log has been silent for ``after`` seconds, and whose ranks do not move.

    The evidence is kept. One that ``fails`` is then stopped too, if it is stuck beyond doubt.
    """

    after: int
    fails: bool = False

    def __str__(self) -> str:
        return f"{written_duration(self.after)}:{_SAVE_AND_FAIL if self.fails else _SAVE}"


_SAVE, _SAVE_AND_FAIL = "save", "save-and-fail"
_SHORTEST, _LONGEST = 30, 7 * 86_400
"""Seconds of silence: sooner a checkpoint would be looked at, and later nobody waits for it."""


def read_hang_rule(text: str, what: str) -> HangRule:
    """Return the rule in a *text* such as ``30m:save``. Raises ``UsageError`` about *what*."""
    time, _, action = text.partition(":")
    hint = "write for example 30m:save or 1h:save-and-fail"
    try:
        seconds = parse_duration(time)
    except ValueError as error:
        raise UsageError(f"{what}: {cut(text, 40)!r} does not begin with a duration", hint=hint) from error
    if action not in (_SAVE, _SAVE_AND_FAIL):
        raise UsageError(
            f"{what}: {cut(text, 40)!r} does not end with :{_SAVE} or :{_SAVE_AND_FAIL}", hint=hint
        )
    if not _SHORTEST <= seconds <= _LONGEST:
        raise UsageError(f"{what}: {cut(time, 40)} is not between 30s and 7 days", hint=hint)
    return HangRule(round(seconds), action == _SAVE_AND_FAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRequest:
    """What the user asks of the gang: the back-end's name or ``auto``, a queue, and a level of the fabric."""

    scheduler: str = "auto"
    queue: str = ""
    level: str = ""
    required: bool = False


class Pin(Enum):
    """How exactly the user wants a plan to be enforced."""

    AUTO = "auto"
    NONE = "none"
    NODES = "nodes"
    WORKERS = "workers"
    GPUS = "gpus"


# How a model is laid out over the ranks of its job: the axes of its parallelism, and the groups of ranks
# along each.
#
# Megatron's order (NVIDIA/Megatron-LM, ``megatron/core/parallel_state.py``): ``tp`` varies fastest, then
# ``cp``, ``dp`` and ``pp``, so that a tensor-parallel group is consecutive ranks, and the ranks of a pipeline
# are far apart. ``ep`` is not an axis of its own: it divides the ranks of ``cp`` and ``dp`` together.
#
# With tp=2, dp=2, pp=2 the eight ranks have the tensor-parallel groups 0 1, 2 3, 4 5 and 6 7, the
# data-parallel groups 0 2, 1 3, 4 6 and 5 7, and the pipelines 0 4, 1 5, 2 6 and 3 7.

_MOST = 1_000_000
_EXAMPLE = "write for example --parallel=tp=8,pp=4,dp=16"


class Axis(Enum):
    """What the ranks of a group share: a layer, a sequence, experts, a pipeline or a batch.

    In the order of their traffic, most first.
    """

    TP = "tp"
    CP = "cp"
    EP = "ep"
    PP = "pp"
    DP = "dp"


class Closer(Enum):
    """Which groups are placed closer together where pipelines and data-parallel groups cannot both.

    With ``BOTH`` the sum of their spreads is the least, each weighted by its traffic.
    """

    PP = "pp"
    DP = "dp"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups along one axis: ``count`` groups of ``size`` ranks that are ``stride`` apart."""

    axis: Axis
    size: int
    stride: int
    count: int

    def ranks(self, number: int) -> range:
        """Return the ranks of the group *number*."""
        high, low = divmod(number, self.stride)
        first = high * self.stride * self.size + low
        return range(first, first + self.stride * self.size, self.stride)


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The size of each axis, 1 if it is not used, and which of ``pp`` and ``dp`` is placed closer together.

    ``traffic`` is what a pipeline and a data-parallel group weigh where both do.
    """

    tp: int = 1
    cp: int = 1
    ep: int = 1
    pp: int = 1
    dp: int = 1
    closer: Closer = Closer.PP
    traffic: tuple[int, int] = (1, 1)

    @property
    def ranks(self) -> int:
        """The number of ranks; ``ep`` only parts those of ``cp`` and ``dp``."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def groups(self) -> tuple[Groups, ...]:
        """The groups along each axis that is used, in the order of their traffic."""
        strides = {
            Axis.TP: 1,
            Axis.CP: self.tp,
            Axis.EP: self.tp,
            Axis.PP: self.tp * self.cp * self.dp,
            Axis.DP: self.tp * self.cp,
        }
        return tuple(
            Groups(axis, size, stride, self.ranks // size)
            for axis, stride in strides.items()
            if (size := getattr(self, axis.value)) > 1
        )

    def __str__(self) -> str:
        """Write it as users do: ``tp=8,pp=4,dp=16``."""
        sizes = [f"{axis.value}={size}" for axis in Axis if (size := getattr(self, axis.value)) > 1]
        both = self.closer.value if self.traffic == (1, 1) else ":".join(map(str, self.traffic))
        closer = [] if self.closer is Closer.PP else [f"closer={both}"]
        return ",".join([*sizes, *closer]) or "dp=1"


def read_parallelism(text: str, flag: str) -> Parallelism:
    """Return the parallelism in *text*, such as ``tp=8,pp=4,dp=16,closer=dp``.

    Raises ``UsageError``, naming *flag*.
    """
    known = [field.name for field in fields(Parallelism) if field.name != "traffic"]
    given: dict[str, str] = {}
    for entry in text.split(","):
        key, equals, value = entry.strip().partition("=")
        if not equals or key not in known:
            raise UsageError(
                f"{flag}: {cut(entry.strip())!r} is not an axis with its size",
                hint=f"{_EXAMPLE}; the axes are {', '.join(axis.value for axis in Axis)}",
            )
        if key in given:
            raise UsageError(f"{flag}: {key} is given twice", hint=_EXAMPLE)
        given[key] = value
    closer, traffic = _closer(given.pop("closer", Closer.PP.value), flag)
    sizes = {axis: _size(axis, value, flag) for axis, value in given.items()}
    parallel = Parallelism(**sizes, closer=closer, traffic=traffic)
    if parallel.cp * parallel.dp % parallel.ep:
        raise UsageError(
            f"{flag}: ep={parallel.ep} does not divide cp x dp = {parallel.cp} x {parallel.dp} = {parallel.cp * parallel.dp}",
            hint="the experts of a layer are spread over ranks that hold the same tensor-parallel part",
        )
    return parallel


def _closer(text: str, flag: str) -> tuple[Closer, tuple[int, int]]:
    """Return which groups are placed closer together, and their weights: ``dp``, or ``1:4`` for pp to dp."""
    if text in {choice.value for choice in Closer}:
        return Closer(text), (1, 1)
    pipelines, colon, replicas = text.partition(":")
    if not colon:
        raise UsageError(
            f"{flag}: closer={cut(text)} is none of pp, dp and both",
            hint=f"{_EXAMPLE},closer=dp, or closer=1:4",
        )
    return Closer.BOTH, (_size("closer", pipelines, flag), _size("closer", replicas, flag))


def _size(axis: str, value: str, flag: str) -> int:
    # isdecimal admits digits of other scripts, which no framework takes.
    if value.isascii() and value.isdecimal() and len(value) < len(str(_MOST)) and int(value):
        return int(value)
    raise UsageError(
        f"{flag}: the size of {axis} is a whole number from 1, not {cut(value)!r}", hint=_EXAMPLE
    )


def check_ranks(parallel: Parallelism, workers: int, each: int, flag: str = "--parallel") -> None:
    """Raise ``UsageError`` where *workers* of *each* so many ranks are not as many as *parallel* lays out."""
    ranks = workers * each
    if parallel.ranks == ranks:
        return
    sizes = {axis: getattr(parallel, axis) for axis in ("tp", "cp", "pp", "dp")}
    used = {axis: size for axis, size in sizes.items() if size > 1} or {"dp": 1}
    product = " x ".join(used) + " = " + " x ".join(map(str, used.values()))
    total = f" = {parallel.ranks}" if len(used) > 1 else ""
    raise UsageError(
        f"{flag}: {product}{total}, and the job has {plural(workers, 'worker')} of {plural(each, 'rank')}, {ranks} in all",
        hint="; ".join(_ways(parallel, workers, each))
        or "the product of the axes is the number of ranks; ep is not counted",
    )


def _ways(parallel: Parallelism, workers: int, each: int) -> Iterator[str]:
    """Yield what would make both numbers equal."""
    others = prod((parallel.tp, parallel.cp, parallel.pp))
    if workers * each % others == 0:
        yield f"with dp={workers * each // others} they would be equal"
    if parallel.ranks % each == 0:
        yield f"--workers={parallel.ranks // each} would run {parallel.ranks} ranks"
