"""Where ``arena-topo``, ``kubectl arena-topo`` and ``python -m arena_topo`` start."""

import gc
import sys

_OBJECTS = 100_000
"""Objects that may be created between two collections of garbage; Python's own 700 are for programs that run for long."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Most commands end before there is garbage worth its collection, and the imports alone would start it fifty times.
    gc.set_threshold(_OBJECTS)
    from arena_topo.cli.errors import run

    code = run(sys.argv[1:])
    # At its end Python searches all that lives for garbage, which goes with the process anyway.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
