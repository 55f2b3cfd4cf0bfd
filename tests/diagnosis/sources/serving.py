"""A server on this machine that answers once, for what asks it from a shell as a container has it."""

import socket
import subprocess
import threading


def printed_of(script: str, port: int, answer: bytes | None, ends: bytes = b"\n") -> tuple[bytes, str]:
    """Run *script* with a free port for *port*; return what it sent there, and what it printed.

    Nothing listens if *answer* is None; the question is read until *ends*.
    """
    with socket.create_server(("localhost", 0)) as server:
        free = server.getsockname()[1]
        # Linux shows ports as four digits to the base of 16.
        script = script.replace(str(port), str(free)).replace(f":{port:04X}", f":{free:04X}")
        sent: list[bytes] = []
        if answer is None:
            server.close()
            listener = None
        else:
            server.settimeout(20)
            listener = threading.Thread(target=_answer, args=(server, answer, ends, sent))
            listener.start()
        done = subprocess.run(["sh", "-c", script], capture_output=True, check=False, text=True)
        if listener:
            listener.join()
    return b"".join(sent), done.stdout


def _answer(server: socket.socket, answer: bytes, ends: bytes, sent: list[bytes]) -> None:
    connection, _ = server.accept()
    with connection:
        while ends not in b"".join(sent) and (part := connection.recv(1000)):
            sent.append(part)
        connection.sendall(answer)
