"""The documented shapes are those of what is printed: a change of either fails here."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from arena_topo.cli.app import cli
from arena_topo.cli.errors import run
from arena_topo.jobs.status import job_view
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.cluster import Fabric, Snapshot
from arena_topo.model.job_view import QueueView
from arena_topo.model.kind import LogLine
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage, StartEstimate
from arena_topo.output.job import job_document
from arena_topo.output.log_lines import printer
from arena_topo.output.text import compact
from arena_topo.topology.files import snapshot_document
from tests.cli.pages import pages
from tests.objects import condition, mpijob, pod, with_plan
from tests.output.clusters import machine, small_cluster
from tests.paths import ROOT

SCHEMAS = ROOT / "docs" / "reference" / "schemas"
SCHEMA = json.loads((SCHEMAS / "job.json").read_text())
NOW = datetime(2026, 11, 21, 1, 5, tzinfo=UTC)
PODS = [pod("job-launcher-x", role="launcher"), pod("job-worker-0", phase="Pending")]


def job_with_plan() -> Any:
    """Return a job with a plan."""
    slots = (Slot(0, "n1", (3,)), Slot(1, "n1", None))
    record = PlanRecord(stage=Stage.CONFIRMED, slots=slots, enforcement=Enforcement.GATES)
    return with_plan(mpijob("job"), record)


def document(job: Any, version: ApiVersion = ApiVersion.V2BETA1) -> Any:
    """Return the document of *job* as JSON has it."""
    return json.loads(json.dumps(job_document(job_view(version, job, PODS, now=NOW))))


def test_a_job_in_a_queue_has_the_documented_shape() -> None:
    """With where it stands."""
    start = StartEstimate(earliest=NOW, likely=NOW, latest=NOW, after=("a/b",), basis=("c",))
    view = replace(
        job_view(ApiVersion.V2BETA1, mpijob("job"), (), now=NOW), queue=QueueView("q", "w", "why", 1, start)
    )
    printed = json.loads(json.dumps(job_document(view)))
    assert "q" == printed["queue"]["name"]
    jsonschema.Draft202012Validator(SCHEMA).validate(printed)


@pytest.mark.parametrize(
    ("job", "version"),
    [
        (mpijob("job"), ApiVersion.V2BETA1),
        (mpijob("job", status={"conditions": [condition("Failed", message="m")]}), ApiVersion.V1),
        (mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Succeeded"}), ApiVersion.V1ALPHA1),
        (job_with_plan(), ApiVersion.V2BETA1),
    ],
    ids=["pending", "failed", "v1alpha1", "planned"],
)
def test_a_job_has_the_documented_shape(job: Any, version: ApiVersion) -> None:
    """In every state and version."""
    jsonschema.Draft202012Validator(SCHEMA).validate(document(job, version))


def test_another_key_or_one_less_is_seen() -> None:
    """The schema is closed."""
    whole = document(mpijob("job"))
    check = jsonschema.Draft202012Validator(SCHEMA)
    for changed in ({**whole, "new": 1}, {key: value for key, value in whole.items() if key != "workers"}):
        assert not check.is_valid(changed)


def snapshots() -> dict[str, Snapshot]:
    """Return clusters by the names that the tests give them."""
    racks = (machine("a0", bert=(0, 3)), machine("a1", gpt=(0, 1, 2, 3, 4)), machine("b0"))
    paths = {"a0": ("a",), "a1": ("a",), "b0": ("b",)}
    return {
        "small": replace(small_cluster(), cluster="c", taken="2026-11-21T01:00:00Z", warnings=("w",)),
        "racks": Snapshot(racks, Fabric(("rack",), paths)),
        "empty": Snapshot(),
    }


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ("plan", "plan mpi --from racks --workers=4 --gpus=1"),
        ("plan", "plan mpi --from racks --workers=2 --gpus=4 --rdma"),
        ("plan", "plan mpi --from racks --workers=1 --gpus=1"),
        ("plan", "plan mpi --from racks --workers=2"),
        ("plan", "plan mpi --from small --workers=3 --gpus=2"),
        ("plan", "plan mpi --from racks --workers=4 --gpus=8"),
        ("plan", "plan mpi --from racks --workers=4 --gpus=1 --parallel=tp=2,dp=2"),
        ("plan", "plan mpi --from racks --workers=3 --gpus=4 --parallel=tp=4,pp=3"),
        ("plan-comparison", "plan mpi --from racks --workers=4 --gpus=2 --compare --parallel=tp=2,pp=4"),
        ("plan", "plan mpi --from empty --workers=4 --gpus=8"),
        ("plan", "plan pytorch --from racks --min-workers=2 --max-workers=12 --gpus=1"),
        ("gang-plan", "plan tf --from racks --workers=4 --gpus=1 --ps=2 --chief --evaluator"),
        ("gang-plan", "plan tf --from racks --workers=2"),
        ("gang-plan", "plan tf --from racks --workers=4 --gpus=8 --ps=1"),
        ("plan-comparison", "plan mpi --from racks --workers=10 --gpus=1 --compare"),
        ("plan-comparison", "plan mpi --from racks --workers=20 --gpus=1 --compare"),
        ("plan-comparison", "plan mpi --from racks --workers=2 --compare --require-topology=rack"),
        (
            "plan-comparison",
            "plan mpi --from racks --workers=4 --gpus=1 --compare -- python tf_cnn_benchmarks.py --model=vgg16",
        ),
        ("snapshot", "topology --from small"),
        ("snapshot", "topology --from racks a1"),
        ("snapshot", "topology --from empty"),
        ("fragmentation", "topology --from small --fragmentation"),
        ("fragmentation", "topology --from racks --fragmentation"),
        ("fragmentation", "topology --from empty --fragmentation"),
        ("forecasts", "predict --ranks=4 --transport=isolated"),
        ("forecasts", "predict --ranks=1 --busbw=90 --model=vgg16"),
        ("flags", "config view"),
        ("flags", "config view submit mpi"),
    ],
)
def test_a_document_has_the_documented_shape(
    schema: str,
    line: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Whatever the gang, the cluster and the result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("ARENA_TOPO_IMAGE", "train:1")
    for name, snapshot in snapshots().items():
        Path(name).write_text(compact(snapshot_document(snapshot)))
    flags, dashes, command = line.partition(" -- ")
    code = run([*flags.split(), "-o", "json", *dashes.split(), *command.split()])
    printed = capfd.readouterr()

    assert code in (0, 3), printed.err
    check(schema, json.loads(printed.out))


@pytest.mark.parametrize(
    "line",
    [
        LogLine("job-worker-2", "mpi", "n1", b"2026-11-21T01:00:00Z", b"loss 1\n", "worker", 2),
        LogLine("job-launcher", "mpi", "", b"", b"\xff", "launcher", None),
        LogLine("job-ps-1", "tensorflow", "n1", b"", b"loss 1", "ps", 1),
    ],
    ids=["worker", "launcher", "ps"],
)
def test_a_line_of_a_log_has_the_documented_shape(line: LogLine) -> None:
    """Of each role."""
    check("log-line", json.loads(printer("json", prefix=False, colour=False, strip=False)(line)))


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_a_schema_is_closed(path: Path) -> None:
    """It is valid, and each object of it says all of its keys."""
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)

    assert path.name == schema["$id"]
    assert [] == [found for found in objects_in(schema) if "additionalProperties" not in found]


def test_each_command_with_json_has_a_schema() -> None:
    """The page names every command that has -o json, and no other."""
    page, _, _ = (SCHEMAS / "README.md").read_text().partition("## Without JSON")
    named = {
        # What stands behind the command's own words are arguments and flags.
        re.sub(r" (JOB|--.*)$", "", line)
        for line in re.findall(r"`([a-z][^`]*)`", page)
        if line.split()[0] in cli.list_commands(click.Context(cli))
    }
    with_json = {" ".join(words) for words, command in pages() if any(map(takes_json, command.params))}
    assert with_json == named
    assert {path.name for path in SCHEMAS.glob("*.json")} == set(re.findall(r"\]\(([\w-]+\.json)\)", page))


def check(schema: str, printed: Any) -> None:
    """Hold what was printed to a schema."""
    jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{schema}.json").read_text())).validate(printed)


def objects_in(schema: Any) -> list[Any]:
    """Return the parts of *schema* that describe objects."""
    if isinstance(schema, list):
        return [found for part in schema for found in objects_in(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" and "properties" in schema else []
    return own + [found for part in schema.values() for found in objects_in(part)]


def takes_json(param: click.Parameter) -> bool:
    """Whether *param* is -o with json among its forms."""
    if "--output" not in param.opts:
        return False
    if param.metavar == "FORM":
        return "json" in (getattr(param, "help", "") or "")
    return isinstance(param.type, click.Choice) and "json" in param.type.choices
