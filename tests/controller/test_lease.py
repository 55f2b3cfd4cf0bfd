"""One replica holds the Lease at a time, and knows by itself when it does not any more."""

from threading import Event

import pytest

from arena_topo.controller.run import DURATION, Lease
from arena_topo.errors import NotFound
from arena_topo.kube.session import Session
from arena_topo.model.objects import Object
from tests.fakes import Answer, Call, missing, refusal, session, unserved


class Server:
    """A server with one Lease, which refuses a write that was made for another version of it."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.away = False
        self.conflicts = 0

    def answer(self, call: Call) -> Answer:
        """Answer as the API server does; so many writes conflict with one that nobody else has made."""
        if self.away:
            return refusal(503, "ServiceUnavailable")
        if call.method == "PATCH" and self.conflicts:
            self.conflicts -= 1
            return refusal(409, "Conflict")
        if call.method == "POST":
            if self.lease:
                return refusal(409, "AlreadyExists")
            self.lease = {**call.body, "metadata": {**call.body["metadata"], "resourceVersion": "1"}}
        elif self.lease is None:
            return missing("lease")
        elif call.method == "PATCH":
            version = self.lease["metadata"]["resourceVersion"]
            if call.body["metadata"]["resourceVersion"] != version:
                return refusal(409, "Conflict")
            metadata = {**self.lease["metadata"], "resourceVersion": str(int(version) + 1)}
            self.lease = {
                **self.lease,
                "metadata": metadata,
                "spec": {**self.lease["spec"], **call.body["spec"]},
            }
        return Answer(body=self.lease)

    def session(self) -> Session:
        """Return a session of its own for a replica."""
        return session(self.answer)[0]

    @property
    def holder(self) -> str:
        """Who holds the Lease."""
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        """Return the seconds that it shows."""
        return self.seconds


class Looks(Event):
    """An event whose waits pass at once, and are so many; a *clock* advances by as much as is waited."""

    def __init__(self, clock: Clock, most: int) -> None:
        super().__init__()
        self.clock, self.left = clock, most

    def wait(self, timeout: float | None = None) -> bool:
        """Pass *timeout* seconds on the clock."""
        self.clock.seconds += timeout or 0.0
        self.left -= 1
        if self.left <= 0:
            self.set()
        return self.is_set()


def silent(_: str) -> None:
    """Say nothing."""


def test_the_first_one_leads_and_the_second_waits() -> None:
    """For as long as the first one renews it."""
    server, clock = Server(), Clock()
    first, second = (Lease(server.session(), name, clock) for name in ("first", "second"))
    said: list[str] = []
    assert first.acquire(Event(), silent)
    assert not second.acquire(Looks(clock, 3), said.append)
    assert ["waiting: first is the leader"] == said
    assert not second.may_write()


def test_a_lease_that_nobody_renews_is_taken() -> None:
    """After its duration by the clock of the one who takes
    it; the one who had it has stopped writing before.
    """
    server, clock = Server(), Clock()
    first, second = (Lease(server.session(), name, clock) for name in ("first", "second"))
    assert first.acquire(Event(), silent)
    began = clock.seconds
    assert second.acquire(Looks(clock, 20), silent)
    assert clock.seconds - began > DURATION
    assert ("second", False, True) == (server.holder, first.may_write(), second.may_write())


def test_whoever_was_stopped_for_too_long_does_not_write() -> None:
    """Whatever the server says: nobody asks it before a write."""
    clock = Clock()
    lease = Lease(Server().session(), "me", clock)
    assert lease.acquire(Event(), silent)
    assert lease.may_write()
    clock.seconds += DURATION
    assert not lease.may_write()


def test_a_holder_that_loses_the_lease_hears_of_it() -> None:
    """Another one has it."""
    server, clock = Server(), Clock()
    first, second = (Lease(server.session(), name, clock) for name in ("first", "second"))
    assert first.acquire(Event(), silent)
    assert second.acquire(Looks(clock, 20), silent)
    lost: list[str] = []
    first.keep(Looks(clock, 5), lost.append)
    assert ["second holds the Lease"] == lost


def test_a_holder_that_another_one_succeeded_does_not_lead_on() -> None:
    """Though the Lease is free again: it was stopped, and what the other one has decided it does not know."""
    server, clock = Server(), Clock()
    first, second = (Lease(server.session(), name, clock) for name in ("first", "second"))
    assert first.acquire(Event(), silent)
    assert second.acquire(Looks(clock, 20), silent)
    second.release()
    lost: list[str] = []
    first.keep(Looks(clock, 5), lost.append)
    assert ["no replica holds the Lease"] == lost
    assert not first.may_write()


def test_a_holder_whose_lease_was_deleted_does_not_lead_on() -> None:
    """A replica that waited may have taken it at once, and have given it up again."""
    server, clock = Server(), Clock()
    lease = Lease(server.session(), "me", clock)
    assert lease.acquire(Event(), silent)
    server.lease = None
    lost: list[str] = []
    lease.keep(Looks(clock, 5), lost.append)
    assert ["no replica holds the Lease"] == lost
    assert None is server.lease


def test_a_renewal_that_was_done_unheard_loses_nothing() -> None:
    """It is sent once more where its answer is lost, and is a
    conflict then: the next look shows that the Lease is held.
    """
    server, clock = Server(), Clock()
    lease = Lease(server.session(), "me", clock)
    assert lease.acquire(Event(), silent)
    server.conflicts = 1
    lost: list[str] = []
    lease.keep(Looks(clock, 9), lost.append)
    assert ([], "me", True) == (lost, server.holder, lease.may_write())


def test_whoever_was_stopped_while_he_waited_takes_no_lease_that_was_renewed() -> None:
    """However long ago he saw it: it is another version of it by then."""
    server, clock = Server(), Clock()
    first, second = (Lease(server.session(), name, clock) for name in ("first", "second"))
    assert first.acquire(Event(), silent)
    assert not second.acquire(Looks(clock, 1), silent)
    for _ in range(10):
        first.keep(Looks(clock, 2), silent)
    assert not second.acquire(Looks(clock, 1), silent)
    assert ("first", True) == (server.holder, first.may_write())


def test_a_server_that_is_away_ends_the_lease_in_the_end() -> None:
    """Not at the first renewal that fails, but before another one could take it."""
    server, clock = Server(), Clock()
    lease = Lease(server.session(), "me", clock)
    assert lease.acquire(Event(), silent)
    server.away, began = True, clock.seconds
    lost: list[str] = []
    lease.keep(Looks(clock, 50), lost.append)
    assert 1 == len(lost)
    assert "could not be renewed" in lost[0]
    assert clock.seconds - began < DURATION + 3


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (unserved(), "this cluster serves no Leases"),
        (missing("arena-topo-system"), "there is no namespace arena-topo-system"),
    ],
    ids=["unserved", "no namespace"],
)
def test_without_a_lease_nobody_leads(answer: Answer, told: str) -> None:
    """The error says what is missing."""
    lease = Lease(session(lambda _: answer)[0], "me")
    with pytest.raises(NotFound, match=told):
        lease.acquire(Event(), silent)


def test_a_lease_that_is_given_up_is_free_at_once() -> None:
    """The next one need not wait."""
    server, clock = Server(), Clock()
    first, second = (Lease(server.session(), name, clock) for name in ("first", "second"))
    assert first.acquire(Event(), silent)
    first.release()
    assert not first.may_write()
    assert second.acquire(Event(), silent)


class Dated(Answer):
    """An answer of a server whose clock is years ahead of this machine's."""

    def header(self, name: str) -> str:
        """Return the server's time."""
        return "Fri, 01 Jan 2100 00:00:00 GMT" if name == "Date" else ""


def test_a_lease_is_renewed_by_the_clock_of_the_server() -> None:
    """Users see by it whether a controller runs, and the clock of its node may be wrong."""
    server = Server()
    lease = Lease(session(lambda call: Dated(body=server.answer(call).body))[0], "me")
    server.lease = {"metadata": {"name": "l", "resourceVersion": "1"}, "spec": {}}

    assert lease.acquire(Event(), silent)
    assert server.lease["spec"]["renewTime"].startswith("2100-01-01T00:0")
