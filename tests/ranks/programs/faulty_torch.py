"""Ranks of torch that reduce by gloo in a loop, with the faults of ``faulty.py``: ``FAULT RANK NUMBERS``.

Its data loader, its lock and its loop have the names that they have there.
"""

import sys
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
import torch.distributed as dist
from faults import run  # type: ignore[import-not-found]  # found next to this file when it runs

dist.init_process_group("gloo", timeout=timedelta(minutes=30))
numbers = torch.zeros(int(sys.argv[3]))
run(
    sys.argv[1],
    culprit=int(sys.argv[2]),
    rank=dist.get_rank(),
    step=lambda: dist.all_reduce(numbers),
    other=dist.barrier,
)
