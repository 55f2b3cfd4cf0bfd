"""What the controller does about a job that was submitted with ``--on-hang``, and whose log is silent."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from arena_topo.controller.hangs import Asking, HangWatch
from arena_topo.controller.objects import Action, Faults, Notice, PatchStatus
from arena_topo.diagnosis.look import PodAt, Run
from arena_topo.errors import Forbidden
from arena_topo.jobs.evidence import evidence_object, kept_evidence
from arena_topo.kinds.table import kind_of
from arena_topo.kube.session import Session
from arena_topo.model.hang import Hang, hang_of
from arena_topo.model.keys import HANG
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import HangRule, read_hang_rule
from arena_topo.model.plan_record import Enforcement, PlanRecord, Stage
from arena_topo.output.why import verdict_of
from tests.controller.test_lost import Running
from tests.controller.world import World, controller
from tests.controlplane.polling import eventually
from tests.fakes import Answer, Call, FakeTransport, missing, refusal, session
from tests.jobs.test_why import REDUCES, SLEEPS, STAT, gang
from tests.objects import mpijob

MAPS = "/api/v1/namespaces/default/configmaps"
SAVE, FAIL = HangRule(1800), HangRule(1800, fails=True)


def ranks(late: str = "", *, moving: bool = False) -> Run:
    """Return what runs commands in pods of which each has a
    rank; the ranks but the *late* one are in a collective.
    """
    asked: dict[str, int] = {}

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        if not pod.name.startswith("job-worker-"):
            return b""
        if len(words) == 3:
            number = int(pod.name[-1])
            env = f"env 9 OMPI_COMM_WORLD_RANK={number}\nenv 9 OMPI_COMM_WORLD_SIZE=4\n"
            return f"stat 9 (python) {STAT}\n{env}".encode()
        begins = asked[pod.name] = asked.get(pod.name, -100) + 100
        lines = []
        for number in range(3):
            at = begins + number
            stack = SLEEPS if pod.name == late else REDUCES
            moved = at * 100_000 if moving else 1
            lines += [
                f"{number} 9 stat {at}.00 9 (python) {STAT}",
                f"{number} 9 io {at}.00 rchar: {moved} wchar: 1 ",
            ]
            lines += [f'{number} 9 stack Thread 9 (idle): "MainThread"', f"{number} 9 stack {stack}"]
        return "\n".join(lines).encode()

    return run


def denied(pod: PodAt, words: Sequence[str]) -> bytes:
    """Refuse as a server does whose admin has granted nothing."""
    del words
    raise Forbidden(f'pods "{pod.name}" is forbidden: no exec', status=403)


@dataclass
class Looked:
    """One look of the controller at a job, and what came of it."""

    watch: HangWatch
    transport: FakeTransport
    sent: list[Action]
    due: float = 0.0
    stops: list[tuple[str, str]] = field(default_factory=list)

    @property
    def notices(self) -> list[Notice]:
        """The events."""
        return [each for each in self.sent if isinstance(each, Notice)]

    def written(self, method: str) -> list[Any]:
        """Return what was written by *method*."""
        return [call.body for call in self.transport.calls if call.method == method]

    @property
    def noted(self) -> list[Hang | None]:
        """What was written onto the job, None for that it makes progress."""
        return [
            hang_of({"metadata": {"annotations": body["metadata"]["annotations"]}})
            for body in self.written("PATCH")
        ]


def look(
    rule: HangRule = SAVE,
    run: Run | None = None,
    *,
    silent: float = 3600.0,
    job: Object | None = None,
    maps: Answer | None = None,
    namespaces: Sequence[str] = ("default",),
) -> Looked:
    """Look at a job of four ranks whose log was *silent* for so many seconds."""
    seen = job or mpijob("job")
    last = datetime.now(UTC) - timedelta(seconds=silent)

    def script(call: Call) -> Answer:
        if call.path.endswith("/log"):
            return Answer(lines=[f"{last.isoformat()} step 12\n".encode()])
        if call.path.endswith("/pods"):
            return Answer(body={"items": gang()})
        if "/pods/" in call.path:
            name = call.path.rpartition("/")[2]
            return Answer(body=next(each for each in gang() if each["metadata"]["name"] == name))
        if "/mpijobs/job" in call.path:
            return Answer(body=seen)
        if call.path == MAPS and call.method == "POST":
            return maps or Answer(body=call.body)
        return missing("x")

    opened, transport = session(script)
    sent: list[Action] = []
    watch = HangWatch(
        [], lambda *_: run or ranks("job-worker-2"), frozenset(namespaces), lambda: True, sent.append, Faults(),
        sleep=lambda _: None,
    )  # fmt: skip
    done = Looked(watch, transport, sent)
    done.due = watch.look_at(Asking("uid-job", kind_of(seen), seen, rule), opened)
    done.stops = watch.stops()
    return done


def noted(silent: float, state: str = "stuck", *, kept: bool = True) -> Object:
    """Return a job of which was noted that its log has been *silent* for so many seconds."""
    since = datetime.now(UTC) - timedelta(seconds=silent)
    job = mpijob("job")
    return {
        **job,
        "metadata": {**job["metadata"], "annotations": {HANG: Hang(since, state, "m", kept).annotation}},
    }


@pytest.mark.parametrize(("rule", "stopped"), [(SAVE, []), (FAIL, ["uid-job"])])
def test_a_stuck_job_has_its_evidence_kept_and_is_stopped_if_it_is_to_be(
    rule: HangRule, stopped: list[str]
) -> None:
    """The ConfigMap goes with the job, which says what was seen, and so does an event."""
    done = look(rule)
    (body,) = done.written("POST")
    assert ("job.mpijob.hang", ["uid-job"], True) == (
        body["metadata"]["name"],
        [owner["uid"] for owner in body["metadata"]["ownerReferences"]],
        body["immutable"],
    )
    (found,) = done.noted
    assert found
    assert ("stuck", True) == (found.state, found.kept)
    assert "3 ranks wait in MPI_Allreduce for rank 2 (job-worker-2, n2), which has been at load" in found.text
    assert found.text.startswith("hung since ")
    assert ["Hung"] == [each.reason for each in done.notices]
    assert stopped == [uid for uid, _ in done.stops]
    assert 1800 == done.due


@pytest.mark.parametrize(
    ("run", "state"),
    [(ranks(), "undecided"), (ranks("job-worker-2"), "waiting")],
    ids=["all alike", "too early"],
)
def test_what_is_not_certain_stops_nothing(run: Run, state: str) -> None:
    """Evidence is kept; the second one has not stood still
    for as long as the time between the looks should be.
    """
    done = look(HangRule(1800, fails=True), run if state == "undecided" else _short(run))
    (found,) = done.noted
    assert found
    assert (state, ["Silent"], []) == (found.state, [each.reason for each in done.notices], done.stops)
    assert 1 == len(done.written("POST"))


def _short(run: Run) -> Run:
    """Return *run* as seen within a few seconds."""
    return lambda pod, words: run(pod, words).replace(b" 10", b" 0")


def test_a_job_that_moves_is_left_alone() -> None:
    """However silent its log is."""
    done = look(FAIL, ranks("job-worker-2", moving=True))
    assert ([], [], [], []) == (done.written("POST"), done.written("PATCH"), done.sent, done.stops)


def test_nobody_is_asked_while_the_log_goes_on() -> None:
    """It is read again when it could be silent for long enough."""
    done = look(FAIL, denied, silent=600)
    assert ([], []) == (done.sent, done.stops)
    assert 1190 < done.due <= 1200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"namespaces": ("other",)}, "controller manifest --hangs-in default grants it"),
        ({"run": denied}, "is forbidden: no exec"),
    ],
    ids=["not allowed by its admin", "refused by the server"],
)
def test_without_the_right_to_look_there_is_one_event(options: dict[str, Any], words: str) -> None:
    """And nothing else: no evidence, and no end."""
    done = look(FAIL, **options)
    (event,) = done.notices
    assert ("HangNotSeen", []) == (event.reason, done.stops)
    assert event.message.endswith(words)
    assert [] == done.written("POST") + done.written("PATCH")


@pytest.mark.parametrize(
    ("answer", "kept"), [(refusal(409, "AlreadyExists"), True), (refusal(403, "Forbidden", "quota"), False)]
)
def test_only_a_job_whose_evidence_is_kept_is_stopped(answer: Answer, kept: bool) -> None:
    """What was kept before is the first of it; what cannot be kept must not be lost with the pods."""
    done = look(FAIL, maps=answer)
    (found,) = done.noted
    assert found
    assert (kept, int(kept)) == (found.kept, len(done.stops))


def test_what_is_known_is_not_looked_at_again() -> None:
    """A new leader carries on: what is stuck and to fail is stopped, and what is not certain is looked at."""
    again = look(FAIL, denied, silent=3600, job=noted(3600))
    assert (["uid-job"], []) == ([uid for uid, _ in again.stops], again.sent)
    kept = look(SAVE, denied, silent=3600, job=noted(3600, "undecided"))
    assert ([], []) == (kept.stops, kept.sent)
    unsure = look(FAIL, silent=3600, job=noted(3600, "undecided"))
    assert ["uid-job"] == [uid for uid, _ in unsure.stops]


def test_a_job_that_goes_on_no_longer_says_that_it_hung() -> None:
    """The log has a line since then."""
    done = look(SAVE, silent=5, job=noted(3600))
    assert [None] == done.noted
    assert [] == done.sent


def test_one_jobs_failure_stays_its_own() -> None:
    """The next one is looked at, and what failed is reported at its job."""
    faults, looked = Faults(), list[str]()

    def script(call: Call) -> Answer:
        looked.append(call.path.rpartition("/")[2])
        if "bad" in call.path:
            raise LookupError("unforeseen")
        return missing("x")

    with ExitStack() as stack:
        watch = HangWatch(
            [session(script)[0]], lambda *_: ranks(), frozenset({"default"}), lambda: True, print, faults
        )
        stack.callback(watch.stop)
        kind = kind_of(mpijob("job"))
        watch.offer([Asking(name, kind, mpijob(name), SAVE) for name in ("bad", "good")])
        watch.start()
        eventually(lambda: "good" in looked, "the other job to be looked at")
    assert ["bad"] == [fault.item["metadata"]["name"] for fault in faults.taken()]


# The evidence.


def evidence(pods: int, size: int) -> Object:
    """Return the evidence of so many pods, each of which printed *size* bytes that cannot be packed."""
    random = Random(1)
    looks = {f"job-worker-{number}": random.randbytes(size) for number in range(pods)}
    verdict = {"state": "stuck", "message": "m", "suspects": [{"doing": "x" * 5000}] * pods, "groups": []}
    return evidence_object(
        mpijob("job"), verdict, logs={"job-launcher-x": "step 1\n"}, looks=looks, first=["job-worker-77"]
    )


def test_evidence_has_the_room_of_a_config_map() -> None:
    """Those that are named come first, and it says that some had no room."""
    body = evidence(200, 20_000)
    size = sum(len(key) + len(text) for part in ("data", "binaryData") for key, text in body[part].items())
    assert 700_000 < size <= 905_000
    assert {"job-launcher-x.log.gz", "job-worker-77.looks.gz"} <= set(body["binaryData"])
    assert "there was no room for 1" in body["data"]["left-out.txt"]


def kept(body: Object) -> tuple[Object, dict[str, str]]:
    """Return what is read of a ConfigMap."""
    opened: Session = session(lambda _: Answer(body=body))[0]
    return kept_evidence(opened, mpijob("job"))


def test_evidence_is_read_back() -> None:
    """The answer, and each file."""
    (body,) = look().written("POST")
    document, files = kept(body)
    verdict = verdict_of(document)
    assert ["job-worker-2"] == [suspect.pod for suspect in verdict.suspects]
    assert "load (t.py:4)" in files["job-worker-2.looks"]
    assert "step 12\n" in files["job-launcher-x.log"]


def test_of_evidence_that_others_wrote_no_name_leads_out_of_its_folder() -> None:
    """And what unpacks to more than a file may have ends there."""
    body = evidence(1, 10)
    body["binaryData"] = {"../x.log.gz": "", ".x.log": "", "x/y.looks": "", **body["binaryData"]}
    assert {"job-launcher-x.log", "job-worker-0.looks"} == set(kept(body)[1])


# What is asked, and how a job is stopped.


@pytest.mark.parametrize(
    ("text", "rule"), [("30m:save", HangRule(1800)), ("1h30m:save-and-fail", HangRule(5400, fails=True))]
)
def test_a_rule_is_read_as_it_is_written(text: str, rule: HangRule) -> None:
    """As the annotation keeps it."""
    assert rule == read_hang_rule(text, "--on-hang") == read_hang_rule(str(rule), "x")


def job_in(world: World) -> Iterator[Notice]:
    """Yield the events of a job's end."""
    return (each for each in world.notices if each.reason == "Hung")


def test_a_hung_job_of_our_own_queue_is_stopped() -> None:
    """As by --on-node-loss=fail: what it had is free, and it does not start again by itself."""
    world = World(nodes=("a", "b"))
    world.submit("job", 2, 8, record=PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION))
    runs = controller(world)
    runs.settle()
    assert 2 == len(world.hosts("job"))
    runs.reconciler.hung["uid-job"] = "hung since 14:02: rank 1"
    for _ in range(3):
        runs.settle()
        world.seconds += 6
    assert ({}, Stage.SUSPENDED) == (world.hosts("job"), world.record("job").stage)
    assert ["stopped: hung since 14:02: rank 1"] == [each.message for each in job_in(world)]


def test_a_hung_job_of_kueues_is_rejected() -> None:
    """Kueue evicts it then, and does not start it again."""
    world = Running.of("abc", {"job": "abc"}, gpus=8)
    world.cluster.decide()
    (uid,) = world.cluster.reconciler.plans
    world.cluster.reconciler.hung[uid] = "hung since 14:02: rank 1"
    actions = world.cluster.decide()
    answers = [each for each in actions if isinstance(each, PatchStatus)]
    assert "Rejected" in str(answers)
    assert ["Hung"] == [each.reason for each in actions if isinstance(each, Notice)]
