"""From looks at ranks to a verdict, which never says more than the looks do.

What a rank *does* decides nothing by itself: those that wait in MPI poll and burn CPU, those that wait in
gloo sleep, and one that saves a checkpoint looks like one that hangs. Two things hold: a job whose bytes
flow runs, and in one that stands the rank to look at is the one unlike the majority. Whether that rank
hangs or works is left open until it has stood still, with its stack, its CPU time and its bytes, for as
long as the user says.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from statistics import median

from arena_topo.model.text.words import plural, runs, written_duration


class State(Enum):
    """What is the matter with a job.

    ``WAITING``: for room, an image or a volume, or for some of its ranks, of which is not known whether
    they hang.
    """

    HEALTHY = "healthy"
    WAITING = "waiting"
    STUCK = "stuck"
    SLOW = "slow"
    UNDECIDED = "undecided"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Frame:
    """A call in a stack: its function, and its file with the line, or its library."""

    function: str
    place: str

    def __str__(self) -> str:
        return f"{self.function} ({self.place})" if self.place else self.function


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at a rank saw, at a time in seconds by the clock of its node.

    ``state`` is the letter of its main thread, ``wait`` the function of the kernel in which that sleeps,
    ``call`` the number of its system call; each is empty where it is not known. ``cpu`` are the seconds
    that all of its threads have used, ``moved`` the bytes that it has read and written, None where that is
    not known. ``stack`` has the calls of its main thread, the innermost first; empty where no source shows
    them.
    """

    at: float
    state: str = ""
    wait: str = ""
    call: str = ""
    cpu: float = 0.0
    moved: int | None = None
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One rank, where it runs, and at least one look at it, in order of time; ``gpu`` is None if unknown."""

    number: int
    pod: str
    node: str = ""
    gpu: int | None = None
    looks: tuple[Look, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Ranks that were not seen, and why, in a clause: ``its node n3 is NotReady``.

    ``ranks`` is empty where their numbers are not known. ``is_silent``: their pod was asked, and did not
    answer.
    """

    why: str
    pod: str = ""
    node: str = ""
    ranks: tuple[int, ...] = ()
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What the library of the collectives says of a rank, in a clause: ``has launched AllReduce 60``.

    ``others`` is what most ranks have done, for comparison.
    """

    rank: int
    what: str
    others: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waited in the connections of a pod to another one, each with its node.

    Much was seen ``waiting`` in so many of its ``looks``, and anything ``unanswered`` in so many: sent again
    and again.
    """

    pod: str
    node: str
    peer: str
    peer_node: str
    looks: int
    waiting: int
    unanswered: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A rank that is named, or a pod that does not answer (``rank`` is None), and what it was seen doing."""

    rank: int | None
    pod: str
    node: str
    gpu: int | None
    doing: str


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that do the same, and what."""

    doing: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is the matter, with whom, and what to do next.

    ``seconds`` is the time between the first look and the last. ``groups`` has all ranks that were seen,
    the largest group first. ``shared`` is the node or the domain of the fabric in which all that the job has
    is named, such as ``rack r2``: empty for none, and for one suspect.
    """

    state: State
    message: str
    advice: str = ""
    suspects: tuple[Suspect, ...] = ()
    groups: tuple[Group, ...] = ()
    seconds: float = 0.0
    shared: str = ""


def judge(ranks: Sequence[Rank], absent: Sequence[Absent] = (), *, patience: float | None = None) -> Verdict:
    """Return what the looks at *ranks* say.

    A rank that has stood still for *patience* seconds while others wait for it is called stuck; None is
    never.
    """
    ranks = sorted(ranks, key=lambda rank: (rank.number, rank.pod))
    if not ranks:
        return Verdict(
            state=State.UNDECIDED,
            message="; ".join(["no rank was seen", *_of_absents(absent)]),
            suspects=tuple(map(_absent_suspect, absent)),
        )
    seconds = min(rank.looks[-1].at - rank.looks[0].at for rank in ranks)
    seen = _Seen(ranks, tuple(absent), _keys(ranks), seconds, patience)
    return seen.stopped() or seen.running() or seen.unlike() or seen.undecided()


# What a rank is about, by which ranks are compared.

_MPI = re.compile(r"P?(MPI_[A-Z]\w*)")
_TORCH_FILE = "distributed_c10d.py"
_TORCH = re.compile(
    r"(all_reduce|all_gather|broadcast|gather|reduce|reduce_scatter|scatter)(_coalesced|_into_tensor|_tensor|_object"
    r"|_object_list)?|all_to_all(_single)?|(monitored_)?barrier|send|recv|(init|destroy)_process_group|new_group"
)
_MPI4PY = re.compile(
    r"I?((all)?(reduce|gatherv?|toall[vw]?)|reduce_scatter(_block)?|barrier|bcast|scatterv?|gatherv?|(ex)?scan|"
    r"m?probe|recv|send|ssend|sendrecv|wait(all|any|some)?|spawn|split)",
    re.IGNORECASE,
)
"""The methods of mpi4py that wait for others; those of Python's objects are made of several calls of MPI."""
_RESTARTED = frozenset({"219", "128"})
"""restart_syscall of x86-64 and arm64: a timed wait that was interrupted, by a debugger for example."""

_STOPPED = "T"
_IDLE = 0.05
"""The share of one core below which a rank does not compute."""
_FLOW = 2048.0
"""Bytes a second above which a rank moves: one that hangs moves none, one that runs hundreds of thousands."""


_MANY = 2
"""Pauses between looks of which more than half show bytes where messages are small."""
_LEAST_LOOKS = 5
"""Looks by whose share a slow rank is told from the others."""


class _Sort(Enum):
    COLLECTIVE = "in"
    CODE = "at"
    KERNEL = "kernel"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class _Key:
    """What a rank is about: ranks with the same key do the same."""

    sort: _Sort
    name: str

    def __str__(self) -> str:
        return self.name if self.sort in (_Sort.KERNEL, _Sort.UNREAD) else f"{self.sort.value} {self.name}"


_UNREAD = _Key(_Sort.UNREAD, "at a place that cannot be read")


def collective(stack: Iterable[Frame]) -> str:
    """Return the collective that a *stack* is in, as the user called it: empty for none."""
    # One collective may be made of others: the outermost is the user's.
    for frame in reversed(tuple(stack)):
        if "mpi4py/" in frame.place and _MPI4PY.fullmatch(frame.function):
            return frame.function
        if found := _MPI.fullmatch(frame.function):
            return found[1]
        if _TORCH_FILE in frame.place and _TORCH.fullmatch(frame.function):
            return frame.function
    return ""


def _keys(ranks: Sequence[Rank]) -> list[tuple[_Key, ...]]:
    """Return for each of *ranks* what it was about in each look."""
    read = sum(all(look.stack for look in rank.looks) for rank in ranks)
    # Stacks and states of threads cannot be compared with each other: what most ranks have decides.
    of = _stack_key if read * 2 > len(ranks) else _kernel_key
    found = []
    for rank in ranks:
        keys = tuple(map(of, rank.looks))
        # A debugger fails at times: what the other looks saw counts.
        found.append(tuple(key for key in keys if key is not _UNREAD) or keys)
    return found


def _stack_key(look: Look) -> _Key:
    if not look.stack:
        return _UNREAD
    if name := collective(look.stack):
        return _Key(_Sort.COLLECTIVE, name)
    # A line of Python tells the user more than the library that it is in.
    lines = [frame for frame in look.stack if re.search(r":\d+$", frame.place)]
    return _Key(_Sort.CODE, ", called by ".join(map(str, (lines or look.stack)[:2])))


def _kernel_key(look: Look) -> _Key:
    if look.state == "R":
        return _Key(_Sort.KERNEL, "computing or polling")
    if look.wait:
        return _Key(_Sort.KERNEL, f"sleeping in {look.wait}")
    if look.call and look.call not in _RESTARTED and look.call != "running":
        return _Key(_Sort.KERNEL, f"in system call {look.call}")
    return _UNREAD


# One look after the other.


@dataclass(frozen=True, slots=True)
class _Seen:
    ranks: Sequence[Rank]
    absent: tuple[Absent, ...]
    keys: Sequence[tuple[_Key, ...]]
    seconds: float
    patience: float | None

    @property
    def total(self) -> int:
        return len(self.ranks) + sum(max(1, len(one.ranks)) for one in self.absent)

    def stopped(self) -> Verdict | None:
        """Name stopped ranks, which only another signal makes continue."""
        found = [rank for rank in self.ranks if all(look.state == _STOPPED for look in rank.looks)]
        if not found or len(found[0].looks) < 2:
            return None
        doing = "is stopped by a signal (SIGSTOP)"
        first = found[0]
        return self._verdict(
            State.STUCK,
            f"{_named(found)} {_is(found)} stopped by a signal (SIGSTOP)",
            [_suspect(rank, doing) for rank in found],
            advice=f"find out who stopped it; it continues after: kill -CONT, in {first.pod}",
        )

    def running(self) -> Verdict | None:
        """Say so where more than half of the ranks move."""
        moving = sum(_moves(rank, keys) for rank, keys in zip(self.ranks, self.keys, strict=True))
        if moving * 2 <= self.total:
            return None
        return self._verdict(
            State.HEALTHY, f"{moving} of {plural(self.total, 'rank')} made progress within {self._time}"
        )

    def unlike(self) -> Verdict | None:
        """Name the few that are unlike the majority, where there is one that stands."""
        steady: dict[_Key, list[int]] = defaultdict(list)
        for index, keys in enumerate(self.keys):
            if len(set(keys)) == 1 and keys[0] is not _UNREAD:
                steady[keys[0]].append(index)
        if not steady or len(self.ranks[0].looks) < 2:
            return None
        key, inside = max(steady.items(), key=lambda item: len(item[1]))
        outside = [index for index in range(len(self.ranks)) if index not in set(inside)]
        missing = self.total - len(self.ranks)
        count = len(outside) + missing
        if len(inside) * 2 <= self.total or not 0 < count <= max(1, self.total // 4):
            return None
        # Without stacks much more has to be alike.
        if key.sort is _Sort.KERNEL and (len(inside) * 4 < self.total * 3 or count != 1):
            return None
        is_idle = all(_stands(self.ranks[index]) for index in inside)
        if key.sort is not _Sort.COLLECTIVE and not is_idle:
            # Those that compute wait for nobody.
            return None
        if key.sort is _Sort.COLLECTIVE and any(map(self._took_part, outside)):
            # It came out of a collective, or into one: the others took part in that.
            return self._verdict(
                State.HEALTHY,
                f"{_named([self.ranks[index] for index in outside])} came and went within {self._time}",
            )
        return self._waits(key, inside, outside)

    def _took_part(self, index: int) -> bool:
        keys = self.keys[index]
        return len(set(keys)) > 1 and any(key.sort is _Sort.COLLECTIVE for key in keys)

    def _waits(self, key: _Key, inside: Sequence[int], outside: Sequence[int]) -> Verdict:
        named = [self.ranks[index] for index in outside]
        suspects = self._suspects(outside)
        others = all(
            len(set(self.keys[index])) == 1 and self.keys[index][0].sort is _Sort.COLLECTIVE
            for index in outside
        )
        who = self._who(outside)
        waiting = plural(len(inside), "rank")
        if key.sort is not _Sort.COLLECTIVE:
            head = f"{len(inside)} of {plural(self.total, 'rank')} stand still {key}; {who}"
        elif named and others and not self.absent:
            head = f"collectives do not match: {waiting} in {key.name}, {who}"
        else:
            head = f"{waiting} {_verb(len(inside), 'wait')} in {key.name} for {who}"
        message = head
        is_still = bool(named) and not self.absent and all(map(_stands, named))
        # A collective is left by itself as soon as the others come: there only the time tells.
        mismatch = key.sort is _Sort.COLLECTIVE and bool(named) and others
        certain = self.patience is not None and self.seconds >= self.patience
        state = State.STUCK if certain and (is_still or mismatch) else State.WAITING
        return self._verdict(state, message, suspects, advice=_advice(suspects, state))

    def _suspects(self, outside: Sequence[int]) -> list[Suspect]:
        seen = [_suspect(self.ranks[index], self._doing(index)) for index in outside]
        return [*seen, *map(_absent_suspect, self.absent)]

    def _who(self, outside: Sequence[int]) -> str:
        """Return who is outside and what they do, those that were not seen last."""
        parts = _of_absents(self.absent)
        if outside:
            doings = {self._doing(index) for index in outside}
            doing = doings.pop() if len(doings) == 1 else "are at places of their own"
            if len(outside) > 1:
                doing = _in_plural(doing)
            parts.insert(0, f"{_named([self.ranks[index] for index in outside])}, which {doing}")
        return "; and ".join(parts)

    def undecided(self) -> Verdict:
        """Leave it to the reader: the groups are shown."""
        groups = self._groups()
        if all(key is _UNREAD for keys in self.keys for key in keys):
            message = f"what the {plural(len(self.ranks), 'rank')} do cannot be read"
            advice = "exec reaches processes of its own user only: the image's user and that of the ranks must be one"
        elif len(groups) == 1 and not self.absent:
            message = f"all {plural(len(self.ranks), 'rank')} are {groups[0].doing}, and none differs from the others"
            advice = "where all wait in one collective, look at the network, NCCL and the GPUs, not at a rank"
        elif len(groups[0].ranks) * 2 > self.total:
            message = (
                f"{len(groups[0].ranks)} of {plural(self.total, 'rank')} are {groups[0].doing}, "
                "and nothing shows that they wait for the others"
            )
            advice = "look again: --for 60s compares with what they do in a minute"
        else:
            message = f"no majority of the {plural(self.total, 'rank')} does the same"
            advice = "compare the groups with what the ranks are meant to do; look again with --for 60s"
        if self.absent:
            message = "; ".join([message, *_of_absents(self.absent)])
        return self._verdict(
            State.UNDECIDED, message, [_absent_suspect(one) for one in self.absent], advice=advice
        )

    def _doing(self, index: int) -> str:
        rank, keys = self.ranks[index], self.keys[index]
        # Of one that ends no stack is read, and Linux knows a little.
        where = str(_kernel_key(rank.looks[-1]) if keys[-1] is _UNREAD else keys[-1])
        if len(set(keys)) > 1:
            return f"continues, last {where}"
        if _stands(rank):
            return f"has been {where} for {self._time}"
        return f"works {where}" if keys[0].sort is _Sort.CODE else f"is {where}"

    @property
    def _time(self) -> str:
        return written_duration(max(1, round(self.seconds)))

    def _groups(self) -> tuple[Group, ...]:
        found: dict[str, list[int]] = defaultdict(list)
        for rank, keys in zip(self.ranks, self.keys, strict=True):
            found[str(keys[0]) if len(set(keys)) == 1 else "changing place"].append(rank.number)
        groups = [Group(doing, tuple(sorted(numbers))) for doing, numbers in found.items()]
        return tuple(sorted(groups, key=lambda group: (-len(group.ranks), group.ranks, group.doing)))

    def _verdict(
        self, state: State, message: str, suspects: Sequence[Suspect] = (), *, advice: str = ""
    ) -> Verdict:
        return Verdict(
            state=state,
            message=message,
            advice=advice,
            suspects=tuple(suspects),
            groups=self._groups(),
            seconds=self.seconds,
        )


def _moves(rank: Rank, keys: Sequence[_Key]) -> bool:
    """Whether bytes flowed, or the rank came to a collective or out of one, between the looks."""
    counts = [(look.at, look.moved) for look in rank.looks if look.moved is not None]
    steps = [after[1] - before[1] for before, after in pairwise(counts)]
    if steps and sum(steps) > _FLOW * (counts[-1][0] - counts[0][0]):
        return True
    # Few bytes, but again and again: small messages, of which a hung rank sends none.
    if len(steps) >= _MANY and sum(step > 0 for step in steps) * 2 > len(steps):
        return True
    # What changes between other calls may be a loop that polls.
    return len(set(keys)) > 1 and any(key.sort is _Sort.COLLECTIVE for key in keys)


def _stands(rank: Rank) -> bool:
    """Whether the stack, the CPU time and the bytes of a rank stand still; False if one is unknown."""
    first, last = rank.looks[0], rank.looks[-1]
    span = last.at - first.at
    return (
        span > 0
        and len({look.stack for look in rank.looks if look.stack}) <= 1
        and (last.cpu - first.cpu) / span < _IDLE
        and first.moved is not None
        and first.moved == last.moved
    )


def _suspect(rank: Rank, doing: str) -> Suspect:
    return Suspect(rank.number, rank.pod, rank.node, rank.gpu, doing)


def _absent_suspect(one: Absent) -> Suspect:
    return Suspect(one.ranks[0] if len(one.ranks) == 1 else None, one.pod, one.node, None, one.why)


def _of_absents(absent: Sequence[Absent]) -> list[str]:
    """Return a clause about those that were not seen; the table has all of them."""
    more = [f"{len(absent) - 1} more do not answer or have ended"] if len(absent) > 1 else []
    return [*map(_of_absent, absent[:1]), *more]


def _of_absent(one: Absent) -> str:
    numbers = f"{'rank' if len(one.ranks) == 1 else 'ranks'} {runs(one.ranks)}" if one.ranks else ""
    who = f"{numbers} ({one.pod})" if numbers and one.pod else numbers or one.pod
    return f"{who}: {one.why}"


def _named(ranks: Sequence[Rank]) -> str:
    """Return ``rank 5 (job-worker-2, n3, GPU 1)``, or ``ranks 4-7 (job-worker-1, n2)`` for neighbours."""
    noun = "rank" if len(ranks) == 1 else "ranks"
    pods, nodes = sorted({rank.pod for rank in ranks}), sorted({rank.node for rank in ranks if rank.node})
    where = [*(pods if len(pods) == 1 else ()), *(nodes if len(nodes) == 1 else ())]
    if len(ranks) == 1 and ranks[0].gpu is not None:
        where.append(f"GPU {ranks[0].gpu}")
    return f"{noun} {runs([rank.number for rank in ranks])}" + (f" ({', '.join(where)})" if where else "")


_PLURALS = {"has": "have", "works": "work", "is": "are", "continues": "continue", "reports": "report"}


def _in_plural(clause: str) -> str:
    return re.sub(rf"^({'|'.join(_PLURALS)})\b", lambda verb: _PLURALS[verb[0]], clause)


def _advice(suspects: Sequence[Suspect], state: State) -> str:
    pods = sorted({suspect.pod for suspect in suspects if suspect.pod})
    if not pods:
        return ""
    if state is State.STUCK:
        return (
            f"keep the evidence with --save DIR before a restart; see arena-topo exec JOB -i {pods[0]} -- sh"
        )
    return "--for 60s tells whether it is stuck"


def _is(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def _verb(count: int, plain: str) -> str:
    if plain == "are":
        return "is" if count == 1 else "are"
    return f"{plain}s" if count == 1 else plain


# What the libraries count.


def judge_findings(
    verdict: Verdict,
    ranks: Sequence[Rank],
    answers: Sequence[Collection[Finding]],
    *,
    patience: float | None = None,
) -> Verdict:
    """Return *verdict* with what libraries say of *ranks*, in *answers* in order of time.

    It decides what the looks left open: of ranks that all seem to wait, the one that is behind. Only what
    all answers say alike counts, of at most a quarter of the ranks.
    """
    if len(answers) < 2 or verdict.state not in (State.WAITING, State.UNDECIDED, State.STUCK):
        return verdict
    steady = [one for one in answers[-1] if all(one in answer for answer in answers)]
    by_number = {rank.number: rank for rank in ranks}
    behind = {one.rank: one for one in steady if one.rank in by_number}
    if not behind or len(behind) > max(1, len(ranks) // 4):
        return verdict
    first = behind[min(behind)]
    alike = [by_number[number] for number in sorted(behind) if behind[number].what == first.what]
    what = first.what if len(alike) == 1 else _in_plural(first.what)
    more = (
        [f"{plural(len(behind) - len(alike), 'further rank')} in the table"]
        if len(behind) > len(alike)
        else []
    )
    clause = "; ".join([f"{_named(alike)} {what}", *filter(None, [first.others]), *more])
    if verdict.suspects:
        return replace(verdict, message=f"{verdict.message}; {clause}")
    named = [by_number[number] for number in sorted(behind)]
    is_still = patience is not None and verdict.seconds >= patience and all(map(_stands, named))
    state = State.STUCK if is_still else State.WAITING
    suspects = tuple(_suspect(rank, behind[rank.number].what) for rank in named)
    return replace(verdict, state=state, message=clause, suspects=suspects, advice=_advice(suspects, state))


# What waits in the network.

_FEW_LOOKS = 4
"""Looks at connections that are enough: each of a node counts."""
_BUSY, _CALM = 0.6, 0.3
"""Shares of looks in which data waits on a slow node's connections, on average, and at most on all others."""


def judge_links(verdict: Verdict, ranks: Sequence[Rank], backlogs: Sequence[Backlog]) -> Verdict:
    """Return *verdict* with the node whose data nobody acknowledges, or always waits to be sent.

    It decides what the looks at *ranks* left open: where all of them wait, it is likely the network. A node
    is named that is at one end of all such connections, where it is only one; its ranks are healthy.
    """
    dead = [one for one in backlogs if one.looks > 1 and one.unanswered == one.looks]
    if dead and verdict.state in (State.WAITING, State.UNDECIDED, State.STUCK):
        return _of_dead(verdict, dead)
    shares = [share for rank in ranks if (share := _share_outside(rank)) is not None]
    if (
        verdict.state not in (State.HEALTHY, State.UNDECIDED)
        or verdict.suspects
        # Ranks that compute do not wait for the network.
        or not shares
        or len(shares) * 2 < len(ranks)
        or median(shares) > _AT_MOST
        or not (found := _busy_end(backlogs))
    ):
        return verdict
    pods, node = found
    clause = f"data between {node} and the others waits to be sent most of the time: its link may be slow"
    slow = _of_network(verdict, clause, node, pods, "has connections that are never empty")
    return replace(slow, state=State.SLOW)


def _of_dead(verdict: Verdict, dead: Sequence[Backlog]) -> Verdict:
    """Return *verdict* with between which nodes nothing is acknowledged."""
    found = _at_one_end(dead)
    if found is None:
        nodes = sorted({node for one in dead for node in (one.node, one.peer_node)})
        clause = f"data between {' and '.join(nodes)} is not acknowledged: the link of one of them is down"
        # Of two nodes it is not known which; between more of them it is the network.
        return replace(verdict, message=f"{verdict.message}; {clause}") if len(nodes) == 2 else verdict
    pods, node = found
    clause = f"data between {node} and the others is not acknowledged: its link is down, or it is"
    if verdict.suspects:
        return replace(verdict, message=f"{verdict.message}; {clause}")
    what = "sends data that nobody acknowledges, and gets none"
    return _of_network(verdict, f"{verdict.message}; {clause}", node, pods, what)


def _busy_end(backlogs: Sequence[Backlog]) -> tuple[list[str], str] | None:
    """Return the node whose connections mostly have data that waits, and its pods; no others' have."""
    seen = [(one, one.waiting / one.looks) for one in backlogs if one.looks >= _FEW_LOOKS]
    found = _at_one_end([one for one, share in seen if share >= _AT_MOST])
    if not found:
        return None
    own = [share for one, share in seen if found[1] in (one.node, one.peer_node)]
    others = [share for one, share in seen if found[1] not in (one.node, one.peer_node)]
    return found if sum(own) >= _BUSY * len(own) and max(others, default=0.0) <= _CALM else None


def _at_one_end(backlogs: Sequence[Backlog]) -> tuple[list[str], str] | None:
    """Return the node that is at one end of all, and its pods; None where it is none, or not only one."""
    ends = [{one.node, one.peer_node} for one in backlogs]
    common = set.intersection(*ends) if ends else set()
    others = set().union(*ends) - common
    # With one other node it may as well be that one.
    if len(common) != 1 or len(others) < 2 or "" in common:
        return None
    (node,) = common
    at = {(one.pod, one.node) for one in backlogs} | {(one.peer, one.peer_node) for one in backlogs}
    return sorted(pod for pod, where in at if where == node), node


def _of_network(verdict: Verdict, clause: str, node: str, pods: Sequence[str], what: str) -> Verdict:
    return replace(
        verdict,
        state=State.WAITING,
        message=clause,
        suspects=tuple(Suspect(None, pod, node, None, what) for pod in pods),
        advice=f"look at the network of {node}: its interface, its cable and its port of the switch",
    )


# What those that are named have in common.


def judge_shared(verdict: Verdict, nodes: Iterable[str], domains: Mapping[str, Sequence[str]]) -> Verdict:
    """Return *verdict* with what its suspects share, where that is all that the job has there.

    It is a node, or a domain of the fabric: then a machine, a switch or an uplink is likelier than several
    ranks that fail alike. *nodes* are those of the ranks that are not named; *domains* has for each node the
    words of those above it, the coarsest first: ``rack r2``, empty where it is in none.
    """
    named = {suspect.node for suspect in verdict.suspects}
    others = set(nodes) - {""}
    if len(verdict.suspects) < 2 or "" in named or not others or named & others:
        return verdict
    paths = [(*domains.get(node, ()), f"node {node}") for node in sorted(named)]
    common = [level[0] for level in zip(*paths, strict=False) if len(set(level)) == 1]
    outside = {word for node in others for word in domains.get(node, ())}
    shared = next((word for word in reversed(common) if word and word not in outside), "")
    if not shared:
        return verdict
    place = f"{'on' if len(named) == 1 else 'in'} {shared}"
    what = "the machine" if len(named) == 1 else "its switch, its uplink and its power"
    return replace(
        verdict,
        message=f"{verdict.message}; they are all that the job has {place}",
        advice="; ".join([f"look at {what} first", *filter(None, [verdict.advice])]),
        shared=shared,
    )


# Slow ranks, by many looks at a job that runs.

_MOSTLY, _AT_MOST = 0.8, 0.5
"""Shares of looks: a slow rank is outside the collective in most, half of the others in at most so many."""


def judge_speed(ranks: Sequence[Rank]) -> Verdict | None:
    """Return who slows the others down, by many looks at a job that runs: who comes late to each collective.

    None where nobody does, or no stacks show it.
    """
    ranks = sorted(ranks, key=lambda rank: (rank.number, rank.pod))
    shares = [_share_outside(rank) for rank in ranks]
    known = [share for share in shares if share is not None]
    if len(known) < len(ranks) or len(ranks) < 3 or min(len(rank.looks) for rank in ranks) < _LEAST_LOOKS:
        return None
    late = [share for share in known if share >= _MOSTLY]
    slow = [rank for rank, share in zip(ranks, known, strict=True) if share >= _MOSTLY]
    rest = [share for share in known if share < _MOSTLY]
    if not slow or not rest or len(slow) > max(1, len(ranks) // 4) or median(rest) > _AT_MOST:
        return None
    looks = len(slow[0].looks)
    doing = f"was out of the collectives in most of {looks} looks"
    seen = Counter(
        str(_stack_key(look)) for rank in slow for look in rank.looks if not collective(look.stack)
    )
    most, _ = seen.most_common(1)[0]
    seconds = min(rank.looks[-1].at - rank.looks[0].at for rank in ranks)
    usual = median(rest)
    times = (
        f", {median(late) / usual:.1f} times as long outside the collectives as the others" if usual else ""
    )
    return Verdict(
        state=State.SLOW,
        message=f"{plural(len(ranks) - len(slow), 'rank')} wait again and again for {_named(slow)}, "
        f"mostly {most}{times}",
        advice="compare its CPU, its GPU's clock and its data with those of the others",
        suspects=tuple(_suspect(rank, doing) for rank in slow),
        seconds=seconds,
    )


def _share_outside(rank: Rank) -> float | None:
    """Return the share of looks in which a rank was in no collective, None where most show no stack."""
    stacks = [look.stack for look in rank.looks if look.stack]
    if len(stacks) * 2 <= len(rank.looks):
        return None
    return sum(not collective(stack) for stack in stacks) / len(stacks)
