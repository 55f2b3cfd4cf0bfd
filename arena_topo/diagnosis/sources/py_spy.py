"""The stacks of Python processes, if the image has py-spy: only they tell one collective from another.

It needs the user of the rank, or CAP_SYS_PTRACE, and a node whose Yama lets a process look into its
siblings. Native frames show MPI's calls, of which Python knows nothing; the symbols of torch are too large
to be read next to a job, and torch's own calls are seen in Python. A process that is stopped is read
without being paused. Source: https://github.com/benfred/py-spy, 0.4.3.
"""

import re
from collections.abc import Iterable

from arena_topo.diagnosis.verdict import Frame

LOOK = """stacks() (
  command -v py-spy > /dev/null 2>&1 || exit 0
  limit=; command -v timeout > /dev/null 2>&1 && limit='timeout 3'
  for pid; do
    ( native=--native; grep -qs libtorch /proc/$pid/maps && native=
      for how in "$native" '' --nonblocking; do
        text=$($limit py-spy dump $how --pid $pid 2>&1) && break
        # One that is out of time would be so again, and delay what all others have shown.
        case $? in 124|143) break ;; esac
      done
      printf '%s\\n' "$text" | head -n 400 | while IFS= read -r line; do
        # Its first line is the command line, which may hold secrets.
        case $line in "Process "*) ;; *) printf '%s\\n' "$n $pid stack $line" ;; esac
      done ) &
  done
  wait
)
"""
"""A function of the shell that prints the stacks of some processes, all at once, and waits for no others."""

_THREAD = re.compile(r'Thread (\S+)(?: \([^)]*\))?(?:: "(.*)")?')
_FRAME = re.compile(r" {4}(\S.*) \(([^()]*)\)")
_MOST = 64
"""Frames of a stack that are kept: both ends of a recursion are more than anybody reads."""
_LONGEST = 200
"""Characters of a function's name, which templates of C++ can fill pages with."""


def read_stack(lines: Iterable[str], pid: int) -> tuple[Frame, ...]:
    """Return the calls of the main thread of *pid*, the innermost first, of what ``py-spy dump`` printed.

    None where it failed.
    """
    threads: list[tuple[bool, list[Frame]]] = []
    for line in lines:
        if thread := _THREAD.match(line):
            # Python names it once threading was imported; Linux gives it the number of the process.
            threads.append((thread[2] == "MainThread" or thread[1] == str(pid), []))
        elif threads and (frame := _FRAME.fullmatch(line.rstrip())):
            threads[-1][1].append(Frame(frame[1][:_LONGEST], frame[2][:_LONGEST]))
    main = next((frames for is_main, frames in threads if is_main), threads[0][1] if threads else [])
    return tuple(main if len(main) <= _MOST else (*main[: _MOST // 2], *main[-_MOST // 2 :]))
