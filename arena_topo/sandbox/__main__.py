"""The server's process: ``python -m arena_topo.sandbox FOLDER``; SIGTERM and SIGINT end it cleanly."""

import asyncio
import signal
import sys
from pathlib import Path

from arena_topo.errors import ArenaTopoError
from arena_topo.sandbox.lifecycle import Home
from arena_topo.sandbox.server import serve


async def _serve_until_signalled(home: Home) -> None:
    ended = asyncio.Event()
    # The handlers are in place before the server is, also where SIGINT is ignored as in a background job.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await serve(home, ended)


def main() -> int:
    """Serve, and print why if that is not possible."""
    try:
        home = Home(Path(sys.argv[1]))
        # The kernel releases the lock, at the very end of this process.
        home.hold()
        asyncio.run(_serve_until_signalled(home))
    except (ArenaTopoError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
