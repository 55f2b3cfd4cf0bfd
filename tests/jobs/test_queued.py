"""Where jobs stand that wait in queues of Kueue, in one reason and the next step."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import ApiError
from arena_topo.jobs.queue import CheckMessage, standing, with_queues
from arena_topo.jobs.status import job_view
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.job_view import JobView
from arena_topo.model.objects import WORKLOAD, Object
from arena_topo.model.plan_record import MOST_AHEAD, StartEstimate
from arena_topo.model.text.documents import fitted
from tests.fakes import Answer, missing, refusal, session, unserved
from tests.objects import condition, mpijob

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
QUOTA = condition("QuotaReserved")
START = StartEstimate(
    earliest=NOW,
    likely=NOW + timedelta(minutes=40),
    latest=NOW + timedelta(hours=1),
    after=("a/b",),
    basis=("c",),
)


def queued(name: str = "job", *, namespace: str = "default", suspended: bool = True) -> JobView:
    """Return the view of a job in a queue."""
    job = mpijob(name)
    job["metadata"] |= {"namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "team"}}
    job["spec"]["runPolicy"] = {"suspend": suspended}
    return job_view(ApiVersion.V2BETA1, job, (), now=NOW)


def check(state: str = "Pending", message: str = "", name: str = "arena-topo") -> Object:
    """Return what a check says."""
    return {"name": name, "state": state, "message": message}


def unreserved(message: str) -> Object:
    """Return what Kueue says of a job without quota."""
    return {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}


def workload(
    *conditions: Object, checks: list[Object] | None = None, job: str = "job", **spec: Any
) -> Object:
    """Return the Workload of a job."""
    return {
        "metadata": {"name": f"mpijob-{job}", "uid": "w", "ownerReferences": [{"uid": f"uid-{job}"}]},
        "spec": spec,
        "status": {"conditions": list(conditions), "admissionChecks": checks or []},
    }


NO_PLACE = CheckMessage(3, "2 workers do not fit").text


@pytest.mark.parametrize(
    ("item", "reason", "position", "unknown", "advice"),
    [
        (
            workload(),
            "Kueue has not looked at it yet",
            0,
            "no quota",
            "kubectl describe localqueue team -n default",
        ),
        (
            workload(unreserved("insufficient quota, 8 more needed")),
            "insufficient quota, 8 more needed",
            0,
            "no quota",
            "kubectl describe localqueue team -n default",
        ),
        (
            # A check keeps its old word next to a job that has lost its quota.
            workload(unreserved("preempted"), checks=[check(message=NO_PLACE)]),
            "preempted",
            0,
            "no quota",
            "localqueue",
        ),
        (
            workload(QUOTA, checks=[check(message=NO_PLACE)]),
            "2 workers do not fit",
            3,
            "the controller has made none yet",
            "it starts by itself",
        ),
        (
            workload(QUOTA, checks=[check(message=CheckMessage(MOST_AHEAD + 1, "x").text)]),
            "x",
            MOST_AHEAD + 1,
            f"{MOST_AHEAD} jobs wait before it",
            "it starts by itself",
        ),
        (
            workload(QUOTA, checks=[check()]),
            "the check arena-topo is Pending",
            0,
            "check",
            "arena-topo doctor",
        ),
        (
            workload(QUOTA, checks=[check(message=NO_PLACE), check("Retry", "no machines", "cloud")]),
            "the check cloud is Retry: no machines",
            0,
            "check",
            "kubectl describe workload mpijob-job -n default",
        ),
        (
            workload(QUOTA, checks=[check("Rejected", "x", "b"), check("Retry", "y", "a")]),
            "the check b is Rejected: x",
            0,
            "check",
            "kubectl describe workload",
        ),
        (workload(QUOTA, checks=[check("Ready")]), "Kueue is about to start it", 0, "about to", ""),
        (
            workload(condition("Evicted", message="it ran for too long"), active=False),
            "Kueue does not start it: it ran for too long",
            0,
            "stopped",
            "kubectl kueue resume workload mpijob-job -n default",
        ),
        (
            workload(QUOTA, active=False),
            "somebody has stopped it in Kueue",
            0,
            "stopped",
            "kubectl kueue resume",
        ),
    ],
)
def test_one_reason_and_the_next_step(
    item: Object, reason: str, position: int, unknown: str, advice: str
) -> None:
    """Of several reasons the one that matters first is shown."""
    (view,) = with_queues(session(lambda _: Answer(body={"items": [item]}))[0], [queued()])
    assert view.queue is not None
    assert ("team", "mpijob-job", reason, position) == (
        view.queue.queue,
        view.queue.workload,
        view.queue.reason,
        view.queue.position,
    )
    assert unknown in view.queue.start.unknown
    assert view.message.endswith(reason)
    assert advice in view.advice
    assert bool(advice) == bool(view.advice)


def test_the_estimate_of_our_check_is_the_jobs() -> None:
    """Which the controller has written next to the reason."""
    item = workload(QUOTA, checks=[check(message=CheckMessage(1, "no room", START).text)])
    assert START == standing(fitted(item, WORKLOAD), "team").start


def test_a_job_without_a_workload_was_not_seen_by_kueue() -> None:
    """Its queue, or its kind, may be none that Kueue manages."""
    (view,) = with_queues(session(lambda _: Answer(body={"items": []}))[0], [queued()])
    assert view.queue is not None
    assert ("", "Kueue has not looked at it yet") == (view.queue.workload, view.message)


def test_the_workload_of_another_job_says_nothing() -> None:
    """A label may be copied, and the list may hold more than was asked for."""
    items = [workload(QUOTA, checks=[check(message=NO_PLACE)], job="other")]
    (view,) = with_queues(session(lambda _: Answer(body={"items": items}))[0], [queued()])
    assert "Kueue has not looked at it yet" == view.message


def test_who_may_not_see_it_is_told_so() -> None:
    """Of each job that waits, and of no other; the jobs are shown anyway."""
    waits, runs = queued("a", namespace="team"), queued("b", namespace="team", suspended=False)
    first, second = with_queues(session(lambda _: refusal(403, "Forbidden"))[0], [waits, runs])
    assert (
        "why it waits is not known: you cannot list the Workloads of namespace team",
        "the roles that arena-topo cluster setup --users prints have the right to list them",
        None,
    ) == (first.message, first.advice, first.queue)
    assert runs == second
    for each in with_queues(session(lambda _: refusal(403, "Forbidden"))[0], [waits, queued("c")]):
        assert each.message.endswith("you cannot list the Workloads of all namespaces")


@pytest.mark.parametrize("answer", [missing("x"), unserved()])
def test_without_a_kueue_that_is_known_the_job_is_as_it_is(answer: Answer) -> None:
    """Its queue may be another's."""
    views = [queued()]
    assert views == with_queues(session(lambda _: answer)[0], views)


def test_another_failure_is_told() -> None:
    """A list that is not whole must not look like one."""
    with pytest.raises(ApiError):
        with_queues(session(lambda _: refusal(500, "InternalError"))[0], [queued()])


def test_nothing_is_asked_where_nobody_waits() -> None:
    """A list of jobs that run takes no more calls than before."""
    opened, transport = session(lambda _: missing("x"))
    views = [queued(suspended=False)]
    assert views == with_queues(opened, views)
    assert [] == transport.calls


@pytest.mark.parametrize(
    ("views", "path", "selector"),
    [
        (
            [queued("a"), queued("b")],
            "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads",
            "kueue.x-k8s.io/job-uid in (uid-a,uid-b)",
        ),
        (
            [queued("a"), queued("b", namespace="other")],
            "/apis/kueue.x-k8s.io/v1beta2/workloads",
            "kueue.x-k8s.io/job-uid in (uid-a,uid-b)",
        ),
        (
            [queued(f"job-{at}") for at in range(101)],
            "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads",
            "kueue.x-k8s.io/job-uid",
        ),
    ],
)
def test_one_call_for_all_that_wait(views: list[JobView], path: str, selector: str) -> None:
    """By their uids, or of so many jobs for all of the namespace."""
    opened, transport = session(lambda _: Answer(body={"items": []}))
    with_queues(opened, views)
    (call,) = transport.calls
    assert (path, selector) == (call.path, call.query["labelSelector"])


def test_a_message_of_others_is_bounded_and_one_line() -> None:
    """A status holds 32,768 characters, and line breaks that would forge further lines."""
    long = "a\n" * 20_000
    for item in (workload(unreserved(long)), workload(QUOTA, checks=[check(message=long)])):
        reason = standing(fitted(item, WORKLOAD), "team").reason
        assert 1000 == len(reason)
        assert "\n" not in reason


@pytest.mark.parametrize(
    "spoiled",
    [
        {},
        {"metadata": None, "spec": 3, "status": []},
        {"metadata": {"ownerReferences": [{"uid": 7}, None]}},
        {"metadata": {"ownerReferences": [{"uid": "uid-job"}]}, "status": {"conditions": [None, {}]}},
        {
            "metadata": {"ownerReferences": [{"uid": "uid-job"}]},
            "status": {"conditions": [QUOTA], "admissionChecks": [{"name": 1, "state": {}, "message": []}]},
        },
    ],
)
def test_a_garbled_workload_fails_nothing(spoiled: Object) -> None:
    """Its job waits, for whatever reason."""
    (view,) = with_queues(session(lambda _: Answer(body={"items": [spoiled]}))[0], [queued()])
    assert view.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text() | st.sampled_from(["Pending", "QuotaReserved", "True", "False", NO_PLACE]) | JSON
CONDITIONS = st.lists(st.fixed_dictionaries(dict.fromkeys(("type", "status", "message"), TEXTS)) | JSON)
CHECKS = st.lists(st.fixed_dictionaries(dict.fromkeys(("name", "state", "message"), TEXTS)) | JSON)


@given(active=JSON, conditions=CONDITIONS | JSON, checks=CHECKS | JSON)
def test_whatever_a_workload_says_is_one_bounded_reason(active: Any, conditions: Any, checks: Any) -> None:
    """Anyone who may write it may write anything, and its job is shown anyway."""
    item = {
        **workload(active=active),
        "status": {"conditions": conditions, "admissionChecks": checks},
    }
    (view,) = with_queues(session(lambda _: Answer(body={"items": [item]}))[0], [queued()])
    assert view.queue is not None
    assert 0 < len(view.queue.reason) <= 1000
    assert 1 == len(view.queue.reason.splitlines())
