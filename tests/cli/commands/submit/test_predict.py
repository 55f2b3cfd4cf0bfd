"""``predict``: from flags or from a plan's document, with the calibration it used."""

import json
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from arena_topo.model.plan.placement import NodeShare, Placement, Prediction, Range, Slot, Transport
from tests.cli.conftest import Invoke
from tests.paths import DATA

V100 = DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt"
PLACEMENT = Placement(
    slots=tuple(Slot(at, "a", (at,)) for at in range(4)),
    shares=(NodeShare("a", (0, 1, 2, 3), (0, 1, 2, 3), 93.0, 93.0),),
    level="node",
    domain="a",
    workers=4,
    gpus=1,
    prediction=Prediction(Range(1.7, 2.2, 2.9), Transport.ISOLATED, None, ("four pods", "calibration: x")),
)
JAX = """
apiVersion: arena-topo.dev/v1alpha1
kind: Calibration
frameworks: [{name: jax, exchange: ddp, overlap: {low: 0, likely: 0, high: 0}}]
speeds: [{framework: jax, model: vgg16, gpu: H200, imagesPerSecond: 1000}]
"""


def saved(folder: Path, document: Any) -> str:
    """Return a file with *document*, enumerations by value."""
    file = folder / "plan.json"
    file.write_text(
        json.dumps(document, default=lambda each: each.value if isinstance(each, Enum) else str(each))
    )
    return str(file)


def test_flags_are_enough(invoke: Invoke) -> None:
    """Both models and both frameworks by default, each with its range."""
    outcome = invoke("predict", "--ranks=4", "--transport=isolated")
    lines = outcome.out.splitlines()

    assert 0 == outcome.code, outcome.err
    assert ["vgg16", "pytorch", "64", "4", "x", "V100"] == lines[1].split()[:6]
    assert 4 == sum("x V100" in line for line in lines)
    assert "ranks communicate over: pod-isolated socket, at 2.18 (1.73-2.94) GB/s" in lines
    assert "calibration: the tool's own (calibration.yaml)" in lines


@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "as one field"])
def test_a_plan_tells_ranks_bandwidth_and_transport(invoke: Invoke, tmp_path: Path, wrapped: bool) -> None:
    """And what it rests on."""
    plan = asdict(PLACEMENT)
    file = saved(tmp_path, {"placement": plan} if wrapped else plan)
    found = json.loads(invoke("predict", "--placement", file, "--model=vgg16", "-o", "json").out)

    assert {4} == {each["ranks"] for each in found["forecasts"]}
    assert ("pod-isolated socket", None) == (found["inside"], found["across"])
    assert {"low": 1.7, "likely": 2.2, "high": 2.9} == found["busbw"]
    assert "four pods" in found["assumptions"]


def test_a_plan_and_flags_that_say_the_same_predict_the_same(invoke: Invoke, tmp_path: Path) -> None:
    """However the figures get there."""
    plan = asdict(PLACEMENT)
    plan["prediction"]["busbw"] = {"low": 93, "likely": 93, "high": 93}
    plan["prediction"]["inside"] = "nvlink"
    by_plan = json.loads(invoke("predict", "--placement", saved(tmp_path, plan), "-o", "json").out)
    flags = ("--ranks=4", "--busbw=93", "--transport=nvlink")
    by_flags = json.loads(invoke("predict", *flags, "-o", "json").out)

    assert by_plan["forecasts"] == by_flags["forecasts"]


def test_a_calibration_of_ones_own_is_used_and_named(invoke: Invoke, tmp_path: Path) -> None:
    """Over the tool's own."""
    file = tmp_path / "mine.yaml"
    file.write_text(JAX)
    wanted = ("--model=vgg16", "--framework=jax", "--gpu=H200", "--ranks=2", "--busbw=100")
    found = json.loads(invoke("predict", *wanted, "--calibration", str(file), "-o", "json").out)

    assert 1000 == found["forecasts"][0]["imagesPerSecondAlone"]
    assert f"{file} over the tool's own (calibration.yaml)" == found["calibration"]


def test_the_speed_of_a_gpu_that_no_file_knows_can_be_given(invoke: Invoke) -> None:
    """For one model and framework."""
    flags = ("--model=vgg16", "--framework=pytorch", "--gpu=H200", "--images-per-second=900", "--ranks=1")
    outcome = invoke("predict", *flags, "--busbw=300")

    assert "900.0" in outcome.out, outcome.err


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (("--workers=1", "--gpus=4"), "ranks communicate over: nvlink, at 93.2 (60.5-102) GB/s"),
        (
            ("--workers=4", "--gpus=1"),
            "ranks communicate over: pod-isolated socket, at 2.18 (1.73-2.94) GB/s",
        ),
        (("--workers=1", "--gpus=1"), "a single rank exchanges nothing"),
    ],
    ids=["one pod of four", "four pods of one", "one rank"],
)
def test_what_plan_prints_is_read(invoke: Invoke, tmp_path: Path, shape: tuple[str, ...], said: str) -> None:
    """From a saved machine to its throughput; that a plan does not tell the GPUs is said."""
    plan = ("plan", "mpi", "-f", str(V100), "--name=a", "--image=i", *shape, "-o", "json", "--", "train")
    planned = invoke(*plan)
    file = tmp_path / "plan.json"
    file.write_text(planned.out)
    outcome = invoke("predict", "--placement", str(file))

    assert 0 == planned.code == outcome.code, planned.err + outcome.err
    assert said in outcome.out.splitlines()
    assert (
        "assumed: the GPUs are V100s: not stated in the plan; set it with --gpu" in outcome.out.splitlines()
    )


def test_a_plan_that_does_not_fit_has_nothing_to_predict(invoke: Invoke, tmp_path: Path) -> None:
    """And the error says so."""
    plan = ("plan", "mpi", "-f", str(V100), "--name=a", "--image=i", "--workers=9", "--gpus=1", "-o", "json")
    file = tmp_path / "plan.json"
    file.write_text(invoke(*plan, "--", "train").out)
    outcome = invoke("predict", "--placement", str(file))

    assert (1, "") == (outcome.code, outcome.out)
    assert "has no prediction" in outcome.err


MISTAKES = {
    "nothing": ((), "nothing to predict"),
    "no bandwidth": (("--ranks=4",), "nothing to predict"),
    "nvlink alone": (("--ranks=4", "--transport=nvlink"), "the speed of nvlink depends on the machine"),
    "no bandwidth at all": (("--ranks=4", "--busbw=0"), "--busbw is 0"),
    "bandwidth no number": (("--ranks=4", "--busbw=nan"), "'nan' is not a valid float"),
    "no ranks": (("--ranks=0", "--busbw=1"), "Invalid value for '--ranks'"),
    "another model": (("--ranks=4", "--busbw=1", "--model=bert"), "there is no model 'bert'"),
    "another framework": (
        ("--ranks=4", "--busbw=1", "--framework=mxnet"),
        "there is no calibration of framework 'mxnet'",
    ),
    "another GPU": (("--ranks=4", "--busbw=1", "--gpu=H200"), "how fast one H200 trains vgg16"),
    "a speed of what": (("--ranks=4", "--busbw=1", "--images-per-second=9"), "is the speed of one model"),
    "a speed below zero": (
        ("--ranks=4", "--busbw=1", "--model=vgg16", "--framework=pytorch", "--images-per-second=-1"),
        "--images-per-second is -1",
    ),
    "plan and flags": (
        ("--placement=x", "--ranks=4"),
        "--placement already contains ranks, bandwidth and transport",
    ),
    "no such plan": (("--placement=/nowhere",), "--placement: /nowhere cannot be read"),
    "no such calibration": (
        ("--ranks=4", "--busbw=1", "--calibration=/nowhere"),
        "--calibration: /nowhere cannot be read",
    ),
}


@pytest.mark.parametrize(("args", "message"), MISTAKES.values(), ids=MISTAKES)
def test_bad_input_gets_one_clear_error(invoke: Invoke, args: tuple[str, ...], message: str) -> None:
    """And nothing on stdout."""
    outcome = invoke("predict", *args)

    assert (2, "") == (outcome.code, outcome.out)
    assert message in outcome.err


def infeasible(plan: dict[str, Any]) -> None:
    """Make *plan* one that does not fit."""
    plan.clear()
    plan.update(summary="no place for 4 workers", reasons=[])


def without_bandwidth(plan: dict[str, Any]) -> None:
    """Take the bandwidth out of *plan*."""
    plan["prediction"]["busbw"] = {"low": 0, "likely": 0, "high": 0}


def with_strange_transport(plan: dict[str, Any]) -> None:
    """Let *plan* name a transport that does not exist."""
    plan["prediction"]["inside"] = "pigeon"


def without_workers(plan: dict[str, Any]) -> None:
    """Let *plan* have no workers."""
    plan["workers"] = 0


def test_a_plan_tells_which_gpus_it_is_for(invoke: Invoke, tmp_path: Path) -> None:
    """Their speed is taken, where the calibration has it; nothing is assumed then."""
    calibration = tmp_path / "own.yaml"
    calibration.write_text(JAX, "utf-8")
    plan = asdict(PLACEMENT) | {"products": ["NVIDIA-H200"]}
    flags = ("--model=vgg16", "--framework=jax", f"--calibration={calibration}", "-o", "json")
    found = json.loads(invoke("predict", "--placement", saved(tmp_path, plan), *flags).out)

    assert [("NVIDIA-H200", 1000)] == [
        (each["gpu"], each["imagesPerSecondAlone"]) for each in found["forecasts"]
    ]
    assert not any("GPU" in assumption for assumption in found["assumptions"])


@pytest.mark.parametrize(
    ("products", "assumption"),
    [
        pytest.param(
            ["NVIDIA-L40S"],
            "each GPU is as fast as one V100; the plan has NVIDIA-L40S: set --images-per-second, or --gpu",
            id="unknown",
        ),
        pytest.param(
            ["NVIDIA-L40S", "Tesla V100-SXM2-16GB"],
            "each GPU is as fast as one Tesla V100-SXM2-16GB; the plan has NVIDIA-L40S and Tesla V100-SXM2-16GB: "
            "set --images-per-second, or --gpu",
            id="several",
        ),
        pytest.param([], "the GPUs are V100s: not stated in the plan; set it with --gpu", id="none"),
    ],
)
def test_a_speed_that_is_assumed_is_named(
    invoke: Invoke, tmp_path: Path, products: list[str], assumption: str
) -> None:
    """With the flags that would replace it."""
    plan = asdict(PLACEMENT) | {"products": products}
    found = json.loads(invoke("predict", "--placement", saved(tmp_path, plan), "-o", "json").out)

    assert assumption in found["assumptions"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (infeasible, "has no prediction"),
        (without_bandwidth, "prediction.busbw is 0, 0, 0: expected rising bandwidths"),
        (with_strange_transport, "prediction.inside is 'pigeon', expected one of: nvlink"),
        (without_workers, "has 0 workers of 1 GPUs"),
    ],
)
def test_a_plan_that_tells_too_little_is_refused(
    invoke: Invoke, tmp_path: Path, change: Any, message: str
) -> None:
    """By place and reason."""
    plan = asdict(PLACEMENT)
    change(plan)
    outcome = invoke("predict", "--placement", saved(tmp_path, plan))

    assert (1, "") == (outcome.code, outcome.out)
    assert message in outcome.err
