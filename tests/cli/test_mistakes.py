"""What users get wrong: each mistake has one error that says what is wrong, and the exit code of its kind."""

import io
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.paths import DATA

FILES = {
    "foo.yaml": "kind: Foo\n",
    "manifest.yaml": "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: a}\nspec: {}\n",
    "flags.yaml": "name: a\nworkers: 2\n",
    "kind.yaml": "job: horse\nname: a\n",
    "typo.yaml": "wokers: 2\n",
    "saved.yaml": "job: mpi\nname: a\nimage: i\nworkers: 2\npin: nodes\ncommand: c\n",
    "matrix.txt": (DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt").read_text(),
    "snapshot.json": '{"apiVersion":"arena-topo.dev/v1alpha1","kind":"Snapshot","nodes":[]}\n',
}

MISTAKES: list[tuple[str, int, str]] = [
    ("frobnicate", 2, "there is no command frobnicate"),
    ("sumbit mpi", 2, "there is no command sumbit"),
    ("submit mip", 2, "there is no command mip"),
    ("submit horovod", 2, "'submit horovod' is not supported: arena-topo submits MPI, PyTorch and"),
    ("serve list", 2, "'serve' is not supported: arena-topo runs training jobs, and serves no"),
    ("logviewer a", 2, "'logviewer' is not supported: it opens a page of kubernetes-dashboard,"),
    ("lgos a", 2, "there is no command lgos"),
    ("--frob", 2, "there is no flag --frob"),
    ("-n", 2, "-n needs a value, and a command after it"),
    ("-n list", 2, "there is no command after -n list"),
    ("--context=a", 2, "there is no command after --context=a"),
    ("list -n", 2, "--namespace needs a value"),
    ("list --namspace=a", 2, "there is no flag --namspace"),
    ("list a", 2, "too many words: a"),
    ("list -o xml", 2, "--output: unknown output format 'xml'"),
    ("list --status=foo", 2, "--status: 'foo' is not a status"),
    ("list --sort-by", 2, "--sort-by needs a value"),
    ("list -n A_B", 2, "'A_B' is not a valid namespace"),
    ("list --type=rayjob", 2, "unsupported job type 'rayjob'"),
    ("list --watch -o json", 2, "--watch prints a table, not json"),
    ("list --watch --status=running", 2, "--watch shows how the status of jobs changes"),
    ("list --loglevel=loud", 2, "--loglevel: 'loud' is not a level"),
    ("list --request-timeout=soon", 2, "--request-timeout: 'soon' is not a duration"),
    ("list --kubeconfig=/nowhere", 1, "kubeconfig /nowhere does not exist"),
    ("list", 1, "no cluster is configured: neither $KUBECONFIG nor ~/.kube/config names"),
    ("get", 2, "JOB is missing"),
    ("get a --watch -o json", 2, "--watch prints a table, not json"),
    ("get a b --watch", 2, "--watch follows one job"),
    ("get a -o custom-columns=", 2, "--output: '' is not HEADING:PATH,HEADING:PATH"),
    ("get A_B", 2, "'A_B' does not name a training job"),
    ("get a --type=foo", 2, "unsupported job type 'foo'"),
    ("get a --frob", 2, "there is no flag --frob"),
    ("describe", 2, "JOB is missing"),
    ("describe a b", 2, "too many words: b"),
    ("describe a -o xml", 2, "--output: 'xml' is not one of 'text', 'json', 'yaml'"),
    ("logs", 2, "logs takes the names of jobs, or -l LABELS: one of the two"),
    ("logs a -l team=x", 2, "logs takes the names of jobs, or -l LABELS: one of the two"),
    ("logs a --grep=x", 2, "'--grep' is not supported: lines are chosen by --include and --exclude"),
    ("logs a --tail=x", 2, "--tail: 'x' is not a whole number"),
    ("logs a --tail=-2", 2, "--tail: -2 is less than -1"),
    ("logs a --since=5x", 2, "--since: '5x' is not a duration"),
    ("logs a --since=0s", 2, "--since: 0s is less than 0.001 s"),
    (
        "logs a --since=5m --since-time=2026-11-21T00:00:00Z",
        2,
        "at most one of --since and --since-time may be used",
    ),
    ("logs a --since-time=noon", 2, "--since-time: 'noon' is not an RFC 3339 time such as 2026-11-21T08:00:"),
    ("logs a -f -p", 2, "--follow and --previous exclude each other: a previous run has ended"),
    ("logs a --include=[", 2, "--include: '[' is not a regular expression: unterminated character set"),
    ("logs a -i 0-", 1, "no cluster is configured: neither $KUBECONFIG nor ~/.kube/config names"),
    ("logs a --all -i 0", 2, "at most one of --instance, --role and --all may be used"),
    ("logs a --max-log-requests=0", 2, "--max-log-requests: 0 is less than 1"),
    ("logs a -o xml", 2, "--output: 'xml' is not one of 'text', 'raw', 'json'"),
    ("wait", 2, "JOB is missing"),
    ("wait a --for=ready", 2, "--for: 'ready' is not known"),
    ("wait a --timeout=soon", 2, "--timeout: 'soon' is not a duration"),
    ("wait a --timeout=-1s", 2, "--timeout: '-1s' is not a duration"),
    ("delete", 2, "delete takes the names of jobs, -l LABELS, or --all: one of these"),
    ("delete a --all", 2, "delete takes the names of jobs, -l LABELS, or --all: one of these"),
    ("delete a -l team=x", 2, "delete takes the names of jobs, -l LABELS, or --all: one of these"),
    ("delete --all -l team=x", 2, "delete takes the names of jobs, -l LABELS, or --all: one of these"),
    ("delete a --wait=maybe", 2, "--wait: 'maybe' is neither true nor false"),
    ("prune", 2, "--since must be set"),
    ("prune --since 10", 2, "--since: '10' is not a duration"),
    ("prune --since soon", 2, "--since: 'soon' is not a duration"),
    ("suspend", 2, "JOB is missing"),
    ("resume", 2, "JOB is missing"),
    ("scale", 2, "JOB is missing"),
    ("scale a", 2, "give the number of workers, or --grow"),
    ("scale a --workers=0", 2, "--workers: 0 is less than 1"),
    ("scale a --workers=x", 2, "--workers: 'x' is not a whole number"),
    ("scale a --workers=2 --grow", 2, "give the number of workers, or --grow"),
    ("scale a --grace=soon", 2, "--grace: 'soon' is not a duration"),
    ("rerun", 2, "rerun takes the name of a job, or -f FILE"),
    ("rerun a -f b.json", 2, "rerun takes the name of a job, or -f FILE"),
    ("rerun -f /nowhere", 1, "no cluster is configured: neither $KUBECONFIG nor ~/.kube/config names"),
    ("rerun a --dry-run=client", 2, "rerun has no --dry-run=client: it asks the cluster"),
    ("exec a", 2, "COMMAND is missing"),
    ("exec", 2, "JOB is missing"),
    ("attach", 2, "JOB is missing"),
    ("diff a", 2, "there is no command a"),
    ("diff mpi -f /nowhere", 2, "--file: /nowhere cannot be read: No such file or directory"),
    ("top nothing", 2, "there is no command nothing"),
    ("top node --frob", 2, "there is no flag --frob"),
    (
        "top node --sort-by=cpu",
        2,
        "--sort-by: 'cpu' is not one of 'name', 'total', 'allocated', 'free'",
    ),
    ("top node --sort-by=free -o json", 2, "--sort-by sorts a table"),
    ("topology --from /nowhere", 2, "--from: /nowhere cannot be read: No such file or directory"),
    ("topology --fragmentation n", 2, "--fragmentation covers the whole cluster"),
    ("topology --fragmentation -o svg", 2, "--fragmentation is a table, which -o svg cannot draw"),
    ("topology save", 2, "topology save takes one FILE"),
    ("topology -o png", 2, "--output: 'png' is not one of 'text', 'json', 'yaml', 'dot', 'graphml'"),
    ("topology --product=x", 2, "--product names the GPUs of a matrix: it goes with --from"),
    ("predict", 2, "nothing to predict"),
    ("predict --ranks=0 --busbw=1", 2, "--ranks: 0 is less than 1"),
    (
        "predict --ranks=4 --transport=wire",
        2,
        "--transport: 'wire' is not one of 'nvlink', 'pcie', 'rdma', 'isolated'",
    ),
    ("completion", 2, "SHELL is missing"),
    ("completion tcsh", 2, "SHELL: 'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ("config view frob", 2, "there is no command 'frob'"),
    ("version a", 2, "too many words: a"),
    ("submit -f", 2, "--file needs a value"),
    ("submit -f /nowhere", 2, "--file: /nowhere cannot be read: No such file or directory"),
    ("submit -f snapshot.json", 2, "snapshot.json is a snapshot or a matrix, which --from takes: -f takes"),
    ("submit -f matrix.txt", 2, "matrix.txt is a snapshot or a matrix, which --from takes: -f takes the"),
    ("submit -f foo.yaml", 1, "unsupported kind: Foo (no apiVersion)"),
    ("submit -f flags.yaml", 2, "flags.yaml is neither a manifest nor flags that --save wrote: it has n"),
    ("submit -f kind.yaml", 2, "kind.yaml:1: 'horse' is not a kind of job"),
    ("submit mpi -f manifest.yaml", 2, "manifest.yaml is a manifest, and submit mpi takes a file of flags"),
    (
        "submit mpi -f snapshot.json",
        2,
        "snapshot.json is a snapshot or a matrix, which --from takes: -f takes",
    ),
    ("submit mpi -f saved.yaml --image", 2, "--image needs a value"),
    (
        "submit pytorch -f saved.yaml",
        2,
        "saved.yaml:1: the job is of kind mpi, and the command is submit pytorc",
    ),
    ("submit mpi -f typo.yaml", 2, "typo.yaml:1: there is no flag wokers"),
    ("submit mpi", 2, "--image must be set"),
    ("submit mpi --name=a", 2, "--image must be set"),
    ("submit mpi --name=a --image=i", 2, "the job has no command"),
    (
        "submit mpi --name=A --image=i c",
        2,
        "the job name 'A' must consist of lower case alphanumeric characters or",
    ),
    ("submit mpi --name=a --image=i c -- d", 2, "the job's command was given twice: before and after --"),
    ("submit mpi --name=a --image=i --gpus=-1 c", 2, "--gpus: -1 is less than 0"),
    ("submit mpi --name=a --image=i --gpus=1.5 c", 2, "--gpus: '1.5' is not a whole number"),
    ("submit mpi --name=a --image=i --gpus=9999999 c", 2, "--gpus: 9999999 is more than 1000000"),
    ("submit mpi --name=a --image=i --workers=0 c", 2, "--workers: 0 is less than 1"),
    (
        "submit mpi --name=a --image=i --workers --gpus=1 c",
        2,
        "--workers takes a value, and the next word is '--gpus=1'.",
    ),
    ("submit mpi --name=a --image=i --memory=lots c", 2, "--memory: 'lots' is not a quantity"),
    ("submit mpi --name=a --image=i --gang=maybe c", 2, "--gang: 'maybe' is neither true nor false"),
    ("submit mpi --name=a --image=i --env=A c", 2, "--env: 'A' is not NAME=VALUE"),
    ("submit mpi --name=a --image=i --data=x c", 2, "--data: 'x' is not PVC:PATH with an absolute PATH"),
    ("submit mpi --name=a --image=i --label=a/b/c=d c", 2, "--label: 'a/b/c' is not a qualified name"),
    (
        "submit mpi --name=a --image=i --toleration=:x c",
        2,
        "--toleration: ':x' is not KEY[=VALUE][:EFFECT][,OPERATOR]",
    ),
    ("submit mpi --name=a --image=i --queue=q c", 2, "--queue=q has no effect without --gang"),
    (
        "submit mpi --name=a --image=i --gang-scheduler=gates c",
        2,
        "--gang-scheduler=gates has no effect without --gang",
    ),
    (
        "submit mpi --name=a --image=i --require-topology=rack --topology-policy=none c",
        2,
        "--require-topology=rack asks for a level, and --topology-policy=none i",
    ),
    (
        "submit mpi --name=a --image=i --objective=balanced c",
        2,
        "'--objective=balanced' is not supported: the objectives are compared o",
    ),
    (
        "submit mpi --name=a --image=i --topology-policy=strict c",
        2,
        "--topology-policy: 'strict' is not one of 'best-effort', 'restricted',",
    ),
    (
        "submit mpi --name=a --image=i --pin=hard c",
        2,
        "--pin: 'hard' is not one of 'auto', 'none', 'nodes', 'workers', 'gpus'",
    ),
    ("submit mpi --name=a --image=i --parallel=4 c", 2, "--parallel: '4' is not an axis with its size"),
    (
        "submit mpi --name=a --image=i --wait=soon c",
        2,
        "--wait: 'soon' is neither a duration nor one of placed, running, succe",
    ),
    ("submit mpi --name=a --image=i --running-timeout=0.5s c", 2, "--running-timeout: 0.5s is less than 1 s"),
    ("submit mpi --name=a --image=i --api-version=v3 c", 2, "--api-version: 'v3' is not a version of MPIJob"),
    (
        "submit mpi --name=a --image=i --dry-run=maybe c",
        2,
        'Invalid dry-run value (maybe). Must be "none", "server", or "client".',
    ),
    ("submit mpi --name=a --image=i --plan c", 2, "--plan goes with --dry-run=server"),
    ("submit mpi --name=a --image=i --ask c", 2, "--ask needs a terminal"),
    (
        "submit mpi --name=a --image=i --ask --dry-run=server c",
        2,
        "--ask asks before a job is created, and --dry-run creates none",
    ),
    (
        "submit mpi --name=a --image=i --template=/nowhere --dry-run=client c",
        2,
        "template /nowhere cannot be read: No such file or directory",
    ),
    (
        "submit mpi --name=a --image=i --helm-binary=x c",
        2,
        "'--helm-binary' is not supported: arena-topo renders jobs by itself, w",
    ),
    (
        "submit mpi --name=a --image=i c",
        1,
        "no cluster is configured: neither $KUBECONFIG nor ~/.kube/config names",
    ),
    ("plan mpi -f snapshot.json", 2, "snapshot.json is a snapshot or a matrix, which --from takes: -f takes"),
    ("plan mpi -f matrix.txt", 2, "matrix.txt is a snapshot or a matrix, which --from takes: -f takes the"),
    ("plan -f snapshot.json", 2, "snapshot.json is a snapshot or a matrix, which --from takes: -f takes"),
    (
        "plan mpi --from saved.yaml",
        1,
        "saved.yaml: neither a topology matrix, NCCL XML nor a bandwidth matrix",
    ),
    ("plan mpi --from snapshot.json --workers=9 --gpus=8", 3, ""),
    (
        "plan mpi --from snapshot.json --when",
        2,
        "--when reads the jobs of a cluster and prints text, json or yaml, so i",
    ),
    ("plan mpi --from snapshot.json --compare -o svg", 2, "--compare is a table, which -o svg cannot draw"),
    (
        "plan mpi --from snapshot.json --gpus=1 --require-topology=zone",
        2,
        "--require-topology: the fabric has no level 'zone'",
    ),
    ("plan -f saved.yaml --from snapshot.json --workers=9 --gpus=8", 3, ""),
]
"""The command line, its exit code, and how its error begins; what does not fit is no error, and has none."""


@pytest.mark.parametrize(("line", "code", "error"), MISTAKES, ids=[line for line, _, _ in MISTAKES])
def test_a_mistake_has_one_error_and_the_exit_code_of_its_kind(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, code: int, error: str
) -> None:
    """2 for the command line and its files, 1 for the rest, 3
    for what does not fit; hints are at most one more line.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for name, text in FILES.items():
        if name in line:
            Path(name).write_text(text)
    outcome = invoke(*shlex.split(line))

    errors = [text for text in outcome.err.splitlines() if text.startswith("error: ")]
    assert code == outcome.code, outcome.err
    assert ([f"error: {error}"] if error else []) == [text[: len(f"error: {error}")] for text in errors]
    assert outcome.err.count("hint: ") <= 1
    assert "Traceback" not in outcome.err


def test_a_hundred_mistakes_are_tried() -> None:
    """At least, none of them twice."""
    assert len(MISTAKES) == len({line for line, _, _ in MISTAKES}) >= 100
