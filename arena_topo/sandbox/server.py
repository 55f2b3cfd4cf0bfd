"""The server of one sandbox: HTTPS on loopback, the simulation behind it, and its state on disk."""

import asyncio
import base64
import contextlib
import datetime as dt
import ipaddress
import json
import os
import secrets
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from arena_topo.errors import DocumentError
from arena_topo.model.objects import Object
from arena_topo.sandbox import layouts
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.api.resources import ADMIN, READER, Kind, Registry, StatusError, User
from arena_topo.sandbox.api.schema import BUILT_IN, CRD_KEY, establish, initial_crds, withdraw
from arena_topo.sandbox.api.server import Server
from arena_topo.sandbox.api.store import Change, ContainerLogs, Store
from arena_topo.sandbox.lifecycle import CONTEXT, Home
from arena_topo.sandbox.sim import controller_manager, jobsets, kubeflow, kubelets
from arena_topo.sandbox.sim.controller_manager import DAEMON_SETS, JOBS
from arena_topo.sandbox.sim.controllers import NODES, PODS, Clock, Loop
from arena_topo.sandbox.sim.kubelets import Kubelet
from arena_topo.sandbox.sim.programs import program_of
from arena_topo.sandbox.sim.scheduler import schedule

_NAMESPACES = ("default", "kube-system", "kube-public", "other-team")
_SAVE_SECONDS = 2.0
# A sandbox keeps its certificate, and with it every kubeconfig, for as long as its folder exists.
_DAYS = 3650
_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


async def serve(home: Home, ended: asyncio.Event) -> None:
    """Serve the sandbox of a folder until *ended* is set; its kubeconfigs are written once it answers."""
    settings = json.loads(home.settings.read_text("utf-8"))
    _ensure_identity(home)
    cluster = Cluster(_users(home), Clock(float(settings["speed"])), ended.set)
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
    _write_kubeconfigs(home, int(runner.addresses[0][1]))
    waiting = asyncio.create_task(ended.wait())
    # A simulation that ends by itself has failed: its error is raised below.
    await asyncio.wait({waiting, simulation}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    await site.stop()
    connections = [handler.transport for handler in runner.server.connections] if runner.server else []
    await runner.cleanup()
    # To close a TLS connection is to wait for its client's answer, which an idle client gives too late or
    # never: what is left is cut off, and sockets close in the next turn of the loop, which may be its last.
    for transport in filter(None, connections):
        transport.abort()
    await asyncio.sleep(0)
    simulation.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await simulation


class Cluster:
    """Everything behind the sandbox's HTTP server; ``end`` ends the server."""

    def __init__(self, users: Mapping[str, User], clock: Clock, end: Callable[[], None]) -> None:
        self.store = Store()
        self.api = Api(self.store, Registry(BUILT_IN))
        self.logs = ContainerLogs()
        self.clock = clock
        self.server = Server(self.api, self.logs, users, self.control)
        self.kubelet = Kubelet(self.api, self.logs, clock, partial(program_of, self.api))
        self.layout = ""
        self._end = end
        self._saved_version = 0
        self.api.after_create.append(self._complete)
        self.store.listen(self._follow_definitions)

    def create(self, layout: layouts.Layout) -> None:
        """Fill an empty cluster with the objects of a layout, after which the kubelets have reported.

        Raises ``DocumentError`` for a layout that is not valid.
        """
        self.layout = layout.name
        for name in _NAMESPACES:
            self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for crd in initial_crds():
            self._create(crd)
        for obj in layout.objects:
            name = obj["metadata"]["name"]
            # An imported cluster brings its own list of namespaces, which the usual ones may be on.
            if obj["kind"] == "Namespace" and name in _NAMESPACES:
                continue
            try:
                self._create(obj)
            except StatusError as error:
                text = f"the layout {layout.name}: {obj['kind']} {name}: {error.message}"
                raise DocumentError(text) from error
        # The first client must see every node Ready and no changes from before the sandbox served.
        kubelets.report(self.api)
        self.store.compact()

    def _create(self, obj: Object) -> None:
        kind = self.api.kind(obj["apiVersion"], obj["kind"])
        self.api.create(kind, obj["metadata"].get("namespace", ""), obj)

    def restore(self, state: Object) -> None:
        """Take over a saved state."""
        self.layout = state["layout"]
        self.store.load(state["store"])
        self.logs.load(state["logs"])
        self._saved_version = self.store.version
        # The registry is not part of the state: what CRDs serve is derived from them again.
        for crd in self.store.values(CRD_KEY):
            establish(self.store, self.api.registry, crd, timestamp())

    def save(self, path: Path) -> None:
        """Write the state, whole or not at all."""
        state = {"layout": self.layout, "store": self.store.dump(), "logs": self.logs.dump()}
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(state, separators=(",", ":")), "utf-8")
        # The state holds Secrets.
        temporary.chmod(0o600)
        temporary.replace(path)
        self._saved_version = self.store.version

    async def run(self, path: Path) -> None:
        """Let controllers and kubelets work, and keep the state on disk, until cancelled."""
        api = self.api
        loops = (
            Loop(self.store, {NODES, PODS}, partial(kubelets.report, api)),
            Loop(self.store, kubeflow.WATCHED, partial(kubeflow.sync_mpi_jobs, api)),
            Loop(self.store, kubeflow.WATCHED, partial(kubeflow.sync_training_jobs, api)),
            Loop(self.store, jobsets.WATCHED, partial(jobsets.sync_job_sets, api)),
            Loop(self.store, {JOBS, PODS}, partial(controller_manager.sync_jobs, api)),
            Loop(self.store, {DAEMON_SETS, NODES, PODS}, partial(controller_manager.sync_daemon_sets, api)),
            Loop(self.store, {NODES, PODS}, partial(kubelets.allocate, api)),
            Loop(self.store, {PODS, NODES}, partial(schedule, api)),
            # Anything can own anything, of kinds that are defined later, too.
            Loop(self.store, None, partial(controller_manager.collect_garbage, api)),
        )
        # A sandbox that is killed at once finds its layout's objects again, not a new set with other uids.
        self.save(path)
        self.kubelet.attach()
        tasks = [asyncio.create_task(loop.run()) for loop in loops]
        try:
            while True:
                await asyncio.sleep(_SAVE_SECONDS)
                if self._saved_version != self.store.version:
                    self.save(path)
        finally:
            await self.kubelet.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.save(path)

    def _complete(self, kind: Kind, obj: Object) -> None:
        """Do what the API server's own controllers do at once: serve a CRD, give a namespace its account."""
        if kind.key == CRD_KEY:
            establish(self.store, self.api.registry, obj, timestamp())
        elif kind.key == ("", "namespaces"):
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self.api.create(self.api.kind("v1", "ServiceAccount"), obj["metadata"]["name"], account)

    def _follow_definitions(self, change: Change) -> None:
        """Serve what a changed CRD defines, and what a deleted one defined no longer."""
        if change.resource != CRD_KEY:
            return
        if change.type == "DELETED":
            withdraw(self.store, self.api.registry, change.after.body)
        elif change.before is not None and change.before.body["spec"] != change.after.body["spec"]:
            establish(self.store, self.api.registry, change.after.body, timestamp())

    def control(self, method: str, path: str, body: Object) -> Object:
        """Answer a request of the administrator about the sandbox itself."""
        match method, path:
            case "GET", "/_sandbox/status":
                pass
            case "POST", "/_sandbox/compact":
                self.store.compact()
            case "POST", "/_sandbox/stop":
                self._end()
            case "PUT", "/_sandbox/log":
                self._print(body)
            case _:
                raise StatusError(404, "NotFound", f"the sandbox has no {method} {path}")
        return self.status()

    def _print(self, body: Object) -> None:
        """Let a running pod's container print lines, for tests that need to know them."""
        pod = self.api.get(self.api.kind("v1", "Pod"), body["namespace"], body["pod"])
        for line in body["lines"]:
            self.kubelet.log_of(pod).write(line)

    def status(self) -> Object:
        """Return what ``arena-topo sandbox status`` shows."""
        return {
            "simulated": True,
            "pid": os.getpid(),
            "layout": self.layout,
            "nodes": len(self.store.values(NODES)),
            "pods": len(self.store.values(PODS)),
            "speed": self.clock.speed,
            "resourceVersion": self.store.version,
        }


# Who the sandbox is and who may use it: certificate, tokens, kubeconfigs.


def _ensure_identity(home: Home) -> None:
    if not home.certificate.exists() or not home.key.exists():
        _create_certificate(home)
    if not home.tokens.exists():
        tokens = {"admin": secrets.token_urlsafe(32), "reader": secrets.token_urlsafe(32)}
        _write_private(home.tokens, json.dumps(tokens).encode())


def _create_certificate(home: Home) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CONTEXT)])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    # It is its own authority, so it must be able to sign certificates, too.
    usage = {usage: usage in {"digital_signature", "key_cert_sign"} for usage in _USAGES}
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .sign(key, hashes.SHA256())
    )
    form, encoding = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    _write_private(home.key, key.private_bytes(encoding, form, serialization.NoEncryption()))
    home.certificate.write_bytes(certificate.public_bytes(encoding))


def _users(home: Home) -> dict[str, User]:
    tokens = json.loads(home.tokens.read_text("utf-8"))
    return {tokens["admin"]: ADMIN, tokens["reader"]: READER}


def _write_kubeconfigs(home: Home, port: int) -> None:
    """Write the reader's and then the administrator's kubeconfig; the user's own is never touched."""
    tokens = json.loads(home.tokens.read_text("utf-8"))
    authority = base64.b64encode(home.certificate.read_bytes()).decode()
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}
    # `sandbox start` waits for the administrator's, so it comes last.
    for path, role in ((home.reader_kubeconfig, "reader"), (home.kubeconfig, "admin")):
        user = f"{CONTEXT}-{role}"
        context = {"cluster": CONTEXT, "user": user, "namespace": "default"}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "contexts": [{"name": CONTEXT, "context": context}],
            "users": [{"name": user, "user": {"token": tokens[role]}}],
        }
        _write_private(path, json.dumps(content, indent=2).encode() + b"\n")


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; it appears whole, since others wait for it."""
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)
