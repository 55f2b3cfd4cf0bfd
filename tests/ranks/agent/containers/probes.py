"""Probes of a container: commands, TCP ports and HTTP paths, asked until the container ends."""

import threading
from collections.abc import Iterator, Sequence

from tests.controlplane.kube import Object
from tests.ranks.agent.containers.container import Container


def answers(spec: Object, kind: str, container: Container, ended: threading.Event) -> Iterator[bool]:
    """Ask the probe of that *kind* in a container's *spec* until *ended*, and yield each change of its
    answer.

    An answer has changed after as many equal ones as the probe wants; without such a probe there is none.
    """
    if kind not in spec:
        return
    spec = spec[kind]
    needed = {True: int(spec.get("successThreshold", 1)), False: int(spec.get("failureThreshold", 3))}
    answer: bool | None = None
    same = 0
    last: bool | None = None
    ended.wait(spec.get("initialDelaySeconds", 0))
    while not ended.is_set():
        good = container.run(_command(spec), spec.get("timeoutSeconds", 1)) == 0
        same = same + 1 if good is last else 1
        last = good
        if good is not answer and same >= needed[good]:
            answer = good
            yield good
        ended.wait(spec.get("periodSeconds", 10))


def _command(spec: Object) -> Sequence[str]:
    """Return the command that asks from inside of the container: nothing else reaches its network."""
    if "exec" in spec:
        return list(spec["exec"]["command"])
    if "tcpSocket" in spec:
        return ["bash", "-c", f": < /dev/tcp/127.0.0.1/{spec['tcpSocket']['port']}"]
    get = spec["httpGet"]
    ask = (
        f"exec 3<> /dev/tcp/127.0.0.1/{get['port']}; "
        f"printf 'GET {get.get('path', '/')} HTTP/1.0\\r\\n\\r\\n' >&3; read -r _ code _ <&3; [[ $code == [23]* ]]"
    )
    return ["bash", "-c", ask]
