"""Nodes as namespaces of this machine, on which ranks run as in pods, and what can be wrong with one of them.

Each node has processes, a network, a host name and mounts of its own; a bridge joins them. ``exec`` into a
pod is ``nsenter``. The end of a node's first process ends all others of it. It takes root.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from arena_topo.diagnosis.look import Evidence, Found, PodAt, find, look

_PROGRAMS = Path(__file__).parent / "programs"
_BIN = Path(sys.executable).parent
TORCH = _BIN.parent / "torch/bin/python"
"""The Python that has torch, where it was installed."""
_PATH = f"{_BIN}:/usr/sbin:/usr/bin:/sbin:/bin"
_CGROUPS = Path("/sys/fs/cgroup/cpu")

RATE, SLOW_RATE = "200mbit", "2mbit"
"""What a link carries, and one that is slow."""
_STARVED_SHARE = 0.03
"""Of a core, for a rank that is starved."""

NODE_FAULTS = ("paused", "dead-link", "slow-link")
"""Faults of all ranks of a node."""
LARGE = ("slow-link", "large")
"""What needs messages that fill a link: the fault, and healthy ranks that send as much."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its name, its address, its first process and that of its switch, by this machine's numbers."""

    name: str
    address: str
    pid: int
    switch: int

    def command(self, *words: str) -> list[str]:
        """Return the command that runs *words* there."""
        return ["nsenter", "--target", str(self.pid), "--net", "--uts", "--pid", "--mount", *words]

    def run(self, *words: str) -> bytes:
        """Run *words* there, and return what they print."""
        return subprocess.run(
            self.command(*words), capture_output=True, check=False, env={"PATH": _PATH}
        ).stdout

    def pod(self) -> PodAt:
        """Return its pod."""
        return PodAt(self.name.replace("n", "w"), self.name, "main", address=self.address)


@dataclass(slots=True)
class Ranks:
    """Ranks that run on nodes; those of one that is ``paused`` answer nobody."""

    nodes: Sequence[Node]
    paused: str = ""

    def run(self, pod: PodAt, words: Sequence[str]) -> bytes:
        """Run a command in a pod, as exec does: on a paused node it never ends."""
        if pod.node == self.paused:
            threading.Event().wait(60)
        return next(node for node in self.nodes if node.name == pod.node).run(*words)

    def processes(self) -> Found:
        """Return the processes of all ranks."""
        return find([node.pod() for node in self.nodes], self.run)

    def seen(self) -> Evidence:
        """Return looks at them."""
        return look(self.processes(), self.run)


@contextmanager
def nodes(count: int, folder: Path) -> Iterator[tuple[Node, list[Node]]]:
    """Make so many nodes, and one for the launcher, until the block ends; return that one first."""
    hosts = folder / "hosts"
    hosts.write_text(
        "127.0.0.1 localhost\n" + "".join(f"10.78.0.{n + 1} n{n}\n" for n in range(count)), "utf-8"
    )
    with ExitStack() as stack:
        switch = stack.enter_context(_namespace("switch", hosts))
        _in_net(switch, "ip link add br0 type bridge && ip link set br0 up")
        made = []
        for number in range(count + 1):
            is_head = number == count
            name = "head" if is_head else f"n{number}"
            # What starts processes on nodes must see these from outside.
            pid = stack.enter_context(_namespace(name, hosts, own_processes=not is_head))
            node = Node(name, f"10.78.0.{number + 1}", pid, switch)
            _in_net(
                switch,
                f"ip link add p{number} type veth peer name eth0 netns {pid}"
                f" && ip link set p{number} master br0 up",
            )
            _in_net(
                pid, f"ip link set lo up && ip addr add {node.address}/24 dev eth0 && ip link set eth0 up"
            )
            _in_net(switch, _shaped(f"p{number}", RATE))
            _in_net(pid, _shaped("eth0", RATE))
            made.append(node)
        yield made.pop(), made


@contextmanager
def _namespace(name: str, hosts: Path, *, own_processes: bool = True) -> Iterator[int]:
    script = (
        f"hostname {name} && mount --bind {hosts} /etc/hosts && mount -t tmpfs -o size=64k tmpfs /mnt"
        " && echo up && exec sleep infinity"
    )
    own = ["--pid", "--mount-proc"] if own_processes else []
    command = ["unshare", "--net", "--uts", "--mount", *own, "--fork", "--kill-child"]
    with subprocess.Popen([*command, "sh", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            assert "up\n" == process.stdout.readline()
            pid = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("utf-8").split()[0])
            yield pid
        finally:
            process.kill()


def _in_net(pid: int, script: str) -> None:
    subprocess.run(["nsenter", "--target", str(pid), "--net", "sh", "-c", script], check=True)


def _shaped(device: str, rate: str) -> str:
    return f"tc qdisc replace dev {device} root tbf rate {rate} burst 64kb latency 400ms"


@contextmanager
def ranks(
    fault: str,
    folder: Path,
    *,
    culprit: int,
    count: int,
    on: int,
    torch: bool = False,
    steps: Path | None = None,
) -> Iterator[Ranks]:
    """Let *count* ranks run on so many nodes, until the block ends, and let the *culprit* have its *fault*.

    A fault of a node is that of the culprit's. The ranks are MPI's, or those of *torch* with gloo. They count
    their *steps* in a file.
    """
    with nodes(on, folder) as (head, made), ExitStack() as stack:
        running = Ranks(made)
        log = stack.enter_context((folder / "log").open("wb"))
        each = count // on
        own = "work" if fault == "starved" else "none" if fault in NODE_FAULTS else fault
        size = str(1 << 17 if fault in LARGE else 8)
        program = _Program([own, str(culprit), size], {"STEPS": str(steps)} if steps else {}, log)
        if torch:
            _start_torch(stack, made, each, program)
            _wait_for(folder / "log", "running")
        else:
            _start_mpi(stack, (head, *made), each, program, folder)
        stack.enter_context(_injected(fault, made[culprit // each], culprit, running))
        yield running


@dataclass(frozen=True, slots=True)
class _Program:
    """What ranks are given: their arguments, their variables, and where they print."""

    words: Sequence[str]
    variables: dict[str, str]
    log: IO[bytes]


def _start_mpi(
    stack: ExitStack, nodes_of: Sequence[Node], each: int, program: _Program, folder: Path
) -> None:
    head, *made = nodes_of
    agent = folder / "agent"
    entries = "".join(
        f'{node.name}) exec nsenter --target {node.pid} --net --uts --pid --mount sh -c "$*" ;;\n'
        for node in made
    )
    agent.write_text(f"#!/bin/sh\nhost=$1; shift\ncase $host in\n{entries}esac\n", "utf-8")
    agent.chmod(0o755)
    env = {
        "PATH": _PATH,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PRTE_MCA_plm_ssh_agent": str(agent),
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    hosts = ",".join(f"{node.name}:{each}" for node in made)
    command = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "--host", hosts]
    command += ["-np", str(each * len(made)), sys.executable, str(_PROGRAMS / "faulty.py"), *program.words]
    launch = ["nsenter", "--target", str(head.pid), "--net", "--uts", "--mount", *command]
    for last in (False, False, True):
        mpirun = _start(stack, launch, env, program)
        with suppress(_EndedError) if not last else nullcontext():
            _wait_for(folder / "log", "running", mpirun)
            return


class _EndedError(Exception):
    """A launcher ended before the ranks ran: a daemon of it failed to start, and a pod would start again."""


def _start_torch(stack: ExitStack, made: Sequence[Node], each: int, program: _Program) -> None:
    for rank in range(each * len(made)):
        env = {
            "PATH": _PATH,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % each),
            "WORLD_SIZE": str(each * len(made)),
            "MASTER_ADDR": made[0].address,
            "MASTER_PORT": "29500",
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMP_NUM_THREADS": "1",
        }
        script = str(_PROGRAMS / "faulty_torch.py")
        _start(stack, made[rank // each].command(str(TORCH), script, *program.words), env, program)


def _start(
    stack: ExitStack, command: Sequence[str], env: dict[str, str], program: _Program
) -> "subprocess.Popen[bytes]":
    process = stack.enter_context(
        subprocess.Popen(
            command, env={**env, **program.variables}, stdout=program.log, stderr=subprocess.STDOUT
        )
    )
    stack.callback(process.kill)
    return process


def _wait_for(log: Path, word: str, launcher: "subprocess.Popen[bytes] | None" = None) -> None:
    ends = time.monotonic() + 300
    while word not in (said := log.read_text("utf-8", errors="replace")):
        if launcher and launcher.poll() is not None:
            raise _EndedError(f"{launcher.returncode}: {said[-2000:]}")
        if time.monotonic() > ends:
            raise TimeoutError(f"the ranks do not run: {said[-2000:]}")
        time.sleep(0.1)


@contextmanager
def _injected(fault: str, node: Node, culprit: int, running: Ranks) -> Iterator[None]:
    """Have the *fault* of a node, or of what Linux gives a rank, until the block ends."""
    match fault:
        case "paused":
            running.paused = node.name
            for pid in _pids(node):
                os.kill(pid, signal.SIGSTOP)
        case "dead-link":
            _in_net(node.pid, "ip link set eth0 down")
        case "slow-link":
            _in_net(node.pid, _shaped("eth0", SLOW_RATE))
            _in_net(node.switch, _shaped(node.name.replace("n", "p"), SLOW_RATE))
        case "starved":
            with _starved(_pid_of(culprit, node)):
                # A step more of the others, until they wait for it.
                time.sleep(3)
                yield
            return
        case _:
            pass
    # The others come to wait for it.
    time.sleep(2)
    yield


def _pids(node: Node) -> list[int]:
    """Return the processes of *node*, but its first, as this machine numbers them."""
    own = Path(f"/proc/{node.pid}/ns/pid").readlink()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "ns/pid").readlink() == own and int(folder.name) != node.pid:
                found.append(int(folder.name))
    return found


def _pid_of(rank: int, node: Node) -> int:
    for pid in _pids(node):
        with suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if b"OMPI_COMM_WORLD_RANK=%d" % rank in variables or b"RANK=%d" % rank in variables:
                return pid
    raise LookupError(f"rank {rank} has no process on {node.name}")


@contextmanager
def _starved(pid: int) -> Iterator[None]:
    """Give a process a small share of a core, by the CPU controller of cgroups of version 1."""
    group = _CGROUPS / f"starved-{pid}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text(str(round(_STARVED_SHARE * 100000)))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        with suppress(OSError):
            (_CGROUPS / "cgroup.procs").write_text(str(pid))
        time.sleep(0.2)
        with suppress(OSError):
            group.rmdir()
