"""What `plan` and `predict` print of saved clusters, as
somebody looked at it: one file for each command line.
"""

import json
import shlex
import shutil
from dataclasses import asdict, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from arena_topo.model.cluster import Fabric, Snapshot
from arena_topo.model.plan import Prediction, Range, Transport
from arena_topo.output.text import compact
from arena_topo.topology.files import snapshot_document
from tests.cli.clusters import printed
from tests.cli.conftest import Invoke
from tests.output.clusters import machine
from tests.output.golden import golden
from tests.paths import DATA
from tests.planner.roles.test_servers import racks

V100 = DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt"
ISOLATED = Prediction(Range(1.7, 2.2, 2.9), Transport.ISOLATED, None, ("four pods", "calibration: x"))
PLAN: dict[str, Any] = {"workers": 4, "gpus": 1, "prediction": asdict(ISOLATED)}
LINKED = PLAN | {"prediction": asdict(replace(ISOLATED, busbw=Range(93, 93, 93), inside=Transport.NVLINK))}
JAX = """
apiVersion: arena-topo.dev/v1alpha1
kind: Calibration
frameworks: [{name: jax, exchange: ddp, overlap: {low: 0, likely: 0, high: 0}}]
speeds: [{framework: jax, model: vgg16, gpu: H200, imagesPerSecond: 1000}]
"""

CLUSTERS = {
    "cluster.json": Snapshot(
        (machine("a0", bert=(0, 3)), machine("a1", gpt=(0, 1, 2, 3, 4)), machine("b0")),
        Fabric(("rack",), {"a0": ("a",), "a1": ("a",), "b0": ("b",)}),
    ),
    "two.json": Snapshot((machine("empty"), machine("half", gpt=(1, 3, 4, 7)))),
    "racks.json": racks(),
}
"""Three V100 machines in two racks, of which one is empty;
two machines; a rack of four and one of nodes without GPUs.
"""

PLANS: dict[str, Any] = {
    "plan.json": PLAN,
    "wrapped.json": {"placement": PLAN},
    "linked.json": LINKED,
    "h200.json": PLAN | {"products": ["NVIDIA-H200"]},
    "l40s.json": PLAN | {"products": ["NVIDIA-L40S"]},
    "mixed.json": PLAN | {"products": ["NVIDIA-L40S", "Tesla V100-SXM2-16GB"]},
    "unfit.json": {"summary": "no place for 4 workers", "reasons": []},
    "slow.json": PLAN | {"prediction": PLAN["prediction"] | {"busbw": {"low": 0, "likely": 0, "high": 0}}},
    "pigeon.json": PLAN | {"prediction": PLAN["prediction"] | {"inside": "pigeon"}},
    "nobody.json": PLAN | {"workers": 0},
}

MPI, TF = "plan mpi --from cluster.json", "plan tf --from racks.json"
SPEED = "predict --ranks=4 --busbw=1"
LINES: list[tuple[str, str]] = [
    ("plan", f"{MPI} --workers=4 --gpus=1"),
    ("plan-why", f"{MPI} --workers=4 --gpus=1 --why"),
    ("plan-groups-why", f"{MPI} --workers=8 --gpus=1 --parallel=tp=2,dp=4 --why"),
    ("plan-json", f"{MPI} --workers=4 --gpus=1 -o json"),
    ("plan-yaml", f"{MPI} --workers=4 --gpus=1 -o yaml"),
    *(
        ("plan-of-pods", f"plan {kind} --from cluster.json --workers=2 --gpus=4 -o json")
        for kind in ("mpi", "pytorch", "pytorchjob", "py", "jobset")
    ),
    ("plan-compared", f"{MPI} --workers=10 --gpus=1 --compare"),
    ("plan-compared-json", f"{MPI} --workers=3 --gpus=1 --require-topology=rack --compare -o json"),
    ("plan-compared-yaml", f"{MPI} --workers=3 --gpus=1 --require-topology=rack --compare -o yaml"),
    ("plan-compared-unfit", f"{MPI} --workers=20 --gpus=1 --compare"),
    ("plan-compared-svg", "plan mpi --from /nowhere --compare -o svg"),
    *(
        ("plan-product", f"plan {kind} --workers=2 --gpus=4 --product='NVIDIA H200'")
        for kind in ("mpi", "jobset", "tf", "mpi --when")
    ),
    ("plan-fastest", "plan mpi --from two.json --workers=1 --gpus=4"),
    ("plan-packed", "plan mpi --from two.json --workers=1 --gpus=4 --objective=pack"),
    ("plan-unfit", f"{MPI} --workers=20 --gpus=1"),
    ("plan-unfit-json", f"{MPI} --workers=20 --gpus=1 -o json"),
    ("plan-spares", "plan mpi --from two.json --workers=1 --gpus=4 --spares=1"),
    ("plan-spares-json", "plan mpi --from two.json --workers=1 --gpus=4 --spares=1 -o json"),
    ("plan-no-spares", f"{MPI} --workers=1 --gpus=8 --spares=1"),
    ("plan-no-level", f"{MPI} --gpus=1 --require-topology=zone"),
    ("plan-no-policy", f"{MPI} --gpus=1 --topology-policy=strict"),
    ("plan-no-labels", f"{MPI} --gpus=1 --topology-levels=a"),
    ("plan-other-ranks", f"{MPI} --gpus=1 --workers=4 --parallel=tp=2"),
    ("plan-unaware", f"{MPI} --gpus=1 --workers=4 --parallel=tp=4 --topology-policy=none"),
    ("plan-no-axes", f"{MPI} --gpus=1 --parallel=4"),
    ("plan-coalesced", f"{MPI} --workers=8 --gpus=1 --coalesce"),
    ("plan-coalesced", f"{MPI} --workers=8 --gpus=1 --coalesce=true"),
    ("plan-16", f"{MPI} --workers=16 --gpus=1"),
    ("plan-16-restricted", f"{MPI} --workers=16 --gpus=1 --topology-policy=restricted"),
    ("plan-groups", f"{MPI} --workers=8 --gpus=1 --parallel=tp=2,dp=4"),
    ("plan-groups-compared", f"{MPI} --workers=8 --gpus=1 --parallel=tp=2,dp=4 --compare"),
    ("plan-when-from", "plan mpi --gpus=1 --when --from /nowhere"),
    ("plan-when-compare", "plan mpi --gpus=1 --when --compare"),
    ("plan-when-svg", "plan mpi --gpus=1 --when -o svg"),
    ("tf", f"{TF} --workers=8 --gpus=4 --ps=4 --ps-cpu=4 --evaluator --evaluator-gpus=0"),
    (
        "tf-roles",
        f"{TF} --workers=2 --gpus=1 --worker-cpu=2 --worker-memory=1Gi --ps=1 --ps-cpu=500m --chief --chief-cpu=3 -o json",
    ),
    ("tf-unfit", f"{TF} --workers=9 --gpus=4 --ps=1"),
    ("tf-no-selector", f"{TF} --ps=1 --ps-selector=no=where"),
    ("tf-no-workers", f"{TF} --workers=0"),
    ("tf-no-binpack", f"{TF} --ps=2 --ps-affinity-policy=binpack"),
    ("tf-no-ps", f"{TF} --ps=-1"),
    ("tf-no-level", f"{TF} --require-topology=row"),
    ("tf-together", f"{TF} --workers=2 --gpus=4"),
    ("tf-why", f"{TF} --workers=8 --gpus=4 --ps=4 --ps-cpu=4 --evaluator --evaluator-gpus=0 --why"),
    ("tf-spread", f"{TF} --workers=2 --gpus=4 --worker-affinity-policy=spread"),
    ("tf-nothing-to-sum", f"{TF} --workers=4 --gpus=4 --ps=2 --ps-cpu=4"),
    ("tf-inside-one-node", f"{TF} --workers=2 --gpus=4 --ps=1"),
    ("predict", "predict --ranks=4 --transport=isolated"),
    ("predict-plan", "predict --placement plan.json --model=vgg16 -o json"),
    ("predict-plan", "predict --placement wrapped.json --model=vgg16 -o json"),
    ("predict-linked", "predict --placement linked.json"),
    ("predict-calibrated", "predict --model=vgg16 --framework=jax --gpu=H200 --ranks=2 --busbw=100 --calibration jax.yaml -o json"),
    ("predict-given", "predict --model=vgg16 --framework=pytorch --gpu=H200 --images-per-second=900 --ranks=1 --busbw=300"),
    ("predict-h200", "predict --placement h200.json --model=vgg16 --framework=jax --calibration=jax.yaml -o json"),
    ("predict-l40s", "predict --placement l40s.json"),
    ("predict-mixed", "predict --placement mixed.json"),
    ("predict-unfit", "predict --placement unfit.json"),
    ("predict-slow", "predict --placement slow.json"),
    ("predict-pigeon", "predict --placement pigeon.json"),
    ("predict-nobody", "predict --placement nobody.json"),
    ("predict-nothing", "predict"),
    ("predict-no-bandwidth", "predict --ranks=4"),
    ("predict-nvlink-alone", "predict --ranks=4 --transport=nvlink"),
    ("predict-busbw-0", "predict --ranks=4 --busbw=0"),
    ("predict-busbw-nan", "predict --ranks=4 --busbw=nan"),
    ("predict-no-ranks", "predict --ranks=0 --busbw=1"),
    ("predict-no-model", f"{SPEED} --model=bert"),
    ("predict-no-framework", f"{SPEED} --framework=mxnet"),
    ("predict-no-speed", f"{SPEED} --gpu=H200"),
    ("predict-speed-of-what", f"{SPEED} --images-per-second=9"),
    ("predict-speed-below-zero", f"{SPEED} --model=vgg16 --framework=pytorch --images-per-second=-1"),
    ("predict-plan-and-flags", "predict --placement=x --ranks=4"),
    ("predict-no-plan", "predict --placement=/nowhere"),
    ("predict-no-calibration", f"{SPEED} --calibration=/nowhere"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the files that are named above, in the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(V100, "v100.txt")
    Path("jax.yaml").write_text(JAX)
    return tmp_path


def save(line: str) -> None:
    """Write the clusters and plans that *line* names."""
    for word in shlex.split(line):
        name = word.rpartition("=")[2]
        if name in CLUSTERS:
            Path(name).write_text(compact(snapshot_document(CLUSTERS[name])))
        if name in PLANS:
            Path(name).write_text(
                json.dumps(
                    PLANS[name], default=lambda each: each.value if isinstance(each, Enum) else str(each)
                )
            )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("name", "line"), LINES, ids=[f"{name}: {line}" for name, line in LINES])
def test_a_command_says_what_it_said(invoke: Invoke, name: str, line: str) -> None:
    """On both streams, with its exit code: 0, 3 where nothing fits, 2 for wrong usage."""
    save(line)
    text = printed(invoke(*shlex.split(line)))

    assert golden(f"cli/submit/{name}.txt", text) == text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("form", "beginning"), [("svg", "<svg"), ("html", "<!doctype html>")])
def test_a_plan_is_a_picture_too(invoke: Invoke, form: str, beginning: str) -> None:
    """Of the saved cluster."""
    save(MPI)
    outcome = invoke(*MPI.split(), "--workers=4", "--gpus=1", "-o", form)

    assert (0, True) == (outcome.code, outcome.out.lower().startswith(beginning)), outcome.err


@pytest.mark.usefixtures("folder")
def test_a_plan_and_flags_that_say_the_same_predict_the_same(invoke: Invoke) -> None:
    """However the figures get there."""
    save("linked.json")
    by_plan, by_flags = (
        json.loads(invoke("predict", *flags.split(), "-o", "json").out)["forecasts"]
        for flags in ("--placement linked.json", "--ranks=4 --busbw=93 --transport=nvlink")
    )

    assert by_plan == by_flags


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("one-pod", "--workers=1 --gpus=4"),
        ("four-pods", "--workers=4 --gpus=1"),
        ("one-rank", "--workers=1 --gpus=1"),
        ("no-place", "--workers=9 --gpus=1"),
    ],
)
def test_what_plan_prints_is_read(invoke: Invoke, name: str, shape: str) -> None:
    """From a saved machine to its throughput; that a plan does
    not tell the GPUs is said, and so is one without a place.
    """
    plan = f"plan mpi --from v100.txt --name=a --image=i {shape} -o json -- train"
    Path("planned.json").write_text(invoke(*plan.split()).out)
    text = printed(invoke("predict", "--placement", "planned.json"))

    assert golden(f"cli/submit/predict-{name}.txt", text) == text
