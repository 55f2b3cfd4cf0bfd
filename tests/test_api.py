"""The API of Python: what a command prints is what one call returns, and errors are the same."""

import importlib.util
import json
import logging
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import arena_topo as at
from arena_topo import api, errors
from arena_topo.cli.errors import run
from arena_topo.cli.options.kinds import JOB_KINDS, described_job
from arena_topo.cli.options.placement import EnforcementFlags, PlanFlags
from arena_topo.model.objects import Object
from tests.paths import ROOT
from tests.sandbox.served import served

SCHEMAS = ROOT / "docs" / "reference" / "schemas"
OF_THE_COMMAND_LINE = {"flags": "the values of flags and where each was set, which only a command line has"}
"""The documents that no call returns, and why."""

DONE = at.Job(
    name="done", image="train:1", workers=2, gpus=4, command="mpirun -np 8 python train.py", gang=True
)
ELASTIC = at.Job(
    name="elastic", image="train:1", workers=2, gpus=1, command="horovodrun sleep 100000; sleep 100000",
    min_workers=1, max_workers=4,
)  # fmt: skip
TFJOB: Object = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": "wide"},
    "spec": {
        "tfReplicaSpecs": {
            role: {
                "replicas": 2,
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "tensorflow", "image": "i", "resources": {"limits": {resource: 1}}}
                        ]
                    }
                },
            }
            for role, resource in (("Worker", "nvidia.com/gpu"), ("PS", "cpu"))
        }
    },
}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run a sandbox with a job that has ended and an elastic one that runs."""
    with served(tmp_path_factory.mktemp("sandbox") / "home", "racks", speed=100) as home:
        cluster = at.connect(kubeconfig=str(home.kubeconfig))
        cluster.submit(DONE).wait(timeout=120)
        cluster.submit(ELASTIC).wait("running", timeout=120)
        yield home.kubeconfig


@pytest.fixture
def cluster(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> at.Cluster:
    """Return the sandbox, which commands find too, in a folder with its snapshot and two manifests."""
    monkeypatch.chdir(tmp_path)
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    Path("tfjob.json").write_text(json.dumps(TFJOB))
    return at.connect()


PLANNED = at.Job(workers=4, gpus=8, rdma=True)
COMPARED = at.Job(workers=4, gpus=2)

CALLS: list[tuple[str, str, Callable[[at.Cluster], Any]]] = [
    ("plan", "plan mpi --workers=4 --gpus=8 --rdma", lambda c: c.plan(PLANNED).document),
    ("plan", "plan mpi --workers=4 --gpus=8 --rdma --when", lambda c: c.plan(PLANNED, when=True).document),
    ("plan", "plan mpi --workers=400 --gpus=8", lambda c: c.plan(at.Job(workers=400, gpus=8)).document),
    (
        "plan",
        "plan pytorch --workers=4 --gpus=2 --require-topology=rack --objective=pack",
        lambda c: c.plan(
            at.Job(kind="pytorch", workers=4, gpus=2), require_topology="rack", objective="pack"
        ).document,
    ),
    (
        "plan",
        "plan mpi --workers=4 --gpus=2 --parallel=tp=2,dp=4 --coalesce",
        lambda c: c.plan(COMPARED, parallel="tp=2,dp=4", coalesce=True).document,
    ),
    ("plan", "plan mpi --workers=4 --gpus=2 --spread-evenly=rack",
     lambda c: c.plan(COMPARED, spread_evenly="rack").document),
    ("gang-plan", "plan -f tfjob.json", lambda c: c.plan("tfjob.json").document),
    ("gang-plan", "plan -f tfjob.json", lambda c: c.plan(TFJOB).document),
    ("plan-comparison", "plan mpi --workers=4 --gpus=2 --compare", lambda c: c.compare(COMPARED).document),
    ("snapshot", "topology", lambda c: c.snapshot().document),
    ("snapshot", "topology rack-1", lambda c: c.snapshot()["rack-1"].document),
    ("fragmentation", "topology --fragmentation", lambda c: c.snapshot().fragmentation().document),
    ("top-node", "top node", lambda c: c.nodes().document),
    ("top-node", "top node dgx-a100-1", lambda c: c.nodes("dgx-a100-1").document),
    ("jobs", "list", lambda c: c.jobs().document),
    ("jobs", "top job done", lambda c: [job for job in c.jobs().document if job["name"] == "done"]),
    ("jobs", "list --status=succeeded", lambda c: c.jobs(status=["succeeded"]).document),
    ("job", "get done", lambda c: c.job("done").status().document),
    ("job", "describe done", lambda c: c.job("done").describe().document),
    ("log-line", "logs done", lambda c: list(c.job("done").logs())),
    ("log-line", "logs done --tail=2", lambda c: list(c.job("done").logs(tail=2))),
    ("why", "why done", lambda c: c.job("done").why().document),
    ("scaling", "scale elastic --workers=3 --dry-run=client",
     lambda c: c.job("elastic").scale(3, dry_run=True).document),
    ("findings", "doctor", lambda c: c.doctor().document),
    ("version", "version", lambda c: c.version().document),
    ("forecasts", "predict --ranks=4 --transport=isolated --model=vgg16",
     lambda _: at.predict(ranks=4, transport="isolated", model="vgg16").document),
]  # fmt: skip


def settled(document: Any) -> Any:
    """Return *document* without what passes between two looks at one cluster."""
    if isinstance(document, dict):
        return {
            key: settled(value)
            for key, value in document.items()
            if key not in ("age", "taken", "duration", "earliest", "likely", "latest")
            # A range of figures has such a key, too.
            or (isinstance(value, float) and key != "age")
        }
    return [settled(one) for one in document] if isinstance(document, list) else document


@pytest.mark.parametrize(("schema", "line", "call"), CALLS, ids=[line for _, line, _ in CALLS])
def test_one_call_returns_what_a_command_prints(
    cluster: at.Cluster,
    capfd: pytest.CaptureFixture[str],
    schema: str,
    line: str,
    call: Callable[[at.Cluster], Any],
) -> None:
    """As JSON has it."""
    code = run([*shlex.split(line), "-o", "json"])
    printed = capfd.readouterr()
    assert code in (0, 3), printed.err
    lines = [json.loads(one) for one in printed.out.splitlines()] if schema == "log-line" else None
    expected = json.loads(printed.out) if lines is None else lines

    assert settled(expected) == settled(json.loads(json.dumps(call(cluster))))


def test_every_document_has_a_call() -> None:
    """A schema that is added needs one, or the reason why not."""
    documents = {file.stem for file in SCHEMAS.glob("*.json")}
    assert documents == {schema for schema, *_ in CALLS} | OF_THE_COMMAND_LINE.keys()


def test_a_saved_snapshot_plans_as_the_cluster_does(cluster: at.Cluster) -> None:
    """Without one: where jobs are planned that nobody can submit yet."""
    cluster.snapshot().save("cluster.json")
    saved = at.snapshot("cluster.json")

    assert saved.document == at.snapshot("cluster.json").document
    assert at.plan(PLANNED, saved).document == at.plan(PLANNED, "cluster.json").document
    assert cluster.compare(COMPARED).document == saved.compare(COMPARED).document
    forecast = at.predict(at.plan(PLANNED, saved), model="vgg16")
    assert 32 == forecast.document["forecasts"][0]["ranks"]


def test_pictures_and_pages_are_the_commands(cluster: at.Cluster, capfd: pytest.CaptureFixture[str]) -> None:
    """A notebook shows the drawing of -o svg, and its text."""
    cluster.snapshot().save("cluster.json")
    plan, topology = at.plan(PLANNED, "cluster.json"), at.snapshot("cluster.json")
    for line, drawn in (
        ("plan mpi --workers=4 --gpus=8 --rdma --from cluster.json", plan),
        ("topology --from cluster.json", topology),
        (f"topology --from cluster.json {topology.value.nodes[0].name}", topology[topology.value.nodes[0].name]),
    ):  # fmt: skip
        run([*line.split(), "-o", "svg"])
        assert capfd.readouterr().out == drawn._repr_svg_()
        assert '<img src="data:image/svg+xml;base64,' in drawn._repr_html_()
        run(line.split())
        # A command adds how to submit to the last line.
        same = str(drawn).splitlines()[:-1] if drawn is plan else str(drawn).splitlines()
        assert same
        assert same == capfd.readouterr().out.splitlines()[: len(same)]
    assert at.plan(TFJOB, topology)._repr_svg_() is None
    assert "&lt;" in at.Report(0, 0, "<b>")._repr_html_()


def test_a_job_is_what_its_flags_describe() -> None:
    """Field by field: the two ways to say it mean one job."""
    job = at.Job(
        name="job", image="i", workers=4, gpus=2, cpu="8", memory="1Gi", rdma=True, gang=True, command="a b",
        env={"A": "b"}, labels={"l": "m"}, annotations={"n": "o"}, selector={"s": "t"}, data={"claim": "/data"},
        priority="high", retry=2,
    )  # fmt: skip
    for word in ("mpi", "pytorch", "jobset", "job"):
        kind = JOB_KINDS[word]
        flags = _flags(
            "--name=job --image=i --workers=4 --gpus=2 --cpu=8 --memory=1Gi --rdma --gang --env=A=b --label=l=m "
            "--annotation=n=o --selector=s=t --data=claim:/data --priority=high --retry=2",
            word,
        )
        expected = described_job(kind, flags, words=("a b",), argv=None, namespace="ns")
        assert expected == replace(job, kind=word).spec("ns")
    elastic = described_job(
        JOB_KINDS["mpi"],
        _flags("--name=job --image=i --min-workers=2 --max-workers=8 --grow --slots-per-worker=3", "mpi"),
        words=(),
        argv=("a", "b"),
        namespace="ns",
    )
    assert elastic == at.Job(
        name="job", image="i", command=["a", "b"], min_workers=2, max_workers=8, grow=True, slots_per_worker=3
    ).spec("ns")


def test_every_flag_of_a_placement_is_an_argument() -> None:
    """By its name; a wait has a time of its own."""
    plan = {field.name for field in fields(PlanFlags)}
    assert plan == set(api.Placing.__annotations__)
    place = {field.name for field in fields(EnforcementFlags)}
    assert plan | place | {"timeout"} == set(api.Submitting.__annotations__)


def _flags(line: str, word: str) -> Any:
    """Return the flags of ``submit WORD`` that *line* types."""
    from arena_topo.cli.declare import command

    kept: list[Any] = []
    command("any", JOB_KINDS[word].flags)(kept.append).main(line.split(), standalone_mode=False)
    return kept[0]


ERRORS: list[tuple[str, Callable[[at.Cluster], Any]]] = [
    ("get none", lambda c: c.job("none").status()),
    ("logs done -i no-such", lambda c: list(c.job("done").logs("no-such"))),
    ("plan mpi --workers=0", lambda c: c.plan(at.Job(workers=0))),
    ("plan mpi --workers=4 --gpus=1 --require-topology=moon",
     lambda c: c.plan(at.Job(workers=4, gpus=1), require_topology="moon")),
    ("plan mpi --require-topology=rack --topology-policy=none",
     lambda c: c.plan(at.Job(), require_topology="rack", topology_policy="none")),
    ("submit mpi --name=done --image=i --gputopology true",
     lambda c: c.submit(at.Job(name="done", image="i", command="true"))),
    ("submit mpi --name=a --image=i --queue=q true",
     lambda c: c.submit(at.Job(name="a", image="i", command="true"), queue="q")),
    ("submit mpi --name=A --image=i true", lambda c: c.submit(at.Job(name="A", image="i", command="true"))),
    ("topology --from none.json", lambda _: at.snapshot("none.json")),
    ("topology moon", lambda c: c.snapshot()["moon"]),
    ("top node moon", lambda c: c.nodes("moon")),
    ("predict --ranks=4", lambda _: at.predict(ranks=4)),
    ("get done --context=moon", lambda _: at.connect(context="moon")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "call"), ERRORS, ids=[line for line, _ in ERRORS])
def test_an_error_is_the_commands_own(
    cluster: at.Cluster, capfd: pytest.CaptureFixture[str], line: str, call: Callable[[at.Cluster], Any]
) -> None:
    """With its message, its hint and its exit code."""
    code = run(line.split())
    said = capfd.readouterr().err
    with pytest.raises(at.ArenaTopoError) as caught:
        call(cluster)
    error = caught.value

    assert error.message in said.replace("--from: ", "")
    assert not error.hint or error.hint in said
    assert code == error.exit_code


def test_a_job_is_submitted_followed_and_deleted(
    cluster: at.Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """With a plan, as its manifest was previewed; what is waited for goes to the logger."""
    caplog.set_level(logging.INFO, "arena_topo")
    job = replace(DONE, name="followed", workers=1)
    preview = cluster.preview(job, require_topology="rack")
    assert "arena-topo.dev/plan" in preview.value[0]["metadata"]["annotations"]
    assert preview.document == preview.value[0]

    handle = cluster.submit(job, wait="running", timeout=120)
    assert any("followed" in note for note in handle.notes)
    assert handle.status().value.plan
    assert [line["instance"] for line in handle.logs(follow=True)]
    handle.wait(timeout=120)
    handle.delete()
    with pytest.raises(errors.NotFound):
        handle.status()
    assert caplog.records


def test_a_job_is_suspended_scaled_and_resumed(cluster: at.Cluster) -> None:
    """As its commands do."""
    handle = cluster.submit(replace(ELASTIC, name="changed"), wait="running", timeout=120)
    assert 3 == handle.scale(3, grace=0).value.after
    handle.suspend()
    deadline = time.monotonic() + 60
    while handle.status().document["status"] != "SUSPENDED" and time.monotonic() < deadline:
        time.sleep(0.05)
    handle.resume()
    handle.wait("running", timeout=120)
    handle.delete()


def test_the_names_are_few_and_cost_nothing_until_they_are_used() -> None:
    """The command line imports the same package."""
    assert set(api.__all__) <= set(dir(at))
    assert 12 == len(api.__all__)
    script = "import sys, arena_topo; print([name for name in sys.modules if name.startswith('arena_topo')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "['arena_topo']\n" == done.stdout
    with pytest.raises(AttributeError):
        _ = at.no_such_name  # type: ignore[attr-defined]  # that is the test


def test_the_types_are_those_of_the_names() -> None:
    """Type checkers read the stub."""
    stub = (ROOT / "arena_topo" / "__init__.pyi").read_text()
    assert {f"    {name} as {name}," for name in api.__all__} <= set(stub.splitlines())
    for name in api.__all__:
        assert getattr(at, name) is getattr(api, name)


def test_the_notebook_shows_what_its_cells_do() -> None:
    """Its page and its pictures too, which `make docs` writes."""
    folder = ROOT / "docs" / "how-to" / "python"
    spec = importlib.util.spec_from_file_location("notebook", folder / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    notebook = json.loads((folder / "notebook.ipynb").read_text())

    written = module.files(notebook)
    assert written == {name: (folder / name).read_text() for name in written}
    assert {file.name for file in folder.glob("*.svg")} < written.keys()
