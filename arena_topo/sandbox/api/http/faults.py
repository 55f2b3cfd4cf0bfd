"""Faults that tests switch on: what real API servers do on a bad day."""

from dataclasses import dataclass, fields

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.refusals import bad_request, too_many_requests, unauthorized


@dataclass(slots=True)
class Faults:
    """The faults in force.

    ``too_many_requests`` and ``unauthorized`` count the requests still to be refused so;
    ``retry_after`` in seconds goes with the former; ``drop_streams_after`` cuts watches and followed logs
    after so many lines (0: never), ``dropped_streams`` counts how many streams still are to be cut (-1: all);
    ``slow_watch`` in seconds delays every event of a watch.
    """

    too_many_requests: int = 0
    retry_after: int = 1
    unauthorized: int = 0
    drop_streams_after: int = 0
    dropped_streams: int = -1
    slow_watch: float = 0.0

    def change(self, wanted: Object) -> None:
        """Set the faults that *wanted* names; raises Refusal for one that does not exist."""
        known = {each.name: type(getattr(self, each.name)) for each in fields(self)}
        for name, value in wanted.items():
            if name not in known:
                raise bad_request(f"no fault {name!r}; there are {', '.join(known)}")
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise bad_request(f"fault {name} takes a number, not {value!r}")
            setattr(self, name, known[name](value))

    def strike(self) -> None:
        """Refuse this request if a fault says so."""
        if self.unauthorized > 0:
            self.unauthorized -= 1
            raise unauthorized()
        if self.too_many_requests > 0:
            self.too_many_requests -= 1
            raise too_many_requests(self.retry_after)

    def cut(self) -> int:
        """Return after how many lines the stream that begins now is cut, 0 for never."""
        if not self.drop_streams_after or self.dropped_streams == 0:
            return 0
        if self.dropped_streams > 0:
            self.dropped_streams -= 1
        return self.drop_streams_after
