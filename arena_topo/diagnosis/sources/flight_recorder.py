"""How many collectives each rank has begun, by torch's flight recorder, where the script serves it.

It can only be read from inside a process: from outside where the script has called
``torch.distributed.debug.start_debug_server()`` and ``TORCH_FR_BUFFER_SIZE`` is set. Rank 0 then serves those
of all ranks. Only the group of all ranks has the same number in each of them. Recorded from torch 2.15.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from arena_topo.diagnosis.verdict import Finding
from arena_topo.model.text.words import plural

ASK = r"""torch() {
  grep -qsE '^ *[0-9]+: [0-9A-F]+:658F [0-9A-F:]+ 0A ' /proc/net/tcp /proc/net/tcp6 || return
  for path in fr_trace_json fr_trace_nccl_json; do
    timeout 2 bash -c 'exec 3<>/dev/tcp/localhost/25999 || exit
      printf "GET /%s HTTP/1.0\r\nHost: localhost\r\n\r\n" '$path' >&3; cat <&3' 2>/dev/null |
      grep -aE '<h2>Rank [0-9]+:|^  "pg_status"|^    "[^"]*": [{]|"last_enqueued_collective"' | head -n 40000 |
      while IFS= read -r line; do printf '%s\n' "$1 0 $path ${line%%://*}"; done &
  done
  wait
}
"""
"""A function of the shell that prints the counts, behind a number, where port 25999 (658F) listens.

Of the page, which has every collective of the last minutes, only some lines leave the container.
"""
PATHS = ("fr_trace_json", "fr_trace_nccl_json")
"""Those of the recorders of gloo and of NCCL, by which ``ASK`` names its lines."""

_RANK = re.compile(r".*<h2>Rank (\d{1,9}): ?.*")
_GROUP = re.compile(r'    "([^"]*)": \{')
_BEGUN = re.compile(r' *"last_enqueued_collective": "?(\d{1,18})"?,?')


def read_begun(lines: Iterable[str]) -> dict[int, int]:
    """Return how many collectives of the group of all ranks each rank has begun."""
    found: dict[int, int] = {}
    rank, is_status, group = None, False, ""
    for line in islice(lines, 40_000):
        if heading := _RANK.fullmatch(line):
            rank, is_status = int(heading[1]), False
        elif line.startswith('  "pg_status"'):
            is_status, group = True, ""
        elif name := _GROUP.fullmatch(line):
            group = name[1]
        elif is_status and group == "0" and rank is not None and (begun := _BEGUN.fullmatch(line)):
            found[rank] = int(begun[1])
    return found


def find_behind(begun: dict[int, int], size: int) -> tuple[Finding, ...]:
    """Return the ranks that have begun fewer collectives than most of the *size* ranks."""
    most, majority = Counter(begun.values()).most_common(1)[0] if begun else (0, 0)
    if majority * 2 <= size or max(begun) >= size:
        return ()
    others = f"{plural(majority, 'rank')} have begun {most:,}"
    return tuple(
        Finding(rank, f"has begun {count:,} of torch's collectives and not the next", others)
        for rank, count in sorted(begun.items())
        if count < most
    )
