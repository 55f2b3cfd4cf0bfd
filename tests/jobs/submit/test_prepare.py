"""Which jobs get a plan of ours, and which are left to the schedulers that have their own."""

from dataclasses import replace

import pytest

from arena_topo.errors import Forbidden, UsageError
from arena_topo.jobs.submit.gang import GangChoice, GangWishes
from arena_topo.jobs.submit.prepare import PlaceOptions, _is_planned, _unplanned
from arena_topo.manifest.gang_of_job import gang_of
from arena_topo.manifest.render import Habitat, manifest
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.plan.plan_record import Pin

JOB = JobSpec(name="job", namespace="default", image="i", command=("aliyun.com/gpu",), workers=2, gpus=1)
TOPOLOGY = replace(JOB, topology=True)
VENDOR, STOCK = "aliyun.com/gpu", "nvidia.com/gpu"


def planned(job: JobSpec, resource: str, backend: str, place: PlaceOptions) -> bool:
    """Return whether *job* is planned under a gang's back-end, empty for none."""
    rendered = manifest(job, Habitat(ApiVersion.V2BETA1, resource))
    gang = GangChoice(backend, gang_of(rendered.job)) if backend else None
    return _is_planned(job, rendered, gang, place)


@pytest.mark.parametrize(
    ("job", "resource", "backend", "given", "expected"),
    [
        (JOB, STOCK, "", False, False),
        (JOB, STOCK, "", True, True),
        (JOB, STOCK, "gates", False, True),
        (JOB, STOCK, "volcano", False, False),
        (TOPOLOGY, STOCK, "", False, True),
        (TOPOLOGY, STOCK, "volcano", False, True),
        (TOPOLOGY, STOCK, "kueue", True, False),
        (TOPOLOGY, VENDOR, "ack", False, False),
        (TOPOLOGY, VENDOR, "ack", True, True),
    ],
)
def test_jobs_are_planned_where_that_means_something(
    job: JobSpec, resource: str, backend: str, *, given: bool, expected: bool
) -> None:
    """Asked for by a flag, or by --gputopology off the vendor's cluster, or because gates are the gang."""
    assert expected is planned(job, resource, backend, PlaceOptions(given=given))


def test_kueue_chooses_places_itself() -> None:
    """A pin beside it would be a promise that nobody keeps."""
    with pytest.raises(UsageError, match="--pin=workers cannot be kept under Kueue"):
        planned(TOPOLOGY, STOCK, "kueue", PlaceOptions(pin=Pin.WORKERS))


def test_without_the_rights_a_plan_that_was_asked_for_is_refused() -> None:
    """One that was not is left out, and that is told."""
    assert "not planned" in _unplanned(PlaceOptions(), ("list nodes -A",))
    for place in (PlaceOptions(given=True), PlaceOptions(gang=GangWishes(scheduler="gates"))):
        with pytest.raises(Forbidden, match="you may not list nodes -A") as refused:
            _unplanned(place, ("list nodes -A",))
        assert "cluster setup" in refused.value.hint
