"""The plan that a job carries: what was reserved for it, readable by everyone who plans."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from itertools import groupby
from typing import Any, NamedTuple

from arena_topo.errors import DocumentError
from arena_topo.model.keys import PLAN
from arena_topo.model.objects import Object
from arena_topo.model.text.documents import (
    STRING,
    WHOLE,
    Field,
    Form,
    Table,
    attributes_of,
    checked,
    checked_mapping,
    elements_of,
    list_of,
    map_of,
    one_of,
    read_fields,
    record,
    write_fields,
)
from arena_topo.model.text.json import cut, read_json, reason_of, shown, whole_number
from arena_topo.model.text.quantity import Resources, parse_instant
from arena_topo.model.text.words import counted_role, placed_words, plural

# When something will probably end or start: a range of instants, and what it rests on.

MOST_AHEAD = 20
"""Waiting jobs whose starts are estimated: what comes after so many depends on too much that is unknown."""

_MOST_NAMED = 8
_MOST_TEXT = 300
"""Jobs that an estimate on a job names, and characters of each text in it."""


@dataclass(frozen=True, slots=True)
class End:
    """When a job will probably end. ``basis`` says what this rests on, such as ``7 earlier runs of bert``."""

    earliest: datetime
    likely: datetime
    latest: datetime
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEstimate:
    """When a job will probably start.

    ``after`` are the jobs whose ends it awaits, as ``namespace/name``, the first that ends first; none where
    it can start at once. ``basis`` says for each of them what its end rests on; ``more`` counts those that
    are not named. Where there is no estimate, the instants are None, and ``unknown`` says why; ``endless``
    are then the jobs in the way whose ends are unknown.
    """

    earliest: datetime | None = None
    likely: datetime | None = None
    latest: datetime | None = None
    after: tuple[str, ...] = ()
    basis: tuple[str, ...] = ()
    more: int = 0
    unknown: str = ""
    endless: tuple[str, ...] = ()


def _bounded(estimate: StartEstimate) -> StartEstimate:
    """Return *estimate* as far as an annotation has room for it: some of the jobs, and texts that are cut."""
    return replace(
        estimate,
        after=tuple(cut(name, _MOST_TEXT) for name in estimate.after[:_MOST_NAMED]),
        basis=tuple(cut(basis, _MOST_TEXT) for basis in estimate.basis[:_MOST_NAMED]),
        more=estimate.more + max(len(estimate.after) - _MOST_NAMED, 0),
        unknown=cut(estimate.unknown, _MOST_TEXT),
        endless=(),
    )


def _read_instant(value: object, place: str) -> datetime:
    text: str = checked(value, str, place)
    try:
        return parse_instant(text)
    except ValueError as error:
        raise DocumentError(f"{place} is not an instant: {cut(str(error))}") from error


_INSTANT, _STRINGS = Form(_read_instant, lambda value: value.strftime("%Y-%m-%dT%H:%M:%SZ")), list_of(STRING)
"""An instant is written as RFC 3339, to the second."""
_ESTIMATE_FIELDS: Table = (
    Field("from", _INSTANT, None, attribute="earliest"),
    Field("likely", _INSTANT, None),
    Field("to", _INSTANT, None, attribute="latest"),
    Field("after", _STRINGS, ()),
    Field("basis", _STRINGS, ()),
    Field("more", WHOLE, 0),
    Field("unknown", STRING, ""),
)


def _read_estimate(value: object, place: str) -> StartEstimate:
    # A later release may say more.
    values = read_fields(_ESTIMATE_FIELDS, value, place, strict=False)
    instants = [values[key] for key in ("earliest", "likely", "latest")]
    known = [at for at in instants if at is not None]
    if len(known) not in (0, len(instants)) or known != sorted(known):
        raise DocumentError(f"{place} needs from, likely and to in this order, or none of them")
    if len(values["after"]) != len(values["basis"]) or values["more"] < 0:
        raise DocumentError(f"{place} needs a basis for each job in after")
    return _bounded(StartEstimate(**values))


ESTIMATE = Form(
    _read_estimate,
    lambda estimate: write_fields(_ESTIMATE_FIELDS, attributes_of(_bounded(estimate), _ESTIMATE_FIELDS)),
)
"""An estimate as a job's annotation carries it, where anybody may have written it: as far as there is room
for it."""

_VERSION = 1
MOST_WORKERS = 10_000
"""Workers of one plan; the annotations of a job have no room for many more."""
MOST_ROLES = 64
"""Roles of one plan; a TFJob has four, and the templates of a job have no room for many more."""
_LAST_GPU = 255


class Enforcement(Enum):
    """How a plan is enforced.

    ``ADMISSION``: the cluster's admission policy gives each worker its node. ``GATES``: workers are created
    behind a scheduling gate and released to their nodes one by one. ``AFFINITY``: the workers may use only
    the planned nodes.
    """

    ADMISSION = "admission"
    GATES = "gates"
    AFFINITY = "affinity"
    NONE = "none"

    @property
    def places_each_worker(self) -> bool:
        """Whether it decides for each worker by its index, so that planned GPUs can be enforced as well."""
        return self in (Enforcement.ADMISSION, Enforcement.GATES)


class GpuEnforcement(Enum):
    """How the planned GPUs of each worker are enforced.

    ``NONE``: they are a prediction, the kubelet chooses. ``CLAIMS``: each worker has a ResourceClaim for its
    GPUs. ``SHARED_CLAIMS``: the workers of a node share one ResourceClaim, and each sees its own GPUs first.
    ``UUIDS``: each worker's GPUs are requested from HAMi by UUID.
    """

    NONE = ""
    CLAIMS = "claims"
    SHARED_CLAIMS = "shared claims"
    UUIDS = "uuids"

    @property
    def by_claim(self) -> bool:
        """Whether the workers get their GPUs through ResourceClaims."""
        return self in (GpuEnforcement.CLAIMS, GpuEnforcement.SHARED_CLAIMS)


class Stage(Enum):
    """How far the reservation of a plan got.

    ``WAITING`` reserves nothing: the gang has no place yet. Neither does ``SUSPENDED``: its user stopped the
    job, and resuming plans it again. ``PROPOSED`` asks whether anyone has reserved the same; ``CONFIRMED`` is
    a reservation until the job ends.
    """

    WAITING = "waiting"
    SUSPENDED = "suspended"
    PROPOSED = "proposed"
    CONFIRMED = "confirmed"


class Slot(NamedTuple):
    """The place of one worker pod: a named tuple, as a plan has thousands and dataclasses are slower to make.

    ``worker`` is its index in the hostfile; ``gpus`` the GPU indices it should get, in ring order, or None
    where it is not known which GPUs of the node are free.
    """

    worker: int
    node: str
    gpus: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class PlannedRole:
    """The ``pods`` of a role, each of which requests ``requests``, GPUs included."""

    name: str
    pods: int
    requests: Resources = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A job's plan, as the job's annotation carries it.

    ``slots`` number the pods of all roles through, those of the first role first. ``worker_requests`` is what
    one worker requests, GPUs included. ``roles`` is empty where all pods request the same; else it has every
    role, in the order of the numbers, and ``worker_requests`` are those of the first. ``hostnames`` are the
    values of the nodes' hostname labels where these differ from the nodes' names. ``level`` and ``domain``
    are the placement's; ``written`` is an RFC 3339 instant. ``waiting_reason`` is why a waiting job waits,
    for users. ``requested_options`` are the placement options of the user, so that the job can be planned
    again. ``spares`` is the room that is held on other nodes for workers that lose theirs, with numbers that
    no worker has. ``companion_paths`` are the API paths of the objects that belong to the job: where one is
    missing, submit was interrupted. ``position`` is that in the controller's queue, from 1; 0 if it is in no
    queue. ``estimate`` is the controller's of when a waiting job starts, None where it made none.
    """

    stage: Stage
    slots: tuple[Slot, ...] = ()
    worker_requests: Resources = field(default_factory=dict)
    enforcement: Enforcement = Enforcement.NONE
    hostnames: Mapping[str, str] = field(default_factory=dict)
    level: str = ""
    domain: str = ""
    written: str = ""
    waiting_reason: str = ""
    requested_options: Mapping[str, str] = field(default_factory=dict)
    companion_paths: tuple[str, ...] = ()
    gpu_enforcement: GpuEnforcement = GpuEnforcement.NONE
    position: int = 0
    roles: tuple[PlannedRole, ...] = ()
    estimate: StartEstimate | None = None
    spares: tuple[Slot, ...] = ()

    @property
    def taken(self) -> tuple[Slot, ...]:
        """All that it reserves: the places of its workers, and its spare room."""
        return self.slots + self.spares if self.spares else self.slots

    def requests_of(self, worker: int) -> Resources:
        """Return what the pod with the number *worker* requests, GPUs included.

        For example, with a chief and two parameter servers number 2 is the second server.
        """
        for role in self.roles:
            if worker < role.pods:
                return role.requests
            worker -= role.pods
        return self.worker_requests

    def hostname(self, node: str) -> str:
        """Return the value of the hostname label of *node*."""
        return self.hostnames.get(node, node)


# What of a plan is enforced, in words.

_ENFORCED_GPUS = {
    GpuEnforcement.CLAIMS: "each on its own GPUs, by a DRA claim",
    GpuEnforcement.SHARED_CLAIMS: (
        "the workers of a node share a DRA claim, each its own GPUs first (experimental: not seen on hardware yet)"
    ),
    GpuEnforcement.UUIDS: "each on its own GPUs, requested from HAMi by UUID",
    GpuEnforcement.NONE: "the kubelet chooses which GPUs of its node a worker gets",
}

_ENFORCED = {
    Enforcement.ADMISSION: "all workers together, each on its node, by the cluster's admission policy",
    Enforcement.GATES: (
        "all workers together, each on its node, by scheduling gates; "
        "a recreated worker waits for arena-topo resume"
    ),
    Enforcement.AFFINITY: "the set of nodes, by node affinity; which worker goes where is left to the scheduler",
    Enforcement.NONE: "nothing: the placement is a prediction",
}


def enforced_text(record: PlanRecord) -> str:
    """Return what of the confirmed *record* is enforced, and by what, with semicolons between the facts."""
    text = "; ".join(filter(None, (_ENFORCED[record.enforcement], _spares_of(record))))
    # Of GPUs there is something to say only where the plan knows them and each worker has a node of its own.
    if not (record.enforcement.places_each_worker and any(slot.gpus for slot in record.slots)):
        return text
    return f"{text}; {_ENFORCED_GPUS[record.gpu_enforcement]}"


def _spares_of(record: PlanRecord) -> str:
    each = sum(amount for name, amount in record.worker_requests.items() if "gpu" in name)
    return spares_text(record.spares, each)


def spares_text(spares: Sequence[Slot], gpus: int) -> str:
    """Return what spare room for workers of so many *gpus* costs: ``2 spare nodes held: 16 GPUs idle``."""
    if not spares:
        return ""
    idle = f"{plural(len(spares) * gpus, 'GPU')} idle" if gpus else "idle"
    return f"{plural(len({slot.node for slot in spares}), 'spare node')} held: {idle}"


class UnreadablePlan(ValueError):
    """The annotation is not a plan of a version that this tool knows."""


def plan_text(job: Object) -> str | None:
    """Return the plan that *job* carries as text, None where it carries none."""
    text: str | None = (job["metadata"].get("annotations") or {}).get(PLAN)
    return text


def encode(record: PlanRecord) -> str:
    """Return *record* as one line of JSON, which repeats neither nodes nor GPUs: 1,000 workers in 40 KiB."""
    # Keys and values are a wire format: jobs that are already in a cluster carry them.
    document = {
        "v": _VERSION,
        "stage": record.stage.value,
        "nodes": [[node, len(list(slots))] for node, slots in groupby(slot.node for slot in record.slots)],
        "gpus": [
            [_gpus_text(gpus), len(list(alike))]
            for gpus, alike in groupby(slot.gpus for slot in record.slots)
        ],
        "each": dict(record.worker_requests),
        "means": record.enforcement.value,
        "hostnames": dict(record.hostnames),
        "level": record.level,
        "domain": record.domain,
        "written": record.written,
        "remark": record.waiting_reason,
        "wishes": dict(record.requested_options),
        "needs": list(record.companion_paths),
        "gpusBy": record.gpu_enforcement.value,
        "position": record.position,
        # Programs that know no roles count the requests of the first one for every pod.
        "roles": [
            {"name": role.name, "pods": role.pods, "each": dict(role.requests)} for role in record.roles
        ],
        "start": ESTIMATE.write(record.estimate) if record.estimate else None,
        "spares": [[node, len(list(slots))] for node, slots in groupby(slot.node for slot in record.spares)],
    }
    return json.dumps({key: value for key, value in document.items() if value}, separators=(",", ":"))


def decode(text: str) -> PlanRecord:
    """Return the plan that ``encode`` wrote. Raises ``UnreadablePlan``."""
    # Anyone who may edit the job may edit its annotations, so that the document may have any shape and any
    # size.
    try:
        return _decoded(read_json(text))
    except (ValueError, DocumentError) as error:
        raise UnreadablePlan(f"the annotation {PLAN} cannot be read: {reason_of(error)}") from error


def _decoded(value: object) -> PlanRecord:
    """Return the plan in *value*; raises ``ValueError`` or ``DocumentError``."""
    document = checked_mapping(value, "it")
    if document.get("v") != _VERSION:
        raise ValueError(f"it is of version {shown(document.get('v'))}, and this tool knows {_VERSION}")
    # Empty values were left out when the plan was written, so that keys may be absent.
    values = read_fields(_TABLE, document, "it", strict=False)
    nodes, gpus = _repeated(document, "nodes"), _repeated(document, "gpus")
    held = _repeated(document, "spares")
    if len(nodes) != len(gpus):
        raise ValueError(f"{len(nodes)} workers have nodes and {len(gpus)} have GPUs")
    # Nodes and sets of GPUs repeat, and each text is read once.
    indices = {text: _parsed_gpus(text) for text in set(gpus)}
    slots = (Slot(worker, node, indices[gpus[worker]]) for worker, node in enumerate(nodes))
    _check_roles(values["roles"], len(nodes))
    spares = tuple(Slot(number, node) for number, node in enumerate(held, len(nodes)))
    return PlanRecord(slots=tuple(slots), spares=spares, **values)


def _check_roles(roles: Sequence[PlannedRole], pods: int) -> None:
    """Raise ``ValueError`` where *roles* cannot be those of a plan of *pods* pods."""
    if len(roles) > MOST_ROLES:
        raise ValueError(f"it has {len(roles)} roles, at most {MOST_ROLES} are expected")
    if any(role.pods < 1 for role in roles):
        raise ValueError("it has a role without pods")
    # A job that waits has no slots.
    if roles and pods and sum(role.pods for role in roles) != pods:
        raise ValueError(f"its roles do not have {pods} pods together")


def _repeated(document: Mapping[str, Any], key: str) -> list[str]:
    """Return the texts at *key*, each as often as the number next to it says.

    Raises ``ValueError`` for no such list. For example, ``[["a", 2], ["b", 1]]`` is a, a, b.
    """
    texts: list[str] = []
    for element, place in elements_of(document.get(key, []), key):
        match element:
            case [str() as text, int() as count] if 0 <= count <= MOST_WORKERS - len(texts):
                texts += [text] * count
            case _:
                raise ValueError(
                    f"{place} is {shown(element)}, expected a text and a count, at most {MOST_WORKERS} in all"
                )
    return texts


def _gpus_text(gpus: Sequence[int] | None) -> str:
    return "?" if gpus is None else ",".join(map(str, gpus))


def _parsed_gpus(text: str) -> tuple[int, ...] | None:
    # In the order of the ring, which is not that of their numbers.
    return (
        None if text == "?" else tuple(whole_number(index, _LAST_GPU) for index in text.split(",") if index)
    )


_TEXTS = map_of(STRING)
_ROLE: Table = (
    Field("name", STRING),
    Field("pods", WHOLE),
    Field("each", map_of(WHOLE), {}, attribute="requests"),
)
_TABLE: Table = (
    Field("stage", one_of(Stage)),
    Field("each", map_of(WHOLE), {}, attribute="worker_requests"),
    Field("means", one_of(Enforcement), Enforcement.NONE, attribute="enforcement"),
    Field("hostnames", _TEXTS, {}),
    Field("level", STRING, ""),
    Field("domain", STRING, ""),
    Field("written", STRING, ""),
    Field("remark", STRING, "", attribute="waiting_reason"),
    Field("wishes", _TEXTS, {}, attribute="requested_options"),
    Field("needs", _STRINGS, (), attribute="companion_paths"),
    Field("gpusBy", one_of(GpuEnforcement), GpuEnforcement.NONE, attribute="gpu_enforcement"),
    Field("position", WHOLE, 0),
    Field("roles", list_of(record(PlannedRole, _ROLE)), ()),
    Field("start", ESTIMATE, None, attribute="estimate"),
)


def slots_by_node(record: PlanRecord) -> dict[str, list[Slot]]:
    """Return the slots of *record* on each of its nodes."""
    nodes: dict[str, list[Slot]] = {}
    for slot in record.slots:
        nodes.setdefault(slot.node, []).append(slot)
    return nodes


def placed_text(record: PlanRecord) -> str:
    """Return where the pods are: ``4 workers on 2 nodes in rack r0``, ``1 chief, 2 ps on 3 nodes``.

    With spare nodes it says what they cost, after a semicolon.
    """
    nodes = placed_words(len(slots_by_node(record)), record.level, record.domain)
    return "; ".join(filter(None, (f"{pods_text(record)} on {nodes}", _spares_of(record))))


def pods_text(record: PlanRecord) -> str:
    """Return how many pods of which roles *record* places: ``4 workers``, or ``1 chief, 2 ps``."""
    roles = [counted_role(role.pods, role.name) for role in record.roles if record.slots]
    return ", ".join(roles) or plural(len(record.slots), "worker")
