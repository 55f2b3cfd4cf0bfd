"""What a training step moves over the NICs: with parameter servers, and by all-reduce on the same nodes.

All times are in seconds for each GB of parameters, so that they depend on no model. A server keeps 1/s of the
parameters: it takes that part of the gradients from each of n workers, and sends that part of the parameters to each.
What stays on a node does not use its NIC. So a node with w workers and p servers moves, in each direction,

    w (s - p) / s   for its workers, whose servers are elsewhere in s - p of s cases
    p (n - w) / s   for its servers, whose workers are elsewhere in n - w of n cases

and the step waits for the node that takes longest. Eight workers on two nodes with NICs of 10 GB/s, and two servers:
one on each of two other nodes takes 1 * 8 / 2 / 10 = 0.4 s; one beside each four workers takes (4 * 1/2 + 1 * 4/2) / 10
= 0.4 s as well; both beside the same four workers takes (4 * 0 + 2 * 4/2) / 10 = 0.4 s there.
"""

from collections.abc import Iterable
from typing import NamedTuple


class NodeLoad(NamedTuple):
    """A node's free NIC rate in GB/s, and how many workers and servers it has."""

    rate: float
    workers: int
    servers: int


def node_seconds(load: NodeLoad, workers: int, servers: int) -> float:
    """Return how long the NIC of one node takes for each GB, of so many *workers* and *servers* in all.

    >>> node_seconds(NodeLoad(10.0, 0, 1), workers=8, servers=2)
    0.4
    """
    moved = load.workers * (servers - load.servers) + load.servers * (workers - load.workers)
    return moved / servers / load.rate


def seconds_by_servers(rate: float, own: int, workers: int, servers: int) -> list[float]:
    """Return how long a NIC of *rate* takes beside *own* of the *workers*, by how many of the *servers* are there too.

    >>> seconds_by_servers(10.0, own=0, workers=8, servers=2)
    [0.0, 0.4, 0.8]
    """
    # Each server more takes from all workers elsewhere, and spares those beside it the way.
    most, more = own * servers, workers - 2 * own
    return [(most + here * more) / servers / rate for here in range(servers + 1)]


def all_reduce_seconds(rates: Iterable[float], workers: int) -> float:
    """Return how long a ring of *workers* takes over nodes of these NIC *rates*: 2 (n - 1) / n of every GB.

    Neighbours in the ring share a node as far as they can, so each NIC carries the ring once. On one node it uses none.

    >>> all_reduce_seconds([10.0, 10.0], workers=8)
    0.175
    """
    nodes = list(rates)
    if len(nodes) < 2:
        return 0.0
    return 2 * (workers - 1) / workers / min(nodes)


def summed_seconds(workers: int, cpu_nodes: int, rate: float) -> float:
    """Return the least that n workers with a NIC each need when k nodes without GPUs help them to sum.

    Source: BytePS (OSDI 2020), section 4.1: 2 n (n - 1) / (n n + k n - 2 k), which is all-reduce for k = 0 and plain
    parameter servers for k = n; more nodes than workers do not help, because each worker still sends all it has.

    >>> summed_seconds(8, 0, 10.0), summed_seconds(8, 8, 10.0)
    (0.175, 0.1)
    """
    if workers < 2:
        return 0.0
    helping = min(cpu_nodes, workers)
    return 2 * workers * (workers - 1) / (workers * workers + helping * workers - 2 * helping) / rate
