"""The server's process: ``python -m arena_topo.sandbox FOLDER``; SIGTERM ends it cleanly."""

import asyncio
import contextlib
import json
import signal
import ssl
import sys
from pathlib import Path

from aiohttp import web

from arena_topo.errors import ArenaTopoError
from arena_topo.sandbox import identity, layouts
from arena_topo.sandbox.api.verbs.objects import timestamp
from arena_topo.sandbox.cluster import Cluster
from arena_topo.sandbox.home import Home
from arena_topo.sandbox.sim.clock import Clock
from arena_topo.sandbox.sim.kubelets import throughput


async def serve(home: Home) -> None:
    """Serve the sandbox of a folder until it is told to end."""
    settings = json.loads(home.settings.read_text("utf-8"))
    identity.ensure_identity(home)
    clock = Clock(float(settings["speed"]))
    cluster = Cluster(identity.users(home), clock, throughput.images_per_second)
    if home.state.exists():
        cluster.restore(json.loads(home.state.read_text("utf-8")))
    else:
        cluster.create(layouts.load(settings["layout"], timestamp()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home.certificate, home.key)
    runner = web.AppRunner(cluster.server.application(), handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", int(settings["port"]), ssl_context=context, shutdown_timeout=0.5)
    work = asyncio.create_task(cluster.run(home.state))
    await site.start()
    identity.write_kubeconfigs(home, int(runner.addresses[0][1]))
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait({waiting, work}, return_when=asyncio.FIRST_COMPLETED)
    await runner.cleanup()
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work


def main() -> int:
    """Serve, and say why if that is not possible."""
    try:
        asyncio.run(serve(Home(Path(sys.argv[1]))))
    except (ArenaTopoError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
