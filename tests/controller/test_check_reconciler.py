"""Workloads with quota get their places, or are told why they have none; lost places are taken back."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.controller.objects import Notice, PatchStatus
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import PlanRecord, Slot, Stage
from arena_topo.pin.run_lists import decoded
from arena_topo.planner.reservations import OtherPlan
from tests.controller.workload_objects import (
    CHECK,
    Cluster,
    check,
    condition,
    entry,
    flavor,
    own_job,
    template,
    worker,
    workload,
)
from tests.controller.world import GPU, server


def updates_of(action: PatchStatus) -> list[Object]:
    """Return what an answer gives the pod sets."""
    assert isinstance(action.body, list)
    (updates,) = [each["value"] for each in action.body if each["path"].endswith("podSetUpdates")]
    found: list[Object] = updates
    return found


def test_a_workload_with_quota_gets_its_nodes() -> None:
    """Ready, with the nodes of all workers by their index."""
    (action,) = Cluster(workload(workers=3, gpus=4)).decide()
    assert isinstance(action, PatchStatus)
    updates = updates_of(action)
    assert "worker" == updates[0]["name"]
    assert {"arena-topo.dev/pin-nodes": "0:a,2:b,3:"} == updates[0]["annotations"]
    assert {"arena-topo.dev/planned": "true", "arena-topo.dev/job": "job"} == updates[0]["labels"]
    assert [{"name": "launcher", "labels": {"arena-topo.dev/launcher-of": "job"}}] == updates[1:]


def test_who_has_no_place_is_told_why_once() -> None:
    """It stays Pending; the same reason is not written again, and another one only after a while."""
    cluster = Cluster(workload("first", workers=3), workload("second", workers=2))
    actions = cluster.decide()
    cluster.carry_out(actions)
    assert "Ready" == cluster.objects["workloads"]["w-first"]["status"]["admissionChecks"][0]["state"]
    told = cluster.objects["workloads"]["w-second"]["status"]["admissionChecks"][0]
    assert "Pending" == told["state"]
    assert told["message"].startswith(
        "number 1 of those that wait for a place: 2 workers of 8 GPUs do not fit"
    )
    assert {} == cluster.answers()
    cluster.put("nodes", server("e", gpus=4))
    assert {} == cluster.answers()
    cluster.seconds += 60
    assert "4 nodes have fewer than 8 free GPUs" in cluster.answers()["second"][1]


def test_an_answer_that_was_decided_and_never_sent_is_decided_again() -> None:
    """The decision failed before its end: nothing is reserved for an answer that never comes."""
    cluster = Cluster(workload("first", workers=4))
    assert ["first"] == list(cluster.answers())
    assert {} == cluster.answers()
    cluster.reconciler.lost()
    assert "Ready" == cluster.answers()["first"][0]


def test_whoever_waits_is_known_before_it_is_decided_on() -> None:
    """A controller that has just started does not give what is
    free to a job that grows; an answer ends the wait.
    """
    cluster = Cluster(workload("first", workers=4), workload("second", workers=4))
    assert cluster.reconciler.has_waiting()
    assert 0 == cluster.reconciler.queued
    cluster.carry_out(cluster.decide())
    assert cluster.reconciler.has_waiting()
    cluster.put("workloads", workload("second"), deleted=True)
    assert not cluster.reconciler.has_waiting()


def test_what_is_freed_goes_to_who_waits() -> None:
    """Once the Workload that held it is gone."""
    cluster = Cluster(workload("first", workers=4), workload("second", workers=2))
    cluster.carry_out(cluster.decide())
    cluster.put("workloads", cluster.objects["workloads"]["w-first"], deleted=True)
    assert "Ready" == cluster.answers()["second"][0]


def test_the_higher_priority_comes_first_then_the_older() -> None:
    """As Kueue sorts its queue."""
    cluster = Cluster(
        workload("old", workers=3),
        workload("new", workers=3, created="2026-11-22T11:30:00Z"),
        workload("high", workers=3, created="2026-11-22T11:59:00Z", priority=10),
    )
    answers = cluster.answers()
    assert "Ready" == answers["high"][0]
    assert answers["old"][1].startswith("number 1")
    assert answers["new"][1].startswith("number 2")


def test_who_has_no_quota_or_is_on_the_way_out_is_not_answered() -> None:
    """Without quota, while it is evicted, when it is stopped, and once it has finished."""
    quota = condition("QuotaReserved")
    cluster = Cluster(
        workload("a", conditions=[]),
        workload("b", conditions=[quota, condition("Evicted")]),
        workload("c", active=False),
        workload("d", conditions=[quota, condition("Finished")]),
        workload("e", admissionChecks=[entry("Retry")]),
        workload("f", admissionChecks=[entry(name="somebody-elses")]),
        workload("g", conditions=[quota, condition("Admitted"), condition("Evicted")]),
    )
    assert [] == cluster.decide()
    assert not cluster.reconciler.has_waiting()


def test_the_pins_of_an_earlier_admission_reserve_nothing() -> None:
    """They stay in the status next to Pending."""
    cluster = Cluster(
        workload("first", conditions=[], workers=4, admissionChecks=[entry(nodes="0:a,1:b,2:c,3:d,4:")]),
        workload("second", workers=4),
    )
    assert ["second"] == [name for name, (state, _) in cluster.answers().items() if state == "Ready"]


def test_an_answer_that_came_after_the_eviction_is_taken_back() -> None:
    """Kueue had reset the check before it: without quota it
    would keep its places from the job that it made room for.
    """
    late = workload(
        "late", workers=4, conditions=[], admissionChecks=[entry("Ready", nodes="0:a,1:b,2:c,3:d,4:")]
    )
    cluster = Cluster(late, workload("urgent", workers=2, priority=10))
    actions = cluster.decide()
    assert {"op": "test", "path": "/metadata/resourceVersion", "value": "1"} in next(
        action.body for action in actions if isinstance(action, PatchStatus) and action.uid == "w-late"
    )
    cluster.carry_out(actions)
    assert "Pending" == cluster.objects["workloads"]["w-late"]["status"]["admissionChecks"][0]["state"]
    assert "Ready" == cluster.answers()["urgent"][0]


def test_a_restarted_controller_knows_what_is_held() -> None:
    """The answers are the reservations: nothing else is stored."""
    cluster = Cluster(
        workload("first", workers=3, admissionChecks=[entry("Ready", nodes="0:a,1:b,2:c,3:")]),
        workload("second", workers=1),
    )
    (action,) = cluster.decide()
    assert isinstance(action, PatchStatus)
    assert "0:d,1:" in str(action.body)


def test_a_controller_that_dies_after_each_write_books_nothing_twice() -> None:
    """Of all that it has decided only one answer was sent;
    the next one knows that, and decides the rest again.
    """
    cluster = Cluster(*(workload(f"job-{number}", workers=1, gpus=4) for number in range(10)))
    for _ in range(10):
        cluster.restart()
        cluster.carry_out(cluster.decide()[:1])
    entries = [each["status"]["admissionChecks"][0] for each in cluster.objects["workloads"].values()]
    nodes = Counter(
        decoded(updates["annotations"]["arena-topo.dev/pin-nodes"], 1)[0]
        for each in entries
        for updates in each["podSetUpdates"]
        if updates["name"] == "worker"
    )
    assert {"a": 2, "b": 2, "c": 2, "d": 2} == nodes


def test_what_was_sent_counts_before_it_is_seen() -> None:
    """Also where the next decision comes first."""
    cluster = Cluster(workload("first", workers=3))
    cluster.decide()
    cluster.put("workloads", workload("second", workers=2))
    assert cluster.answers()["second"][1].startswith("number 1")


def test_an_answer_that_was_refused_is_given_again_after_a_moment() -> None:
    """What it had taken is free meanwhile."""
    cluster = Cluster(workload("first", workers=3))
    (action,) = cluster.decide()
    assert isinstance(action, PatchStatus)
    cluster.reconciler.failed(action)
    assert [] == cluster.decide()
    cluster.put("workloads", workload("second", workers=2))
    assert "Ready" == cluster.answers()["second"][0]
    cluster.seconds += 3
    assert cluster.answers()["first"][1].startswith("number 1")


def test_a_pod_on_another_node_than_its_answer_names_counts_as_itself() -> None:
    """Such as one of an earlier admission that takes its time to end."""
    cluster = Cluster(
        workload("first", workers=2, admissionChecks=[entry("Ready", nodes="0:a,1:b,2:")]),
        workload("second", workers=1),
        workload("third", workers=1),
        pods=[worker("first", 0, "c"), worker("first", 1, "b")],
    )
    answers = cluster.answers()
    assert ("Ready", "1 worker on node d") == answers["second"]
    assert answers["third"][1].startswith("number 1")


def test_plans_that_others_made_are_respected() -> None:
    """Those of a ``submit`` at the same time."""
    record = PlanRecord(
        stage=Stage.CONFIRMED,
        slots=tuple(Slot(number, node, None) for number, node in enumerate("abc")),
        worker_requests={GPU: 8},
    )
    plan = OtherPlan(order=("", "other"), record=record)
    cluster = Cluster(workload(workers=2))
    assert cluster.answers(plan)["job"][1].startswith("number 1")


def test_a_job_that_runs_already_keeps_its_nodes() -> None:
    """The check was added to its queue: nothing is planned, and its pods' nodes are the answer."""
    admitted = [condition("QuotaReserved"), condition("Admitted")]
    cluster = Cluster(
        workload(workers=2, conditions=admitted),
        pods=[worker("job", 0, "d"), worker("job", 1, "b")],
    )
    (action,) = cluster.decide()
    assert isinstance(action, PatchStatus)
    assert "0:d,1:b,2:" in str(action.body)
    assert "'Ready'" in str(action.body)


def test_of_a_job_with_billions_of_pods_it_is_enough_that_it_runs() -> None:
    """Anyone may ask for so many, of which as many run as there is room for; no answer lists them."""
    admitted = [condition("QuotaReserved"), condition("Admitted")]
    cluster = Cluster(workload(workers=2**31 - 1, conditions=admitted), pods=[worker("job", 0, "d")])
    (action,) = cluster.decide()
    assert isinstance(action, PatchStatus)
    assert "'Ready'" in str(action.body)
    assert [] == updates_of(action)


def test_a_lost_node_moves_the_jobs_on_it_and_no_others() -> None:
    """After a moment: their workers wait for a node that is gone."""
    cluster = Cluster(
        workload("lost", workers=1, admissionChecks=[entry("Ready", nodes="0:a,1:")]),
        workload("kept", workers=1, admissionChecks=[entry("Ready", nodes="0:b,1:")]),
        pods=[worker("kept", 0, "b")],
    )
    cluster.put("nodes", cluster.objects["nodes"]["node-a"], deleted=True)
    assert {} == cluster.answers()
    cluster.seconds += 11
    actions = cluster.decide()
    patch, notice = actions
    assert isinstance(patch, PatchStatus)
    assert "w-lost" == patch.uid
    assert "'Retry'" in str(patch.body)
    assert isinstance(notice, Notice)
    assert "node a is lost: the job is planned again" == notice.message
    assert [] == cluster.decide()


def test_of_two_answers_for_one_place_the_younger_is_taken_back() -> None:
    """A leader's last write may come after the next one's first."""
    cluster = Cluster(
        workload("old", workers=1, admissionChecks=[entry("Ready", nodes="0:a,1:")]),
        workload(
            "new",
            workers=1,
            created="2026-11-22T11:30:00Z",
            admissionChecks=[entry("Ready", nodes="0:a,1:")],
        ),
    )
    cluster.decide()
    cluster.seconds += 11
    assert {
        "new": ("Retry", "node a has been filled by others: the job is planned again")
    } == cluster.answers()


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-11-22T11:00:20Z", {"late": ("Retry", "node b has been filled by others")}),
        ("2026-11-22T11:40:00Z", {}),
    ],
    ids=["as it starts", "once it ran"],
)
def test_half_a_gang_is_taken_back_only_before_it_ran(
    created: str, expected: dict[str, tuple[str, str]]
) -> None:
    """Others have the node of one of its workers, and there is no other: a gang
    that ran keeps what it has, one that starts would only hold GPUs.
    """
    waits = worker("late", 1, "")
    waits["metadata"]["creationTimestamp"] = created
    waits["spec"]["affinity"] = {}
    cluster = Cluster(
        workload("urgent", workers=3, admissionChecks=[entry("Ready", nodes="0:b,1:c,2:d,3:")]),
        workload(
            "late",
            workers=2,
            created="2026-11-22T11:30:00Z",
            conditions=[condition("QuotaReserved"), condition("Admitted")],
            admissionChecks=[entry("Ready", nodes="0:a,1:b,2:")],
        ),
        pods=[
            *(worker("urgent", number, node) for number, node in enumerate("bcd")),
            worker("late", 0, "a"),
            waits,
        ],
    )
    cluster.decide()
    cluster.seconds += 11
    assert expected == {
        name: (state, why.partition(";")[0]) for name, (state, why) in cluster.answers().items()
    }


def test_a_place_is_kept_for_the_head_after_the_time_of_its_check() -> None:
    """Smaller jobs do not take what a large one waits for."""
    parameters = {"apiGroup": "arena-topo.dev", "kind": "PlannerParameters", "name": "quick"}
    cluster = Cluster(
        workload("runs", workers=3, admissionChecks=[entry("Ready", nodes="0:a,1:b,2:c,3:")]),
        workload("large", workers=4),
        workload("small", workers=1, created="2026-11-22T11:30:00Z"),
        reserve_after=36_000,
        admissionchecks=[check(parameters=parameters)],
        plannerparameters=[{"metadata": {"name": "quick", "uid": "p"}, "spec": {"reserveAfter": "10m"}}],
        pods=[worker("runs", number, node) for number, node in enumerate("abc")],
    )
    answers = cluster.answers()
    assert "is reserved for the job default/large" in answers["small"][1]
    assert answers["large"][1].startswith("number 1")


def test_a_place_is_kept_where_a_job_of_our_own_queue_runs() -> None:
    """It ends as any other, and what it holds is free for Kueue's jobs then."""
    job, pods = own_job("own", "abc")
    cluster = Cluster(
        workload("large", workers=4),
        workload("small", workers=1, created="2026-11-22T11:30:00Z"),
        mpijobs=[job],
        pods=pods,
    )
    assert "is reserved for the job default/large" in cluster.answers()["small"][1]


def test_before_that_time_smaller_jobs_start() -> None:
    """The queue's order is Kueue's; ours is who fits."""
    cluster = Cluster(workload("large", workers=5), workload("small", workers=1), reserve_after=36_000)
    assert "Ready" == cluster.answers()["small"][0]


def test_the_labels_of_the_flavor_choose_the_nodes() -> None:
    """They are not in the Workload's template."""
    cluster = Cluster(
        workload(workers=1), resourceflavors=[flavor(nodeLabels={"kubernetes.io/hostname": "c"})]
    )
    (action,) = cluster.decide()
    assert isinstance(action, PatchStatus)
    assert "0:c,1:" in str(action.body)


def test_jobs_that_kueue_has_placed_itself_get_no_nodes() -> None:
    """A flavor with a topology: its assignment stays."""
    assigned = [{"name": "worker", "count": 2, "topologyAssignment": {"levels": ["kubernetes.io/hostname"]}}]
    cluster = Cluster(workload(admission={"podSetAssignments": assigned}))
    assert {"job": ("Ready", "Kueue has assigned the nodes by its topology")} == cluster.answers()


def test_other_kinds_of_jobs_are_let_through() -> None:
    """A batch Job has no ranks that we know of."""
    cluster = Cluster(workload(owner={"apiVersion": "batch/v1", "kind": "Job"}))
    assert {"job": ("Ready", "not planned: no kind of job that has ranks")} == cluster.answers()


def test_a_job_with_pins_of_its_own_is_rejected() -> None:
    """Kueue would admit it, and could never start it."""
    pinned = {"annotations": {"arena-topo.dev/pin-nodes": "0:a,1:"}}
    assert "Rejected" == Cluster(workload(metadata=pinned)).answers()["job"][0]


def test_unreadable_options_concern_their_job_alone() -> None:
    """It is told, and the others are placed."""
    garbled = {"annotations": {"arena-topo.dev/placement-options": "[1]"}}
    answers = Cluster(workload("bad", metadata=garbled), workload("good")).answers()
    assert "must be a mapping" in answers["bad"][1]
    assert "Ready" == answers["good"][0]


def test_of_several_checks_of_ours_the_first_gives_the_places() -> None:
    """The others say so."""
    second = "second"
    cluster = Cluster(
        workload(admissionChecks=[entry(), entry(name=second)]),
        admissionchecks=[check(), check(second)],
    )
    cluster.carry_out(cluster.decide())
    cluster.carry_out(cluster.decide())
    states = [each["state"] for each in cluster.objects["workloads"]["w-job"]["status"]["admissionChecks"]]
    assert ["Ready", "Ready"] == states


def test_a_check_of_ours_is_marked_active() -> None:
    """Before that its queue admits nothing; one with wrong parameters says what is wrong."""
    new = {**check(), "status": {}}
    wrong = check(
        "wrong", parameters={"apiGroup": "arena-topo.dev", "kind": "PlannerParameters", "name": "x"}
    )
    marked = {
        action.uid: action.body["status"]["conditions"][0]
        for action in Cluster(admissionchecks=[new, wrong]).decide()
        if isinstance(action, PatchStatus) and isinstance(action.body, dict)
    }
    assert ("True", "Active") == (marked[f"check-{CHECK}"]["status"], marked[f"check-{CHECK}"]["reason"])
    assert "False" == marked["check-wrong"]["status"]
    assert "there are no PlannerParameters 'x'" == marked["check-wrong"]["message"]


def test_roles_of_a_pytorch_job_share_one_list() -> None:
    """The master is number 0; the workers say where they begin."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    pod_sets = [
        {"name": "master", "count": 1, "template": template(8)},
        {"name": "worker", "count": 2, "template": template(8)},
    ]
    (action,) = Cluster(workload(owner=owner, podSets=pod_sets, admission={})).decide()
    assert isinstance(action, PatchStatus)
    updates = updates_of(action)
    assert ["master", "worker"] == [each["name"] for each in updates]
    assert ["0:a,1:b,2:c,3:"] * 2 == [each["annotations"]["arena-topo.dev/pin-nodes"] for each in updates]
    assert [None, "1"] == [each["annotations"].get("arena-topo.dev/pin-offset") for each in updates]


WRITES = {
    "queued": [],
    "has quota": ["QuotaReserved"],
    "runs": ["QuotaReserved", "Admitted"],
    "is evicted": ["QuotaReserved", "Evicted"],
    "has finished": ["QuotaReserved", "Admitted", "Finished"],
}
"""The conditions of a Workload, by what Kueue has done with it last."""


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from([*WRITES, "is reset", "is deleted"])),
        max_size=20,
    )
)
def test_a_controller_that_runs_decides_what_one_does_that_begins(history: list[tuple[str, str]]) -> None:
    """Whatever Kueue has written before: what is remembered saves time alone."""
    cluster = Cluster()
    for job, written in history:
        at = "abcdef".index(job)
        item = cluster.objects["workloads"].get(f"w-{job}", workload(job, workers=1 + at % 3, gpus=2 + at))
        status = item["status"]
        match written:
            case "is reset":
                status = {**status, "conditions": [], "admissionChecks": [entry()]}
            case "is deleted":
                pass
            case _:
                status = {**status, "conditions": list(map(condition, WRITES[written]))}
        cluster.put("workloads", {**item, "status": status}, deleted=written == "is deleted")
        # Other words on why a job waits come after a while.
        cluster.seconds += 60
        running = cluster.reconciler
        cluster.restart()
        expected, cluster.reconciler = cluster.decide(), running
        decided = cluster.decide()
        assert sorted(map(repr, expected)) == sorted(map(repr, decided))
        cluster.carry_out(decided)


@pytest.mark.parametrize("kind", ["MPIJob", "PyTorchJob", "JobSet"])
def test_a_workload_of_two_billion_pods_stops_nobody(kind: str) -> None:
    """Without GPUs they would fit anywhere; it waits, and the next one gets its nodes."""
    api = {
        "MPIJob": "kubeflow.org/v2beta1",
        "PyTorchJob": "kubeflow.org/v1",
        "JobSet": "jobset.x-k8s.io/v1alpha2",
    }
    odd = workload("odd", 2**31 - 1, 0, owner={"apiVersion": api[kind], "kind": kind})
    cluster = Cluster(odd, workload("honest", 1))

    assert "Ready" == cluster.answers()["honest"][0]
