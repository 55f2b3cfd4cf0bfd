"""Schedulers and operators that a cluster runs, known by the Deployments of their projects' own manifests."""

import re
from collections.abc import Iterable, Iterator

from arena_topo.model.objects import Object
from arena_topo.model.plan.capabilities import Program

_IMAGES = {
    "mpi-operator": r"(^|/)mpi-operator",
    "training-operator": r"(^|/)training-operator",
    "volcano": r"(^|/)vc-scheduler",
    "koordinator": r"(^|/)koord-scheduler",
    "coscheduling": r"(^|/)scheduler-plugins/kube-scheduler$",
    "kueue": r"(^|/)kueue$",
    "yunikorn": r"(^|/)yunikorn$",
    "hami": r"(^|/)(hami|vgpu)$",
    "kai": r"(^|/)kai-scheduler/scheduler$",
}
"""Images by what they are, where a chart's release has renamed the Deployment; without registry and tag."""

_NAMES = {
    "mpi-operator": r"mpi-operator",
    "training-operator": r"training-operator",
    "volcano": r"volcano-scheduler",
    "koordinator": r"koord-scheduler",
    "coscheduling": r"scheduler-plugins-scheduler",
    "kueue": r"kueue-controller-manager",
    "yunikorn": r"yunikorn-scheduler",
    "hami": r"(.*-)?hami-scheduler",
    "kai": r"kai-scheduler(-default)?",
}
_SHARED = frozenset({"hami", "yunikorn"})
_GANG_FLAGS = re.compile(r"^--?gang-schedul(?:ing|er-name)(?:=(.*))?$")


def find_programs(deployments: Iterable[Object]) -> dict[str, Program]:
    """Return what runs by what it is; of several of a kind the first that is ready."""
    found: dict[str, Program] = {}
    for deployment in deployments:
        for kind in _kinds(deployment):
            program = _program(deployment)
            if kind not in found or (program.ready and not found[kind].ready):
                found[kind] = program
    return found


def _kinds(deployment: Object) -> Iterator[str]:
    name = deployment["metadata"]["name"]
    images = [_bare(str(container.get("image", ""))) for container in _containers(deployment)]
    for kind, pattern in _NAMES.items():
        if re.fullmatch(pattern, name) or any(_matches(kind, name, image) for image in images):
            yield kind


def _matches(kind: str, name: str, image: str) -> bool:
    """Whether *image* is the scheduler or operator itself: some projects ship several programs in one image."""
    return bool(re.search(_IMAGES[kind], image)) and (kind not in _SHARED or "scheduler" in name)


def _bare(image: str) -> str:
    """Return an image without digest and tag."""
    image = image.partition("@")[0]
    head, slash, last = image.rpartition("/")
    return head + slash + last.partition(":")[0]


def _program(deployment: Object) -> Program:
    meta, status = deployment["metadata"], deployment.get("status") or {}
    return Program(
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        ready=int(status.get("readyReplicas") or 0) > 0,
        gangs=_gangs(_arguments(deployment)),
    )


def _gangs(arguments: list[str]) -> str:
    """Return the gang scheduler that an operator's arguments name, by Go's rules for flags."""
    for at, argument in enumerate(arguments):
        if match := _GANG_FLAGS.match(argument):
            following = arguments[at + 1] if at + 1 < len(arguments) else ""
            return following if match[1] is None else str(match[1])
    return ""


def _arguments(deployment: Object) -> list[str]:
    return [
        str(argument)
        for container in _containers(deployment)
        for key in ("command", "args")
        for argument in container.get(key) or ()
    ]


def _containers(deployment: Object) -> list[Object]:
    spec = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    return list(spec.get("containers") or ())
