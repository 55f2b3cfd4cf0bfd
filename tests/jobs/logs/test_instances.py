"""Instances are named by role, by number, by name, or all."""

import pytest

from arena_topo.errors import NotFound, UsageError
from arena_topo.jobs.logs.instances import Instances, parse_instances
from arena_topo.kinds.mpijob import Role
from tests.objects import mpijob, pod

PODS = [
    *(pod(f"job-worker-{index}") for index in (10, 2, 0, 1)),
    pod("job-launcher-x", role="launcher"),
    pod("other-worker-0"),
]


@pytest.mark.parametrize(
    ("text", "role", "every", "expected"),
    [
        ("", "", False, Instances()),
        ("", "worker", False, Instances(role=Role.WORKER)),
        ("", "launcher", False, Instances(role=Role.LAUNCHER)),
        ("", "", True, Instances(every=True)),
        ("3", "", False, Instances(indices=(range(3, 4),))),
        ("0-3,7", "", False, Instances(indices=(range(4), range(7, 8)))),
        ("worker-3", "", False, Instances(indices=(range(3, 4),))),
        ("job-worker-3", "", False, Instances(names=("job-worker-3",))),
        ("launcher,0", "", False, Instances(role=Role.LAUNCHER, indices=(range(1),))),
    ],
)
def test_a_choice_is_read(text: str, role: str, every: bool, expected: Instances) -> None:
    """As the flags write it."""
    assert expected == parse_instances(text, role, every=every)


@pytest.mark.parametrize(
    ("text", "role", "every", "message"),
    [
        ("3-0", "", False, "'3-0' ends before it begins"),
        ("1,,2", "", False, "'1,,2' has an empty part"),
        ("1", "worker", False, "at most one of --instance, --role and --all"),
        ("", "worker", True, "at most one of --instance, --role and --all"),
    ],
)
def test_what_is_no_choice_is_an_error(text: str, role: str, every: bool, message: str) -> None:
    """Before anything is asked of the cluster."""
    with pytest.raises(UsageError, match=message):
        parse_instances(text, role, every=every)


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        (Instances(), ["job-launcher-x"]),
        (Instances(role=Role.LAUNCHER), ["job-launcher-x"]),
        (Instances(role=Role.WORKER), [f"job-worker-{index}" for index in (0, 1, 2, 10)]),
        (Instances(indices=(range(1, 3),)), ["job-worker-1", "job-worker-2"]),
        (Instances(role=Role.LAUNCHER, indices=(range(1),)), ["job-launcher-x", "job-worker-0"]),
        (Instances(names=("job-worker-2",)), ["job-worker-2"]),
    ],
)
def test_instances_are_found_in_order(chosen: Instances, names: list[str]) -> None:
    """The launcher first, workers by number."""
    assert names == [each["metadata"]["name"] for each in chosen.among("job", PODS)]


@pytest.mark.parametrize(
    ("chosen", "one", "name"),
    [
        (Instances(), True, ""),
        (Instances(role=Role.LAUNCHER), True, ""),
        (Instances(indices=(range(3, 4),)), True, "job-worker-3"),
        (Instances(names=("job-launcher-x",)), True, "job-launcher-x"),
        (Instances(role=Role.WORKER), False, ""),
        (Instances(every=True), False, ""),
    ],
)
def test_one_instance_is_known_as_one(chosen: Instances, one: bool, name: str) -> None:
    """Its lines need no prefix."""
    assert (one, name) == (chosen.one, chosen.name_in("job"))


def test_an_instance_beyond_the_jobs_workers_is_an_error() -> None:
    """Waiting for it would never end; a range may be absurdly long."""
    job = mpijob("job", workers=4)
    Instances(indices=(range(4),), names=("job-launcher-abc",)).check(job)
    for wrong in (Instances(indices=(range(9_999_999),)), Instances(names=("other-worker-0",))):
        with pytest.raises(NotFound, match=r"invalid instance name .* in job job, which has 4 workers"):
            wrong.check(job)
