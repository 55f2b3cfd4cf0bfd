"""Whose launcher is told which workers it may use."""

import pytest

from arena_topo.errors import Forbidden
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.scale import tell_framework
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.training_operator import PYTORCHJOB
from tests.fakes import Answer, missing, refusal, session
from tests.objects import mpijob


def test_one_write_names_the_workers_that_stay() -> None:
    """In the list of the job's own."""
    opened, transport = session(lambda _: Answer(body={}))
    assert tell_framework(opened, ServedJob(ApiVersion.V2BETA1, mpijob("job", workers=3)), 1)
    (call,) = transport.calls
    assert ("PATCH", "/api/v1/namespaces/default/configmaps/job-elastic") == (call.method, call.path)
    assert {"data": {"hosts": "job-worker-0.job.default.svc:1\n"}} == call.body


def test_jobs_without_a_list_are_told_by_their_operator() -> None:
    """Other kinds have none, and an MPIJob may have a discovery of its own."""
    opened, transport = session(lambda _: missing("job-elastic"))
    assert not tell_framework(opened, ServedJob(ApiVersion.V2BETA1, mpijob("job")), 1)
    assert not tell_framework(opened, ServedJob(PYTORCHJOB, mpijob("job")), 1)
    assert 1 == len(transport.calls)


def test_who_may_not_write_the_list_is_told() -> None:
    """Workers must not leave before their framework knows."""
    opened, _ = session(lambda _: refusal(403, "Forbidden", "no"))
    with pytest.raises(Forbidden):
        tell_framework(opened, ServedJob(ApiVersion.V2BETA1, mpijob("job")), 1)
