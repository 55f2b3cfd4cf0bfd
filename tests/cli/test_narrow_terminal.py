"""What every command prints on a terminal of 60 columns:
columns of tables go, and sentences break between words.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import pytest

from tests.cli.pages import pages
from tests.sandbox.served import served
from tools.terminal import shown

WIDTH = 60
_JOB = ("--workers=2", "--gpus=8", "--rdma")
_NEW = (*_JOB, "--gputopology", "--gang", "--image=train:1.0")
BEFORE = (
    ("submit", "mpi", "--name=there", *_NEW, "sleep 3600", "--wait=running"),
    ("submit", "mpi", "--name=failed", "--image=train:1.0", "exit 3"),
    ("submit", "mpi", "--name=waits", *_NEW, "--workers=16", "sleep 3600"),
    ("wait", "failed", "--for=succeeded"),
)
"""A job that runs, one that fails and one that waits for a place."""

COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "submit mpi": (("submit", "mpi", "--name=new", *_NEW, "sleep 3600"), ("submit", "mpi")),
    "submit pytorch": (("submit", "pytorch", "--name=new", *_NEW, "python train.py"),),
    "submit jobset": (("submit", "jobset", "--name=new", *_NEW, "python train.py"),),
    "submit tf": (("submit", "tf", "--name=servers", *_NEW, "--ps=1", "python train.py"), ("submit", "tf")),
    "submit train": (("submit", "train", "--name=new", "--runtime=torch-distributed"), ("submit", "train")),
    "submit job": (("submit", "job", "--name=indexed", *_NEW, "python train.py"),),
    "submit manifest": (("submit", "-f", "/nowhere.yaml"),),
    "plan mpi": (
        ("plan", "mpi", "--workers=4", "--gpus=4"),
        ("plan", "mpi", *_JOB, "--parallel=tp=8,dp=2"),
        ("plan", "mpi", "--workers=4", "--gpus=1", "--compare"),
        ("plan", "mpi", "--workers=99", "--gpus=8", "--rdma", "--require-topology=rack"),
    ),
    "plan pytorch": (("plan", "pytorch", *_JOB),),
    "plan jobset": (("plan", "jobset", *_JOB),),
    "plan train": (("plan", "train", *_JOB),),
    "plan job": (("plan", "job", *_JOB),),
    "plan manifest": (("plan", "-f", "/nowhere.yaml"),),
    "plan tf": (("plan", "tf", "--workers=2", "--gpus=2", "--ps=1"),),
    "suspend": (("suspend", "new"),),
    "resume": (("resume", "new"), ("resume", "waits")),
    "rerun": (("rerun", "failed", "--name=again"),),
    "list": (("list",), ("list", "-A"), ("list", "--nothing")),
    "get": (("get", "there", "-e", "-g"), ("get", "failed"), ("get", "waits"), ("get", "nothing")),
    "describe": (("describe", "there"), ("describe", "failed"), ("describe", "waits")),
    "events": (("events", "there"), ("events", "waits")),
    "wait": (("wait", "there", "--for=running"), ("wait", "there", "--for=deleted", "--timeout=1s")),
    "why": (("why", "there"), ("why", "waits"), ("why", "failed")),
    "exec": (("exec", "there", "--", "true"),),
    "attach": (("attach", "waits"),),
    "topology": (("topology",), ("topology", "dgx-a100-1"), ("topology", "--fragmentation")),
    "predict": (("predict", "--ranks=4", "--transport=isolated"), ("predict",)),
    "top node": (("top", "node"), ("top", "node", "-d", "dgx-a100-1"), ("top", "node", "--metric")),
    "top job": (("top", "job"), ("top", "job", "there")),
    "node enable-topology": (("node", "enable-topology", "dgx-a100-1"),),
    "node disable-topology": (("node", "disable-topology", "dgx-a100-1"),),
    "agent run": (("agent", "run", "--once", "--node=dgx-a100-1"),),
    "doctor": (("doctor",),),
    "cluster remove": (("cluster", "remove"), ("cluster", "remove", "--apply")),
    "sandbox status": (("sandbox", "status"),),
    "sandbox stop": (("sandbox", "stop"),),
    "prune": (("prune", "--since=1000h"),),
    "config view": (("config", "view"), ("config", "view", "submit", "mpi")),
    "version": (("version",),),
    "scale": (("scale", "there", "--workers=3"),),
    "delete": (("delete", "there", "nothing"),),
}
"""What is typed, by the command that it tries. The jobs of
``BEFORE`` are there, and the last one deletes one.
"""

EXEMPT = {
    "diff mpi": "lines of YAML",
    "agent manifest": "YAML",
    "controller manifest": "YAML",
    "controller run": "lines of a log, and forever",
    "cluster setup": "YAML",
    "sandbox import": "YAML",
    "sandbox start": "commands to copy, which no line break may part",
    "sandbox reset": "prints what `sandbox status` does",
    "sandbox run": "prints what its command prints",
    "logs": "prints what the job prints",
    "mcp": "the protocol of a client",
    "whoami": "JSON",
    "completion": "a script",
    "top watch": "draws the screen, which its own tests look at",
}


def leaves() -> Iterator[str]:
    """Yield every command that does something."""
    for words, command in pages():
        if not isinstance(command, click.Group):
            yield " ".join(words)


def test_every_command_is_tried_or_exempt() -> None:
    """A new one is not forgotten."""
    assert sorted([*COMMANDS, *EXEMPT]) == sorted(leaves())


def wide_lines(text: str) -> list[str]:
    """Return the lines of *text* that are too wide and could break: a name, a path or a command alone cannot.

    For example ``hint: `arena-topo list` lists the jobs`` is three words.
    """
    lines = click.unstyle(text).splitlines()
    return [
        line for line in lines if len(line) > WIDTH and len(re.findall(r"`[^`]*`\S*|\S+", line.strip())) > 1
    ]


@pytest.mark.parametrize("line", ["a" * 61, f"  {'a' * 60}", f"`{'a ' * 31}`"])
def test_what_cannot_break_may_be_wide(line: str) -> None:
    """The terminal breaks it."""
    assert [] == wide_lines(line)


def test_other_lines_may_not_be_wide() -> None:
    """Colours have no width."""
    assert ["a " * 31] == wide_lines("\x1b[31m" + "a " * 31 + "\x1b[0m\n" + "\x1b[31m" * 9 + "short")


RUN = """
import json, sys
from arena_topo.cli.errors import run
for words in json.loads(sys.argv[1]):
    sys.argv = ["arena-topo", *words]
    run(words)
    print("\\x1e", flush=True)
"""
"""A start takes longer than most commands: one process runs all of them, one after the other."""


def printed(lines: Sequence[tuple[str, ...]], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what each command prints on a narrow terminal, whatever its exit code."""
    texts = shown([sys.executable, "-c", RUN, json.dumps(lines)], WIDTH, environment).split("\x1e\n")
    return {" ".join(words): text for words, text in zip(lines, texts[:-1], strict=True)}


def test_every_command_fits_a_narrow_terminal(tmp_path: Path) -> None:
    """On a cluster of sixteen servers, with jobs in three states."""
    with served(tmp_path / "sandbox", "racks") as home:
        environment = {
            "HOME": str(tmp_path),
            "KUBECONFIG": str(home.kubeconfig),
            "PATH": "",
            "TERM": "xterm-256color",
        }
        typed = [words for lines in COMMANDS.values() for words in lines]
        texts = printed([*BEFORE, *typed], environment)

    for words in BEFORE:
        del texts[" ".join(words)]
    assert {} == {words: text for words, text in texts.items() if not text or "Traceback" in text}
    assert {} == {words: lines for words, text in texts.items() if (lines := wide_lines(text))}
    assert {"RUNNING", "FAILED", "waits", "hidden:"} <= set(click.unstyle(texts["list"]).split())
