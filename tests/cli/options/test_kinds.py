"""The jobs that the flags of each kind describe."""

import pytest

from arena_topo.cli.declare import command
from arena_topo.cli.options.kinds import (
    JOB_KINDS,
    TfFlags,
    described_job,
    node_count,
    role_sequence,
    tf_roles,
    with_nodes,
)
from arena_topo.errors import UsageError
from arena_topo.jobs.options import PlanOptions, check_elastic, elastic_job, worker_range
from arena_topo.model.job import Compute, JobSpec, RoleSpec, WorkerRange
from arena_topo.model.placement_options import read_parallelism

# How few and how many workers a job may have, as users type it.

JOB = JobSpec(name="job", namespace="ml", image="i", command=("c",))


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [(None, None, None), (2, 8, WorkerRange(2, 8)), (None, 8, WorkerRange(1, 8)), (4, 4, WorkerRange(4, 4))],
)
def test_both_flags_give_a_range(least: int | None, most: int | None, expected: WorkerRange | None) -> None:
    """A single worker is the fewest where nothing else is said."""
    assert expected == worker_range(least, most)


@pytest.mark.parametrize(("least", "most"), [(2, None), (5, 4)])
def test_a_range_that_is_none_is_refused(least: int, most: int | None) -> None:
    """Without an end, or upside down."""
    with pytest.raises(UsageError, match="--max-workers"):
        worker_range(least, most)


@pytest.mark.parametrize(("text", "expected"), [("4", (4, 4)), ("2:8", (2, 8)), ("3:3", (3, 3))])
def test_nnodes_is_read_as_torchrun_reads_it(text: str, expected: tuple[int, int]) -> None:
    """A number, or a range."""
    assert expected == node_count(text, "--nnodes")


@pytest.mark.parametrize("text", ["0", "8:2", "2:", ":8", "2:8:9", "a", "-1", "1:99999999", "٣"])
def test_what_is_no_number_of_nodes_is_refused(text: str) -> None:
    """In one error that names the flag."""
    with pytest.raises(UsageError, match="--nnodes"):
        node_count(text, "--nnodes")


def test_nnodes_stands_for_the_other_flags() -> None:
    """And is refused next to them."""
    assert (WorkerRange(2, 8), None) == with_nodes(None, (2, 8), None)
    assert (WorkerRange(1, 8), 1) == with_nodes(None, (1, 8), 1)
    assert (None, 4) == with_nodes(None, (4, 4), None)
    assert (None, 4) == with_nodes(None, (4, 4), 4)
    assert (None, 3) == with_nodes(None, None, 3)
    for elastic, nodes, workers in ((WorkerRange(1, 2), (2, 8), None), (None, (4, 4), 3), (None, (4, 4), 1)):
        with pytest.raises(UsageError, match="says the same as"):
            with_nodes(elastic, nodes, workers)


@pytest.mark.parametrize(("workers", "start"), [(None, 8), (1, 1), (4, 4), (8, 8)])
def test_a_job_starts_with_as_many_as_fit_of_those_asked_for(workers: int | None, start: int) -> None:
    """Of all that it may have where no number is given; one is a number too."""
    job = elastic_job(JOB, WorkerRange(1, 8), workers, grow=False)
    assert (start, WorkerRange(1, 8)) == (job.workers, job.elastic)


def test_a_start_out_of_the_range_is_refused() -> None:
    """Below and above."""
    for workers in (1, 2, 9):
        with pytest.raises(UsageError, match=f"--workers={workers} is not between"):
            elastic_job(JOB, WorkerRange(3, 8), workers, grow=False)


def test_what_needs_a_number_of_ranks_is_refused() -> None:
    """The number of an elastic job changes."""
    job = elastic_job(JOB, WorkerRange(2, 8), None, grow=False)
    for options in (PlanOptions(coalesce=True), PlanOptions(parallel=read_parallelism("tp=2", "it"))):
        with pytest.raises(UsageError, match="number of ranks"):
            check_elastic(job, options)
    check_elastic(JOB, PlanOptions(coalesce=True))
    check_elastic(job, PlanOptions())


def test_a_job_may_be_told_to_grow() -> None:
    """Its range says so; a job of a fixed size is refused."""
    grown = elastic_job(JOB, WorkerRange(2, 8), None, grow=True)
    assert WorkerRange(2, 8, grows=True) == grown.elastic
    with pytest.raises(UsageError, match="--grow is for elastic jobs"):
        elastic_job(JOB, None, None, grow=True)


# The job that the flags of a TensorFlow job describe.


def job_of_flags(*words: str) -> JobSpec:
    """Return the job of the flags *words*."""
    typed: list[TfFlags] = []
    command("tf", TfFlags)(typed.append).main(["--name=wide", *words], standalone_mode=False)
    return described_job(JOB_KINDS["tf"], typed[0], words=("train",), argv=None, namespace="ml")


def test_a_job_has_all_roles_and_counts_their_pods() -> None:
    """A chief among them."""
    spec = job_of_flags(
        "--image=i", "--workers=3", "--gpus=2", "--ps=2", "--ps-gpus=1", "--chief", "--evaluator"
    )

    assert "TFJob" == spec.kind
    assert ["chief", "worker", "ps", "evaluator"] == [role.name for role in spec.roles]
    assert (7, 12) == (spec.pods, spec.gpus_in_all)


def test_a_chief_may_train_alone() -> None:
    """Then there is no worker."""
    assert ["chief"] == [role.name for role in job_of_flags("--image=i", "--workers=0", "--chief").roles]


def test_every_role_may_have_an_image_of_its_own() -> None:
    """Then the job needs none; a role without one is told."""
    assert "w" == job_of_flags("--worker-image=w", "--ps=1", "--ps-image=p").image
    with pytest.raises(UsageError, match="--image must be set, or an image for ps"):
        job_of_flags("--worker-image=w", "--ps=1")
    with pytest.raises(UsageError, match="--image must be set, or an image for worker"):
        job_of_flags("--ps=1")


def test_what_the_operator_knows_reaches_the_job() -> None:
    """The default success policy has no word in its API; the order of roles is an annotation for Arena's."""
    spec = job_of_flags(
        "--image=i", "--success-policy=AllWorkers", "--role-sequence=w,p", "--clean-task-policy=None"
    )

    assert ("AllWorkers", "None") == (spec.run.success_policy, spec.run.clean_policy)
    assert "Worker,PS" == spec.pod.annotations["job-role-sequence"]
    assert "" == job_of_flags("--image=i").run.success_policy


# The roles that the flags of a TensorFlow job describe, by example.


def roles(*words: str) -> dict[str, RoleSpec]:
    """Return the roles of the flags *words* next to those of all pods, by name."""
    typed: list[TfFlags] = []
    line = ["--workers=4", "--gpus=2", "--cpu=2", *words]
    command("tf", TfFlags)(typed.append).main(line, standalone_mode=False)
    return {role.name: role for role in tf_roles(typed[0])}


def test_a_job_of_workers_alone_has_one_role() -> None:
    """It asks for what is said of all pods."""
    assert {"worker": RoleSpec(name="worker", pods=4, gpus=2, compute=Compute(cpu="2"))} == roles()


def test_what_is_said_of_all_pods_is_said_of_those_that_train() -> None:
    """Parameter servers have requests of their own alone, and a role's own flag comes first."""
    found = roles("--ps=1", "--chief", "--chief-cpu=3", "--evaluator")

    assert {"chief": "3", "worker": "2", "ps": "", "evaluator": "2"} == {
        name: role.compute.cpu for name, role in found.items()
    }


def test_the_evaluator_has_the_gpus_of_a_worker() -> None:
    """As with Arena, whose chart asks for them, unless the user says how many."""
    assert 2 == roles("--evaluator")["evaluator"].gpus
    assert 0 == roles("--evaluator", "--evaluator-gpus=0")["evaluator"].gpus


def test_a_limit_alone_is_the_request_as_well() -> None:
    """What is said of all pods does not contradict it; the API server fills requests in that way."""
    found = roles("--ps=1", "--ps-cpu-limit=4", "--worker-cpu-limit=8")

    assert (Compute(), Compute(cpu="4")) == (found["ps"].compute, found["ps"].limits)
    assert (Compute(), Compute(cpu="8")) == (found["worker"].compute, found["worker"].limits)


@pytest.mark.parametrize(
    ("policy", "constraint", "expected"),
    [
        ("none", "preferred", ("", False)),
        ("spread", "preferred", ("spread", False)),
        ("spread", "required", ("spread", True)),
        ("binpack", "required", ("binpack", True)),
    ],
)
def test_affinity_policies_spread_or_pack_the_workers(
    policy: str, constraint: str, expected: tuple[str, bool]
) -> None:
    """As preferred or required."""
    words = (f"--worker-affinity-policy={policy}", f"--worker-affinity-constraint={constraint}")
    worker = roles(*words)["worker"]

    assert expected == (worker.affinity, worker.required)


def test_each_role_has_its_own_image_port_and_selector() -> None:
    """Those of the chief and the evaluator are the workers' image, as Arena's are."""
    found = roles(
        *("--ps=1", "--chief", "--worker-image=w", "--ps-image=p", "--ps-port=2222", "--chief-port=3333"),
        *("--ps-selector=disk=fast", "--chief-selector=pool=a"),
    )

    assert {
        "chief": ("w", 3333, {"pool": "a"}),
        "worker": ("w", None, {}),
        "ps": ("p", 2222, {"disk": "fast"}),
    } == {name: (role.image, role.port, dict(role.selector)) for name, role in found.items()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--workers=0",), "--workers: 0 is less than 1"),
        (("--gpus=-1",), "--gpus: -1 is less than 0"),
        (("--evaluator-gpus=-1",), "--evaluator-gpus: -1 is less than 0"),
        (("--ps-affinity-policy=binpack",), "--ps-affinity-policy=binpack is not supported"),
    ],
)
def test_what_no_plan_can_mean_is_refused_by_name(words: tuple[str, ...], said: str) -> None:
    """With the flag in the message."""
    with pytest.raises(UsageError) as refused:
        roles(*words)
    assert said in refused.value.message


@pytest.mark.parametrize("text", ["Worker,PS,Chief,Evaluator", "w,p,c,e", " w, ps ,CHIEF,e"])
def test_a_sequence_of_roles_is_read_by_names_and_letters(text: str) -> None:
    """Arena takes both."""
    assert ("Worker", "PS", "Chief", "Evaluator") == role_sequence(text, "--role-sequence")


@pytest.mark.parametrize(("text", "said"), [("w,x", "unknown role 'x'"), ("w,Worker", "given twice")])
def test_a_sequence_of_other_words_is_refused(text: str, said: str) -> None:
    """The message names the word."""
    with pytest.raises(UsageError, match=said):
        role_sequence(text, "--role-sequence")
