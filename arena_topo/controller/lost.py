"""Lost workers of jobs that have started: who is lost, and where they go while all others stay.

One set of rules for both reconcilers, however a job's plan is stored:

=======================  ==============================  ===================================================
the node of a worker     a pod that is bound to it       a worker that has no node yet
=======================  ==============================  ===================================================
runs                     stays                           waits for the scheduler
is not ready             stays: it may come back         gets another node after ``_SILENT``
is cordoned, or tainted  stays until it is deleted, as   gets another node
                         by a drain
is gone, or out of       is dead: gets another node and  gets another node
service                  is deleted at once, as nobody
                         else does it for 50 seconds
=======================  ==============================  ===================================================

Nothing is remembered that the objects do not say: a controller that begins in the middle of a move finds the
same workers lost, and moves them again. First the pins are written, then pods are deleted, so that those that
replace them are pinned to the new nodes; one that was created in between, for an earlier node, is deleted
once more.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from arena_topo.controller.objects import DeletePod
from arena_topo.controller.state import ClusterState, JobName, required_hostname
from arena_topo.jobs.other_plans import member_of
from arena_topo.jobs.plan import UNREADABLE, tolerations_of, waiting_reason
from arena_topo.jobs.resume import Replacement
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.cluster import GpuNode, Snapshot, Taint
from arena_topo.model.keys import OPERATOR_JOB_NAME
from arena_topo.model.kind import Kind, planned_replicas
from arena_topo.model.moves import Move, nodes_text
from arena_topo.model.objects import Object
from arena_topo.model.plan import Infeasible
from arena_topo.model.plan_record import PlanRecord, Slot
from arena_topo.model.pods import Toleration, untolerated
from arena_topo.model.text.json import reason_of
from arena_topo.planner.reservations import has_no_more

_SILENT = 10.0
"""Seconds for which a node has to be not ready before a worker that waits for it gets another one."""

_UNSEEN = 5.0
"""Seconds after which a node that was never seen is gone: a pod may be seen before its new node is."""

_FAILED = 3.0
"""Seconds after which a worker that has failed is deleted: its job may be about to end."""

_QUARANTINE, _FEW = 40.0, 3
"""Seconds for which more nodes than are left, and more than a few, have to be gone: somebody may have deleted
all by mistake, and their kubelets come back. Kubernetes' own garbage collection of pods waits as long."""

_SAME_POD = 5.0
"""Seconds before the deletion of a pod that is still there is sent again."""

_LONGEST_PAUSE, _FORGET = 60.0, 600.0
"""Seconds between two deletions of one worker's pods, which double from one second up to the first, and
after which it starts from the beginning: an operator may be slow to see new pins, and a worker may fail each
time."""

_OF_CONDITIONS = frozenset(
    f"node.kubernetes.io/{word}" for word in ("not-ready", "unreachable", "unschedulable")
)
"""The taints by which Kubernetes repeats what a node says anyway."""


_MPIJOB = ApiVersion.V2BETA1.kind.lower()


# Nodes.


class NodeState(Enum):
    """What a node can still do for the workers that it was given to."""

    OPEN = "open"
    SILENT = "not ready"
    CLOSED = "closed"
    GONE = "gone"


@dataclass(slots=True)
class Nodes:
    """The states of nodes as of the last ``see``; *clock* counts seconds and is monotonic.

    ``gone`` are the names of those that are gone.
    """

    clock: Callable[[], float]
    gone: frozenset[str] = field(default_factory=frozenset, init=False)
    _state: ClusterState | None = field(default=None, init=False)
    _by_name: tuple[object, Mapping[str, GpuNode]] = field(default=(None, {}), init=False)
    _since: dict[str, float] = field(default_factory=dict, init=False)

    def see(self, state: ClusterState) -> None:
        """Take the cluster as *state* has it."""
        self._state = state
        for name in [name for name in self._since if (node := self._node(name)) and node.ready]:
            del self._since[name]
        unknown = state.ledger.hosts.keys() - state.node_names.keys()
        gone = state.gone_nodes.union(name for name in unknown if self._lasts(name, _UNSEEN))
        here = gone & state.ledger.hosts.keys()
        if len(here) > max(len(state.node_names), _FEW):
            gone -= {name for name in here if not self._lasts(name, _QUARANTINE)}
        self.gone = frozenset(gone)

    def state_of(self, name: str, tolerations: tuple[Toleration, ...] = ()) -> NodeState:
        """Return the state of the node *name* for pods with *tolerations*."""
        node = self._node(name)
        if name in self.gone:
            return NodeState.GONE
        if self._state is None or name in self._state.gone_nodes:
            return NodeState.SILENT
        if node is None:
            if name in self._state.node_names:
                # Its object cannot be read: what runs there continues.
                return NodeState.CLOSED
            return NodeState.GONE if self._lasts(name, _UNSEEN) else NodeState.SILENT
        if not (node.ready or node.unschedulable):
            return NodeState.CLOSED if self._lasts(name, _SILENT) else NodeState.SILENT
        is_closed = node.unschedulable or untolerated(_own_taints(node), tolerations)
        return NodeState.CLOSED if is_closed else NodeState.OPEN

    def states(self, names: Iterable[str]) -> frozenset[tuple[str, NodeState, tuple[Taint, ...]]]:
        """Return the states and taints of those of *names* that are not plainly open."""
        found = ((name, self.state_of(name), self._node(name)) for name in names)
        return frozenset(
            (name, state, node.taints if node else ())
            for name, state, node in found
            if state is not NodeState.OPEN
        )

    def hostname_of(self, name: str) -> str:
        """Return the hostname label of the node *name*, empty if there is none."""
        node = self._node(name)
        return node.hostname or node.name if node else ""

    def name_of(self, hostname: str) -> str:
        """Return the name of the node with the label *hostname*, which mostly is its name."""
        if (node := self._node(hostname)) and node.hostname in ("", hostname):
            return hostname
        return next((each.name for each in self._by_name[1].values() if each.hostname == hostname), hostname)

    def _node(self, name: str) -> GpuNode | None:
        """Return the node *name*; most decisions ask for none, and then none of thousands is looked at."""
        nodes = self._state.snapshot.nodes if self._state else ()
        if self._by_name[0] is not nodes:
            self._by_name = nodes, {node.name: node for node in nodes}
        return self._by_name[1].get(name)

    def _lasts(self, name: str, seconds: float) -> bool:
        """Whether the node *name* has been as it is for so many *seconds*."""
        return self.clock() - self._since.setdefault(name, self.clock()) >= seconds

    def why(self, names: Iterable[str]) -> str:
        """Return why workers of the nodes *names* get others, such as ``a and b are gone``."""
        by_word: dict[str, list[str]] = {}
        for name in sorted(set(names)):
            by_word.setdefault(self._word(name), []).append(name)
        return ", ".join(nodes_text(of_word, word) for word, of_word in by_word.items())

    def _word(self, name: str) -> str:
        node = self._node(name)
        if node is None:
            return "gone"
        if self.state_of(name) is NodeState.GONE:
            return "out of service"
        if node.unschedulable:
            return "cordoned"
        if not node.ready:
            return "not ready"
        return "tainted" if _own_taints(node) else "taken by others"


def _own_taints(node: GpuNode) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.taints if taint.key not in _OF_CONDITIONS)


# Workers.

Pods = Mapping[int, Sequence[Object]]
"""The pods of each worker, by its number."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What of a job is lost: ``workers`` need other nodes, and ``pods``, by their workers, have to go."""

    workers: frozenset[int] = frozenset()
    pods: tuple[tuple[int, Object], ...] = ()


def losses(kind: Kind, job: Object, record: PlanRecord, pods: Pods, nodes: Nodes) -> Losses:
    """Return what is lost of *job*, which has started by the plan *record*.

    A pod has to be deleted that is on a node that is gone, or that waits for another node than its worker's.
    """
    workers: set[int] = set()
    wrong: list[tuple[int, Object]] = []
    tolerations = [
        own
        for replicas in planned_replicas(kind, job)
        for own in [tolerations_of(replicas.pods.get("spec") or {})] * min(replicas.count, len(record.slots))
    ]
    for slot in record.slots:
        own = pods.get(slot.worker, ())
        dead = [pod for pod in own if node_of(pod) in nodes.gone]
        wrong += [(slot.worker, pod) for pod in dead]
        alive = [pod for pod in own if pod not in dead and not _leaves(pod)]
        if any(map(node_of, alive)):
            continue
        state = nodes.state_of(slot.node, tolerations[slot.worker] if slot.worker < len(tolerations) else ())
        # A worker without a pod gets one in a moment, or its job ends.
        if state is NodeState.GONE or (own and state is NodeState.CLOSED):
            workers.add(slot.worker)
        right = ("", nodes.hostname_of(slot.node))
        wrong += [(slot.worker, pod) for pod in alive if right[1] and required_hostname(pod) not in right]
    return Losses(frozenset(workers), tuple(wrong))


def _launchers(state: ClusterState) -> Iterator[tuple[JobName, int, Object]]:
    """Yield the launchers of all jobs, with the jobs' names and a number that no worker has."""
    for pod in state.launchers.values():
        meta = pod["metadata"]
        yield (meta["namespace"], _MPIJOB, str(meta["labels"].get(OPERATOR_JOB_NAME))), -1, pod


def _failed_workers(state: ClusterState) -> Iterator[tuple[JobName, int, Object]]:
    """Yield the workers' pods that have failed and no operator replaces, with the jobs' names and indices.

    The MPI operator ends a job whose worker was evicted by its kubelet; a worker that failed for any other
    reason it leaves as it is. The other operators see to their own.
    """
    for pod in state.failed_pods.values():
        word, member = member_of(pod)
        reason = (pod.get("status") or {}).get("reason")
        if word == _MPIJOB and member and reason != "Evicted" and not _leaves(pod):
            yield (pod["metadata"]["namespace"], word, member.job), member.index, pod


def is_whole(record: PlanRecord, pods: Pods, nodes: Nodes) -> bool:
    """Whether each worker of *record* has a pod that runs, and none of its pods is on a node that is gone."""
    return all(
        any(node_of(pod) and not _leaves(pod) for pod in pods.get(slot.worker, ())) for slot in record.slots
    ) and not any(node_of(pod) in nodes.gone for own in pods.values() for pod in own)


def as_it_runs(record: PlanRecord, pods: Pods, nodes: Nodes, *, newest: bool) -> PlanRecord:
    """Return *record* with each worker on the node where its pod runs, or that its pod is pinned to.

    *newest*: the record is newer than pins, so that only pods that run tell more. Nobody can change the
    answer by which a job of Kueue has started, so that the pods of one that has moved know more than that.
    """
    if not pods:
        return record
    slots: list[Slot] = []
    for slot in record.slots:
        there = ""
        for pod in pods.get(slot.worker, ()):
            node, pinned = node_of(pod), required_hostname(pod)
            if not _leaves(pod) and not (newest and node in nodes.gone):
                there = node or there or ("" if newest else nodes.name_of(pinned))
        is_same = there in ("", slot.node)
        slots.append(slot if is_same else Slot(slot.worker, there, None if slot.gpus else slot.gpus))
    return replace(record, slots=tuple(slots))


def node_of(pod: Object) -> str:
    """Return the name of the node to which *pod* is bound, empty if to none."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _leaves(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def move_of(before: PlanRecord, after: PlanRecord, workers: Collection[int], why: str, now: datetime) -> Move:
    """Return the move of *workers* from where the plan *before* has them to where *after* does."""
    new = {slot.worker: slot.node for slot in after.slots}
    nodes = {slot.worker: (slot.node, new[slot.worker]) for slot in before.slots if slot.worker in workers}
    return Move(now, why, nodes)


def waiting_move(record: PlanRecord, workers: Collection[int], why: str, waits: str, now: datetime) -> Move:
    """Return that *workers* of the plan *record* have lost their nodes, and what they wait for."""
    return Move(
        now, why, {slot.worker: (slot.node, "") for slot in record.slots if slot.worker in workers}, waits
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no room for lost workers; ``is_told``: the job says so already."""

    reason: str
    is_told: bool


@dataclass(slots=True)
class Mover:
    """Where lost workers go, and when their pods are deleted; *clock* counts seconds and is monotonic."""

    clock: Callable[[], float]
    _refused: dict[str, tuple[Snapshot, frozenset[int], str]] = field(default_factory=dict, init=False)
    _told: dict[str, tuple[frozenset[int], str]] = field(default_factory=dict, init=False)
    _deleted: dict[tuple[str, int], tuple[str, float, int]] = field(default_factory=dict, init=False)
    _failed: dict[str, float] = field(default_factory=dict, init=False)

    def placed(self, uid: str, move: Replacement, left: Snapshot) -> PlanRecord | Refusal:
        """Return the plan of the job with this *uid* with nodes for its lost workers, or why there are none.

        *left* is the free capacity. What did not fit is not planned again before there is more.
        """
        before = self._refused.get(uid)
        if before and before[1] == move.workers and has_no_more(left, before[0]):
            reason = before[2]
        else:
            try:
                found = move.planned(left)
                reason = waiting_reason(found) if isinstance(found, Infeasible) else ""
            except UNREADABLE as error:
                found, reason = None, reason_of(error)
            if isinstance(found, PlanRecord):
                self._refused.pop(uid, None)
                self._told.pop(uid, None)
                return found
            self._refused[uid] = left, move.workers, reason
        return Refusal(reason, self._told.get(uid) == (move.workers, reason))

    def tell(self, uid: str, workers: frozenset[int], refusal: Refusal) -> None:
        """Note that the job with this *uid* says why its lost *workers* wait."""
        self._told[uid] = workers, refusal.reason

    def deleted(self, uid: str, pods: Iterable[tuple[int, Object]]) -> Iterator[DeletePod]:
        """Yield the deletions of *pods*, by their workers of the job with this *uid*, that are due now."""
        now = self.clock()
        for worker, pod in pods:
            last, at, count = self._deleted.get((uid, worker), ("", -_FORGET, 0))
            if now - at >= _FORGET:
                count = 0
            pause = min(2.0 ** (count - 2), _LONGEST_PAUSE) if count > 1 else 0.0
            if count and now - at < (_SAME_POD if last == pod["metadata"]["uid"] else pause):
                continue
            self._deleted[uid, worker] = pod["metadata"]["uid"], now, count + 1
            yield DeletePod(pod, at_once=True)

    def replaced(
        self, state: ClusterState, nodes: Nodes, running: Callable[[JobName], str]
    ) -> Iterator[DeletePod]:
        """Yield the deletions of pods that keep their operator from creating them again.

        These are launchers on nodes that are gone, and workers that have failed. *running* returns a uid for
        the name of a job that runs, empty for any other.
        """
        found = list(_failed_workers(state))
        uids = {str(pod["metadata"]["uid"]) for *_, pod in found}
        self._failed = {uid: self._failed.get(uid, self.clock()) for uid in uids}
        due = [each for each in found if self.clock() - self._failed[each[-1]["metadata"]["uid"]] >= _FAILED]
        due += [each for each in _launchers(state) if node_of(each[-1]) in nodes.gone]
        for name, index, pod in due:
            if uid := running(name):
                yield from self.deleted(uid, [(index, pod)])

    def failed(self, uid: str) -> None:
        """Note that the pod with this *uid* was not deleted, or the job not written: it is tried again."""
        for key in [key for key, (pod, *_) in self._deleted.items() if pod == uid]:
            del self._deleted[key]
        self._refused.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Forget the job with this *uid*."""
        self._refused.pop(uid, None)
        self._told.pop(uid, None)
        for key in [key for key in self._deleted if key[0] == uid]:
            del self._deleted[key]
