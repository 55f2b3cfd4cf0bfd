"""The agent's loop: read the node, publish what has changed, and go on through failures."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from arena_topo.errors import ArenaTopoError
from arena_topo.model.cluster.hardware import Hardware
from arena_topo.topology.reading import PodKey
from arena_topo.topology.sources.annotation import encode

_FRESH_LOOK = 10
"""Every tenth reading is compared with what the node has, others with what was published: a look costs a request."""

Users = Mapping[PodKey, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of one node; everything that does I/O is passed in.

    ``hardware`` reads the GPUs and their links, ``users`` which pods hold them, None where the kubelet is not asked.
    ``publish`` writes the annotation's value to the node; ``now`` returns the time as RFC 3339; ``report`` writes a line
    to the log, and ``found`` returns the value that the node has.
    """

    hardware: Callable[[], Hardware]
    users: Callable[[Hardware], Users] | None
    publish: Callable[[str], None]
    now: Callable[[], str]
    report: Callable[[str], None]
    found: Callable[[], str]

    def value(self) -> str:
        """Return the annotation's value at this moment. Raises ``ArenaTopoError``."""
        hardware = self.hardware()
        users = self.users(hardware) if self.users else {}
        return encode(hardware, users, self.now())

    def publish_if_changed(self, published: str = "") -> str:
        """Publish unless *published* says the same already; return the value that is published afterwards."""
        value = self.value()
        if published and _content(value) == _content(published):
            return published
        self.publish(value)
        self.report(f"published {len(value)} bytes")
        return value

    def run(self, published: str, wait: Callable[[], bool]) -> None:
        """Publish changes to *published* while *wait* returns True; a failure is reported once, then tried again."""
        failure = ""
        for looks in count(1):
            try:
                # Whoever deletes or overwrites the annotation hides the node's links only until then.
                if looks % _FRESH_LOOK == 0:
                    published = self.found()
                published = self.publish_if_changed(published)
                failure = ""
            except ArenaTopoError as error:
                # A driver that is down would fill the log with one line per interval.
                if error.message != failure:
                    failure = error.message
                    self.report(f"error: {failure}")
            # Looking comes first: a node that has just started is described at once.
            if not wait():
                return


def _content(value: str) -> object:
    """Return a value without its time, None where it cannot be read."""
    try:
        document = json.loads(value)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    # The time differs at each reading, and by itself is not worth a write.
    return {key: part for key, part in document.items() if key != "at"}
