"""Where jobs stand that wait in queues of Kueue: what their Workloads say, as one reason and the next step.

Of all that a Workload says, what has to come first is the reason::

    stopped by somebody         what its condition Evicted says
    without quota               what its condition QuotaReserved says
    with quota, not admitted    what the check says that has not agreed, the one that refuses first

Our check says its place among those that wait for one as well, and when that is likely (``check_message``).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from arena_topo.cluster.capabilities import KUEUE_GROUP, KUEUE_VERSIONS
from arena_topo.errors import DocumentError, Forbidden, NotFound
from arena_topo.jobs.conditions import true_condition
from arena_topo.jobs.status import STARTS_BY_ITSELF
from arena_topo.kube.resources import Resource
from arena_topo.kube.session import Session
from arena_topo.model.job_view import JobStatus, JobView, QueueView
from arena_topo.model.keys import KUEUE_JOB_UID, KUEUE_QUEUE
from arena_topo.model.objects import WORKLOAD, Object
from arena_topo.model.plan_record import ESTIMATE, MOST_AHEAD, StartEstimate
from arena_topo.model.text.documents import fitted
from arena_topo.model.text.json import cut, read_json
from arena_topo.model.text.words import plural

# What our admission check says of a Workload that waits for a place: a text for people, which programs read
# back.
#
# ``kubectl describe workload`` shows it to users of the Workload, who may see no more of the cluster::
#
#     number 2 of those that wait for a place: 3 nodes have < 8 free GPUs
#     start: {"after":["team/bert-7"],"basis":["its deadline"],"from":"2026-11-22T12:25:00Z",...}
#
# The second line is there once the start has been estimated, with the keys of an estimate on a job of the own
# queue.

MOST_MESSAGE = 8192
"""Characters of a message, an estimate included; Kueue admits 32,768."""

_MOST_REASON = 1000
"""Characters of a reason; Kueue's own may have 32,768."""

_HEAD = re.compile(r"number ([1-9][0-9]{0,8}) of those that wait for a place: (.*)", re.DOTALL)
_START = "\nstart: "


@dataclass(frozen=True, slots=True)
class CheckMessage:
    """The position of a Workload that waits for a place, why it has none, and when it starts if known."""

    position: int
    reason: str
    start: StartEstimate | None = None

    @property
    def head(self) -> str:
        """The first line."""
        return f"number {self.position} of those that wait for a place: {bounded_reason(self.reason)}"

    @property
    def text(self) -> str:
        """The message."""
        if self.start is None:
            return self.head
        document = json.dumps(ESTIMATE.write(self.start), ensure_ascii=False, separators=(",", ":"))
        text = f"{self.head}{_START}{document}"
        # Half of an estimate is of no use.
        return text if len(text) <= MOST_MESSAGE else self.head


def bounded_reason(text: str) -> str:
    """Return the reason *text* on one line, cut to a length that a line of a table can bear."""
    return cut(" ".join(text.split()), _MOST_REASON)


def read_message(text: str) -> CheckMessage | None:
    """Return what the message *text* says, None where it is another one.

    An estimate that cannot be read counts as none.
    """
    line, _, document = text[:MOST_MESSAGE].partition(_START)
    found = _HEAD.fullmatch(line)
    if found is None:
        return None
    start = None
    try:
        start = ESTIMATE.read(read_json(document), "start") if document else None
    except (ValueError, DocumentError):
        # Anybody who may write the status may have written it.
        start = None
    return CheckMessage(int(found[1]), bounded_reason(found[2]), start)


_UNSEEN = "Kueue has not looked at it yet"
_RIGHTS = "the roles that arena-topo cluster setup --users prints have the right to list them"

_MOST_NAMED = 100
"""Jobs that one request names; of more, all Workloads of the namespace are listed."""

_LABEL = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,62}")
"""A uid that can be asked for: one that a server in between has garbled must not fail the list."""

_REFUSALS = {"Rejected": 0, "Retry": 1, "Pending": 2}
"""The states of a check that has not agreed, the one that matters most first."""


def with_queues(session: Session, views: Sequence[JobView]) -> list[JobView]:
    """Return *views*, those that wait in a queue of Kueue with where they stand.

    One call where there are any, else none.
    Where the user cannot list Workloads, that is what is said of them. They are as they were where none of a
    version that we know are served.
    """
    queuing = [view for view in views if view.status is JobStatus.QUEUING]
    if not queuing:
        return list(views)
    uids = [view.uid for view in queuing if _LABEL.fullmatch(view.uid)]
    namespaces = {view.namespace for view in queuing}
    namespace = namespaces.pop() if len(namespaces) == 1 else ""
    path = Resource(KUEUE_GROUP, KUEUE_VERSIONS[0], "workloads").path(namespace)
    chosen = f"{KUEUE_JOB_UID} in ({','.join(uids)})" if len(uids) <= _MOST_NAMED else KUEUE_JOB_UID
    try:
        found = session.list(path, labelSelector=chosen)
    except Forbidden:
        return [_unknown(view, namespace) if view.status is JobStatus.QUEUING else view for view in views]
    except NotFound:
        return list(views)
    by_uid = {uid: item for item in found for uid in _uids(item)}
    return [
        _with_queue(view, by_uid.get(view.uid)) if view.status is JobStatus.QUEUING else view
        for view in views
    ]


def _unknown(view: JobView, namespace: str) -> JobView:
    where = f"namespace {namespace}" if namespace else "all namespaces"
    message = f"why it waits is not known: you cannot list the Workloads of {where}"
    return replace(view, message=message, advice=_RIGHTS)


def _uids(workload: Object) -> Iterator[str]:
    # The owner says whose it is: a label may be copied.
    owners = fitted(workload, WORKLOAD)["metadata"].get("ownerReferences") or ()
    return (str(owner.get("uid") or "") for owner in owners)


def _with_queue(view: JobView, item: Object | None) -> JobView:
    queue = str((view.manifest["metadata"].get("labels") or {}).get(KUEUE_QUEUE) or "")
    workload = fitted(item or {}, WORKLOAD)
    stands = standing(workload, queue) if item else replace(standing(workload, queue), workload="")
    return replace(view, queue=stands, message=summary(stands), advice=_next_step(workload, view, stands))


def summary(stands: QueueView) -> str:
    """Return why a job waits that *stands* there, and which one it is where that is known."""
    return f"number {stands.position} in the queue: {stands.reason}" if stands.position else stands.reason


def standing(workload: Object, queue: str) -> QueueView:
    """Return where a *workload*, of the shape of one, stands in the LocalQueue *queue*."""
    position, start = 0, None
    if _is_stopped(workload):
        reason, unknown = _why_stopped(workload), "it has been stopped"
    elif not true_condition(workload, "QuotaReserved"):
        reason, unknown = (
            _why_without_quota(workload),
            "it has no quota yet, and nobody knows when it gets it",
        )
    elif (check := _disagreeing(workload)) is None:
        reason, unknown = "Kueue is about to start it", "it is about to"
    elif ours := _place_among_those_that_wait(check):
        position, reason, start = ours.position, ours.reason, ours.start
        unknown = _not_estimated(position)
    else:
        reason, unknown = _why_not_agreed(check), "it waits for a check that gives no estimate"
    return QueueView(
        queue=queue,
        workload=str(workload["metadata"]["name"]),
        reason=bounded_reason(reason),
        position=position,
        start=start or StartEstimate(unknown=unknown),
    )


def _is_stopped(workload: Object) -> bool:
    return workload["spec"].get("active") is False


def _why_stopped(workload: Object) -> str:
    said = str((true_condition(workload, "Evicted") or {}).get("message") or "")
    return f"Kueue does not start it: {said}" if said else "somebody has stopped it in Kueue"


def _why_without_quota(workload: Object) -> str:
    conditions: Iterable[Object] = (workload.get("status") or {}).get("conditions") or ()
    said = (str(each.get("message") or "") for each in conditions if each["type"] == "QuotaReserved")
    return next(said, "") or _UNSEEN


def _disagreeing(workload: Object) -> Object | None:
    """Return the check that keeps *workload* waiting, None where all agree."""
    checks: Iterable[Object] = (workload.get("status") or {}).get("admissionChecks") or ()
    others = (each for each in checks if each["state"] != "Ready")
    return min(others, key=lambda each: _REFUSALS.get(each["state"], len(_REFUSALS)), default=None)


def _place_among_those_that_wait(check: Object) -> CheckMessage | None:
    return read_message(str(check.get("message") or "")) if check["state"] == "Pending" else None


def _why_not_agreed(check: Object) -> str:
    said, state = str(check.get("message") or ""), f"the check {check['name']} is {check['state']}"
    if check["state"] == "Pending":
        return said or state
    return f"{state}: {said}" if said else state


def _not_estimated(position: int) -> str:
    ahead = position - 1
    if ahead >= MOST_AHEAD:
        return f"{plural(ahead, 'job')} wait before it"
    return "the controller has made none yet"


def _next_step(workload: Object, view: JobView, stands: QueueView) -> str:
    """Return what the job's user can do about what keeps it waiting; empty where there is nothing to do."""
    here = f"-n {view.namespace}"
    if _is_stopped(workload):
        return f"start it again with: kubectl kueue resume workload {stands.workload} {here}"
    if not true_condition(workload, "QuotaReserved"):
        return f"see the quota of its queue: kubectl describe localqueue {stands.queue} {here}"
    if stands.position:
        return STARTS_BY_ITSELF
    check = _disagreeing(workload)
    if check and not check.get("message"):
        return "nobody has answered it yet; whether arena-topo's controller runs: arena-topo doctor"
    return f"see what the check says: kubectl describe workload {stands.workload} {here}" if check else ""
