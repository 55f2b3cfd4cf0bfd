"""``arena-topo get`` prints a job in every form."""

import json
from datetime import UTC, datetime

import pytest

from arena_topo.model.job.start_estimate import StartEstimate
from arena_topo.model.keys import PLAN, PLANNED
from arena_topo.model.notation.yaml_documents import load
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord, Stage, encode
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing
from tests.objects import condition, mpijob, pod

FAILED = mpijob("job", status={"conditions": [condition("Failed", message="out of memory")]})


def cluster(call: Call) -> Answer:
    """Serve one job that failed, with two workers."""
    if call.path.endswith("/pods"):
        return Answer(body={"items": [pod("job-worker-0"), pod("job-worker-1")]})
    return Answer(body=FAILED) if call.path.endswith("/job") else missing("job")


def test_the_table_is_on_stdout_and_the_message_on_stderr(invoke: Invoke, serve: Serve) -> None:
    """So that scripts read what they read from Arena."""
    serve(cluster)
    outcome = invoke("get", "job", "--type=mpijob")

    assert 0 == outcome.code
    assert "job-worker-1" in outcome.out
    assert "out of memory" not in outcome.out
    assert "failed: out of memory\n" in outcome.err


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_document_has_arenas_keys(invoke: Invoke, serve: Serve, form: str) -> None:
    """In both notations."""
    serve(cluster)
    out = invoke("get", "job", "-o", form).out
    document = json.loads(out) if form == "json" else load(out, name="job")

    assert ("job", "FAILED", 2) == (document["name"], document["status"], len(document["instances"]))


def test_wide_adds_the_times(invoke: Invoke, serve: Serve) -> None:
    """Which the table of Arena's guides does not have."""
    serve(cluster)

    assert "CreateTime:" in invoke("get", "job", "-o", "wide").out
    assert "CreateTime:" not in invoke("get", "job").out


def test_the_name_is_kubectls(invoke: Invoke, serve: Serve) -> None:
    """To pass it on."""
    serve(cluster)

    assert "mpijob.kubeflow.org/job\n" == invoke("get", "job", "-o", "name").out


def test_a_missing_job_is_told_in_arenas_words(invoke: Invoke, serve: Serve) -> None:
    """On stderr, with exit code 1."""
    serve(lambda _: missing("job"))
    outcome = invoke("get", "other")

    assert (1, "") == (outcome.code, outcome.out)
    assert "training job other not found in namespace default" in outcome.err


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("jsonpath={.status}", "FAILED"),
        ("jsonpath={.instances[*].name}", "job-worker-0 job-worker-1"),
        ("custom-columns=NAME:.name,WORKERS:.workers", "NAME   WORKERS\njob    4\n"),
    ],
)
def test_an_expression_picks_from_the_document(
    invoke: Invoke, serve: Serve, form: str, expected: str
) -> None:
    """As in kubectl."""
    serve(cluster)

    assert expected == invoke("get", "job", "-o", form).out


def test_the_next_command_is_a_hint(invoke: Invoke, serve: Serve) -> None:
    """On stderr."""
    serve(cluster)

    assert "hint: its pods are gone; arena-topo events job shows what is left\n" in invoke("get", "job").err


def test_watching_a_job_that_has_ended_is_over_at_once(invoke: Invoke, serve: Serve) -> None:
    """After its table."""

    def watched(call: Call) -> Answer:
        items = [] if call.path.endswith("/pods") else [FAILED]
        return (
            Answer()
            if "watch" in call.query
            else Answer(body={"metadata": {"resourceVersion": "1"}, "items": items})
        )

    serve(watched)
    outcome = invoke("get", "job", "-w")
    assert 0 == outcome.code
    assert "Status:    FAILED" in outcome.out


def waiting_job() -> Object:
    """Return a job in the controller's queue, which awaits the end of one with a name that nobody should print."""
    at = datetime(2099, 1, 1, tzinfo=UTC)
    estimate = StartEstimate(
        earliest=at, likely=at, latest=at, after=("default/a\x1b[2J",), basis=("its deadline",)
    )
    record = PlanRecord(stage=Stage.WAITING, waiting_reason="too full", position=2, estimate=estimate)
    job = mpijob("job")
    job["metadata"]["annotations"] = {PLAN: encode(record)}
    job["metadata"]["labels"] = {PLANNED: "true"}
    job["spec"]["runPolicy"] = {"suspend": True}
    return job


def queued(call: Call) -> Answer:
    """Serve one job that waits."""
    if call.path.endswith(("/pods", "/events")):
        return Answer(body={"items": []})
    if call.path.endswith("/mpijobs"):
        return Answer(body={"items": [waiting_job()]})
    return Answer(body=waiting_job()) if call.path.endswith("/job") else missing("job")


def test_a_job_that_waits_tells_its_number_and_when_it_starts(invoke: Invoke, serve: Serve) -> None:
    """What has to end first is named so that it does nothing to the terminal."""
    serve(queued)
    outcome = invoke("get", "job")

    assert "plan: waits for a placement: too full; number 2 in the controller's queue\n" in outcome.err
    assert "start: in about " in outcome.err
    assert ", after default/a" in outcome.err
    assert "\x1b" not in outcome.err


def test_the_document_of_a_job_that_waits_tells_when_it_starts(invoke: Invoke, serve: Serve) -> None:
    """By instants, with what they rest on."""
    serve(queued)
    plan = json.loads(invoke("get", "job", "-o", "json").out)["plan"]

    assert ("too full", 2) == (plan["reason"], plan["position"])
    assert ("2099-01-01T00:00:00Z", ["its deadline"]) == (plan["start"]["likely"], plan["start"]["basis"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "-o", "wide"), "number 2 in the queue, starts in about "),
        (("describe", "job"), "Start:\n  in about "),
    ],
)
def test_list_and_describe_tell_it_too(
    invoke: Invoke, serve: Serve, words: tuple[str, ...], said: str
) -> None:
    """In the column for what a job waits for, and in a section of its own."""
    serve(queued)
    outcome = invoke(*words)

    assert said in outcome.out
    assert "\x1b" not in outcome.out


def in_kueue(call: Call) -> Answer:
    """Serve one job that waits in a queue of Kueue for a place, with a message of somebody who plays with terminals."""
    start = '{"from":"2099-01-01T00:00:00Z","likely":"2099-01-01T00:00:00Z","to":"2099-01-01T00:00:00Z"}'
    said = f"number 2 of those that wait for a place: too full\x1b[2J\nstart: {start}"
    if call.path.endswith("/workloads"):
        check = {"name": "arena-topo", "state": "Pending", "message": said}
        status = {"conditions": [condition("QuotaReserved")], "admissionChecks": [check]}
        meta = {"name": "mpijob-job", "ownerReferences": [{"uid": "uid-job"}]}
        return Answer(body={"items": [{"metadata": meta, "spec": {}, "status": status}]})
    answer = queued(call)
    for job in (answer.body or {}).get("items") or [answer.body]:
        if isinstance(job, dict) and job.get("kind") == "MPIJob":
            job["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "team"}, "annotations": {}}
    return answer


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("get", "job"), "queuing: number 2 in the queue: too full\\x1b[2J\n"),
        (("get", "job"), "start: in about "),
        (("get", "job"), "hint: it starts by itself; who holds the GPUs: arena-topo top node\n"),
        (("list", "-o", "wide"), "number 2 in the queue, starts in about "),
        (("describe", "job"), "Why queuing:\n  number 2 in the queue: too full"),
        (("describe", "job"), "Start:\n  in about "),
    ],
)
def test_a_job_in_a_queue_of_kueue_tells_the_same(
    invoke: Invoke, serve: Serve, words: tuple[str, ...], said: str
) -> None:
    """What its Workload says, so that it does nothing to the terminal."""
    serve(in_kueue)
    outcome = invoke(*words)

    assert said in outcome.out + outcome.err
    assert "\x1b" not in outcome.out + outcome.err


@pytest.mark.parametrize("words", [("get", "job"), ("list",)])
def test_the_document_of_a_job_in_kueue_tells_where_it_stands(
    invoke: Invoke, serve: Serve, words: tuple[str, ...]
) -> None:
    """Under a key of its own, as it has no plan."""
    serve(in_kueue)
    document = json.loads(invoke(*words, "-o", "json").out)
    (job,) = document if isinstance(document, list) else [document]

    assert None is job["plan"]
    assert ("team", "mpijob-job", 2, "2099-01-01T00:00:00Z") == (
        job["queue"]["name"],
        job["queue"]["workload"],
        job["queue"]["position"],
        job["queue"]["start"]["likely"],
    )


def test_a_table_that_shows_no_reasons_asks_for_none(invoke: Invoke, serve: Serve) -> None:
    """A plain list takes no more calls where jobs wait in Kueue."""
    transport = serve(in_kueue)
    invoke("list")

    assert [] == [call for call in transport.calls if call.path.endswith("/workloads")]
