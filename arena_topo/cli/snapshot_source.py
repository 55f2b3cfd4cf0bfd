"""Where a command takes its snapshot from: the cluster, or a file in its place."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from arena_topo.cli.declare import text
from arena_topo.cli.terminal import warn
from arena_topo.errors import UsageError
from arena_topo.files import LARGEST_FILE, read_bytes, read_stream
from arena_topo.kube import ConnectionFlags

if TYPE_CHECKING:
    from arena_topo.model.cluster import Snapshot

_MOST_WARNINGS = 5


def from_file() -> str:
    """Return the flag ``--from``."""
    return text(
        "--from",
        metavar="FILE",
        help="A saved snapshot, or the matrix of one machine; - for stdin.",
    )


def product() -> str:
    """Return the flag ``--product``."""
    return text("--product", metavar="NAME", help="GPUs of a matrix, for example 'NVIDIA H200'.")


def check_product(product: str) -> None:
    """Raise ``UsageError`` where the GPUs of a cluster are called *product*: it names its own."""
    if product:
        raise UsageError("--product names the GPUs of a matrix: it goes with --from")


def load_snapshot(
    connection: ConnectionFlags, *, file: str = "", product: str = "", levels: tuple[str, ...] = ()
) -> "Snapshot":
    """Return the snapshot in *file* (``-`` is stdin), or that of the cluster; its warnings go to stderr.

    *product* names the GPUs of a matrix that does not; *levels* are label keys, coarse to fine.
    """
    if file:
        if levels:
            raise UsageError("--topology-levels names labels of a cluster, and --from is a file")
        from arena_topo.topology.files import open_topology

        snapshot = open_topology(read_text(file), "stdin" if file == "-" else file, product)
    else:
        check_product(product)
        from arena_topo.cluster.published import visible_snapshot
        from arena_topo.kube.session import connect

        snapshot = visible_snapshot(connect(connection), levels)
    print_warnings(snapshot)
    return snapshot


def unreserved(
    connection: ConnectionFlags, *, file: str = "", product: str = "", levels: tuple[str, ...] = ()
) -> "Snapshot":
    """Return the snapshot of ``load_snapshot``; a cluster is without what is reserved in it for jobs."""
    if file or product:
        return load_snapshot(connection, file=file, product=product, levels=levels)
    from arena_topo.jobs.other_plans import unreserved_snapshot
    from arena_topo.kube.session import connect

    session = connect(connection)
    snapshot = unreserved_snapshot(session, levels=levels)
    print_warnings(snapshot)
    return snapshot


def read_text(file: str, flag: str = "--from", most: int = LARGEST_FILE) -> str:
    """Return at most *most* bytes of *file*, named by *flag*; ``-`` is stdin. Raises ``UsageError``."""
    try:
        data = read_stream(sys.stdin.buffer, most) if file == "-" else read_bytes(file, most)
    except OSError as error:
        raise UsageError(f"{flag}: {file} cannot be read: {error.strerror}") from error
    try:
        # Windows programs begin their files with a byte order mark.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{flag}: {file} is not a text file") from error


def write_text(path: Path, text: str) -> None:
    """Write *text* to the file that the user named. Raises ``UsageError``."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def print_warnings(snapshot: "Snapshot") -> None:
    """Print on stderr what is doubtful in *snapshot*; a large cluster can have a warning per node."""
    for warning in snapshot.warnings[:_MOST_WARNINGS]:
        warn(warning)
    if (more := len(snapshot.warnings) - _MOST_WARNINGS) > 0:
        warn(f"and {more} more")
