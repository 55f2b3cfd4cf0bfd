"""What a cluster has for gangs and pins: a dozen small calls, none of which has to be allowed.

A submit only asks for the facts; ``doctor`` also reviews the caller's access, with one small call for each
need.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from arena_topo.cluster.permissions import review_access
from arena_topo.errors import ArenaTopoError, Forbidden, NotFound
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.resources import (
    DEPLOYMENTS,
    KAI_API,
    KAI_TOPOLOGIES,
    LEASES,
    NODES,
    Resource,
    admission_bindings,
    admission_policies,
    resource_of,
    resource_slices,
)
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session, is_unserved, items_of
from arena_topo.model.gang import ClusterFacts, Policy, Program, WaitingRoom
from arena_topo.model.keys import (
    ACK_SCHEDULE,
    ACK_SCHEDULE_TOPOLOGY,
    CHECK_CONTROLLER,
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    GPU_RESOURCES,
    HANGS_IN,
    NVIDIA_GPU,
)
from arena_topo.model.kind import Kind, api_version
from arena_topo.model.objects import NODE, Object
from arena_topo.model.text.documents import Each, Named, Part, count, fitted, name, quantity, text
from arena_topo.model.text.quantity import parse_instant, parse_quantity
from arena_topo.pin import admission, dra_claims

# Whether a controller of ours places the jobs of a cluster: it then holds a Lease.

TAKES_OVER = 30.0
"""Seconds in which another replica takes over, three times a Lease: a job of the meantime is placed then."""


def controller_runs(session: Session) -> bool:
    """Whether a controller holds the Lease by the server's clock; False where the user cannot see it."""
    try:
        spec = session.get(LEASES.path(CONTROLLER_NAMESPACE, CONTROLLER)).get("spec") or {}
        renewed = parse_instant(str(spec.get("renewTime")))
    # Without a controller there is no Lease, and no right to look was given.
    except (ArenaTopoError, ValueError):
        return False
    now = session.now()
    return bool(spec.get("holderIdentity")) and abs((now - renewed).total_seconds()) < TAKES_OVER


def looks_at_ranks(session: Session, namespace: str) -> bool:
    """Whether the controller says that it looks at the ranks of jobs in *namespace* that ask for it."""
    try:
        meta = session.get(LEASES.path(CONTROLLER_NAMESPACE, CONTROLLER)).get("metadata") or {}
    except ArenaTopoError:
        return False
    return namespace in str((meta.get("annotations") or {}).get(HANGS_IN) or "").split(",")


# Namespaces whose objects are taken for what the cluster's admins have installed.
#
# Anyone who has a namespace may create a Deployment named ``mpi-operator`` or a Service labelled as a
# Prometheus in it, and everybody reads those of all namespaces. Namespaces are created by admins, and
# schedulers, operators and monitoring are installed into ones with names of their own: those that end in
# ``-system``, those of Kubernetes and OpenShift, and those that are named after the programs in them, as
# their manifests and the instructions of their charts say.

_SYSTEM = re.compile(
    r"(.+-)?system|(kube|openshift)-.+|kubeflow|(mpi|training)-operator|volcano|koordinator|kueue|yunikorn|hami|"
    r"kai-scheduler|scheduler-plugins|(.+-)?monitoring|prometheus|arms-prom|observability"
)


def is_system(namespace: str) -> bool:
    """Whether *namespace* belongs to the system by its name.

    >>> [is_system(name) for name in ("volcano-system", "kube-system", "kubeflow", "kubeflow-ann", "team-a")]
    [True, True, True, False, False]
    """
    return bool(_SYSTEM.fullmatch(namespace))


# Schedulers and operators that a cluster runs, recognized by their Deployments.
#
# Names and images are those of the projects' own manifests and charts.

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
"""Patterns of images without tag, for Deployments that a chart's release has renamed."""

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
"""Patterns of the whole names of Deployments, where a chart's release has kept them."""

_SHARED_IMAGES = frozenset({"hami", "yunikorn"})
"""Projects that ship their scheduler and other programs in one image."""

_GANG_FLAGS = re.compile(r"^--?gang-schedul(?:ing|er-name)(?:=(.*))?$")


_CONTAINER = Part({"image": text, "command": Each(text), "args": Each(text)})
_POD = Part({"spec": Part({"containers": Each(_CONTAINER)})})
_DEPLOYMENT = Part(
    {
        "metadata": Part({"name": name, "namespace": name}, {"name": "", "namespace": ""}),
        "spec": Part({"template": _POD}),
        "status": Part({"readyReplicas": count}),
    },
    {"metadata": {"name": "", "namespace": ""}},
)
"""What is read of a Deployment, which anybody may have written."""


def find_programs(deployments: Iterable[Object]) -> dict[str, Program]:
    """Return the programs by their kind (``volcano``, ``mpi-operator``).

    Of several of a kind the first that is ready. Those in other namespaces than the system's may be
    anybody's, and would decide how the jobs of all are submitted.
    """
    programs: dict[str, Program] = {}
    for deployment in (fitted(item, _DEPLOYMENT) for item in deployments):
        if not is_system(deployment["metadata"].get("namespace", "")):
            continue
        for kind in _kinds(deployment):
            program = _program(deployment)
            # An old release may still be there, scaled down.
            if kind not in programs or (program.ready and not programs[kind].ready):
                programs[kind] = program
    return programs


def _kinds(deployment: Object) -> Iterator[str]:
    own_name = deployment["metadata"]["name"]
    images = [_without_tag(str(container.get("image", ""))) for container in _containers(deployment)]
    for kind, pattern in _NAMES.items():
        if re.fullmatch(pattern, own_name) or any(_matches(kind, own_name, image) for image in images):
            yield kind


def _matches(kind: str, name: str, image: str) -> bool:
    """Whether *image* is of *kind*; where its image is shared, the name must say that it is the scheduler."""
    return bool(re.search(_IMAGES[kind], image)) and (kind not in _SHARED_IMAGES or "scheduler" in name)


def _without_tag(image: str) -> str:
    image = image.partition("@")[0]
    # A registry may have a port, so that the first colon need not begin the tag:
    # registry:5000/kueue/kueue:v0.19.
    head, slash, last = image.rpartition("/")
    return head + slash + last.partition(":")[0]


def _program(deployment: Object) -> Program:
    meta, status = deployment["metadata"], deployment.get("status") or {}
    return Program(
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        ready=(status.get("readyReplicas") or 0) > 0,
        gangs=_gangs(_arguments(deployment)),
    )


def _gangs(arguments: list[str]) -> str:
    """Return the gang scheduler that an operator's arguments name, by Go's rules for flags."""
    for index, argument in enumerate(arguments):
        if match := _GANG_FLAGS.match(argument):
            # Without an equals sign the value is the next word.
            following = arguments[index + 1] if index + 1 < len(arguments) else ""
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


# Whether a queue of Kueue asks our planner to place its jobs.

KUEUE_GROUP, KUEUE_VERSIONS = "kueue.x-k8s.io", ("v1beta2",)
"""Kueue's API, and its versions that this program knows."""


def queue_api(session: Session, namespace: str, queue: str) -> str:
    """Return the version of Kueue whose LocalQueue *queue* has jobs wait for an admission check of ours.

    Empty where it does not, where there is no Kueue, and where the user cannot see it.
    """
    version = ServedApis(session).preferred(KUEUE_GROUP, KUEUE_VERSIONS)
    if not version:
        return ""
    try:
        local = session.get(Resource(KUEUE_GROUP, version, "localqueues").path(namespace, queue))
        name = str(_spec(local).get("clusterQueue") or "")
        cluster = session.get(
            Resource(KUEUE_GROUP, version, "clusterqueues", namespaced=False).path(name=name)
        )
        named = _names_of_checks(cluster)
        if not named:
            return ""
        checks = session.get(Resource(KUEUE_GROUP, version, "admissionchecks", namespaced=False).path())
    # That there is no such queue Kueue itself says on the job's Workload.
    except (Forbidden, NotFound):
        return ""
    asks = any(_is_ours(check) and check["metadata"].get("name") in named for check in items_of(checks))
    return version if asks else ""


def waiting_room(session: Session) -> WaitingRoom | None:
    """Return who decides on jobs that wait, None where the user cannot see Kueue's queues."""
    runs = controller_runs(session)
    version = ServedApis(session).preferred(KUEUE_GROUP, KUEUE_VERSIONS)
    if not version:
        return WaitingRoom(controller=runs)
    try:
        queues = list(session.list(Resource(KUEUE_GROUP, version, "clusterqueues", namespaced=False).path()))
        checks = list(
            session.list(Resource(KUEUE_GROUP, version, "admissionchecks", namespaced=False).path())
        )
        ours = {check["metadata"].get("name") for check in checks if _is_ours(check)}
        asking = [queue for queue in queues if ours.intersection(_names_of_checks(queue))]
        nodes = chain.from_iterable(map(items_of, session.pages(NODES.path()))) if asking else ()
        gpus = _total(_allocatable(nodes))
    except Forbidden:
        return None
    except NotFound:
        return WaitingRoom(controller=runs)
    return WaitingRoom(
        controller=runs,
        kueue=True,
        queues=tuple(sorted(str(queue["metadata"].get("name")) for queue in asking)),
        quota=_total(chain.from_iterable(map(_nominal, asking))),
        gpus=gpus,
    )


_QUEUE = Part(
    {
        "spec": Part(
            {
                "resourceGroups": Each(
                    Part(
                        {
                            "flavors": Each(
                                Part({"resources": Each(Part({"name": text, "nominalQuota": quantity}))})
                            )
                        }
                    )
                )
            }
        )
    }
)


def _nominal(queue: Object) -> Iterator[tuple[str, str]]:
    """Yield each resource of a ClusterQueue with its quota, flavor by flavor."""
    for group in (fitted(queue, _QUEUE).get("spec") or {}).get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for each in flavor.get("resources") or ():
                yield str(each.get("name")), str(each.get("nominalQuota") or 0)


def _allocatable(nodes: Iterable[Object]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        amounts = (fitted(node, NODE).get("status") or {}).get("allocatable") or {}
        yield from ((name, str(amount)) for name, amount in amounts.items())


def _total(amounts: Iterable[tuple[str, str]]) -> int:
    counted: Counter[str] = Counter()
    for resource, amount in amounts:
        if resource in GPU_RESOURCES:
            counted[resource] += int(parse_quantity(amount))
    return counted.total()


def _names_of_checks(cluster_queue: Object) -> list[str]:
    strategy = _spec(cluster_queue).get("admissionChecksStrategy")
    named = strategy.get("admissionChecks") if isinstance(strategy, dict) else None
    found = named if isinstance(named, list) else []
    return [str(each.get("name")) for each in found if isinstance(each, dict)]


def _is_ours(check: Object) -> bool:
    return bool(_spec(check).get("controllerName") == CHECK_CONTROLLER)


def _spec(item: Object) -> Object:
    spec = item.get("spec")
    return spec if isinstance(spec, dict) else {}


# Which pod fields the pod template of the served kind keeps: the server drops what the schema does not name.
#
# Read from the API server's OpenAPI documents, which every user may read.

_SCHEMA = Part({"properties": Named(Part({})), "allOf": Each(Part({})), "$ref": text})
POD_FIELDS = ("schedulingGates", "resourceClaims", "schedulingGroup")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def _worker_fields(session: Session, kind: Kind) -> frozenset[str] | None:
    try:
        document = session.get(f"/openapi/v3/apis/{api_version(kind)}")
    except (Forbidden, NotFound):
        # Servers before Kubernetes 1.24 do not serve OpenAPI v3 by default.
        return None
    return kept_fields(document, kind)


def kept_fields(document: Object, kind: Kind) -> frozenset[str] | None:
    """Return those of ``POD_FIELDS`` that an OpenAPI *document* keeps, None where it does not have *kind*."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    # Names are like "org.kubeflow.v2beta1.MPIJob".
    schema = next((schema for name, schema in schemas.items() if name.rpartition(".")[2] == kind.kind), None)
    if schema is None:
        return None
    # Descend to the pod's schema. A part that is open keeps everything below it, one that is closed nothing.
    schema = _resolved(schema, schemas)
    for step in kind.pod_spec_path:
        below = (
            schema.get("additionalProperties") or schema.get("items")
            if step == "*"
            else (schema.get("properties") or {}).get(step)
        )
        if not isinstance(below, dict):
            return _kept(schema, ())
        schema = _resolved(below, schemas)
    return _kept(schema, schema.get("properties") or {})


def _resolved(schema: Object, schemas: Object) -> Object:
    """Return *schema*, or the one that it refers to, as those of Kubernetes' own kinds do."""
    schema = fitted(schema, _SCHEMA)
    # A reference is the whole schema, or the only one of which all must hold, next to a description.
    choices: list[Object] = [schema, *(schema.get("allOf") or ())][:2]
    reference = next((each["$ref"] for each in choices if each.get("$ref")), None)
    found: Object | None = schemas.get(str(reference).rpartition("/")[2]) if reference else None
    resolved: Object = fitted(found or schema, _SCHEMA)
    return resolved


def _kept(schema: Object, properties: Container[str]) -> frozenset[str]:
    """Return the fields that *schema* names, or all where it keeps what it does not name."""
    return frozenset(field for field in POD_FIELDS if schema.get(_PRESERVE) or field in properties)


_Value = TypeVar("_Value")

_HAMI_REGISTER = "hami.io/node-nvidia-register"
_SAMPLE = 50
"""Nodes among which HAMi is looked for where its scheduler is not seen to run: a page of them is one short
call."""

_MOST_SLICES = 500
"""ResourceSlices that are looked through for drivers: one page, as every node's slices have the same ones."""

_NODE = Part(
    {"metadata": Part({"annotations": Named(text)}), "status": Part({"allocatable": Named(quantity)})},
    {"metadata": {}},
)
_SLICE = Part({"spec": Part({"driver": text})})
_KAI_TOPOLOGY = Part(
    {
        "metadata": Part({"name": name}, {"name": ""}),
        "spec": Part({"levels": Each(Part({"nodeLabel": text}))}),
    },
    {"metadata": {"name": ""}},
)
"""What is read of nodes, of ResourceSlices and of KAI's Topologies here."""

_NO_PROGRAMS: dict[str, Program] = {}
_NO_DRIVERS: tuple[str, ...] = ()
_NO_OBJECTS: list[Object] = []
_POD_GROUP_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")
"""Versions of kube-scheduler's own PodGroup, best first."""


def detect_with_access(session: Session) -> ClusterFacts:
    """Return what ``detect`` finds, who decides on jobs that wait, and what the caller may do."""
    facts = detect(session)
    access = review_access(session, facts.groups, facts.pod_groups, session.namespace)
    room = waiting_room(session)
    limits = _limits_controller(session) if room and room.controller else None
    return replace(facts, waiting=room, controller_limited=limits, access=access)


def _limits_controller(session: Session) -> bool | None:
    """Whether an admission policy keeps the controller's token to what the controller writes.

    None where the user may not look, and where the server is too old for such policies.
    """
    kind, version = "ValidatingAdmissionPolicy", f"{admission.GROUP}/v1"
    try:
        session.get(resource_of(version, kind).path(name=CONTROLLER))
        binding = session.get(resource_of(version, f"{kind}Binding").path(name=CONTROLLER))
    except Forbidden:
        return None
    except NotFound as error:
        return None if is_unserved(error) else False
    actions = _spec(binding).get("validationActions")
    return isinstance(actions, list) and "Deny" in actions


def detect(session: Session, *, kind: Kind | None = None) -> ClusterFacts:
    """Return the facts about the cluster of *session* for jobs of *kind*, by default of the newest MPIJob.

    A fact that the caller cannot read is None.
    """
    apis = ServedApis(session)
    programs = _none_if_forbidden(
        lambda: find_programs(session.list(DEPLOYMENTS.path())), default=_NO_PROGRAMS
    )
    versions = tuple(version for version in ApiVersion if _serves(apis, version))
    pod_groups = pod_group_api(apis)
    return ClusterFacts(
        kubernetes=str(session.get("/version").get("gitVersion") or ""),
        groups=apis.versions,
        versions=versions,
        # Jobs are submitted in the newest version, and its template decides what reaches a worker.
        worker_fields=_worker_fields(session, kind or versions[0]) if kind or versions else frozenset(),
        programs=programs,
        ack=_none_if_forbidden(lambda: _has_ack(session), default=False),
        hami=_none_if_forbidden(lambda: _has_hami(session, programs), default=False),
        dra_drivers=_dra_drivers(apis),
        pod_groups=pod_groups,
        kai_topologies=_kai_topologies(apis),
        policy=_policy(apis, gangs=bool(pod_groups)),
    )


def uses_device_plugin(session: Session) -> bool | None:
    """Whether a node offers GPUs by NVIDIA's device plugin; None where the caller cannot list nodes."""
    pages = session.pages(NODES.path())
    # The first node that offers GPUs ends the search, and the pages after its own are not fetched.
    nodes = chain.from_iterable(map(items_of, pages))
    return _none_if_forbidden(lambda: any(map(_offers_gpus, nodes)), default=False)


def _has_ack(session: Session) -> bool:
    """Whether any node is set up for ACK's scheduler.

    Raises ``Forbidden`` where the caller cannot list nodes.
    """
    selector = f"{ACK_SCHEDULE}={ACK_SCHEDULE_TOPOLOGY}"
    # One node is proof enough, so the server need not send the others.
    return bool(session.get(NODES.path(), labelSelector=selector, limit=1).get("items"))


def _serves(apis: ServedApis, version: ApiVersion) -> bool:
    if not apis.preferred(version.group, (version.value,)):
        return False
    try:
        # The kinds of the training operator share a version, and a cluster may serve only some of them.
        return bool(apis.version_with(version.group, (version.value,), version.plural))
    except (Forbidden, NotFound):
        # A proxy may list the groups, and nothing of their resources.
        return True


def pod_group_api(apis: ServedApis) -> str:
    """Return the best version in which kube-scheduler's own PodGroup is served, empty where it is not.

    Its API group has had other resources for longer, so that a served version of the group says nothing.
    """
    return apis.version_with("scheduling.k8s.io", _POD_GROUP_VERSIONS, "podgroups")


def policy_api(apis: ServedApis) -> str:
    """Return the best version in which MutatingAdmissionPolicies are served, empty where they are not."""
    return apis.version_with(admission.GROUP, admission.APIS, "mutatingadmissionpolicies")


def _none_if_forbidden(read: Callable[[], _Value], *, default: _Value) -> _Value | None:
    """Return what *read* finds, None where it is forbidden, *default* where it is not served."""
    try:
        return read()
    except Forbidden:
        return None
    except NotFound:
        return default


def _offers_gpus(node: Object) -> bool:
    amounts = (fitted(node, _NODE).get("status") or {}).get("allocatable") or {}
    return str(amounts.get(NVIDIA_GPU, "0")) != "0"


def _has_hami(session: Session, programs: Mapping[str, Program] | None) -> bool:
    """Whether HAMi has registered a node.

    *programs* are those that the cluster runs, None where they are not seen.
    """
    # HAMi marks nodes with an annotation, which no selector finds. Nodes without GPUs have none, and may come
    # first.
    if programs is None or "hami" in programs:
        nodes = chain.from_iterable(map(items_of, session.pages(NODES.path())))
        return any(map(_is_registered, nodes))
    return any(map(_is_registered, items_of(session.get(NODES.path(), limit=_SAMPLE))))


def _is_registered(node: Object) -> bool:
    return _HAMI_REGISTER in (fitted(node, _NODE)["metadata"].get("annotations") or {})


def _kai_topologies(apis: ServedApis) -> dict[str, str]:
    """Return the levels of KAI's Topologies, each with the first Topology by name that has it."""
    if KAI_API not in apis.versions:
        return {}
    topologies = _none_if_forbidden(
        lambda: list(apis.session.list(KAI_TOPOLOGIES.path())), default=_NO_OBJECTS
    )
    levels: dict[str, str] = {}
    read = (fitted(topology, _KAI_TOPOLOGY) for topology in topologies or ())
    for topology in sorted(read, key=lambda item: str(item["metadata"]["name"])):
        for level in (topology.get("spec") or {}).get("levels") or ():
            levels.setdefault(str(level.get("nodeLabel")), str(topology["metadata"]["name"]))
    return levels


def _dra_drivers(apis: ServedApis) -> tuple[str, ...] | None:
    api = apis.preferred(dra_claims.GROUP, dra_claims.VERSIONS)
    if not api:
        return ()
    path = resource_slices(api).path()
    return _none_if_forbidden(
        lambda: _drivers(apis.session.get(path, limit=_MOST_SLICES)), default=_NO_DRIVERS
    )


def _drivers(slices: Object) -> tuple[str, ...]:
    specs = (fitted(item, _SLICE).get("spec") or {} for item in items_of(slices))
    return tuple(sorted({spec["driver"] for spec in specs if spec.get("driver")}))


def _policy(apis: ServedApis, *, gangs: bool) -> Policy:
    """Return what is installed of the admission policy; without its binding it does nothing."""
    api, session = policy_api(apis), apis.session
    if not api:
        return Policy()
    try:
        installed = session.get(admission_policies(api).path(name=admission.NAME))
        session.get(admission_bindings(api).path(name=admission.NAME))
    except Forbidden:
        # Version None: it may be installed, but no job can rely on what the user cannot see.
        return Policy(api=api, version=None)
    except NotFound:
        return Policy(api=api)
    version, sets_gangs = admission.installed_version(installed), admission.sets_gangs(installed)
    # A policy from before the cluster served PodGroups lacks the part that hands workers to them.
    whole = sets_gangs or not gangs
    return Policy(
        api=api,
        version=version,
        gangs=sets_gangs,
        mpijobs=whole and version >= admission.MPIJOBS_SINCE,
        current=whole and version >= admission.VERSION,
    )
