"""A kubelet's end of the websocket by which the API server passes on the streams of a process.

Each binary message begins with the number of its channel. Source: k8s.io/apimachinery
pkg/util/httpstream/wsstream and k8s.io/client-go tools/remotecommand, version 5 of the protocol, which API
servers from 1.36 on pass on as it is to nodes that declare ``ExtendWebSocketsToKubelet``.
"""

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from enum import IntEnum
from http.server import BaseHTTPRequestHandler

from arena_topo.kube.transport import SharedTlsSocket

FEATURE = "ExtendWebSocketsToKubelet"
PROTOCOL = "v5.channel.k8s.io"
_WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server adds to the client's key, by RFC 6455."""
_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10
"""What kind of frame it is, by RFC 6455."""


class Channel(IntEnum):
    """What the first byte of a message says."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    END = 3
    RESIZE = 4
    CLOSE = 255


class RemoteStreams:
    """The streams of one process: one thread may read while others send."""

    def __init__(self, request: BaseHTTPRequestHandler) -> None:
        """Take over the connection of *request*, which asks for a websocket."""
        key = hashlib.sha1(request.headers["Sec-WebSocket-Key"].encode() + _WEBSOCKET, usedforsecurity=False)
        request.send_response(101)
        request.send_header("Upgrade", "websocket")
        request.send_header("Connection", "Upgrade")
        request.send_header("Sec-WebSocket-Accept", base64.b64encode(key.digest()).decode())
        request.send_header("Sec-WebSocket-Protocol", PROTOCOL)
        request.end_headers()
        assert isinstance(request.connection, SharedTlsSocket)
        self._socket = request.connection
        self._socket.settimeout(0)
        self._sending = threading.Lock()

    @staticmethod
    def are_asked_for(request: BaseHTTPRequestHandler) -> bool:
        """Whether *request* asks for a websocket of the protocol that is spoken here."""
        offered = request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        return PROTOCOL in map(str.strip, offered) and "Sec-WebSocket-Key" in request.headers

    def messages(self) -> Iterator[tuple[Channel, bytes]]:
        """Yield what the client sends, until it closes the connection or loses it."""
        # Its package takes its time to import, and few agents are asked for a process.
        from websocket import frame_buffer

        frames = frame_buffer(self._receive, skip_utf8_validation=True)
        # A socket that was closed meanwhile, as the process has ended, has no number to wait for.
        with contextlib.suppress(OSError, ValueError):
            while (frame := frames.recv_frame()).opcode != _CLOSE:
                assert isinstance(frame.data, bytes)
                if frame.opcode == _PING:
                    self._send(frame.data, _PONG)
                elif frame.opcode == _BINARY and frame.data:
                    yield Channel(frame.data[0]), frame.data[1:]

    def send(self, channel: Channel, data: bytes) -> None:
        """Send what the process prints; a client that has gone misses it."""
        self._send(bytes([channel]) + data, _BINARY)

    def end(self, code: int) -> None:
        """Tell how the process ended, and close the connection."""
        status: dict[str, object] = {"metadata": {}, "status": "Success"}
        if code:
            causes = [{"reason": "ExitCode", "message": str(code)}]
            message = f"command terminated with non-zero exit code: exit status {code}"
            status |= {"status": "Failure", "reason": "NonZeroExitCode", "message": message}
            status["details"] = {"causes": causes}
        self.send(Channel.END, json.dumps(status).encode())
        self._send((1000).to_bytes(2, "big"), _CLOSE)

    def _send(self, data: bytes, opcode: int) -> None:
        from websocket import ABNF

        frame = ABNF.create_frame(data, opcode)
        frame.mask_value = 0  # only clients mask what they send
        with self._sending, contextlib.suppress(OSError):
            self._socket.sendall(frame.format())

    def _receive(self, size: int) -> bytes:
        data = self._socket.recv(size)
        if not data:
            # The parser would ask again forever.
            raise ConnectionResetError("the client has gone")
        return data
