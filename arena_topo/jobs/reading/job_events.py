"""The events of one job in the order of time, and those that come."""

from arena_topo.jobs.reading.watch import Collection, Watch
from arena_topo.jobs.status.events import event_of_job
from arena_topo.kube.resources import EVENTS
from arena_topo.kube.session import Session
from arena_topo.model.job.job_view import JobEvent
from arena_topo.model.job.object_shapes import EVENT
from arena_topo.model.objects import Object


class EventWatch:
    """The events of job *name*: ``first`` are those that there are, ``wait`` returns further ones where *follow* says so.

    The job need not exist any more. One call for each page of the namespace's events, of which the job's are chosen here.
    """

    def __init__(self, session: Session, name: str, *, follow: bool) -> None:
        self._name = name
        path = EVENTS.path(session.namespace)
        self._watch = Watch(session, [Collection(path, EVENT)]) if follow else None
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
