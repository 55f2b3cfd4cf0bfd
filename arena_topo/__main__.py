"""Where ``arena-topo``, ``kubectl arena-topo`` and ``python -m arena_topo`` start."""

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    from arena_topo.cli.errors import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
