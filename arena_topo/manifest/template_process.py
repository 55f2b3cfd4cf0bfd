"""Rendering in a process of its own, with limits of time and memory, for templates that are not the packaged ones.

Jinja's sandbox keeps a template from files and programs, not from loops, ``'x' * 10**10`` or including itself. Only the
operating system stops all of these (docs/adr). The process gets the values by pickle from its parent, and answers in
JSON: what a template had in its hands is never unpickled.
"""

import json
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arena_topo.errors import DocumentError

CPU_SECONDS = 3
"""Seconds of computing: a template of the packaged ones' size takes a hundredth of one."""

WALL_SECONDS = 30.0
"""Seconds until the answer, where the template waits instead of computing, as for a pipe in its folder; a machine that is busy
takes several until the process has begun."""

MEMORY = 512 * 2**20
"""Bytes of address space; Python and its libraries take about a third."""

LARGEST_TEXT = 4 * 2**20
"""Characters of what a template renders to; an API server takes three million bytes."""

_LONGEST_FAULT = 500
_PROGRAM = "from arena_topo.manifest.template_process import answer; answer()"
_RENDER = tuple[str, Mapping[str, Any], str, Mapping[str, str]]


def render_apart(
    name: str,
    values: Mapping[str, Any],
    user_template: str,
    env: Mapping[str, str],
    *,
    wall_seconds: float = WALL_SECONDS,
) -> str:
    """Return the text of template *name*. Raises ``DocumentError`` for a wrong template and for one without an end."""
    root = Path(__file__).resolve().parent.parent.parent
    # -P: a module in the current folder must not stand in for one of ours.
    command = [sys.executable, "-P", "-c", _PROGRAM]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path)])}
    question = pickle.dumps((name, dict(values), user_template, dict(env)))
    try:
        done = subprocess.run(  # noqa: S603  # our own module, by this very interpreter
            command, input=question, capture_output=True, timeout=wall_seconds, check=False, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise _endless(name) from error
    # The kernel ends it where its time is used up.
    if done.returncode < 0:
        raise _endless(name)
    try:
        said = json.loads(done.stdout)
    except ValueError as error:
        fault = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:_LONGEST_FAULT]
        raise DocumentError(f"template {name} cannot be rendered: {fault or 'no answer'}") from error
    if fault := said.get("fault"):
        raise DocumentError(str(fault), hint=str(said["hint"]))
    return str(said["text"])


def _endless(name: str) -> DocumentError:
    return DocumentError(
        f"template {name} takes more than {CPU_SECONDS} s to render",
        hint="does it loop over something large, or include itself?",
    )


def answer() -> None:
    """Render what the parent asks for on stdin, within the limits, and print the answer."""
    # The modules that take memory themselves come before the limit.
    from arena_topo.manifest.templates import render_here

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    # macOS has the limit and does not keep to it: there the time alone is bounded.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    question: _RENDER = pickle.load(sys.stdin.buffer)  # noqa: S301  # of the parent, which runs as the same user
    said: dict[str, str]
    try:
        text = render_here(*question)
        said = {"text": text}
        if len(text) > LARGEST_TEXT:
            said = {
                "fault": f"template {question[0]} renders to more than {LARGEST_TEXT >> 20} MiB",
                "hint": "",
            }
    except DocumentError as error:
        said = {"fault": error.message[:_LONGEST_FAULT], "hint": error.hint}
    except MemoryError:
        said = {"fault": f"template {question[0]} takes more than {MEMORY >> 20} MiB to render", "hint": ""}
    json.dump(said, sys.stdout)
