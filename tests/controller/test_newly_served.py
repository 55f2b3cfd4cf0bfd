"""The controller notices what is served newly, and nothing else stops it."""

from collections.abc import Callable, Iterable
from threading import Event

from arena_topo.controller.state import NewlyServed
from arena_topo.errors import ConnectionFailed

PODS, JOBSETS = "/api/v1/pods", "/apis/jobset.x-k8s.io/v1alpha2/jobsets"


def in_turn(done: Event, *answers: Iterable[str] | Exception) -> Callable[[], Iterable[str]]:
    """Return what answers one after another, and sets *done* with the last one, which is repeated."""
    left = list(answers)

    def look() -> Iterable[str]:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if len(left) == 1:
            done.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    return look


def noticed(*answers: Iterable[str] | Exception) -> tuple[str, ...]:
    """Return what is noticed by the time that the last of *answers* was given."""
    done = Event()
    looking = NewlyServed(in_turn(done, *answers), [PODS], every=0.0)
    looking.start()
    done.wait()
    looking.stop()
    return looking.paths


def test_what_is_served_newly_is_noticed() -> None:
    """Once it is there; a server that is away for a moment is asked again."""
    assert (JOBSETS,) == noticed([PODS], ConnectionFailed("away"), [PODS, JOBSETS], [PODS, JOBSETS])


def test_what_is_served_no_more_is_not_forgotten() -> None:
    """A group may be missing from the answer for a moment, and its jobs keep their reservations."""
    assert () == noticed([], [PODS], [])
