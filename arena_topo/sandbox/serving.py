"""The server of one sandbox: HTTPS on loopback, the simulation behind it, and its state on disk."""

import asyncio
import contextlib
import json
import ssl

from aiohttp import web

from arena_topo.sandbox import identity, layouts
from arena_topo.sandbox.api.objects import timestamp
from arena_topo.sandbox.cluster import Cluster
from arena_topo.sandbox.home import Home
from arena_topo.sandbox.sim.loops import Clock


async def serve(home: Home, ended: asyncio.Event) -> None:
    """Serve the sandbox of a folder until *ended* is set; its kubeconfigs are written once it answers."""
    settings = json.loads(home.settings.read_text("utf-8"))
    identity.ensure_identity(home)
    cluster = Cluster(identity.users(home), Clock(float(settings["speed"])), ended.set)
    if home.state.exists():
        cluster.restore(json.loads(home.state.read_text("utf-8")))
    else:
        cluster.create(layouts.load(settings["layout"], timestamp()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home.certificate, home.key)
    # A watch lasts as long as its client: the end of the server does not wait for it.
    application = cluster.server.application()
    runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", int(settings["port"]), ssl_context=context)
    simulation = asyncio.create_task(cluster.run(home.state))
    await site.start()
    # A port of 0 in the settings lets the kernel choose one: only the running server knows which.
    identity.write_kubeconfigs(home, int(runner.addresses[0][1]))
    waiting = asyncio.create_task(ended.wait())
    # A simulation that ends by itself has failed: its error is raised below.
    await asyncio.wait({waiting, simulation}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    await runner.cleanup()
    simulation.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await simulation
