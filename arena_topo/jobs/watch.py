"""Following what changes.

One stream of the API server for each kind of object, from a list on, without a gap.
Streams end for many reasons, and a resource version may have expired meanwhile; then everything is listed
again, and what changed in between is seen anyway.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from queue import Empty, SimpleQueue

from arena_topo.errors import ArenaTopoError, ConnectionFailed, DocumentError, Expired, Forbidden, NotFound
from arena_topo.jobs.lookup import launcher_job_of, look_up_job
from arena_topo.jobs.status import event_of_job, job_view
from arena_topo.kube.resources import EVENTS, PODS, jobs_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.model.job_view import JobEvent, JobView
from arena_topo.model.kind import Kind, api_version, pod_selector
from arena_topo.model.objects import EVENT, POD, TRAINING_JOB, Object
from arena_topo.model.text.documents import Part, fitted, misfit, text
from arena_topo.model.text.json import read_body

JobKey = tuple[str, str]
"""A job's namespace and name."""

_SILENCE = 330.0
"""Seconds without a word after which a stream is taken for dead; the server sends a bookmark each minute."""

_LONGEST_WATCH = 300
"""Seconds after which the server is to end a stream, so that a new one takes over."""

_PAUSE = 1.0
"""Seconds before a stream is opened again that ended without a word."""

_READING = 0.01
"""Seconds in which the streams read what has come while changes were gathered; one of them takes 0.1 ms."""

_EVENT = Part({"type": text, "object": Part({"metadata": Part({"resourceVersion": text})})})

Query = Mapping[str, str | None]


def _whole(item: Object) -> Object:
    return item


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched: a path, the shape of what is there, and the parameters that choose from it.

    ``read`` returns what is kept of an object, all of it where nothing else is said.
    """

    path: str
    shape: Part
    query: Query = field(default_factory=dict)
    read: Callable[[Object], Object] = _whole

    def taken(self, item: Object) -> Object:
        """Return what is kept of *item*, as far as it is as its API says."""
        return self.read(fitted(item, self.shape))


@dataclass(frozen=True, slots=True)
class Change:
    """An object that was added, changed or deleted, and which collection it is in."""

    collection: int
    object: Object
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The streams cannot be resumed: everything must be listed again.

    *error* is why it cannot be watched at all.
    """

    error: ArenaTopoError | None = None


class Watch:
    """The objects of some collections, kept up to date while the context is open.

    Raises what listing and watching raise, such as ``Forbidden``.
    """

    def __init__(self, session: Session, collections: Iterable[Watched]) -> None:
        self._session = session
        self._collections = tuple(collections)
        self._queue: SimpleQueue[tuple[int, Change | Lost]] = SimpleQueue()
        self._may_read = threading.Event()
        self._may_read.set()
        # Streams of an earlier round may still report, and are not listened to.
        self._round = 0
        self.objects: list[dict[str, Object]] = []
        self._list()

    def wait(self, timeout: float | None = None) -> list[Change]:
        """Return what changed, after at least one change, or nothing when *timeout* seconds have passed."""
        changes: list[Change] = []
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            # A server whose every stream expires at once leaves nothing to return, however often it is listed
            # again.
            left = None if ends is None else max(0.0, ends - time.monotonic())
            try:
                number, change = self._queue.get(timeout=0 if changes else left)
            except Empty:
                return changes
            if number != self._round:
                continue
            if isinstance(change, Lost):
                if change.error is not None:
                    raise change.error
                changes += self._list()
            else:
                self._take(change)
                changes.append(change)

    def gathered(self, meanwhile: Callable[[], None]) -> list[Change]:
        """Return what changes while *meanwhile* lasts, and was not returned before.

        Until then what comes waits in the connections, and is read at once in the end: a thread that wakes
        for each change takes four times as long as one that reads the same changes one after the other.
        """
        self._may_read.clear()
        try:
            meanwhile()
        finally:
            self._may_read.set()
        time.sleep(_READING)
        return self.wait(0)

    def _take(self, change: Change) -> None:
        uid = change.object["metadata"]["uid"]
        if change.deleted:
            self.objects[change.collection].pop(uid, None)
        else:
            self.objects[change.collection][uid] = change.object

    def _list(self) -> list[Change]:
        """List everything, open the streams from there on, and return what differs from before."""
        before, self.objects = self.objects or [{} for _ in self._collections], []
        self._round += 1
        changes: list[Change] = []
        for index, collection in enumerate(self._collections):
            items: dict[str, Object] = {}
            version = ""
            for page in self._session.pages(collection.path, **collection.query):
                version = str((page.get("metadata") or {}).get("resourceVersion") or "")
                shaped = map(collection.taken, page.get("items") or [])
                items.update((item["metadata"]["uid"], item) for item in shaped)
            self.objects.append(items)
            changes += [Change(index, item) for uid, item in items.items() if before[index].get(uid) != item]
            changes += [
                Change(index, item, deleted=True) for uid, item in before[index].items() if uid not in items
            ]
            stream = _Stream(self._session, collection, index, version)
            put = self._put(self._round)
            # A daemon: reading a stream cannot be interrupted, and must not keep the program from its end.
            threading.Thread(target=stream.run, args=(put,), daemon=True).start()
        return changes

    def close(self) -> None:
        """Let the streams end: each does with its next line, or where the server ends it."""
        self._round += 1

    def _put(self, number: int) -> Callable[[Change | Lost | None], bool]:
        """Return what reports a change of one round, and whether anybody listens to it.

        None asks just that.
        """

        def put(change: Change | Lost | None) -> bool:
            if change is not None and number == self._round:
                self._queue.put((number, change))
            self._may_read.wait()
            return number == self._round

        return put


@dataclass(slots=True)
class _Stream:
    """The stream of one collection, resumed from *version* whenever it ends."""

    session: Session
    collection: Watched
    index: int
    version: str

    def run(self, put: Callable[[Change | Lost | None], bool]) -> None:
        """Report each change to *put* while it is read there, and finally why the stream ends."""
        failures = 0
        while put(None):
            version = self.version
            try:
                for change in self._changes():
                    failures = 0
                    # Anyone who has listed everything again, or has closed, has no use for this stream.
                    if not put(change):
                        return
                # A server that ends each stream at once must not be asked without a pause.
                if self.version == version:
                    time.sleep(_PAUSE)
            except Expired:
                # One that expires before anything came would be listed and opened again without a pause.
                if self.version == version:
                    time.sleep(_PAUSE)
                put(Lost())
                return
            except (ArenaTopoError, TimeoutError) as error:
                failures += 1
                # The server may be away for a moment.
                if failures == 1 and isinstance(error, ConnectionFailed | TimeoutError):
                    continue
                put(self._lost(error))
                return

    def _lost(self, error: ArenaTopoError | TimeoutError) -> Lost:
        if isinstance(error, TimeoutError):
            return Lost()
        if not self.session.outlasts(error):
            return Lost(error)
        # Listing again outlasts a server that is away, and says so. One that answers to lists only is asked
        # for them with a pause.
        time.sleep(_PAUSE)
        return Lost()

    def _changes(self) -> Iterator[Change]:
        answer = self.session.stream(
            self.collection.path,
            timeout=_SILENCE,
            watch=True,
            allowWatchBookmarks=True,
            resourceVersion=self.version,
            timeoutSeconds=_LONGEST_WATCH,
            **self.collection.query,
        )
        try:
            while line := answer.readline():
                event = self._event(line)
                item = event["object"]
                if event["type"] == "ERROR":
                    raise Expired(str(item.get("message") or "the watch has expired"), status=410)
                self.version = (item.get("metadata") or {}).get("resourceVersion") or ""
                if event["type"] != "BOOKMARK":
                    yield Change(self.index, self.collection.taken(item), event["type"] == "DELETED")
        finally:
            answer.close()

    def _event(self, line: bytes) -> Object:
        """Return the event that a *line* of the stream is. Raises ``DocumentError`` where it is not one."""
        try:
            event: Object = read_body(line)
        except ValueError:
            event = {}
        if misfit(event, _EVENT) or not event.get("type") or event.get("object") is None:
            raise DocumentError(
                f"the server's stream of {self.collection.path} has a line that is no event",
                hint="is it an API server? kubectl cluster-info shows its address",
            )
        return event


class JobWatch:
    """The views of jobs, kept up to date: of one job, or of all that a selector chooses."""

    def __init__(
        self, session: Session, *, name: str = "", all_namespaces: bool = False, selector: str = ""
    ) -> None:
        self._session, self._apis = session, ServedApis(session)
        self._namespace = "" if all_namespaces else session.namespace
        self._query: Query = {
            "fieldSelector": f"metadata.name={name}" if name else None,
            "labelSelector": selector or None,
        }
        self._kinds, self._watch = self._opened_for(name)
        # What said when a job of v1alpha1 ended does not change any more.
        self._launcher_jobs: dict[str, Object | None] = {}

    def _opened_for(self, name: str) -> tuple[tuple[Kind, ...], Watch]:
        """Return the kinds that are watched and their objects.

        The kind of one job, else every kind that is served.
        Raises ``NotFound`` where the cluster serves none.
        """
        others = () if name else self._apis.other_kinds()
        try:
            return self._opened_among(others, name)
        except Forbidden:
            # Every cluster has batch Jobs, and users who cannot watch them are no worse off than without
            # them.
            allowed = tuple(kind for kind in others if not kind.listed)
            if self._session.kinds or allowed == others:
                raise
            return self._opened_among(allowed, name)

    def _opened_among(self, others: tuple[Kind, ...], name: str) -> tuple[tuple[Kind, ...], Watch]:
        if self._apis.means_mpijobs:
            try:
                version, watch = self._apis.read_mpijobs(
                    lambda version: self._opened(version, *others, name=name)
                )
            except NotFound:
                if not (others or self._apis.other_kinds()):
                    raise
            else:
                if not name or watch.objects[0] or (kind := self._other_kind(name)) is None:
                    return (version, *others), watch
                return (kind,), self._opened(kind, name=name)
        kinds = (look_up_job(self._session, name)[0],) if name else others
        return kinds, self._opened(*kinds, name=name)

    def _other_kind(self, name: str) -> Kind | None:
        kinds = self._apis.other_kinds()
        kind, job = look_up_job(self._session.of_kinds(kinds), name) if kinds else (None, None)
        return kind if job else None

    def _opened(self, *kinds: Kind, name: str) -> Watch:
        return Watch(
            self._session,
            [collection for kind in kinds for collection in self._collections(kind, name)],
        )

    def _collections(self, kind: Kind, name: str) -> Iterator[Watched]:
        pods = pod_selector(kind, name) if name else kind.selector
        chosen = ",".join(filter(None, (kind.listed, self._query["labelSelector"])))
        query = {**self._query, "labelSelector": chosen or None}
        yield Watched(jobs_of(kind).path(self._namespace), TRAINING_JOB, query)
        yield Watched(PODS.path(self._namespace), POD, {"labelSelector": pods})

    def views(self) -> dict[JobKey, JobView]:
        """Return the view of every job, as it is now."""
        now = self._session.now()
        found: dict[JobKey, JobView] = {}
        for number, kind in enumerate(self._kinds):
            jobs, pods = self._watch.objects[2 * number : 2 * number + 2]
            found |= self._views_of(kind, jobs, pods.values(), now)
        return found

    def _views_of(
        self, kind: Kind, jobs: Mapping[str, Object], pods: Iterable[Object], now: datetime
    ) -> dict[JobKey, JobView]:
        by_job: dict[JobKey, list[Object]] = {}
        for pod in pods:
            meta = pod["metadata"]
            # Pods are chosen by the label, which a server may garble.
            if job := (meta.get("labels") or {}).get(kind.job_label):
                by_job.setdefault((meta["namespace"], job), []).append(pod)
        return {
            key: job_view(
                kind,
                {**job, "apiVersion": api_version(kind), "kind": kind.kind},
                by_job.get(key, ()),
                now=now,
                launcher_job=self._launcher_job(uid, job),
            )
            for uid, job in jobs.items()
            if kind.counts(job)
            for key in [(job["metadata"]["namespace"], job["metadata"]["name"])]
        }

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a change; return False when *timeout* seconds have passed without one."""
        return bool(self._watch.wait(timeout))

    def close(self) -> None:
        """Stop watching."""
        self._watch.close()

    def _launcher_job(self, uid: str, job: Object) -> Object | None:
        if uid not in self._launcher_jobs:
            found = launcher_job_of(self._session, job)
            if found is None:
                return None
            self._launcher_jobs[uid] = found
        return self._launcher_jobs[uid]


# The events of one job in the order of time, and those that come.


class EventWatch:
    """The events of job *name*.

    ``first`` are those that there are, ``wait`` returns further ones where *follow* says so.
    The job need not exist any more. One call for each page of the namespace's events, of which the job's are
    chosen here.
    """

    def __init__(self, session: Session, name: str, *, follow: bool) -> None:
        self._name = name
        path = EVENTS.path(session.namespace)
        self._watch = Watch(session, [Watched(path, EVENT)]) if follow else None
        found = list(self._watch.objects[0].values()) if self._watch else session.list(path)
        self.first = self._of_job(found)

    def wait(self) -> list[JobEvent]:
        """Return the next events, after at least one change in the namespace."""
        if self._watch is None:
            return []
        return self._of_job([change.object for change in self._watch.wait() if not change.deleted])

    def _of_job(self, items: list[Object]) -> list[JobEvent]:
        found = [event for item in items if (event := event_of_job(item, self._name))]
        return sorted(found, key=lambda event: event.last_seen)
