"""What the commands about clusters print, say and write,
as somebody looked at it: one file for each command line.
"""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from arena_topo.model.objects import Object
from tests.cli.clusters import cluster, printed, transcript
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, Script, missing
from tests.objects import ready_node
from tests.output.golden import golden
from tests.paths import DATA

CPUS = {"cpu": "8", "pods": "110"}
GPUS = {**CPUS, "nvidia.com/gpu": "8"}


def node(name: str, resources: dict[str, str] = GPUS, label: str = "") -> Object:
    """Return a node that is ready, with a *label* of the vendor's."""
    return ready_node(name, resources, {"ack.node.gpu.schedule": label} if label else {})


def of_another_team() -> Object:
    """Return a pod that has a GPU of gpu-1."""
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    return {
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {"nodeName": "gpu-1", "containers": [container]},
        "status": {"phase": "Running"},
    }


def bare(call: Call) -> Answer:
    """Serve a cluster without the MPIJob resource, which is a problem."""
    if call.path == "/version":
        return Answer(body={"gitVersion": "v1.36.0"})
    return Answer(body={"groups": []}) if call.path == "/apis" else missing("x")


def empty(call: Call) -> Answer:
    """Serve every resource, and no object."""
    return Answer(body={"groups": []} if call.path == "/apis" else {"items": [], "gitVersion": "v1.36.0"})


SHARED = cluster(pods=[of_another_team()], nodes=[node("gpu-1"), node("cpu-1", CPUS)])
LABELLED = cluster(nodes=[node("gpu-1"), node("gpu-2", label="topology"), node("cpu-1", CPUS)])

V100 = "topology --from v100.txt"
LINES: list[tuple[str, Script | None, str]] = [
    ("topology", None, f"{V100} --product 'Tesla V100-SXM2-16GB'"),
    ("topology-no-file", None, "topology --from /nowhere"),
    ("topology-no-node", None, f"{V100} nothing"),
    ("topology-product-of-nothing", None, "topology --product x"),
    ("topology-levels-of-a-file", None, f"{V100} --topology-levels=a"),
    ("topology-save-nothing", None, "topology save"),
    ("topology-save-nowhere", None, "topology save /nowhere/x --from v100.txt"),
    ("topology-png", None, "topology -o png"),
    ("no-cluster", None, "topology"),
    ("topology-of-notes", None, "topology --from notes.txt"),
    ("topology-of-bytes", None, "topology --from bytes.txt"),
    ("fragmentation", None, f"{V100} --fragmentation"),
    ("fragmentation-json", None, f"{V100} --fragmentation -o json"),
    ("fragmentation-yaml", None, f"{V100} --fragmentation -o yaml"),
    ("fragmentation-of-a-node", None, "topology --from /nowhere --fragmentation node-1"),
    ("fragmentation-of-a-node", None, "topology --from /nowhere --fragmentation save file"),
    ("fragmentation-svg", None, "topology --from /nowhere --fragmentation -o svg"),
    ("top-nodes", SHARED, "top node"),
    ("top-nodes-json", SHARED, "top node -o json"),
    ("top-node", SHARED, "top node gpu-1"),
    ("top-node", SHARED, "top node -m e"),
    ("top-node", SHARED, "top node -m exclusive"),
    ("top-node-without-gpus", SHARED, "top node -m none"),
    ("top-node-of-no-mode", SHARED, "top node -m t"),
    ("top-node-missing", SHARED, "top node gpu-1 gpu-9"),
    ("top-node-details", SHARED, "top node -d"),
    ("top-node-other-mode", None, "top node -m x"),
    ("no-cluster", None, "top node"),
    ("top-node-again-json", None, "top node -r -o json"),
    ("enable", LABELLED, "node enable-topology gpu-1 gpu-2"),
    ("disable-all", LABELLED, "node disable-topology --all"),
    ("enable-dry", LABELLED, "node enable-topology gpu-1 --dry-run=client"),
    ("enable-dry-on-server", LABELLED, "node enable-topology gpu-1 --dry-run=server"),
    ("enable-missing", LABELLED, "node enable-topology gpu-9 gpu-1"),
    ("enable-nothing", None, "node enable-topology"),
    ("enable-nothing", None, "node enable-topology a --all"),
    ("disable-dry-x", None, "node disable-topology --all --dry-run=x"),
    ("doctor", bare, "doctor"),
    ("doctor-strict", bare, "doctor --strict"),
    ("doctor-json", bare, "doctor -o json"),
    ("setup", None, "cluster setup --users group:ml -n ml --agent-image i -o name"),
    ("no-cluster", None, "cluster setup --apply"),
    ("remove-nothing", empty, "cluster remove --apply"),
    *(
        ("no-terminal", None, f"top {words}")
        for words in ("--watch", "-w", "watch", "node --watch", "job -w")
    ),
    ("watch-json", None, "top node -w -o json"),
    ("watch-again", None, "top node -w -r"),
    ("watch-a-node", None, "top node -w gpu-1"),
    ("watch-a-job", None, "top job -w vgg16"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with a machine's matrix, and with files that are none."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt", "v100.txt")
    Path("notes.txt").write_text("nothing of the kind\n")
    Path("bytes.txt").write_bytes(b"\xff\xfe\xff")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "script", "line"), LINES, ids=[f"{name}: {line}" for name, _, line in LINES]
)
def test_a_command_does_what_it_did(
    invoke: Invoke, serve: Serve, name: str, script: Script | None, line: str
) -> None:
    """Both streams, the exit code and every write."""
    transport = serve(script) if script else None
    outcome = invoke(*shlex.split(line))
    text = transcript(outcome, transport) if transport else printed(outcome)

    assert golden(f"cli/cluster/{name}.txt", text) == text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("form", "beginning"),
    [("json", "{"), ("yaml", "apiversion"), ("dot", "graph "), ("graphml", "<?xml"), ("svg", "<svg"), ("html", "<!doctype html>")],
)  # fmt: skip
def test_every_form_of_a_topology_is_printed(invoke: Invoke, form: str, beginning: str) -> None:
    """On stdout alone."""
    outcome = invoke(*V100.split(), "-o", form)

    assert (0, beginning) == (outcome.code, outcome.out[: len(beginning)].lower()), outcome.err


@pytest.mark.usefixtures("folder")
def test_a_snapshot_is_saved_and_shown_again(invoke: Invoke) -> None:
    """As JSON or YAML, by the file's name."""
    shown = invoke(*V100.split()).out
    for name in ("a.json", "a.yaml"):
        assert 0 == invoke("topology", "save", name, *V100.split()[1:]).code
        again = invoke("topology", "--from", name)
        assert shown == again.out, again.err
    assert "Snapshot" == json.loads(Path("a.json").read_text())["kind"]
