"""What the commands about jobs print, say and write, as
somebody looked at it: one file for each command line.
"""

import json
import shlex
import threading
import time
from datetime import UTC, datetime

import pytest

from arena_topo.model.keys import PLAN, PLANNED
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import PlanRecord, Stage, StartEstimate, encode
from tests.cli.clusters import cluster, transcript
from tests.cli.conftest import Invoke, Serve, Typed
from tests.fakes import Answer, Call, Script, refusal
from tests.jobs.test_job_events import happened
from tests.objects import condition, mpijob, pod
from tests.output.golden import golden, uncoloured

START = datetime(2099, 1, 1, tzinfo=UTC)


def job_that_ended(name: str, kind: str, **extra: str) -> Object:
    """Return a job that has ended."""
    return mpijob(name, status={"conditions": [condition(kind, **extra)]})


def of_job(pod_: Object, job: str) -> Object:
    """Return *pod_* as one of *job*."""
    pod_["metadata"]["labels"]["training.kubeflow.org/job-name"] = job
    return pod_


def waiting_job() -> Object:
    """Return a job in the controller's queue, which awaits
    the end of one with a name that nobody should print.
    """
    estimate = StartEstimate(
        earliest=START, likely=START, latest=START, after=("default/a\x1b[2J",), basis=("its deadline",)
    )
    record = PlanRecord(stage=Stage.WAITING, waiting_reason="too full", position=2, estimate=estimate)
    job = mpijob("job")
    job["metadata"] |= {"annotations": {PLAN: encode(record)}, "labels": {PLANNED: "true"}}
    job["spec"]["runPolicy"] = {"suspend": True}
    return job


def queued() -> Object:
    """Return a job that waits in a queue of Kueue."""
    job = waiting_job()
    job["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "team"}, "annotations": {}}
    return job


def workload() -> Object:
    """Return Kueue's side of it, with a message of somebody who plays with terminals."""
    times = dict.fromkeys(("from", "likely", "to"), "2099-01-01T00:00:00Z")
    said = f"number 2 of those that wait for a place: too full\x1b[2J\nstart: {json.dumps(times)}"
    check = {"name": "arena-topo", "state": "Pending", "message": said}
    return {
        "metadata": {"name": "mpijob-job", "ownerReferences": [{"uid": "uid-job"}]},
        "spec": {},
        "status": {"conditions": [condition("QuotaReserved")], "admissionChecks": [check]},
    }


def kept(call: Call) -> Answer:
    """Serve the job that failed, which may not be deleted."""
    return refusal(403, "Forbidden", "you may not") if call.method == "DELETE" else FAILED(call)


WORKERS = [pod("job-worker-0"), pod("job-worker-1")]
FAILED = cluster(job_that_ended("job", "Failed", message="out of memory"), pods=WORKERS)
JOBS = cluster(
    mpijob("vgg16", workers=1),
    job_that_ended("resnet50", "Succeeded"),
    pods=[
        of_job(pod("vgg16-launcher-x", role="launcher", hostIP="192.168.16.173"), "vgg16"),
        of_job(pod("vgg16-worker-0"), "vgg16"),
    ],
)
TWO = cluster(mpijob("a", workers=2), pods=[pod(f"a-worker-{n}", hostIP=f"10.0.0.{n + 1}") for n in range(2)])
EMPTY = cluster()
WAITING = cluster(waiting_job())
QUEUED = cluster(queued(), workloads=[workload()])
UNSEEN = cluster(
    mpijob("a"), pods=[pod("a-worker-0")], events=refusal(403, "Forbidden", "events is forbidden")
)
EVENTS = cluster(mpijob("a"), events=[happened("a-worker-0", 1)])
DONE, BROKEN = (
    cluster(job_that_ended("a", "Succeeded")),
    cluster(job_that_ended("a", "Failed", message="too slow")),
)

LINES: list[tuple[str, Script, str]] = [
    ("get", FAILED, "get job --type=mpijob"),
    ("get", FAILED, "get job"),
    ("get-json", FAILED, "get job -o json"),
    ("get-yaml", FAILED, "get job -o yaml"),
    ("get-wide", FAILED, "get job -o wide"),
    ("get-name", FAILED, "get job -o name"),
    ("get-columns", FAILED, "get job -o custom-columns=NAME:.name,WORKERS:.workers"),
    ("get-missing", EMPTY, "get other"),
    ("get-watch-ended", FAILED, "get job -w"),
    ("get-waiting", WAITING, "get job"),
    ("get-waiting-json", WAITING, "get job -o json"),
    ("list-waiting-wide", WAITING, "list -o wide"),
    ("describe-waiting", WAITING, "describe job"),
    ("get-queued", QUEUED, "get job"),
    ("get-queued-json", QUEUED, "get job -o json"),
    ("list-queued-wide", QUEUED, "list -o wide"),
    ("list-queued-json", QUEUED, "list -o json"),
    ("describe-queued", QUEUED, "describe job"),
    ("get-several", FAILED, "get job none job"),
    ("get-several-json", FAILED, "get job none -o custom-columns=NAME:.name"),
    ("get-other-type", cluster(mpijob("a"), pytorchjobs=[]), "get a --type=pytorchjob"),
    ("describe-json", EVENTS, "describe a -o json"),
    ("get-events", UNSEEN, "get a -e"),
    ("get-gpus", TWO, "get a --gpus"),
    ("describe-without-events", UNSEEN, "describe mpijob/a"),
    ("events", EVENTS, "events a"),
    ("events-none", cluster(mpijob("a")), "events a"),
    ("events-missing", EMPTY, "events a"),
    ("list", JOBS, "list"),
    ("list-all", JOBS, "ls -A"),
    ("list-all", JOBS, "ls --all-namespaces"),
    ("list-all", JOBS, "ls --allNamespaces"),
    ("list-wide", JOBS, "list -o wide"),
    ("list-failed", FAILED, "list --status=failed -o name"),
    ("list-running", FAILED, "list --status=running,pending"),
    ("list-empty", EMPTY, "list"),
    ("list-empty-json", EMPTY, "list -o json"),
    ("list-name", JOBS, "list -o name"),
    ("list-columns", JOBS, "list -o custom-columns=NAME:.name,GPUS:.requestGPUs"),
    ("list-no-such-column", JOBS, "list -o custom-columns=NAME:.metadata.name,S:.status"),
    ("list-json", JOBS, "list -o json"),
    ("list-sorted", JOBS, "list --sort-by=.requestGPUs"),
    ("list-xml", JOBS, "list -o xml"),
    ("list-columns-of-nothing", JOBS, "list -o custom-columns=A"),
    ("list-watch-json", JOBS, "list -w -o json"),
    ("list-sorted-open", JOBS, "list --sort-by .a["),
    ("list-sorted-by-nothing", JOBS, "list --sort-by .metadata.name"),
    ("top-jobs", JOBS, "top job"),
    ("top-jobs-json", JOBS, "top job -o json"),
    ("top-job", TWO, "top job a"),
    ("top-job-instance", TWO, "top job a -i a-worker-1"),
    ("top-job-several", TWO, "top job a b"),
    ("top-job-instance-of-nothing", TWO, "top job -i a-worker-0"),
    ("top-jobs-json-again", JOBS, "top job -r -o json"),
    ("wait", DONE, "wait a"),
    ("wait", DONE, "wait a --for=condition=Succeeded"),
    ("wait-running", DONE, "wait a --for=running"),
    ("wait-failed", BROKEN, "wait a"),
    ("wait-too-long", DONE, "wait a --for=deleted --timeout=1ms"),
    ("wait-happy", EMPTY, "wait a --for=happy"),
    ("delete", FAILED, "delete none job job --wait=false"),
    ("delete-selected", FAILED, "delete -l team=x --wait=false"),
    ("delete-all-unasked", FAILED, "delete --all --wait=false"),
    ("delete-all", FAILED, "delete --all -y --wait=false"),
    ("delete-all-of-none", EMPTY, "delete --all"),
    ("suspend-several", FAILED, "suspend job none"),
    ("resume-not-suspended", cluster(mpijob("a")), "resume a a"),
    ("delete-ignoring", FAILED, "delete none --ignore-not-found"),
    ("delete-refused", kept, "delete job --wait=false"),
    ("delete-too-long", FAILED, "delete job --timeout=1ms"),
    ("delete-too-long", FAILED, "delete job --timeout=0.001s"),
]


@pytest.mark.parametrize(
    ("name", "script", "line"), LINES, ids=[f"{name}: {line}" for name, _, line in LINES]
)
def test_a_command_does_what_it_did(
    invoke: Invoke, serve: Serve, name: str, script: Script, line: str
) -> None:
    """Both streams, the exit code and every write; what others wrote does nothing to a terminal."""
    transport = serve(script)
    text = transcript(invoke(*shlex.split(line)), transport)

    assert golden(f"cli/job/{name}.txt", text) == text
    assert "\x1b" not in text


def test_colour_is_for_terminals(invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves the columns where they are."""
    serve(JOBS)
    plain = invoke("list").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = invoke("list").out

    assert "\x1b[32mRUNNING\x1b[0m" in coloured
    assert plain.split("MPIJOB")[0] == uncoloured(coloured).split("MPIJOB")[0]


def test_no_more_is_asked_than_is_shown(invoke: Invoke, serve: Serve) -> None:
    """A page takes three calls, and a list without reasons asks for none where jobs wait in Kueue."""
    page = serve(UNSEEN)
    invoke("describe", "mpijob/a")
    jobs = serve(QUEUED)
    invoke("list")

    assert 3 == len(page.calls)
    assert [] == [call for call in jobs.calls if call.path.endswith("/workloads")]


@pytest.mark.parametrize("resource", ["job", "node"])
def test_refresh_shows_it_again(
    invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch, resource: str
) -> None:
    """Until Ctrl-C, which ends it as it ends every command."""
    serve(EMPTY)
    waited: list[float] = []
    sleep = time.sleep

    def wait(seconds: float) -> None:
        # Streams of other tests may still wait in threads of their own.
        if threading.current_thread() is not threading.main_thread():
            sleep(seconds)
            return
        waited.append(seconds)
        if len(waited) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("arena_topo.cli.terminal.time.sleep", wait)
    outcome = invoke("top", resource, "-r")

    assert (130, [2.0, 2.0]) == (outcome.code, waited)
    assert 2 == outcome.out.count("NAME")


@pytest.mark.parametrize(("answer", "deleted"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_terminal_is_asked_before_jobs_go_that_were_not_named(
    invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch, answer: str, deleted: bool
) -> None:
    """With their names; only a yes deletes them."""
    transport = serve(FAILED)
    monkeypatch.setattr("sys.stdin", Typed(answer))
    outcome = invoke("delete", "--all", "--wait=false")

    assert 0 == outcome.code, outcome.err
    assert "Delete 1 job in namespace default: job? [y/N]" in outcome.err
    assert deleted == any(call.method == "DELETE" for call in transport.calls)
    assert deleted != ("nothing was deleted" in outcome.err)
