"""Where ``arena-topo``, ``kubectl arena-topo`` and ``python -m arena_topo`` start."""

import atexit
import gc
import os
import sys
from contextlib import suppress

_OBJECTS = 100_000
"""Objects created between two garbage collections; Python's own 700 are for programs that run for long."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    # What is registered first runs last.
    atexit.register(lambda: _leave(code))
    code = 1
    # Most commands end before there is garbage worth its collection, and the imports alone would start it
    # fifty times.
    gc.set_threshold(_OBJECTS)
    from arena_topo.cli.errors import run

    code = run(sys.argv[1:])
    # At its end Python searches all that lives for garbage, which goes with the process anyway.
    gc.freeze()
    sys.exit(code)


def _leave(code: int) -> None:
    """End the process with *code* at once where another thread is still alive.

    OpenSSL frees its tables when the C library exits, and a thread that reads from a TLS connection at that
    moment crashes: 8 of 400 processes with three such threads ended by SIGSEGV, and none of 250 that left
    this way.
    """
    threading = sys.modules.get("threading")
    if threading is None or threading.active_count() == 1:
        return
    for stream in (sys.stdout, sys.stderr):
        # A stream that is closed, or has lost its reader, has nothing more to say.
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
