"""The network of the nodes: bridges in network namespaces, joined by uplinks that ``tc`` shapes.

    pod eth0 -- node: br0, up0 == shaped == switch bridge == shaped == spine bridge

It takes a mount namespace of the caller's own: the names of the namespaces lie in a ``/run/netns`` of its
own.
"""

import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from tests.ranks.fabric import Fabric

_SWITCHES = "fabric"
"""The namespace of all switches: each is a bridge in it."""
_SPINE = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Where a pod is in the network: its namespace, and its address there."""

    namespace: str
    address: str


class Network:
    """The network of *fabric*, from its construction until the caller's mount namespace ends."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._numbers = {node.name: 1 for node in fabric.nodes}
        self._lock = threading.Lock()
        self._bridges: dict[tuple[str, ...], str] = {}
        _run("mkdir", "-p", "/run/netns")
        _run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
        _run("ip", "netns", "add", _SWITCHES)
        for index, node in enumerate(fabric.nodes):
            _run("ip", "netns", "add", node.name)
            _ip(node.name, *_up("lo"), "link add br0 type bridge", *_up("br0"))
            _ip(node.name, f"addr add {_address(index, 1)}/16 dev br0")
            self._join_node(node.name, index, node.switches)

    def attach(self, node: str) -> Attachment:
        """Make a network namespace with an interface on the bridge of *node*."""
        with self._lock:
            self._numbers[node] += 1
            number = self._numbers[node]
        index = self._index(node)
        namespace, address = f"{node}-{number}", _address(index, number)
        _run("ip", "netns", "add", namespace)
        _ip(
            node,
            f"link add p{number} type veth peer name eth0 netns {namespace}",
            f"link set p{number} master br0 up",
        )
        _ip(namespace, f"addr add {address}/16 dev eth0", *_up("eth0"), *_up("lo"))
        return Attachment(namespace, address)

    def of_node(self, node: str) -> Attachment:
        """Return the node's own place, for pods with the network of their host."""
        return Attachment(node, _address(self._index(node), 1))

    @staticmethod
    def detach(place: Attachment) -> None:
        """Remove the namespace of a pod; its interfaces go with it."""
        _run("ip", "netns", "del", place.namespace)

    def _index(self, node: str) -> int:
        return [each.name for each in self._fabric.nodes].index(node)

    def _join_node(self, node: str, index: int, switches: tuple[str, ...]) -> None:
        bridge = self._bridge(switches)
        _ip(
            node, f"link add up0 type veth peer name n{index} netns {_SWITCHES}", "link set up0 master br0 up"
        )
        _ip(_SWITCHES, f"link set n{index} master {bridge} up")
        rate = self._fabric.own_rates.get(node, self._fabric.rates[0])
        _shape(node, "up0", rate)
        _shape(_SWITCHES, f"n{index}", rate)

    def _bridge(self, path: tuple[str, ...]) -> str:
        """Return the bridge of the switch at *path* (from the leaf up), with all above it."""
        if path in self._bridges:
            return self._bridges[path]
        number = len(self._bridges)
        self._bridges[path] = bridge = f"sw{number}"
        _ip(_SWITCHES, f"link add {bridge} type bridge", *_up(bridge))
        if path:
            above = self._bridge(path[1:])
            _ip(_SWITCHES, f"link add d{number} type veth peer name u{number}")
            _ip(_SWITCHES, f"link set d{number} master {above} up", f"link set u{number} master {bridge} up")
            # A switch at the end of a longer path is of a higher tier: the tiers count from the nodes.
            rate = self._fabric.own_rates.get(path[0], self._fabric.rates[self._tiers() - len(path) + 1])
            _shape(_SWITCHES, f"d{number}", rate)
            _shape(_SWITCHES, f"u{number}", rate)
        return bridge

    def _tiers(self) -> int:
        return max(len(node.switches) for node in self._fabric.nodes)


def _address(node: int, number: int) -> str:
    return f"10.79.{node + 1}.{number}"


def _up(device: str) -> Sequence[str]:
    return (f"link set {device} up",)


def _ip(namespace: str, *commands: str) -> None:
    """Carry out *commands* of ``ip`` in a namespace, in one process."""
    _run("ip", "-n", namespace, "-batch", "-", text="\n".join(commands) + "\n")


def _shape(namespace: str, device: str, rate: str) -> None:
    # netem is missing from some kernels; a token bucket is everywhere and is all that a rate needs.
    queue = f"qdisc add dev {device} root tbf rate {rate} burst 128kb latency 100ms"
    _run("tc", "-n", namespace, "-batch", "-", text=f"{queue}\n")


def _run(*command: str, text: str = "") -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)} [{text.strip()}] failed: {done.stderr.strip()}")
