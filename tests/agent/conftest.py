"""A kubelet that serves its pod-resources API over a real gRPC socket."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from arena_topo.agent.hardware import METHOD
from tests.agent.kubelet import ANSWER


@pytest.fixture
def socket() -> Iterator[str]:
    """Serve List on a Unix socket as a kubelet does; its path must be short."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "kubelet.sock")
        server = grpc.server(ThreadPoolExecutor(1))
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
            lambda _request, _context: ANSWER
        )
        service, _, name = METHOD.strip("/").rpartition("/")
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {name: handler})])
        server.add_insecure_port(f"unix://{path}")
        server.start()
        yield path
        server.stop(None).wait()
