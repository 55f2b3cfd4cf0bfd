"""What waits in the TCP connections of a pod: data that its peers have not acknowledged.

A rank that waits in a collective looks alike whether a peer or the network is late. Its connections do not:
over a dead link Linux sends the same data again and again, and over a slow one data always waits.
RDMA, NVLink and shared memory are not seen here. Source: proc(5) and the kernel's ``net/ipv4/tcp_ipv4.c``:
the column ``tx_queue`` has the bytes that are not acknowledged, ``retrnsmt`` how often they were sent again.
"""

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Mapping

from arena_topo.diagnosis.verdict import Backlog

LOOK = """sockets() {
  grep -hsE '^ *[0-9]+: [0-9A-F:]+ [0-9A-F:]+ 01 ' /proc/net/tcp /proc/net/tcp6 |
    grep -v ' 01 00000000:' | head -n 500 |
    while read -r sl local remote state queues timer again rest; do
      printf '%s\\n' "$n 0 tcp $remote ${queues%:*} $again"
    done
}
"""
"""A function of the shell that prints the connections on which something waits for an acknowledgement."""

_MUCH = 16 * 1024
"""Bytes that are not acknowledged before they count as waiting: small messages are for a moment, anywhere."""
_AGAIN = 2
"""Times that data was sent again before nobody answers: once happens on every network."""


def read_backlogs(
    printed: Iterable[tuple[str, bytes]], pods: Mapping[str, tuple[str, str]], nodes: Mapping[str, str]
) -> tuple[Backlog, ...]:
    """Return what waited between pods, of what each *printed*.

    *pods* has the name of the pod and its node by its address, *nodes* the node of each pod.
    """
    known = {each: of for address, of in pods.items() if (each := _plain(address))}
    by_name = dict(known.values())
    found: list[Backlog] = []
    for pod, output in printed:
        looks, seen = 0, set[str]()
        waiting, unanswered = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
        for line in output.decode(errors="replace").splitlines():
            number, _, rest = line.partition(" ")
            if not (number.isascii() and number.isdecimal() and len(number) < 9):
                continue
            looks = max(looks, int(number) + 1)
            words = rest.split(" ")
            if len(words) != 5 or words[:2] != ["0", "tcp"]:
                continue
            peer = known.get(_address(words[2]))
            # One that talks to itself, and those that are none of the job's.
            if peer is None or peer[0] == pod:
                continue
            seen.add(peer[0])
            if _number(words[3]) >= _MUCH:
                waiting[peer[0]].add(int(number))
            if _number(words[4]) >= _AGAIN:
                unanswered[peer[0]].add(int(number))
        found += [
            Backlog(
                pod,
                nodes.get(pod, ""),
                peer,
                by_name[peer],
                looks,
                len(waiting[peer]),
                len(unanswered[peer]),
            )
            for peer in sorted(seen)
        ]
    return tuple(found)


def _number(text: str) -> int:
    try:
        return int(text[:8], 16)
    except ValueError:
        return 0


def _plain(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return ""


def _address(text: str) -> str:
    """Return the address of ``0202000A:1F90``, whose words are little-endian; empty for none."""
    digits, _, _ = text.partition(":")
    try:
        data = bytes.fromhex(digits)
        words = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
        address = ipaddress.ip_address(words)
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
