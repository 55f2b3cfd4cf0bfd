"""One builder at a time, across processes."""

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(target: Path, *, quiet: bool = False) -> Iterator[None]:
    """Hold ``target``'s lock file; the kernel releases it when the holder dies, however it dies.

    Unless *quiet*, anyone who has to wait says so: a build takes minutes.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not quiet:
                sys.stderr.write(f"controlplane: waiting for the process that builds {target.name} ...\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
