"""All-reduces of torch over gloo: by the ranks that torchrun gives, and in another order on the same places.

    torchrun allreduce.py MIB TIMES ORDER

ORDER has for each rank of torchrun its number in the other order. The orders are timed in turns, and rank 0
prints the seconds of each all-reduce.
"""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

mebibytes, times = int(sys.argv[1]), int(sys.argv[2])
own, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
other = [int(word) for word in sys.argv[3].split(",")]
# torchrun's own store is at the master's port.
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1
store = dist.TCPStore(host, port, size, is_master=own == 0, timeout=timedelta(seconds=300))
values = torch.ones(mebibytes << 18)
torch.set_num_threads(1)
for turn in range(times):
    for name, rank in (("ranks", own), ("other", other[own])):
        group = dist.PrefixStore(f"{name}-{turn}", store)
        dist.init_process_group("gloo", store=group, rank=rank, world_size=size)
        # Connections open at their first use.
        dist.all_reduce(values[:1024])
        dist.barrier()
        began = time.monotonic()
        dist.all_reduce(values)
        longest = torch.tensor(time.monotonic() - began)
        dist.all_reduce(longest, dist.ReduceOp.MAX)
        values.fill_(1.0)
        dist.destroy_process_group()
        if own == 0:
            sys.stdout.write(f"allreduce order={name} mib={mebibytes} seconds={longest.item():.6f}\n")
            sys.stdout.flush()
# The store is at rank 0, which leaves last.
store.add("left", 1)
while own == 0 and store.add("left", 0) < size:
    time.sleep(0.05)
