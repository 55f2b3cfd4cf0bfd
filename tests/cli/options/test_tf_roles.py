"""The roles that the flags of a TensorFlow job describe, by example."""

from dataclasses import replace

import pytest

from arena_topo.cli.declare import command
from arena_topo.cli.options.kinds import AllPods, RoleSequence, TfRoleFlags, tf_roles
from arena_topo.errors import UsageError
from arena_topo.model.job import Compute, RoleSpec

PODS = AllPods(workers=4, gpus=2, cpu="2")


def roles(*words: str, pods: AllPods = PODS) -> dict[str, RoleSpec]:
    """Return the roles of the flags *words* next to *pods*, by name."""
    typed: list[TfRoleFlags] = []
    command("tf", TfRoleFlags)(typed.append).main(list(words), standalone_mode=False)
    return {role.name: role for role in tf_roles(typed[0], pods)}


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
    ("pods", "words", "said"),
    [
        (replace(PODS, workers=0), (), "--workers is invalid: 0 is less than 1"),
        (replace(PODS, gpus=-1), (), "--gpus is invalid: -1 is less than 0"),
        (PODS, ("--evaluator-gpus=-1",), "--evaluator-gpus is invalid: -1 is less than 0"),
        (PODS, ("--ps-affinity-policy=binpack",), "--ps-affinity-policy=binpack is not supported"),
    ],
)
def test_what_no_plan_can_mean_is_refused_by_name(pods: AllPods, words: tuple[str, ...], said: str) -> None:
    """With the flag in the message."""
    with pytest.raises(UsageError) as refused:
        roles(*words, pods=pods)
    assert said in refused.value.message


@pytest.mark.parametrize("text", ["Worker,PS,Chief,Evaluator", "w,p,c,e", " w, ps ,CHIEF,e"])
def test_a_sequence_of_roles_is_read_by_names_and_letters(text: str) -> None:
    """Arena takes both."""
    assert ("Worker", "PS", "Chief", "Evaluator") == RoleSequence().read(text, "--role-sequence")


@pytest.mark.parametrize(("text", "said"), [("w,x", "unknown role 'x'"), ("w,Worker", "given twice")])
def test_a_sequence_of_other_words_is_refused(text: str, said: str) -> None:
    """The message names the word."""
    with pytest.raises(UsageError, match=said):
        RoleSequence().read(text, "--role-sequence")
