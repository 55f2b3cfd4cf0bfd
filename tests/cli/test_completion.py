"""A TAB offers what the cluster has, in every shell, and never hangs or speaks."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.polling import eventually
from tests.e2e.arena import PROGRAM
from tests.kube.server import Reply, Seen, Server, serve, status
from tests.objects import mpijob, pod

JOBSETS = "jobset.x-k8s.io/v1alpha2"
NODES = [
    {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "z", "other/label": "x"}}}
    for name in ("gpu-1", "gpu-2")
]


def named(*names: str) -> list[Any]:
    """Return objects that have nothing but a name."""
    return [{"metadata": {"name": name}} for name in names]


def answer(seen: Seen) -> Reply:
    """Serve a cluster that has one of each."""
    path = seen.path.partition("?")[0]
    lists: dict[str, list[Any]] = {
        "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs": named("vgg16", "vgg19", "bert"),
        "/apis/kubeflow.org/v2beta1/namespaces/ml/mpijobs": named("in-ml"),
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ml/jobsets": named("set-in-ml"),
        "/api/v1/namespaces/default/pods": [pod("vgg16-worker-0"), pod("vgg16-worker-1")],
        "/apis/batch/v1/namespaces/default/jobs": [
            *named("vgg16-launcher"),
            {"metadata": {"name": "indexed", "labels": {"arena-topo.dev/training-job": "true"}}},
        ],
        "/api/v1/namespaces": named("default", "ml", "\x1b[2Jforged", "two\nlines", "turned\u202e"),
        "/api/v1/nodes": NODES,
        "/apis/kueue.x-k8s.io/v1beta1/namespaces/default/localqueues": named("research"),
    }
    if path.endswith("/mpijobs/vgg16"):
        return Reply(body=json.dumps(mpijob("vgg16")).encode())
    if path == "/apis":
        groups = [{"versions": [{"groupVersion": version}]} for version in (JOBSETS, "batch/v1")]
        return Reply(body=json.dumps({"groups": groups}).encode())
    if path in lists:
        return Reply(body=json.dumps({"items": lists[path]}).encode())
    return status(404, "NotFound", "not served")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve what a test says."""
    with serve(tmp_path_factory.mktemp("server"), answer) as served:
        yield served


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """Return the home of a user with a kubeconfig of two contexts."""
    place = {"server": server.url, "certificate-authority": str(server.authority.certificate)}
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("here", "there")]
    config = {
        "current-context": "here",
        "contexts": contexts,
        "clusters": [{"name": "c", "cluster": place}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    folder = tmp_path_factory.mktemp("home")
    (folder / "config").write_text(json.dumps(config))
    return folder


@pytest.fixture(autouse=True)
def cluster(server: Server) -> Server:
    """Serve one of each."""
    server.rule = answer
    return server


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a user at home in *home*."""
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    return {
        "PATH": path,
        "HOME": str(home),
        "KUBECONFIG": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TERM": "dumb",
    }


ASK = """
import json, os, sys
from arena_topo.cli.errors import run
for words in json.load(sys.stdin):
    os.environ.update(COMP_WORDS=" ".join(["arena-topo", *words]), COMP_CWORD=str(len(words)))
    assert 0 == run([])
    print("end of line", flush=True)
"""
"""A start takes longer than a TAB: one process completes several lines, as a shell asks for each."""


def completed(home: Path, *lines: Sequence[str]) -> list[list[str]]:
    """Return what is offered for the last word of each line."""
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**environment(home), "_ARENA_TOPO_COMPLETE": "bash_complete"},
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=150,
    )
    assert "" == done.stderr
    offers = done.stdout.split("end of line\n")[:-1]
    return [[line.partition(",")[2] for line in offer.splitlines() if line] for offer in offers]


OFFERED = {
    ("get", ""): ["bert", "indexed", "vgg16", "vgg19"],  # a launcher is a Job too, and no training job
    ("logs", "vgg"): ["vgg16", "vgg19"],
    ("delete", "vgg16", ""): ["bert", "indexed", "vgg19"],
    ("topology", ""): ["gpu-1", "gpu-2", "z"],
    ("get", "-n", "ml", ""): ["in-ml", "set-in-ml"],
    ("get", "--type=jobset", "-n", "ml", ""): ["set-in-ml"],
    ("logs", "vgg16", "-i", ""): ["vgg16-worker-0", "vgg16-worker-1"],
    ("get", "--namespace", ""): ["default", "ml"],
    ("get", "--context", ""): ["here", "there"],
    ("get", "--user", ""): ["u"],
    ("top", "node", "gpu"): ["gpu-1", "gpu-2"],
    ("submit", "mpi", "--require-topology", ""): ["node", "zone"],
    ("submit", "mpi", "--topology-levels", ""): ["topology.kubernetes.io/zone"],
    ("submit", "mpi", "--queue", ""): ["research"],
    ("sandbox", "start", "--layout", "r"): ["racks"],
    ("logs", "vgg16", "--role", ""): ["launcher", "worker"],
    ("lo",): ["logs"],
    ("topology", "--from", "snap"): ["snap"],  # the shell completes files by itself
}


@pytest.fixture(scope="module")
def offers(home: Path, server: Server) -> dict[tuple[str, ...], list[str]]:
    """Return what is offered for each of these lines; on a slow machine the first answers come too late."""
    server.rule = answer
    found = eventually(lambda: each if all(each := completed(home, *OFFERED)) else None, "all to be offered")
    return dict(zip(OFFERED, found, strict=True))


@pytest.mark.parametrize("words", OFFERED, ids=" ".join)
def test_values_are_completed(offers: dict[tuple[str, ...], list[str]], words: tuple[str, ...]) -> None:
    """What there is, by what the line says so far."""
    assert OFFERED[words] == offers[words]


SHELLS = {
    "bash": "source <(arena-topo completion bash); COMP_WORDS=(arena-topo get vgg); COMP_CWORD=2; COMPREPLY=();"
    ' _arena_topo_completion arena-topo; printf "%s\\n" "${COMPREPLY[@]}"',
    # compadd works in a completion widget only; this one prints what it is given.
    "zsh": "compdef() { }; source <(arena-topo completion zsh); words=(arena-topo get vgg); CURRENT=3;"
    " compadd() { print -l -- ${(P)argv[-1]} }; _arena_topo_completion",
    "fish": "source (arena-topo completion fish | psub); complete -C 'arena-topo get vgg'",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_completes(home: Path, shell: str) -> None:
    """By the script that is printed for it."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its completion is not tried")
    options = ["--norc"] if shell == "bash" else ["-f"] if shell == "zsh" else ["--no-config"]

    def offered() -> list[str]:
        done = subprocess.run(
            [shell, *options, "-c", SHELLS[shell]],
            env=environment(home),
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        assert "" == done.stderr
        return done.stdout.split()

    assert ["vgg16", "vgg19"] == eventually(offered, "something to be offered")


TYPED = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(arena-topo completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -D; source <(arena-topo completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "arena-topo completion fish | source"),
}
"""How each shell is started on a terminal, and the line by which a user switches completion on."""

# What a shell starts by itself has no terminal that it could control: it is opened again.
AT_A_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


@contextmanager
def typing(command: list[str], env: dict[str, str]) -> Iterator[int]:
    """Run *command* at a terminal of its own, and yield the end at which somebody types and reads."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    line = [sys.executable, "-c", AT_A_TERMINAL, *command]
    try:
        with subprocess.Popen(
            line, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        ) as shell:
            try:
                yield ours
            finally:
                os.killpg(shell.pid, signal.SIGKILL)
    finally:
        os.close(theirs)
        os.close(ours)


def seen(terminal: int, seconds: float) -> str:
    """Return what comes from *terminal* until it is silent for some *seconds*."""
    text = b""
    while select.select([terminal], [], [], seconds)[0]:
        text += os.read(terminal, 65536)
    return text.decode(errors="replace")


@pytest.mark.parametrize("shell", TYPED)
def test_tab_shows_what_there_is(home: Path, shell: str) -> None:
    """Typed at a real terminal, again and again: on a slow machine the first answers come too late."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: no TAB is typed in it")
    command, switch_on = TYPED[shell]
    with typing(command, environment(home) | {"TERM": "xterm", "PS1": "$ "}) as terminal:
        os.write(terminal, f"{switch_on}; echo switched''-on\n".encode())
        text = ""
        while "switched-on" not in text:
            text += seen(terminal, 0.2)
        os.write(terminal, b"arena-topo get vgg")
        text = ""
        while not {"vgg16", "vgg19"} <= set(re.findall(r"vgg\d+", text)):
            os.write(terminal, b"\t")
            text += seen(terminal, 2)

    assert "bert" not in text


def silent(_: Seen) -> Reply:
    """Say nothing, for as long as it takes."""
    return Reply(ending="silence")


def refusing(_: Seen) -> Reply:
    """Refuse everybody."""
    return status(403, "Forbidden", "no")


def senseless(_: Seen) -> Reply:
    """Answer with what is no list."""
    return Reply(body=b'{"items": [1, {"metadata": 5}]}')


@pytest.mark.parametrize("rule", [silent, refusing, senseless], ids=lambda rule: rule.__name__)
def test_a_cluster_that_gives_nothing_offers_nothing(cluster: Server, home: Path, rule: Any) -> None:
    """Without a word, and without waiting for it."""
    cluster.rule = rule

    assert [[]] == completed(home, ("get", ""))


def test_a_line_that_is_wrong_offers_nothing(tmp_path: Path) -> None:
    """At a home without a kubeconfig, too; what is wrong is told when the line is run."""
    lines = ("get", "--kubeconfig=/nope", ""), ("--context", "nowhere", "get", ""), ("logs", "--tail=x", "")

    assert [[], [], []] == completed(tmp_path, *lines)
