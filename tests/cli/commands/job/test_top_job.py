"""``arena-topo top job`` prints Arena's tables."""

import json
import threading
import time

import pytest

from tests.cli.commands.job.test_list import cluster
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call
from tests.objects import mpijob, pod


def test_jobs_with_most_gpus_stand_first(invoke: Invoke, serve: Serve) -> None:
    """And the sum counts running jobs alone."""
    serve(cluster)
    lines = invoke("top", "job").out.splitlines()

    assert ["NAME", "STATUS", "TRAINER", "AGE", "GPU(Requested)", "GPU(Allocated)", "NODE"] == lines[
        0
    ].split()
    assert ["resnet50", "vgg16"] == [line.split()[0] for line in lines[1:3]]
    assert "0" == lines[1].split()[5]
    assert ["", "Total Allocated/Requested GPUs of Training Jobs: 1/1"] == lines[3:]
    assert ["resnet50", "vgg16"] == [
        job["name"] for job in json.loads(invoke("top", "job", "-o", "json").out)
    ]


def test_one_job_has_its_instances(invoke: Invoke, serve: Serve) -> None:
    """As Arena prints them where nobody measures GPUs; one instance where it is named."""

    def one(call: Call) -> Answer:
        pods = [pod("a-worker-0", hostIP="10.0.0.1"), pod("a-worker-1", hostIP="10.0.0.2")]
        return Answer(body={"items": pods} if call.path.endswith("/pods") else mpijob("a", workers=2))

    serve(one)
    out = invoke("top", "job", "a").out
    assert "  a-worker-0  Running  1             10.0.0.1  N/A               N/A             N/A\n" in out
    assert out.endswith("\nGPUs:\n  Allocated/Requested GPUs of Job: 2/2\n")
    assert "a-worker-0" not in invoke("top", "job", "a", "-i", "a-worker-1").out


@pytest.mark.parametrize("args", [("a", "b"), ("-i", "a-worker-0")])
def test_wrong_usage_is_said(invoke: Invoke, args: tuple[str, ...]) -> None:
    """With its exit code."""
    assert 2 == invoke("top", "job", *args).code


def test_refresh_shows_it_again(invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until Ctrl-C; a document that never ends is none."""
    serve(cluster)
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
    outcome = invoke("top", "job", "-r")

    assert (130, [2.0, 2.0]) == (outcome.code, waited)
    assert 2 == outcome.out.count("NAME")
    assert 2 == invoke("top", "job", "-r", "-o", "json").code
