"""A kubelet's end of ``exec``: a websocket whose process a test writes, behind the API of one job."""

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from tests.controlplane.components.pki import Authority
from tests.objects import mpijob, pod
from tests.sandbox.served import cut_off

Process = Callable[["Remote"], Awaitable[None]]


@dataclass(slots=True)
class Remote:
    """One process as its kubelet sees it."""

    socket: web.WebSocketResponse
    query: Any
    sizes: list[Any] = field(default_factory=list)

    async def send(self, channel: int, data: bytes) -> None:
        """Send bytes on a channel."""
        await self.socket.send_bytes(bytes([channel]) + data)

    async def end(self, code: int = 0) -> None:
        """Tell how the process ended."""
        status: Any = {"metadata": {}, "status": "Success"}
        if code:
            causes = [{"reason": "ExitCode", "message": str(code)}]
            status = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
        await self.send(3, json.dumps(status).encode())

    async def read(self) -> bytes | None:
        """Return what comes on stdin next, None at its end; sizes of the terminal are kept on the way."""
        async for message in self.socket:
            if message.type is not WSMsgType.BINARY:
                return None
            if message.data[0] == 4:
                self.sizes.append(json.loads(message.data[1:]))
            elif message.data[0] == 255:
                return None
            else:
                return bytes(message.data[1:])
        return None


_EVENT = {
    "involvedObject": {"kind": "Pod", "name": "job-worker-0"},
    "type": "Normal",
    "reason": "Pulled",
    "message": "m",
    "lastTimestamp": "2026-11-21T01:00:00Z",
    "metadata": {"name": "e", "namespace": "default"},
}


def _pods() -> list[Any]:
    return [pod("job-launcher-x", role="launcher"), pod("job-worker-0"), pod("job-worker-1", phase="Pending")]


@dataclass(slots=True)
class ExecServer:
    """A running server; ``seen`` are the headers and the queries of its processes."""

    process: Process
    protocols: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io")
    refusal: int = 0
    port: int = 0
    authority: Path = Path()
    seen: list[Any] = field(default_factory=list)
    pods: list[Any] = field(default_factory=_pods)

    @property
    def flags(self) -> list[str]:
        """The flags that connect with it."""
        authority = f"--certificate-authority={self.authority}"
        return [f"--server=https://127.0.0.1:{self.port}", authority, "--token=secret"]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        if request.path.endswith("/exec"):
            self.seen.append(request)
            if self.refusal:
                status = {"kind": "Status", "reason": "Forbidden", "message": "no exec"}
                return web.json_response(status, status=self.refusal)
            socket = web.WebSocketResponse(protocols=self.protocols)
            await socket.prepare(request)
            await self.process(Remote(socket, request.query))
            await socket.close()
            return socket
        if request.path.endswith("/pods"):
            return web.json_response({"items": self.pods})
        if request.path.endswith("/events"):
            return web.json_response({"items": [_EVENT]})
        return web.json_response(mpijob("job", workers=2))


@contextmanager
def serving(server: ExecServer, folder: Path) -> Iterator[ExecServer]:
    """Serve on loopback, in a thread of its own, with certificates in *folder*."""
    authority = Authority.create(folder / "pki")
    pair = authority.server("server", ("127.0.0.1",), ("localhost",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server.authority = authority.certificate
    loop = asyncio.new_event_loop()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app)

    async def begin() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        server.port = runner.addresses[0][1]

    async def end() -> None:
        await runner.cleanup()
        # A TLS connection waits for its client's answer before it closes, which may be never.
        await cut_off()

    loop.run_until_complete(begin())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
