"""The agent's loop: look, compare, publish on change, and go on through failures."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.errors import ArenaTopoError, DocumentError
from arena_topo.model.cluster.hardware import Hardware
from arena_topo.topology.reading import PodKey
from arena_topo.topology.sources.annotation import encode

Users = Mapping[PodKey, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Agent:
    """What the agent is made of; everything that touches the world is handed in.

    ``publish`` writes the annotation's value to the node; ``now`` is an RFC 3339 text of this moment; ``report``
    tells the log. ``users`` may be None where the kubelet is not asked.
    """

    hardware: Callable[[], Hardware]
    users: Callable[[Hardware], Users] | None
    publish: Callable[[str], None]
    now: Callable[[], str]
    report: Callable[[str], None]

    def value(self) -> str:
        """Return the annotation's value for this moment; raises ``ArenaTopoError``."""
        hardware = self.hardware()
        users = self.users(hardware) if self.users else {}
        return encode(hardware, users, self.now())

    def once(self, published: str = "") -> str:
        """Publish unless *published* says the same already; return what stands published then."""
        value = self.value()
        if published and _content(value) == _content(published):
            return published
        self.publish(value)
        self.report(f"published {len(value)} bytes")
        return value

    def run(self, published: str, wait: Callable[[], bool]) -> None:
        """Look again and again while *wait* says so; a failure is reported once, and the next look tries anew."""
        failure = ""
        while True:
            try:
                published = self.once(published)
                failure = ""
            except ArenaTopoError as error:
                if error.message != failure:
                    failure = error.message
                    self.report(f"error: {failure}")
            if not wait():
                return


def _content(value: str) -> object:
    """Return a value without its time; values that cannot be read are like no other."""
    try:
        read = json.loads(value)
    except ValueError:
        return None
    return {key: each for key, each in read.items() if key != "at"} if isinstance(read, dict) else None


def require(package: str, extra: str) -> None:
    """Raise ``DocumentError`` with the way to install *package* of the optional *extra* when it is missing."""
    from importlib.util import find_spec  # only the agent asks for it

    if find_spec(package) is None:
        raise DocumentError(
            f"the Python package {package} is not installed", hint=f"pip install 'arena-topo[{extra}]'"
        )
