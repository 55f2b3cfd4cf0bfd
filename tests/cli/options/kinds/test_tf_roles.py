"""The roles that the flags of a TensorFlow job describe, by example."""

from dataclasses import replace

import pytest

from arena_topo.cli.command import command
from arena_topo.cli.options.kinds.tf_roles import AllPods, RoleSequence, TfRoleFlags, tf_roles
from arena_topo.errors import UsageError
from arena_topo.model.plan.roles import Role, Slice, Spread

PODS = AllPods(workers=4, gpus=2, selector={"zone": "a"}, tolerations=())


def roles(*words: str, pods: AllPods = PODS) -> dict[str, Role]:
    """Return the roles of the flags *words* beside *pods*, by name."""
    typed: list[TfRoleFlags] = []
    command("tf", TfRoleFlags)(typed.append).main(list(words), standalone_mode=False)
    return {role.name: role for role in tf_roles(typed[0], pods)}


def test_a_job_of_workers_alone_has_one_role() -> None:
    """It asks for the GPUs, and for the labels of all pods."""
    assert {"worker": Role(name="worker", pods=4, gpus=2, node_selector={"zone": "a"})} == roles()


def test_the_selector_of_a_role_goes_in_place_of_that_of_all_pods() -> None:
    """Arena's rule: not beside it."""
    found = roles("--ps=1", "--ps-selector=disk=fast")

    assert {"worker": {"zone": "a"}, "ps": {"disk": "fast"}} == {
        name: role.node_selector for name, role in found.items()
    }


def test_the_evaluator_has_the_gpus_of_a_worker() -> None:
    """As with Arena, whose chart asks for them, unless the user says how many."""
    assert 2 == roles("--evaluator")["evaluator"].gpus
    assert 0 == roles("--evaluator", "--evaluator-gpus=0")["evaluator"].gpus


def test_a_limit_alone_is_the_request_as_well() -> None:
    """The API server fills requests in that way."""
    found = roles("--ps=1", "--ps-cpu-limit=4", "--worker-cpu=500m", "--worker-cpu-limit=2")

    assert ({"cpu": 4000}, {"cpu": 500}) == (found["ps"].requests, found["worker"].requests)


@pytest.mark.parametrize(
    ("policy", "constraint", "spread", "slices"),
    [
        ("none", "preferred", Spread.NONE, ()),
        ("none", "required", Spread.NONE, ()),
        ("spread", "preferred", Spread.PREFERRED, ()),
        ("spread", "required", Spread.REQUIRED, ()),
        ("binpack", "preferred", Spread.NONE, ()),
        ("binpack", "required", Spread.NONE, (Slice(4, "node"),)),
    ],
)
def test_affinity_policies_spread_or_pack_the_workers(
    policy: str, constraint: str, spread: Spread, slices: tuple[Slice, ...]
) -> None:
    """Few nodes are the choice without a policy, so only a required binpack says more."""
    words = (f"--worker-affinity-policy={policy}", f"--worker-affinity-constraint={constraint}")
    worker = roles(*words)["worker"]

    assert (spread, slices) == (worker.spread, worker.slices)


def test_parameter_servers_serve_the_chief_where_it_trains_alone() -> None:
    """A job may have a chief and no workers."""
    found = roles("--chief", "--ps=2", pods=replace(PODS, workers=0))

    assert ["chief", "ps"] == list(found)
    assert "chief" == found["ps"].serves


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
