"""Where a command takes its snapshot from: the cluster, or a file that stands for one."""

import sys
from pathlib import Path

from arena_topo.cli.terminal import say
from arena_topo.errors import UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model.cluster.snapshot import Snapshot

_MOST_WARNINGS = 5


def snapshot_of(
    connection: ConnectionFlags, *, file: str = "", product: str = "", levels: str = ""
) -> Snapshot:
    """Return the snapshot in *file* (``-`` is stdin), or that of the cluster; what is doubtful is told on stderr.

    *product* names the GPUs of a matrix that does not; *levels* are label keys, coarse to fine, with commas.
    """
    if file:
        if levels:
            raise UsageError("--topology-levels names labels of a cluster, and --from is a file")
        from arena_topo.topology.open_file import open_topology

        snapshot = open_topology(text_of(file), "stdin" if file == "-" else file, product)
    else:
        if product:
            raise UsageError("--product names the GPUs of a matrix: it goes with --from")
        from arena_topo.cluster.snapshot import take_snapshot
        from arena_topo.kube.session import connect

        keys = [key.strip() for key in levels.split(",") if key.strip()]
        snapshot = take_snapshot(connect(connection), levels=keys)
    tell_warnings(snapshot)
    return snapshot


def text_of(file: str, flag: str = "--from") -> str:
    """Return the text of *file*, which *flag* names; ``-`` is stdin. Raises ``UsageError``."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{flag}: {file} cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{flag}: {file} is not a text") from error


def tell_warnings(snapshot: Snapshot) -> None:
    """Say on stderr what of *snapshot* is doubtful."""
    for warning in snapshot.warnings[:_MOST_WARNINGS]:
        say(f"warning: {warning}", style="warning")
    if (more := len(snapshot.warnings) - _MOST_WARNINGS) > 0:
        say(f"warning: and {more} more; -o json lists them all", style="warning")
