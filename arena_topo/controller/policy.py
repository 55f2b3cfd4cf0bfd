"""The admission policy that keeps the controller's token to what the controller writes.

RBAC grants whole objects: to write plans, the token may patch every job, and to release workers, every pod.
The policy compares each object that it writes with the one before. Of an MPIJob with a plan, for example,
only these may differ, and of a job without a plan nothing may::

    metadata.annotations: arena-topo.dev/plan, arena-topo.dev/moves, arena-topo.dev/hang
    spec.runPolicy.suspend
    spec.mpiReplicaSpecs.*.template          lists of pins, node affinity and spread by host, three variables
    spec.mpiReplicaSpecs.Worker.replicas     of an elastic job, within its bounds

The paths are those of each kind. What may differ is a tree of keys, which ``_differ_only`` turns into CEL.

Sources: k8s.io/api/admissionregistration/v1, since Kubernetes 1.30; KEP-3488.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from arena_topo.cluster.published import PART_NAMES
from arena_topo.diagnosis.look import SCRIPTS
from arena_topo.jobs.evidence import EVIDENCE
from arena_topo.kinds.table import KINDS
from arena_topo.kinds.trainjob import MANAGER
from arena_topo.manifest.plan_on_job import SHARED_GPU_ENV
from arena_topo.model.keys import (
    CHECK_CONTROLLER,
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    DRA_GPU,
    ELASTIC,
    GANG_GATE,
    HAMI_USE_GPUS,
    HANG,
    HOSTNAME,
    KUEUE_QUEUE,
    LAUNCHER_OF,
    MANAGED_BY,
    MOVES,
    OUR_DOMAIN,
    OWN_NAME,
    PIN_CLAIMS,
    PIN_GPUS,
    PIN_NODES,
    PIN_OFFSET,
    PLAN,
    PLANNED,
    PLANNED_JOB,
)
from arena_topo.model.kind import Kind, Loose
from arena_topo.model.objects import Object

_API = "admissionregistration.k8s.io/v1"
_USER = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"

_NOW, _BEFORE, _LABELS = "variables.now", "variables.before", "variables.labels"


def policy_objects(labels: Mapping[str, str]) -> list[Object]:
    """Return the policy, whose metadata has *labels*, and its binding."""
    metadata = {"name": CONTROLLER, "labels": {**labels}}
    kind = "ValidatingAdmissionPolicy"
    binding = {"policyName": CONTROLLER, "validationActions": ["Deny"]}
    return [
        {"apiVersion": _API, "kind": kind, "metadata": metadata, "spec": _spec()},
        {"apiVersion": _API, "kind": f"{kind}Binding", "metadata": metadata, "spec": binding},
    ]


def _spec() -> Object:
    return {
        # A controller whose writes cannot be checked writes nothing.
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [*_resource_rules()]},
        # No other user is matched, so that a fault of this policy stops only the controller.
        "matchConditions": [
            {"name": "is-the-controller", "expression": f"request.userInfo.username == '{_USER}'"}
        ],
        # One policy is for objects of many types, which the server would check each expression against.
        "variables": [
            {"name": "now", "expression": "dyn(object)"},
            {"name": "before", "expression": "dyn(oldObject)"},
            {
                "name": "labels",
                "expression": f"(request.operation == 'CREATE' ? {_NOW} : {_BEFORE}).metadata.?labels.orValue({{}})",
            },
        ],
        "validations": [
            {
                "expression": f"!({where}) || ({condition})",
                "message": f"the controller of arena-topo may {may}",
                "reason": "Forbidden",
            }
            for where, condition, may in _validations()
        ],
    }


_Validation = tuple[str, str, str]
"""Of which requests, the condition in CEL, and what the controller may do."""

_JOBS = {(kind.group, kind.plural): kind for kind in reversed(KINDS) if kind.suspend}
"""The kinds of jobs that may wait; versions of one kind have the same fields."""


def _resource_rules() -> Iterator[Object]:
    """Yield all that the controller's roles let it write."""
    yield _rule("", ("pods",), "UPDATE", "DELETE")
    yield _rule("", ("pods/exec",), "CONNECT")
    yield _rule("", ("events",), "CREATE")
    yield _rule("", ("configmaps",), "CREATE", "UPDATE")
    yield _rule("coordination.k8s.io", ("leases",), "CREATE", "UPDATE")
    yield _rule("resource.k8s.io", ("resourceclaims",), "CREATE", "DELETE")
    yield _rule("kueue.x-k8s.io", ("workloads/status", "admissionchecks/status"), "UPDATE")
    for group in dict.fromkeys(group for group, _ in _JOBS):
        yield _rule(group, [plural for of, plural in _JOBS if of == group], "UPDATE")


def _rule(group: str, resources: Sequence[str], *operations: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": [*operations],
        "resources": [*resources],
    }


def _validations() -> Iterator[_Validation]:
    yield from _of_jobs()
    yield from _of_pods()
    yield from _of_queues()
    # RBAC limits creations to a namespace, and not to names.
    at_home = f"request.namespace == '{CONTROLLER_NAMESPACE}' && {_NOW}.metadata.name in"
    evidence = _all(
        "request.operation == 'CREATE'",
        f"{_NOW}.metadata.name.endsWith('{EVIDENCE}')",
        f"size({_NOW}.metadata.?ownerReferences.orValue([])) == 1",
        f"{_NOW}.?immutable.orValue(false)",
    )
    yield _to("leases"), f"{at_home} {[CONTROLLER]}", "write its own Lease"
    yield (
        _to("configmaps"),
        f"{at_home} {[*PART_NAMES]} || {evidence}",
        "write the ConfigMaps that it publishes, and evidence of hung jobs, once",
    )
    yield (_to("pods/exec"), _looks_only(), "run in containers what shows what ranks do, and nothing else")
    yield (
        _to("events"),
        f"{_NOW}.?source.?component.orValue('') == '{CONTROLLER}'",
        "report events as itself",
    )
    is_ours = f"{_LABELS}[?'{MANAGED_BY}'].orValue('') == '{OWN_NAME}' && '{PLANNED_JOB}' in {_LABELS}"
    owned = f"size({_NOW}.metadata.?ownerReferences.orValue([])) == 1"
    asked = "(r.?exactly.hasValue() ? r.exactly : r)"
    yield (
        _to("resourceclaims"),
        # Of a claim that exists only the labels are known to be those of a claim for a job.
        _all(
            is_ours,
            f"(request.operation == 'DELETE' || {owned} && !{_NOW}.spec.devices.?config.hasValue()"
            f" && {_NOW}.spec.devices.requests.all(r, {asked}.?deviceClassName.orValue('') == '{DRA_GPU}'"
            f" && !{asked}.?adminAccess.orValue(false)))",
        ),
        f"create and delete ResourceClaims for the GPUs of planned jobs, of the class {DRA_GPU}",
    )


def _looks_only() -> str:
    """Return the condition that a command is one of ours with numbers as arguments, and reads no input."""
    scripts = ", ".join(map(json.dumps, SCRIPTS))
    command = f"{_NOW}.command"
    return _all(
        f"!{_NOW}.?stdin.orValue(false) && !{_NOW}.?tty.orValue(false)",
        f"size({command}) > 2 && {command}[0] == 'sh' && {command}[1] == '-c' && {command}[2] in [{scripts}]",
        # The name of the script is the word after it.
        f"{command}.all(w, w in ['sh', '-c', {scripts}] || w.matches('^[0-9.]{{1,12}}$'))",
    )


def _to(resource: str, operation: str = "") -> str:
    """Return the condition that the request is about *resource*, which may be a status."""
    plural, _, sub = resource.partition("/")
    about = [f"request.resource.resource == '{plural}'", f"request.?subResource.orValue('') == '{sub}'"]
    return _all(*about, *([f"request.operation == '{operation}'"] if operation else []))


def _all(*conditions: str) -> str:
    return " && ".join(conditions)


def _of_jobs() -> Iterator[_Validation]:
    jobs = " || ".join(f"({_to(plural)})" for _, plural in _JOBS)
    is_planned = _all(
        f"{_LABELS}[?'{PLANNED}'].orValue('') == 'true'",
        *(f"'{PLAN}' in {side}.metadata.?annotations.orValue({{}})" for side in (_BEFORE, _NOW)),
    )
    # Kueue's jobs have no plan: our check pins their pods, and only workers that are lost get other pins.
    is_queued = (
        f"'{KUEUE_QUEUE}' in {_LABELS} && !('{PLAN}' in {_BEFORE}.metadata.?annotations.orValue({{}}))"
    )
    yield (jobs, f"{is_planned} || {is_queued}", "change jobs that have a plan, or are in a queue of Kueue")
    for (_, plural), kind in _JOBS.items():
        yield (
            _all(_to(plural), is_planned),
            _differ_only(_NOW, _BEFORE, _of_job(kind)),
            "change the plan of a job, its pins, its size and whether it is suspended, and nothing else",
        )
        yield (
            _all(_to(plural), is_queued),
            _differ_only(_NOW, _BEFORE, _of_queued_job(kind)),
            "change the pins that a job in a queue of Kueue has, and nothing else",
        )
        if kind.elastic:
            yield (
                _to(plural),
                _size_is_allowed(kind),
                "change the number of workers of an elastic job, within its bounds",
            )
    patches = "spec.?runtimePatches.orValue([])"
    yield (
        _to("trainjobs"),
        f"{_BEFORE}.{patches}.all(p, p.?manager.orValue('') == '{MANAGER}' || p in {_NOW}.{patches})",
        "change its own patch of a runtime",
    )


def _of_pods() -> Iterator[_Validation]:
    is_planned = f"{_LABELS}[?'{PLANNED}'].orValue('') == 'true' && '{PLANNED_JOB}' in {_LABELS}"
    # A launcher whose node is gone holds up its job.
    is_launcher = f"'{LAUNCHER_OF}' in {_LABELS}"
    gates, is_ours = "spec.?schedulingGates.orValue([])", f"g.name == '{GANG_GATE}'"
    yield (
        _to("pods", "DELETE"),
        f"{is_planned} || {is_launcher}",
        "delete pods of planned jobs, and their launchers",
    )
    yield (
        _to("pods", "UPDATE"),
        f"{is_planned} && {_BEFORE}.{gates}.exists(g, {is_ours})",
        "release the gated pods of planned jobs",
    )
    released: _Tree = {
        "metadata": {**_METADATA, "annotations": {HAMI_USE_GPUS: _anything}},
        "spec": {"nodeSelector": {HOSTNAME: _anything}, "schedulingGates": _anything},
        "status": _anything,
    }
    yield (
        _to("pods", "UPDATE"),
        _all(
            f"{_BEFORE}.{gates}.filter(g, !({is_ours})) == {_NOW}.{gates}",
            f"'{HOSTNAME}' in {_NOW}.spec.?nodeSelector.orValue({{}})",
            _differ_only(_NOW, _BEFORE, released),
        ),
        "open its own gate of a pod, name its node and its GPUs, and change nothing else",
    )


def _of_queues() -> Iterator[_Validation]:
    """Yield what may change of Kueue's objects: our answers, which carry nothing but our own pins."""
    answer: _Tree = dict.fromkeys(("state", "message", "lastTransitionTime", "podSetUpdates"), _anything)
    yield (
        _to("workloads/status"),
        _differ_only(
            f"{_NOW}[?'status'].orValue(dyn({{}}))",
            f"{_BEFORE}[?'status'].orValue(dyn({{}}))",
            {"admissionChecks": {"*": answer}},
        ),
        "answer admission checks of Workloads, and change nothing else of them",
    )
    pins = _all(
        "u.all(k, k in ['name', 'labels', 'annotations'])",
        *(
            f"u.?{field}.orValue({{}}).all(k, k.startsWith('{OUR_DOMAIN}/'))"
            for field in ("labels", "annotations")
        ),
    )
    checks = "?status.?admissionChecks.orValue([])"
    yield (
        _to("workloads/status"),
        f"{_NOW}.{checks}.all(c, c in {_BEFORE}.{checks} || c.?podSetUpdates.orValue([]).all(u, {pins}))",
        f"give the pods of a Workload labels and annotations of {OUR_DOMAIN}",
    )
    yield (
        _to("admissionchecks/status"),
        f"{_BEFORE}.spec.controllerName == '{CHECK_CONTROLLER}' && "
        + _differ_only(
            f"{_NOW}[?'status'].orValue(dyn({{}}))",
            f"{_BEFORE}[?'status'].orValue(dyn({{}}))",
            {"conditions": _anything},
        ),
        f"report on admission checks of {CHECK_CONTROLLER}",
    )


# What may differ, as a tree of keys.

_Leaf = Callable[[str, str], str]
"""Takes the CEL of a key's values, now and before, both optional, and returns a condition on them."""

_Tree = Mapping[str, "_Leaf | _Tree"]
"""What may differ, by key; the key ``*`` stands for each element of a list, or each value of a mapping."""

_NAME_IN = {
    "replicatedJobs": "name",
    "runtimePatches": "manager",
    "containers": "name",
    "admissionChecks": "name",
}
"""The lists, and the key by which their elements are known; anything else with ``*`` is a mapping."""


def _anything(now: str, before: str) -> str:  # noqa: ARG001  # as every leaf
    return "true"


def _hosts(now: str, before: str) -> str:
    """Return the condition that two lists of node selector terms differ only in what they say of hosts."""

    def others(term: str) -> str:
        return f"{term}.?matchExpressions.orValue([]).filter(e, e.key != '{HOSTNAME}')"

    now, before = f"{now}.orValue([])", f"{before}.orValue([])"
    alike = f"{others('t')} == {others('o')} && t.?matchFields == o.?matchFields"

    def is_bare(term: str) -> str:
        return f"size({others(term)}) == 0 && !{term}.?matchFields.hasValue()"

    # The terms are alternatives: one more would let a pod run elsewhere, except where there was none.
    return (
        f"(size({before}) == 0 ? {now}.all(t, {is_bare('t')}) :"
        f" {now}.all(t, {before}.exists(o, {alike}))"
        f" && {before}.all(o, {is_bare('o')} || {now}.exists(t, {alike})))"
    )


def _spread(now: str, before: str) -> str:
    """Return the condition that two lists of spread constraints differ only in ours."""
    own = f"c.topologyKey == '{HOSTNAME}' && c.?labelSelector.?matchLabels[?'{PLANNED_JOB}'].hasValue()"
    return " == ".join(f"{each}.orValue([]).filter(c, !({own}))" for each in (now, before))


def _variables(now: str, before: str) -> str:
    """Return the condition that an environment got no more than the variables of shared GPUs."""
    names = json.dumps([variable["name"] for variable in SHARED_GPU_ENV])
    now, before = f"{now}.orValue([])", f"{before}.orValue([])"
    others = " == ".join(f"{each}.filter(e, !(e.name in {names}))" for each in (now, before))
    ours = " || ".join(
        f"e.name == {json.dumps(variable['name'])} && {_value_of(variable)}" for variable in SHARED_GPU_ENV
    )
    return (
        f"{others} && {now}.filter(e, e.name in {names}).all(e, e in {before} || {ours})"
        f" && {before}.filter(e, e.name in {names}).all(e, e in {now})"
    )


def _value_of(variable: Object) -> str:
    """Return the condition that ``e`` has the value of *variable*; the server adds defaults to references."""
    if "value" in variable:
        return f"e.?value.orValue('') == {json.dumps(variable['value'])}"
    path = json.dumps(variable["valueFrom"]["fieldRef"]["fieldPath"])
    return f"e.?valueFrom.?fieldRef.?fieldPath.orValue('') == {path}"


_SERVERS = ("resourceVersion", "generation", "managedFields")
_METADATA: _Tree = dict.fromkeys(_SERVERS, _anything)
"""What the server writes itself."""

_TEMPLATE: _Tree = {
    "metadata": {"annotations": dict.fromkeys((PIN_NODES, PIN_GPUS, PIN_CLAIMS, PIN_OFFSET), _anything)},
    "spec": {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _hosts}}
        },
        "topologySpreadConstraints": _spread,
        "containers": {"*": {"env": _variables}},
    },
}


def _of_job(kind: Kind) -> _Tree:
    """Return what may differ of a job of *kind* with a plan."""
    *path, _ = kind.pod_spec_path
    tree = _with({}, path, _TEMPLATE)
    if "runtimePatches" in path:
        # Trainer's webhook writes it when the patch changes.
        tree = _with(tree, ("spec", "runtimePatches", "*", "time"), _anything)
    tree = _with(tree, ("spec", *kind.suspend), _anything)
    if kind.elastic:
        first, specs, _, number = kind.elastic.replicas.strip("/").split("/")
        tree = _with(tree, (first, specs, "*", number), _anything)
    return _with_annotations(tree, PLAN, MOVES, HANG)


def _of_queued_job(kind: Kind) -> _Tree:
    """Return what may differ of a job of *kind* in a queue of Kueue: the pins that it has, if it can move."""
    if kind.loose is not Loose.EVERYTHING:
        return _with_annotations({}, MOVES, HANG)
    *path, _ = kind.pod_spec_path
    pins = dict.fromkeys((PIN_NODES, PIN_GPUS), _both)
    return _with_annotations(_with({}, path, {"metadata": {"annotations": pins}}), MOVES, HANG)


def _with_annotations(tree: _Tree, *keys: str) -> _Tree:
    annotations = dict.fromkeys(keys, _anything)
    return {**tree, "metadata": {**_METADATA, "annotations": annotations}, "status": _anything}


def _both(now: str, before: str) -> str:
    return f"{now}.hasValue() == {before}.hasValue()"


def _with(tree: _Tree, path: Sequence[str], leaf: "_Leaf | _Tree") -> _Tree:
    """Return *tree* with *leaf* at *path*."""
    first, *rest = path
    if not rest:
        return {**tree, first: leaf}
    below = tree.get(first, {})
    if callable(below):
        raise TypeError(f"{first} may differ as a whole")
    return {**tree, first: _with(below, rest, leaf)}


def _size_is_allowed(kind: Kind) -> str:
    """Return the condition that roles keep their size, except the elastic one of a job with bounds."""
    if kind.elastic is None:
        raise ValueError(kind.kind)
    *path, role, number = kind.elastic.replicas.strip("/").split("/")
    now, before = (f"{side}{''.join(f'.{key}' for key in path)}" for side in (_NOW, _BEFORE))
    text = f"{_BEFORE}.metadata.annotations[?'{ELASTIC}'].orValue('')"
    policy = f"{_BEFORE}.spec.?elasticPolicy"
    size = f"{now}[r].{number}"
    # As ``kinds.elastic`` reads them; the bounds of a PyTorchJob count its master too.
    least, most = f"{policy}.?minReplicas.orValue(0)", f"{policy}.?maxReplicas.orValue(0)"
    by_annotation = (
        f"{text}.matches('^[0-9]{{1,6}}:[0-9]{{1,6}}$') && int({text}.split(':')[0]) <= {size}"
        f" && {size} <= int({text}.split(':')[1])"
    )
    by_policy = f"{policy}.hasValue() && ({size} <= {most} || {size} <= {least})"
    return f"{now}.all(r, {now}[r].?{number} == {before}[r].?{number} || r == '{role}' && ({by_annotation} || {by_policy}))"


def _differ_only(now: str, before: str, tree: _Tree, depth: int = 0) -> str:
    """Return the condition that the mappings *now* and *before* differ only in what *tree* names.

    A key that is missing counts as an empty value, if *tree* names keys below it.

    >>> _differ_only("a", "b", {"x": _anything})
    "a.all(k, k in ['x'] || k in b && a[k] == b[k]) && b.all(k, k in ['x'] || k in a)"
    """
    names = [*tree]
    within = [
        _differ_within(f"{now}[?'{name}']", f"{before}[?'{name}']", name, part, depth + 1)
        for name, part in tree.items()
        if part is not _anything
    ]
    return _all(
        f"{now}.all(k, k in {names} || k in {before} && {now}[k] == {before}[k])",
        f"{before}.all(k, k in {names} || k in {now})",
        *within,
    )


def _differ_within(now: str, before: str, name: str, part: "_Leaf | _Tree", depth: int) -> str:
    """Return the condition on the values of the key *name*, both optional."""
    if callable(part):
        return part(now, before)
    # Of any type: the server would infer from the one below what each must be.
    pair, empty = f"p{depth}", "dyn([])" if name in _NAME_IN else "dyn({})"
    # Bound to a name, so that the expression does not grow with the depth of the tree.
    bound = f"[[{now}.orValue({empty}), {before}.orValue({empty})]].all({pair}, "
    now, before, each = f"{pair}[0]", f"{pair}[1]", part.get("*")
    if each is None or callable(each):
        return f"{bound}{_differ_only(now, before, part, depth)})"
    new, old = f"n{depth}", f"o{depth}"
    if name in _NAME_IN:
        is_same = f"{old}[?'{_NAME_IN[name]}'] == {new}[?'{_NAME_IN[name]}']"
        alike = f"{is_same} && {_differ_only(new, old, each, depth)}"
        return f"{bound}size({now}) == size({before}) && {now}.all({new}, {before}.exists({old}, {alike})))"
    alike = _differ_only(f"{now}[{new}]", f"{before}[{new}]", each, depth)
    return f"{bound}{now}.all({new}, {new} in {before} && {alike}) && {before}.all({new}, {new} in {now}))"
