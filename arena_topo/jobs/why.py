"""Why a job does not get on: what its pods wait for, or what its ranks do, as they are seen from outside."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from arena_topo.diagnosis.look import LARGEST_OUTPUT, Evidence, PodAt, Run, find, look, merged, unanswered
from arena_topo.diagnosis.sources.log_steps import read_steps
from arena_topo.diagnosis.verdict import (
    Absent,
    State,
    Suspect,
    Verdict,
    judge,
    judge_findings,
    judge_links,
    judge_shared,
    judge_speed,
)
from arena_topo.errors import ArenaTopoError, Forbidden
from arena_topo.jobs.conditions import chief_pod, is_held_up, pod_failure, pod_word, why_waiting
from arena_topo.jobs.logs.follow import LogOptions, read_pod
from arena_topo.jobs.logs.wait import LogTarget, container_status
from arena_topo.jobs.lookup import find_job, launcher_job_of, pods_of, with_queue
from arena_topo.jobs.status import job_events, job_view
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.resources import NODES, PODS
from arena_topo.kube.session import Session
from arena_topo.model.job_view import JobEvent, JobStatus, JobView
from arena_topo.model.objects import Object
from arena_topo.model.text.quantity import parse_instant
from arena_topo.model.text.words import last_part, written_duration

_LOG_LINES = 200
"""The last lines of a log in which steps are looked for, and that are kept as evidence."""
_MOST_NODES = 8
"""Nodes that are asked whether they are ready, where pods do not answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What ``why`` says of a job, and what it says it by; ``evidence`` is None where no rank was asked."""

    job: JobView
    verdict: Verdict
    evidence: Evidence | None = None


def why(
    session: Session,
    name: str,
    run: Run,
    *,
    patience: float | None = None,
    looks: int = 10,
    notify: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Return why the job *name* does not get on, or that it does.

    Its ranks are asked by *run*, in so many *looks*, and with *patience* once more after so many seconds.
    Raises ``NotFound``.
    """
    served = find_job(session, name)
    pods = pods_of(session, served)
    view = with_queue(
        session,
        job_view(
            served.kind,
            served.job,
            pods,
            now=session.now(),
            launcher_job=launcher_job_of(session, served.job),
        ),
    )
    if found := _without_ranks(session, view, pods):
        return Answer(view, found)
    asked = [at for pod in pods if (at := _pod_at(pod, view))]
    gone = [_ended(pod) for pod in pods if served.kind.member(pod) is not None and not _runs(pod)]
    processes = find(asked, run)
    evidence = _with_nodes(session, look(processes, run, looks=looks), gone)
    verdict = judge(evidence.ranks, evidence.absent)
    if patience is not None and verdict.state in (State.WAITING, State.UNDECIDED):
        notify(f"{verdict.message}; looking again in {written_duration(patience)}")
        sleep(patience)
        evidence = merged(evidence, _with_nodes(session, look(processes, run, looks=looks), gone))
        verdict = judge(evidence.ranks, evidence.absent, patience=patience)
    verdict = judge_findings(verdict, evidence.ranks, evidence.answers, patience=patience)
    if verdict.state is State.HEALTHY and evidence.has_stacks:
        verdict = judge_speed(evidence.ranks) or verdict
    verdict = judge_links(verdict, evidence.ranks, evidence.backlogs)
    named = {suspect.node for suspect in verdict.suspects}
    suspected = {suspect.rank for suspect in verdict.suspects}
    others = [rank.node for rank in evidence.ranks if rank.number not in suspected]
    verdict = judge_shared(verdict, others, _domains(session) if len(named) > 1 else {})
    if verdict.state in (State.WAITING, State.UNDECIDED, State.STUCK):
        verdict = _with_log(session, pods, verdict)
    return Answer(view, replace(verdict, advice=verdict.advice.replace("JOB", name)), evidence)


def runner(connection: ConnectionFlags, session: Session, most: int = LARGEST_OUTPUT) -> Run:
    """Return what runs a command in a pod of the namespace of *session*, and reads *most* bytes of it."""
    from arena_topo.kube.remote import Starter

    starter = Starter(connection)

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        path = PODS.path(session.namespace, pod.name)
        return starter.output(path, words, container=pod.container, most=most)

    return run


def last_sign(session: Session, pods: Sequence[Object]) -> datetime | None:
    """Return when the pod that leads a job logged its last line, or started; None if it does not run.

    Raises what reading a log raises.
    """
    chief = chief_pod(pods)
    if chief is None or not _runs(chief):
        return None
    container = LogTarget().container_in(chief)
    stamps = [line.stamp for line in read_pod(session, chief, container, LogOptions(tail=1, timestamps=True))]
    text = stamps[-1].decode(errors="replace") if stamps else ""
    try:
        return parse_instant(text or str(container_status(chief, container)["state"]["running"]["startedAt"]))
    except (ValueError, KeyError):
        return None


_LOGS = 8
"""Instances whose last lines are kept: the chief, and those that are named."""


def named_pods(answer: Answer) -> list[str]:
    """Return the pods whose logs are evidence: that of the chief, and those that are named."""
    named = [suspect.pod for suspect in answer.verdict.suspects if suspect.pod]
    chief = [answer.job.chief.name] if answer.job.chief else []
    return list(dict.fromkeys([*chief, *named]))[:_LOGS]


def log_of(session: Session, pod: str, longest: int | None = None) -> str:
    """Return the last lines of the log of *pod*, with their times, the *longest* cut at so many characters.

    Raises what reading it raises.
    """
    found = session.get(PODS.path(session.namespace, pod))
    return "".join(
        f"{stamp} {text}" if longest is None or len(text) <= longest else f"{stamp} {text[:longest]}\n"
        for stamp, text in last_lines(session, found)
    )


def _with_log(session: Session, pods: Sequence[Object], verdict: Verdict) -> Verdict:
    """Return *verdict* with how far the log got; steps at their usual pace decide what ranks left open."""
    chief = chief_pod(pods)
    if chief is None or not _runs(chief):
        return verdict
    try:
        progress = read_steps(last_lines(session, chief))
    # Users who cannot read logs get the rest.
    except ArenaTopoError:
        return verdict
    now = session.now()
    if progress is None:
        return verdict
    if verdict.state is State.UNDECIDED and progress.is_recent(now):
        return replace(verdict, state=State.HEALTHY, message=progress.words(now), advice="")
    return replace(verdict, message=f"{verdict.message}; {progress.words(now)}")


def _domains(session: Session) -> dict[str, list[str]]:
    """Return the words of the domains above each node; nothing for users who cannot see the cluster."""
    # Only where several nodes are named: a cluster is more to read than a job.
    from arena_topo.cluster.published import read_published
    from arena_topo.cluster.snapshot import take_snapshot

    try:
        fabric = (read_published(session) or take_snapshot(session)).fabric
    except ArenaTopoError:
        return {}
    tiers = [last_part(tier) for tier in fabric.tiers]
    return {
        node: [f"{tier} {domain}" if domain else "" for tier, domain in zip(tiers, path, strict=False)]
        for node, path in fabric.paths.items()
    }


def last_lines(session: Session, pod: Object) -> Iterator[tuple[str, str]]:
    """Yield the last lines of the log of *pod*, each with the time at which the container wrote it."""
    options = LogOptions(tail=_LOG_LINES, timestamps=True)
    for line in read_pod(session, pod, LogTarget().container_in(pod), options):
        yield line.stamp.decode(errors="replace"), line.text.decode(errors="replace")


def _without_ranks(session: Session, view: JobView, pods: Sequence[Object]) -> Verdict | None:
    """Return what is known without the ranks: the job has ended, or waits for GPUs, an image or a volume."""
    word = view.status.value.lower()
    if view.status.is_final:
        return Verdict(
            state=State.ENDED,
            message=f"the job has {word}" + (f": {view.message}" if view.message else ""),
            advice=view.advice,
        )
    held = [pod for pod in pods if is_held_up(pod)]
    if view.status is JobStatus.RUNNING and not held:
        return None
    message = view.message or (f"{held[0]['metadata']['name']}: {why_waiting(held[0])}" if held else "")
    if event := _last_warning(session, view, held):
        # A volume that is not there, an image that is not pulled: the pod itself only says that it is
        # created.
        message += f"; {event.source}: {event.reason}: {event.message}"
    suspects = [
        Suspect(
            None,
            pod["metadata"]["name"],
            _node(pod),
            None,
            why_waiting(pod),
        )
        for pod in held
    ]
    return Verdict(
        state=State.WAITING,
        message=f"the job is {word}" + (f": {message}" if message else ""),
        advice=view.advice or f"see arena-topo describe {view.name}",
        suspects=tuple(suspects),
    )


def _last_warning(session: Session, view: JobView, held: Sequence[Object]) -> JobEvent | None:
    """Return the newest warning of pods that have a node and do not start, whose own words say little."""
    names = {f"pod/{pod['metadata']['name']}" for pod in held if _node(pod)}
    if not names:
        return None
    try:
        events = job_events(session, view)
    except Forbidden:
        return None
    warnings = [event for event in events if event.source in names and event.kind == "Warning"]
    return max(warnings, key=lambda event: event.last_seen, default=None)


def _node(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _runs(pod: Object) -> bool:
    container = LogTarget().container_in(pod)
    return "running" in (container_status(pod, container).get("state") or {})


def _pod_at(pod: Object, view: JobView) -> PodAt | None:
    """Return a pod that can be asked, None for one whose container does not run."""
    if not _runs(pod):
        return None
    name = str(pod["metadata"]["name"])
    planned = (
        next((worker.gpus for worker in view.plan.workers if worker.name == name), None)
        if view.plan
        else None
    )
    return PodAt(
        name,
        _node(pod),
        LogTarget().container_in(pod),
        # Planned GPUs are those that a pod has only where they are enforced.
        (planned or ()) if view.plan and view.plan.gpu_enforcement else (),
        str((pod.get("status") or {}).get("podIP") or ""),
    )


def _ended(pod: Object) -> Absent:
    failure = pod_failure(pod)
    return Absent(
        why=f"it {failure.words}" if failure else f"it does not run: {pod_word(pod)}",
        pod=str(pod["metadata"]["name"]),
        node=_node(pod),
    )


def _with_nodes(session: Session, evidence: Evidence, gone: Sequence[Absent]) -> Evidence:
    """Return *evidence* with pods that have ended, and with what nodes say of pods that do not answer."""
    absent = []
    for number, one in enumerate(evidence.absent):
        asks = one.is_silent and bool(one.node) and number < _MOST_NODES
        if asks and not _is_ready(session, one.node):
            absent.append(unanswered(one.pod, one.node, f"its node {one.node} is NotReady", one.ranks))
        else:
            absent.append(one)
    if len(gone) == 1 and len(absent) == 1 and not absent[0].pod:
        # The ranks that have no process are those of the one pod that has ended.
        return replace(evidence, absent=(replace(gone[0], ranks=absent[0].ranks),))
    return replace(evidence, absent=(*absent, *gone))


def _is_ready(session: Session, node: str) -> bool:
    """Whether a node is ready; True too for users who cannot read it."""
    try:
        status = session.get(NODES.path("", node)).get("status") or {}
    except ArenaTopoError:
        return True
    conditions = status.get("conditions") or ()
    return all(one.get("status") == "True" for one in conditions if one.get("type") == "Ready")
