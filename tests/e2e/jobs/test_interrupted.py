"""A submit that is killed between any two calls leaves nothing, or a job that resume or delete can finish."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.options import PlaceOptions
from arena_topo.jobs.prepare import prepare
from arena_topo.jobs.sources import FromFlags
from arena_topo.jobs.submit import submit_prepared
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.kubeconfig import resolve
from arena_topo.kube.session import Session
from arena_topo.kube.transport import HttpTransport, Request, Response, Transport
from arena_topo.model.job import ConfigFile, JobSpec, PodOptions
from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.pods import MPIJOB, nodes_by_index
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Mortal:
    """A transport whose process dies after so many requests:
    none is sent after that, anyone who wants to clean up.
    """

    transport: HttpTransport
    left: int

    def send(self, request: Request) -> Response:
        """Send, or die."""
        self._live()
        return self.transport.send(request)

    def stream(self, request: Request) -> Response:
        """Open a stream, or die."""
        self._live()
        return self.transport.stream(request)

    def renew(self) -> bool:
        """Renew nothing."""
        return False

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()

    def _live(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


def _submit(session: Session, name: str, namespace: str) -> None:
    job = JobSpec(
        name=name,
        namespace=namespace,
        image="train",
        command=("mpirun",),
        workers=4,
        gpus=2,
        gang=True,
        topology=True,
        pod=PodOptions(files=(ConfigFile("/etc/hyper.json", b"{}"),)),
    )
    ready = prepare(session, FromFlags(job=job).request(session, PlaceOptions()))
    submit_prepared(session, ready, Waiter(lambda _: None), lambda _: None)


def _killed_after(requests: int, kubeconfig: Path, name: str, namespace: str) -> bool:
    """Submit *name* in a process that dies after so many requests; return whether it died."""
    target = resolve(ConnectionFlags(kubeconfig=str(kubeconfig)))
    assert target is not None
    mortal = Mortal(Transport(target), requests)
    session = Session(mortal, namespace=target.namespace, server=target.server)
    try:
        _submit(session, name, namespace)
    except Killed:
        return True
    finally:
        session.close()
    return False


def _all_placed(kube: Kube, namespace: str, name: str) -> bool:
    return len(nodes_by_index(kube, namespace, name)) == 4


def _no_pods(kube: Kube, namespace: str, name: str) -> bool:
    return not pods.of_job(kube, namespace, name)


@pytest.mark.first
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("gpu_nodes")
@pytest.mark.parametrize("means", ["gates", "policy"])
def test_a_submit_killed_at_any_step_can_be_finished(
    arena: Arena, kube: Kube, namespace: str, kubeconfig: Path, request: pytest.FixtureRequest, means: str
) -> None:
    """Nothing is there, or resume places all workers, or says what is missing; delete then leaves nothing."""
    if means == "policy":
        request.getfixturevalue("policy")
    endings: set[str] = set()
    requests, died = 0, True
    while died:
        name = f"job-{requests}"
        died = _killed_after(requests, kubeconfig, name, namespace)
        if kube.find(*MPIJOB, name, namespace) is None:
            endings.add("nothing")
            assert [] == pods.of_job(kube, namespace, name)
            assert None is kube.find("v1", "ConfigMap", f"{name}-files", namespace)
        else:
            outcome = arena("resume", name)
            if outcome.code == 0:
                eventually(partial(_all_placed, kube, namespace, name), f"{name} to be placed")
                endings.add("resumed")
            else:
                assert "was only half created" in outcome.err, outcome.err
                assert {} == nodes_by_index(kube, namespace, name)
                endings.add("half created")
            assert 0 == arena("delete", name).code
            eventually(partial(_no_pods, kube, namespace, name), f"the pods of {name} to go")
        requests += 1
    assert {"nothing", "half created", "resumed"} == endings
    assert requests > 12
