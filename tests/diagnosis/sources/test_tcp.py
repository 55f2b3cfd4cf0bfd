"""What waits in connections, as Linux shows it."""

import subprocess
from pathlib import Path

import pytest

from arena_topo.diagnosis.sources.tcp import LOOK, read_backlogs
from arena_topo.diagnosis.verdict import Backlog

PODS = {"10.78.0.1": ("w0", "n0"), "10.78.0.3": ("w2", "n2"), "fd00::5": ("w4", "n4")}
NODES = {"w0": "n0", "w2": "n2", "w4": "n4"}
TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:A2B5 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 01004E0A:8E10 03004E0A:B9B3 01 00000036:00000000 01:00000012 00000005     0        0 2 3 0 400 0 0 1 7
   2: 01004E0A:8E10 02004E0A:0016 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
  12: 01004E0A:8E12 6401A8C0:01BB 06 00000010:00000000 03:00000012 00000001     0        0 0 3 0
"""


def lines(text: str, looks: int = 2) -> bytes:
    """Return what a pod printed whose sockets showed *text* in each look."""
    return "".join(f"{look} 7 stat x\n{look} 0 tcp {text}\n" for look in range(looks)).encode()


def test_only_connections_on_which_something_waits_leave_the_container(tmp_path: Path) -> None:
    """Who listens, who has nothing to send, and who is closing are left out."""
    table = tmp_path / "tcp"
    table.write_text(TABLE, "utf-8")
    script = LOOK.replace("/proc/net/tcp /proc/net/tcp6", f"{table} {tmp_path}/none")
    done = subprocess.run(["sh", "-c", f"n=4; {script}sockets"], capture_output=True, text=True, check=True)
    assert "4 0 tcp 03004E0A:B9B3 00000036 00000005\n" == done.stdout


@pytest.mark.parametrize(
    ("text", "waiting", "unanswered"),
    [
        ("03004E0A:B9B3 00000036 00000005", 0, 2),
        ("0000000000000000FFFF000003004E0A:B9B3 00000036 00000001", 0, 0),
        ("03004E0A:B9B3 0000F000 00000000", 2, 0),
    ],
    ids=["sent again", "by IPv6, and only once", "much"],
)
def test_what_waits_between_pods_is_counted_by_look(text: str, waiting: int, unanswered: int) -> None:
    """A small message that is on its way is no sign, nor is
    data that was sent again once: every network loses some.
    """
    found = read_backlogs([("w0", lines(text))], PODS, NODES)
    assert (Backlog("w0", "n0", "w2", "n2", 2, waiting, unanswered),) == found


@pytest.mark.parametrize(
    "text",
    [
        "01004E0A:B9B3 00000036 00000005",
        "6401A8C0:01BB 00000036 00000005",
        "03004E0A 00000036",
        "zz:B9B3 00000036 00000005",
        "\udcff 0 0",
        "0" * 100_000 + ":1 1 1",
    ],
    ids=["itself", "a stranger", "too short", "no address", "no text", "endless"],
)
def test_what_is_none_of_the_jobs_is_left_out(text: str) -> None:
    """A container may print anything."""
    printed = lines(text.encode(errors="surrogateescape").decode(errors="replace"))
    assert () == read_backlogs([("w0", printed)], PODS, NODES)


def test_addresses_of_ipv6_are_known() -> None:
    """Their words are little-endian too."""
    found = read_backlogs([("w0", lines("000000FD000000000000000005000000:1 1 2"))], PODS, NODES)
    assert ["w4"] == [one.peer for one in found]
