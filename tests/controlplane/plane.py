"""A running control plane."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import urllib3

from tests.controlplane.binaries.ensure import Built, ensure_built, ensure_extras
from tests.controlplane.components import commands, install
from tests.controlplane.components.commands import Site
from tests.controlplane.components.kubeconfig import write_kubeconfig
from tests.controlplane.components.options import Options
from tests.controlplane.components.pki import Authority, signing_keys
from tests.controlplane.components.ports import free_ports
from tests.controlplane.components.processes import Processes
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.kube import Kube, KubeError
from tests.controlplane.operators.table import CERTIFICATES, OPERATORS, Seat
from tests.controlplane.operators.webhooks import by_address
from tests.controlplane.polling import eventually
from tests.harness.costs import planes_folder, record_plane

_ADMINS = "system:masters"
_ALWAYS = {"supervisor", "etcd", "kube-apiserver"}


_SPARING = {"GOGC": "400", "GOMEMLIMIT": "1500MiB", "GODEBUG": "adaptivestackstart=1"}
"""Go's collector of garbage would run for each doubling of a heap of a few MiB, and each request would grow
its stack from
2 KiB by copying it time and again: memory is cheaper than a core here."""

_OPERATOR_WORKS = "Started workers"
"""What the operator logs once it leads and has seen what
there is: a job before that waits for half a minute.
"""


class ControlPlane:
    """etcd, API server and what ``options`` ask for, from entering the context to leaving it.

    With *at* it runs already, in another process that holds it: this connects to it. ``folder`` and
    ``processes`` are then this connection's own.

    Raises ControlPlaneError when a component cannot be built or does not start, with the end of its log.
    """

    def __init__(self, options: Options | None = None, *, at: Site | None = None) -> None:
        self.options = options or Options()
        self.folder = Path(tempfile.mkdtemp(prefix="arena-topo-plane-", dir=planes_folder()))
        self.startup_seconds = 0.0
        self._at = at
        # All of one draw: an operator listens seconds after it got its ports, which look free till then.
        self._ports = free_ports()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._at is not None:
            return self._connect(self._at)
        built = ensure_built(coscheduling=self.options.coscheduling)
        if self.options.operators:
            built |= ensure_extras(self.options.operators)
        began = time.monotonic()
        with ExitStack() as stack:
            self._authority = Authority.create(self.folder / "pki")
            self.site = self._site()
            self.processes = stack.enter_context(Processes(self.folder, self._environment()))
            self.kube = stack.enter_context(Kube(self.site.url, self.site.authority, self.site.admin))
            self._start_or_keep_logs(built)
            stack.callback(self._record, began)
            self._stack = stack.pop_all()
        self.startup_seconds = time.monotonic() - began
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _connect(self, site: Site) -> Self:
        self.site = site
        self._authority = Authority.load(site.authority, self.folder / "pki")
        with ExitStack() as stack:
            self.processes = stack.enter_context(Processes(self.folder, self._environment()))
            self.kube = stack.enter_context(Kube(site.url, site.authority, site.admin))
            self._stack = stack.pop_all()
        return self

    def _record(self, began: float) -> None:
        parts = [name for name in self.processes.pids if name not in _ALWAYS]
        record_plane(" + ".join(parts) or "API server only", began, self.processes.pids)

    @property
    def admin_kubeconfig(self) -> Path:
        """Kubeconfig of a user who may do everything."""
        return self.site.kubeconfig

    def kubeconfig(self, user: str, groups: Sequence[str] = (), *, namespace: str = "default") -> Path:
        """Write a kubeconfig for ``user``; RBAC grants nothing to a user that no binding names."""
        path = (
            self.folder / "kubeconfigs" / f"{user.replace('/', '_').replace(':', '_')}-{namespace}.kubeconfig"
        )
        client = self._authority.client(user, groups)
        return write_kubeconfig(path, self.site.url, self.site.authority, client, namespace)

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        """Stop the API server until the end of the context, which returns when it answers again."""
        self.processes.stop("kube-apiserver")
        try:
            yield
        finally:
            built = ensure_built(coscheduling=self.options.coscheduling)
            self.processes.start("kube-apiserver", commands.apiserver(built, self.site, self.options))
            self._until("the API server", self._api_ready)

    def client(self, user: str, groups: Sequence[str] = ()) -> Kube:
        """Return a client of the API server for ``user``, to be closed by the caller."""
        return Kube(self.site.url, self.site.authority, self._authority.client(user, groups))

    def _site(self) -> Site:
        admin = self._authority.client("arena-topo-admin", [_ADMINS])
        site = Site(
            folder=self.folder,
            authority=self._authority.certificate,
            server=self._authority.server("server", ["127.0.0.1", "10.0.0.1"], ["localhost"]),
            admin=admin,
            signing=signing_keys(self.folder / "pki"),
            etcd_port=next(self._ports),
            etcd_peer_port=next(self._ports),
            api_port=next(self._ports),
            kubelet_port=next(self._ports),
        )
        write_kubeconfig(site.kubeconfig, site.url, site.authority, admin)
        return site

    def _environment(self) -> dict[str, str]:
        """Keep the developer's own cluster out: the operator
        prefers $KUBECONFIG to its flag, KWOK reads ~/.kwok.
        """
        home = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        return home | _SPARING | {"PATH": os.defpath, "KUBECONFIG": str(self.site.kubeconfig)}

    def _start_or_keep_logs(self, built: Built) -> None:
        try:
            self._start(built)
        except ControlPlaneError:
            self.processes.keep()
            raise

    def _start(self, built: Built) -> None:
        options, site, start = self.options, self.site, self.processes.start
        start("etcd", commands.etcd(built, site))
        start("kube-apiserver", commands.apiserver(built, site, options))
        self._until("the API server", self._api_ready)
        definitions = install.definitions(built, options)
        for definition in definitions:
            self.kube.apply(definition)
        self._until("the custom resources", lambda: install.established(self.kube, definitions))
        if options.nodes:
            # After the custom resources: the garbage collector looks for new ones but every half minute.
            start("kube-controller-manager", commands.controller_manager(built, site, options))
            start("kube-scheduler", commands.scheduler(built, site, options))
            install.stages(self.kube, built)
            start("kwok", commands.kwok(built, site))
        if options.coscheduling:
            config = install.coscheduling_config(site)
            start("coscheduling", commands.coscheduling(built, site, config))
        if options.operator:
            self.kube.apply(install.namespace("mpi-operator"))
            start("mpi-operator", commands.mpi_operator(built, site, options))
        self._offer_certificate()
        seats = [self._start_operator(name, built) for name in options.operators]
        self._until("the controllers", self._controllers_ready)
        for name, seat in zip(options.operators, seats, strict=True):
            self._until(name, partial(_is_healthy, seat))
            self._complete_operator(name, built, seat)

    def _offer_certificate(self) -> None:
        """Put the server's certificate where the webhooks of
        all operators look for theirs, before the first starts.
        """
        certificates = self.folder / CERTIFICATES
        certificates.mkdir(parents=True)
        shutil.copyfile(self.site.server.certificate, certificates / "tls.crt")
        shutil.copyfile(self.site.server.key, certificates / "tls.key")

    def _start_operator(self, name: str, built: Built) -> Seat:
        operator = OPERATORS[name]
        self.kube.apply(install.namespace(operator.namespace))
        seat = Seat(self.folder, next(self._ports), next(self._ports), self.options.operators)
        self.processes.start(name, operator.command(built, seat))
        return seat

    def _complete_operator(self, name: str, built: Built, seat: Seat) -> None:
        if OPERATORS[name].has_webhooks:
            theirs = install.load(built.manifest(f"{name}-webhooks.yaml"))
            for configuration in by_address(theirs, name, seat.webhook_port, self.site.authority):
                self.kube.apply(configuration)
        for each in built.manifests(f"{name}-objects/*.yaml"):
            for item in install.load(each):
                self.kube.apply(item)

    def _until(self, what: str, fact: Callable[[], bool]) -> None:
        def alive() -> bool:
            self.processes.check()
            return fact()

        eventually(alive, what)

    def _api_ready(self) -> bool:
        try:
            return bool(self.kube.request("GET", "/readyz") == "ok")
        except (KubeError, urllib3.exceptions.HTTPError):
            return False

    def _controllers_ready(self) -> bool:
        kube, options = self.kube, self.options
        if options.nodes and kube.find("v1", "ServiceAccount", "default", "default") is None:
            return False
        if not options.operator:
            return True
        return _OPERATOR_WORKS in self.processes.log("mpi-operator").read_text("utf-8", "replace")


def _is_healthy(seat: Seat) -> bool:
    try:
        answer = urllib3.request("GET", f"http://{seat.health}/readyz", retries=False, timeout=5)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == 200
