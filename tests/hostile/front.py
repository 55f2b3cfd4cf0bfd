"""A server before a real one: it passes requests on, until it is told to answer some by itself."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.contract.client import Client
from tests.hostile.answers import Answer
from tests.kube.server import Reply, Seen, Server, serve

Turns = Callable[[int], bool]
"""Whether the request with this number, from 1, is answered by the front itself."""


@dataclass(slots=True)
class Front:
    """What a test tells the front; ``paths`` are those that were asked for since, at the instants of
    ``times`` in seconds.

    ``counts`` are for the test: how many requests each command sends to a server that answers well.
    """

    server: Server
    client: Client
    kubeconfig: Path
    answer: Answer | None = None
    twist: Callable[[bytes], bytes] | None = None
    turns: Turns = lambda _: False
    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def tell(
        self, turns: Turns, *, answer: Answer | None = None, twist: Callable[[bytes], bytes] | None = None
    ) -> None:
        """Answer the requests of *turns* by *answer*, or by what *twist* makes of the real answer."""
        self.turns, self.answer, self.twist = turns, answer, twist
        self.paths.clear()
        self.times.clear()
        self.server.seen.clear()

    def most_at_once(self, first: int, pause: float) -> int:
        """Return how many requests from number *first* on came without a *pause* in seconds between any two
        of them.

        Who pauses is seen to pause however slow the machine is, as one request is sent after the other was
        answered.
        """
        most = run = 1
        for before, after in pairwise(self.times[first - 1 :]):
            run = run + 1 if after - before < pause else 1
            most = max(most, run)
        return most

    def __call__(self, seen: Seen) -> Reply:
        """Return the answer to a request."""
        self.times.append(time.monotonic())
        self.paths.append(f"{seen.method} {seen.path.partition('?')[0]}")
        is_own = self.turns(len(self.paths))
        if is_own and self.answer:
            return self.answer(seen)
        # A stream is passed on once it has ended.
        path = re.sub(
            "timeoutSeconds=[0-9]+", "timeoutSeconds=1", seen.path.replace("follow=true", "follow=false")
        )
        code, body, kind = self.client.passed_on(seen.method, path, seen.body, seen.header("Content-Type"))
        return Reply(code, self.twist(body) if is_own and self.twist else body, {"Content-Type": kind})


@contextmanager
def front(folder: Path, kubeconfig: Path) -> Iterator[Front]:
    """Run a front of the cluster of *kubeconfig*."""
    client = Client(kubeconfig)
    with serve(folder, lambda seen: running(seen)) as server:  # noqa: PLW0108  # it is made below
        entry = {"server": server.url, "certificate-authority": str(server.authority.certificate)}
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": entry}],
            "users": [{"name": "u", "user": {"token": "secret-of-the-user"}}],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(config))
        running = Front(server, client, path)
        yield running
    client.close()
