"""Starting a process in a container.

The websocket's library speaks over a connection of ``transport``; it is imported where a process is started.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlencode

from arena_topo.errors import ApiError, ArenaTopoError, ConnectionFailed
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.kubeconfig import configured_target
from arena_topo.kube.session import api_error, impersonation
from arena_topo.kube.transport import (
    LARGEST_BODY,
    LARGEST_HEAD,
    AnswerClock,
    Request,
    SharedTlsSocket,
    Transport,
    failure,
)

# A process in a container, over the API server's websocket: its channels, its terminal's size, and how it
# ended.
#
# Each binary message begins with the number of its channel: 0 stdin, 1 stdout, 2 stderr, 3 how it ended (a
# Status object), 4 the terminal's size. ``v5.channel.k8s.io`` adds message 255 that closes a channel, as an
# ended stdin needs; in ``v4`` there is no such thing. Source: k8s.io/apimachinery
# pkg/util/httpstream/wsstream and k8s.io/client-go tools/remotecommand.

_V5 = "v5.channel.k8s.io"
_PROTOCOLS = (_V5, "v4.channel.k8s.io")
"""What is offered to the server, the newest first."""
_CLOSE = 255
_LARGEST_STATUS = 1 << 20
"""Bytes of the Status object that ends a process; a server that sends more has no end in mind."""


class Channel(IntEnum):
    """What the first byte of a message says."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4


class _BoundedSocket:
    """The socket of a websocket, whose library reads whatever the server announces.

    Of what is expected next no more than so many bytes may come, within the time of a clock where one is
    given.
    """

    def __init__(self, sock: Any, most: int, clock: AnswerClock | None) -> None:
        self._socket, self._left, self._clock = sock, most, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def expect(self, most: int) -> None:
        """Allow *most* bytes for what comes next, and any time."""
        if self._clock is not None:
            # A TLS socket that two threads share waits by itself.
            self._socket.settimeout(0 if isinstance(self._socket, SharedTlsSocket) else None)
        self._left, self._clock = most, None

    def recv(self, size: int) -> bytes:
        """Return the next bytes. Raises ``OSError`` for too many of them, or too late ones."""
        if self._clock is not None:
            self._socket.settimeout(self._clock.left())
        data: bytes = self._socket.recv(size)
        self._left -= len(data)
        if self._left < 0:
            raise ConnectionAbortedError("more bytes came than are read at once")
        return data


class RemoteProcess:
    """A process that runs; ``exit_code`` is known once ``output`` has come to its end."""

    def __init__(self, websocket: Any, server: str) -> None:
        self._websocket, self._server = websocket, server
        self._status = b""

    def output(self) -> Iterator[tuple[Channel, bytes]]:
        """Yield what the process prints, on which channel, until it has ended.

        Raises ``ConnectionFailed``.
        """
        from websocket import ABNF, WebSocketConnectionClosedException, WebSocketException

        while True:
            try:
                # None once the library has seen the end, which it reports below.
                if self._websocket.sock is not None:
                    self._websocket.sock.expect(LARGEST_BODY)
                code, frame = self._websocket.recv_data_frame(True)
            except WebSocketConnectionClosedException:
                # Servers close the connection after the Status object, some without a word.
                if not self._status:
                    raise ConnectionFailed("the connection to the container broke off") from None
                return
            except (WebSocketException, OSError) as error:
                raise failure(self._server, error) from error
            if code == ABNF.OPCODE_CLOSE:
                return
            if code not in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) or not frame.data:
                continue
            channel, data = frame.data[0], bytes(frame.data[1:])
            if channel == Channel.ERROR:
                self._status = (self._status + data)[:_LARGEST_STATUS]
            elif channel in (Channel.STDOUT, Channel.STDERR) and data:
                yield Channel(channel), data

    def write(self, data: bytes) -> None:
        """Send bytes to stdin."""
        self._send(Channel.STDIN, data)

    def end_input(self) -> None:
        """Close stdin, which servers of version 5 can."""
        if self._websocket.subprotocol == _V5:
            self._send(_CLOSE, bytes([Channel.STDIN]))

    def resize(self, columns: int, lines: int) -> None:
        """Tell the size of the user's terminal."""
        self._send(Channel.RESIZE, json.dumps({"Width": columns, "Height": lines}).encode())

    def exit_code(self) -> int:
        """Return the exit code.

        Raises ``ArenaTopoError`` for a process that could not run or whose end is not known.
        """
        try:
            status = json.loads(self._status)
            if status["status"] == "Success":
                return 0
            if status.get("reason") == "NonZeroExitCode":
                causes = status["details"]["causes"]
                return next(int(cause["message"]) for cause in causes if cause["reason"] == "ExitCode")
            message = str(status.get("message") or status.get("reason"))
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
            message = "the server did not say how the command ended"
        raise ArenaTopoError(message)

    def close(self) -> None:
        """Drop the connection; the process may continue."""
        self._websocket.close()
        # Its close does nothing once the server has said goodbye.
        self._websocket.shutdown()

    def _send(self, channel: int, data: bytes) -> None:
        from websocket import ABNF, WebSocketConnectionClosedException

        try:
            self._websocket.send(bytes([channel]) + data, opcode=ABNF.OPCODE_BINARY)
        except (WebSocketConnectionClosedException, OSError) as error:
            raise ConnectionFailed("the connection to the container broke off") from error


class Starter:
    """Starts processes in containers with one connection's credentials, which plugins are asked for once."""

    def __init__(self, connection: ConnectionFlags) -> None:
        self._target = configured_target(connection)
        self._timeout = connection.request_timeout
        # One thread reads what the process prints while another one writes what the user types.
        self._transport = Transport(self._target, tls_socket=SharedTlsSocket)

    def start(
        self, path: str, command: Sequence[str], *, container: str, tty: bool = False, stdin: bool = False
    ) -> RemoteProcess:
        """Start *command* in *container* of the pod at *path*. Raises what a ``Session`` raises."""
        query = [("container", container), ("stdout", "true"), *(("command", word) for word in command)]
        # A terminal has one output, and the API server refuses stderr next to it.
        query.append(("tty", "true") if tty else ("stderr", "true"))
        if stdin:
            query.append(("stdin", "true"))
        url = f"{self._target.server}{path}/exec?{urlencode(query, quote_via=quote)}"
        try:
            return _opened(self._transport, url, self._target.user, self._timeout)
        except ApiError as error:
            # Tokens of exec plugins expire.
            if error.status != 401 or not self._transport.renew():
                raise
            return _opened(self._transport, url, self._target.user, self._timeout)

    def output(self, path: str, command: Sequence[str], *, container: str, most: int) -> bytes:
        """Return what *command* prints on stdout until it has ended, *most* bytes at the most.

        Raises what ``start`` raises, and ``ArenaTopoError`` for a command that cannot run there.
        """
        process, printed = self.start(path, command, container=container), bytearray()
        try:
            for channel, data in process.output():
                if channel is Channel.STDOUT:
                    printed += data
                if len(printed) >= most:
                    return bytes(printed[:most])
            # The codes of shells for a program that is not there, or cannot be run.
            if process.exit_code() in (126, 127) and not printed:
                raise ArenaTopoError(f"{command[0]} cannot run in container {container}")
            return bytes(printed)
        finally:
            process.close()


def _opened(transport: Transport, url: str, user: Mapping[str, Any], timeout: float) -> RemoteProcess:
    from websocket import (
        WebSocket,
        WebSocketBadStatusException,
        WebSocketException,
        WebSocketTimeoutException,
    )

    clock = AnswerClock(Request("GET", url, timeout=timeout or None))

    class BoundedWebSocket(WebSocket):
        """A websocket whose handshake is bounded as other answers are: the library reads whatever comes."""

        def __setattr__(self, name: str, value: Any) -> None:
            bounded = name == "sock" and value is not None
            super().__setattr__(name, _BoundedSocket(value, LARGEST_HEAD, clock) if bounded else value)

    headers = [("User-Agent", "arena-topo"), *transport.headers().items(), *impersonation(user)]
    websocket: Any = BoundedWebSocket(enable_multithread=True)
    try:
        websocket.connect(
            # http becomes ws, and https wss.
            url.replace("http", "ws", 1),
            socket=transport.open(clock),
            header=[f"{name}: {value}" for name, value in headers],
            subprotocols=list(_PROTOCOLS),
            suppress_origin=True,
            # A server that redirects would get the credentials sent to wherever it likes.
            redirect_limit=0,
            timeout=timeout or None,
        )
    except WebSocketBadStatusException as error:
        body = getattr(error, "resp_body", None) or b""
        raise api_error(error.status_code, body if isinstance(body, bytes) else str(body).encode()) from error
    except WebSocketTimeoutException as error:
        raise failure(url, TimeoutError()) from error
    except (WebSocketException, HTTPException, OSError, ValueError) as error:
        raise failure(url, error) from error
    return RemoteProcess(websocket, url)
