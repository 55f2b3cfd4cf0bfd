"""Jobs submitted with ``--on-hang``: once the log of one is silent, its ranks are observed, as by ``why``.

Threads of their own do it, a few jobs at a time, so that no decision waits for a container. Of each job::

    its log had a line within the time of its rule    it is read again once that time has passed
    its ranks move                                    the same
    its ranks do not move                             the evidence is kept in a ConfigMap of the job, and the
                                                      job says so; an event too
    ... and a rank is stuck, by two observations      the same, and a job that is to fail is stopped

What runs in the containers is what ``why`` runs, and the admission policy allows nothing else. It is only
done in namespaces whose admin allows it, as it needs the right to exec.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from queue import SimpleQueue
from threading import Event, Lock, Thread

from arena_topo.controller.objects import Action, Faults, Notice, NoticeKind
from arena_topo.diagnosis.look import PodAt, Run
from arena_topo.diagnosis.verdict import State
from arena_topo.errors import ApiError, ArenaTopoError, Conflict, Forbidden, NotFound
from arena_topo.jobs.evidence import evidence_object
from arena_topo.jobs.lookup import find_job, pods_of
from arena_topo.jobs.why import Answer, last_sign, log_of, named_pods, why
from arena_topo.kube.resources import CONFIG_MAPS, jobs_of
from arena_topo.kube.session import NotSent, Session
from arena_topo.model.hang import STUCK, Hang, hang_of
from arena_topo.model.keys import CONTROLLER, HANG
from arena_topo.model.kind import Kind
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import HangRule
from arena_topo.output.why import why_document

EVERY = 10.0
"""Seconds between two reads of which jobs ask for it."""
_TICK = 1.0
_AGAIN = 60.0
"""Seconds after which a job is asked about again whose log could not be read."""
_PATIENCE = 60.0
"""Seconds between the two observations of a job, or its own time if that is shorter."""
_LOOKS = 3
"""Looks of one observation: whether a rank is slow is not asked."""

_MOST_OUTPUT, _LEAST_OUTPUT = 16 << 20, 16 << 10
"""Bytes that are read of all pods of a job, and of one of them: users decide what theirs print."""
_MOST_PODS = 1000
"""Pods of a job that is looked at; a larger one is left to its user."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A running job that asks to be looked at; ``uid`` is its own, or that of its Workload."""

    uid: str
    kind: Kind
    job: Object
    rule: HangRule

    @property
    def namespace(self) -> str:
        """The job's namespace."""
        return str(self.job["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.job["metadata"]["name"])


RunnerOf = Callable[[Session, int], Run]
"""Makes what runs commands in the pods of a session's namespace, and reads so many bytes of each."""


@dataclass(slots=True)
class HangWatch:
    """Looks at jobs over *sessions*, one thread each; only those in *namespaces* may be looked at.

    ``send`` takes events. ``sleep`` waits between two observations, and *clock* counts seconds.
    """

    sessions: Sequence[Session]
    runner: RunnerOf
    namespaces: frozenset[str]
    may_write: Callable[[], bool]
    send: Callable[[Action], None]
    faults: Faults
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] | None = None
    _asking: Mapping[str, Asking] = field(default_factory=dict, init=False)
    _due: dict[str, float] = field(default_factory=dict, init=False)
    _busy: set[str] = field(default_factory=set, init=False)
    _offered: float = field(default=float("-inf"), init=False)
    _stops: SimpleQueue[tuple[str, str]] = field(default_factory=SimpleQueue, init=False)
    _ended: Event = field(default_factory=Event, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def start(self) -> None:
        """Start the threads."""
        for session in self.sessions:
            # One may wait for a container when the leader ends: nothing is written after that.
            Thread(target=self._run, args=(session,), daemon=True).start()

    def stop(self) -> None:
        """Have the threads end."""
        self._ended.set()

    @property
    def is_due(self) -> bool:
        """Whether it is time to offer the jobs that ask again."""
        return self.clock() - self._offered >= EVERY

    def offer(self, asking: Iterable[Asking]) -> None:
        """Take the running jobs that ask to be looked at; others are forgotten."""
        self._offered = self.clock()
        with self._lock:
            self._asking = {each.uid: each for each in asking}
            self._due = {uid: self._due.get(uid, self._offered) for uid in self._asking}

    def stops(self) -> list[tuple[str, str]]:
        """Return the uids of jobs that are stuck and to be stopped, since the last call, and why."""
        return [self._stops.get() for _ in range(self._stops.qsize())]

    def _run(self, session: Session) -> None:
        while not self._ended.is_set():
            if asked := self._next():
                after = _AGAIN
                with self.faults.at(asked.job):
                    after = self.look_at(asked, session.anew().within(asked.namespace))
                with self._lock:
                    self._busy.discard(asked.uid)
                    self._due[asked.uid] = self.clock() + after
            else:
                self._ended.wait(_TICK)

    def _next(self) -> Asking | None:
        """Return the job that has been due for longest, None if none is."""
        with self._lock:
            due = [
                (at, uid)
                for uid, at in self._due.items()
                if uid in self._asking and uid not in self._busy and at <= self.clock()
            ]
            if not due:
                return None
            _, uid = min(due)
            self._busy.add(uid)
            return self._asking[uid]

    def look_at(self, asked: Asking, session: Session) -> float:
        """Look at one job over *session*, in its namespace; return the seconds until it is due again."""
        try:
            return self._looked_at(asked, session.of_kinds((asked.kind,)))
        except (NotSent, NotFound):
            # Another replica leads, or the job is gone.
            return _AGAIN
        except Forbidden as error:
            self._tell(asked.job, asked.uid, "HangNotSeen", f"it cannot be looked at: {error.message}")
            return max(_AGAIN, float(asked.rule.after))
        except ArenaTopoError:
            # The server or a kubelet that is away for a moment.
            return _AGAIN

    def _looked_at(self, asked: Asking, session: Session) -> float:
        served = find_job(session, asked.name)
        job = served.job
        if asked.namespace not in self.namespaces:
            self._tell(
                job,
                asked.uid,
                "HangNotSeen",
                "it asks for --on-hang, and the controller may not look at ranks in this namespace: "
                f"arena-topo controller manifest --hangs-in {asked.namespace} grants it",
            )
            return max(_AGAIN, float(asked.rule.after))
        pods = pods_of(session, served)
        since = last_sign(session, pods)
        if since is None or len(pods) > _MOST_PODS:
            return _AGAIN
        now, before = session.now(), hang_of(job)
        silence = (now - since).total_seconds()
        # The annotation has whole seconds.
        is_known = before is not None and abs((since - before.since).total_seconds()) < 1
        if before and not is_known:
            self._note(session, asked, job, None)
        if silence < asked.rule.after:
            return max(asked.rule.after - silence, _TICK)
        if before and is_known and before.kept and (before.state == STUCK or not asked.rule.fails):
            if asked.rule.fails:
                self._stops.put((asked.uid, before.text))
            return float(asked.rule.after)
        answer = self._asked(asked, session, job, len(pods))
        if answer and _stands(answer):
            self._keep(session, asked, answer, since)
        return float(asked.rule.after)

    def _asked(self, asked: Asking, session: Session, job: Object, pods: int) -> Answer | None:
        """Return what the ranks of a job were seen to do, None if the controller may not look."""
        run, refused = self.runner(session, max(_MOST_OUTPUT // max(pods, 1), _LEAST_OUTPUT)), list[str]()

        def noting(pod: PodAt, words: Sequence[str]) -> bytes:
            try:
                return run(pod, words)
            except Forbidden as error:
                refused.append(error.message)
                raise

        answer = why(
            session,
            asked.name,
            noting,
            patience=min(_PATIENCE, asked.rule.after),
            looks=_LOOKS,
            notify=lambda _: None,
            sleep=self.sleep or self._wait,
        )
        if refused and not (answer.evidence and answer.evidence.ranks):
            self._tell(job, asked.uid, "HangNotSeen", f"its log is silent, and its ranks: {refused[0]}")
            return None
        return answer if answer.job.uid == job["metadata"]["uid"] else None

    def _wait(self, seconds: float) -> None:
        if self._ended.wait(seconds):
            raise NotSent("another replica leads")

    def _keep(self, session: Session, asked: Asking, answer: Answer, since: datetime) -> None:
        """Keep the evidence, then say so on the job, and have it stopped if it is stuck and to fail."""
        job = answer.job.manifest
        kept, why_not = True, ""
        found = Hang(since, answer.verdict.state.value, answer.verdict.message)
        writing = session.only_while(self.may_write)
        body = evidence_object(
            job,
            why_document(answer.job.name, answer.job.namespace, answer.verdict),
            logs=_logs(session, answer),
            looks=dict(answer.evidence.printed) if answer.evidence else {},
            first=named_pods(answer),
        )
        try:
            writing.create(CONFIG_MAPS.path(asked.namespace), body)
        except Conflict:
            # What was kept first is nearest to the cause.
            pass
        except ApiError as error:
            kept, why_not = False, f"; the evidence could not be kept: {error.message}"
        found = replace(found, kept=kept)
        self._note(session, asked, job, found)
        notice = Notice(job, "Hung" if found.state == STUCK else "Silent", found.text + why_not)
        self.send(replace(notice, kind=NoticeKind.WARNING))
        if kept and found.state == STUCK and asked.rule.fails:
            self._stops.put((asked.uid, found.text))

    def _note(self, session: Session, asked: Asking, job: Object, found: Hang | None) -> None:
        """Write onto *job* what was *found*, or that it makes progress again."""
        meta = job["metadata"]
        body = {"metadata": {"uid": meta["uid"], "annotations": {HANG: found.annotation if found else None}}}
        path = jobs_of(asked.kind).path(asked.namespace, asked.name)
        session.only_while(self.may_write).patch(path, body, fieldManager=CONTROLLER)

    def _tell(self, job: Object, uid: str, reason: str, message: str) -> None:
        if self.faults.is_news(uid, reason):
            self.send(Notice(job, reason, message, NoticeKind.WARNING))


def _stands(answer: Answer) -> bool:
    """Whether ranks were seen, and none of them to move."""
    seen = answer.evidence is not None and bool(answer.evidence.ranks or answer.evidence.absent)
    return seen and answer.verdict.state in (State.STUCK, State.WAITING, State.UNDECIDED)


_MOST_LOG, _MOST_LINE = 32_000, 2000
"""Characters that are kept of a log, the last ones, and of a line."""


def _logs(session: Session, answer: Answer) -> dict[str, str]:
    """Return the last lines of the logs that are evidence; a pod that is silent has none."""
    found: dict[str, str] = {}
    for pod in named_pods(answer):
        try:
            found[pod] = log_of(session, pod, _MOST_LINE)[-_MOST_LOG:]
        except ArenaTopoError:
            continue
    return found
