"""The admission policy: the lists that a pod template carries for its pods become the pins of each pod.

One MutatingAdmissionPolicy for the whole cluster, installed once by an admin, looks at each pod at its
creation. Which entry of the lists is a pod's own depends on its kind, whose module knows it in CEL; the
template of a role says where the role begins in the lists. A worker of an MPIJob is known by its name, which
is the same as its line in the hostfile; pods of other kinds by labels. No process has to stay alive for it,
and a recreated pod gets its node again.

Source: k8s.io/api/admissionregistration/v1.
"""

from arena_topo.kinds.table import KINDS
from arena_topo.model.keys import (
    HAMI_USE_GPUS,
    HOSTNAME,
    MANAGED_BY,
    OWN_NAME,
    PIN_CLAIMS,
    PIN_GPUS,
    PIN_NODES,
    PIN_OFFSET,
    POD_GROUP,
    POLICY_VERSION,
)
from arena_topo.model.objects import Object

NAME = "arena-topo"
GROUP = "admissionregistration.k8s.io"
VERSION = 4
"""Incremented with every change of what the policy does, so that an old one is recognized.

A newer policy pins whatever an older program writes.
"""

MPIJOBS_SINCE = 2
"""The oldest version that pins MPIJobs as this program means it; other kinds of jobs need ``VERSION``."""

APIS = ("v1", "v1beta1", "v1alpha1")
"""Versions of the policy's API, best first: GA in Kubernetes 1.36, off by default before."""

_ANNOTATIONS = "object.metadata.annotations"
_KEYS = (PIN_NODES, PIN_GPUS, PIN_CLAIMS, POD_GROUP)
_CLAIM = "gpus"

_FORM = "^[0-9]{1,9}:[^,]*(,[0-9]{1,9}:[^,]*)*$"
"""Runs as ``run_lists`` writes them."""

_BLOCK = 101
"""Runs of a block, and blocks of a list: room for the runs of ``MOST_WORKERS``."""


def policy_objects(api: str, *, gangs: bool) -> tuple[Object, Object]:
    """Return the policy and its binding for the *api* that is served.

    *gangs*: whether pods have ``spec.schedulingGroup`` (Kubernetes 1.36 or later); the server refuses a
    policy that names a field which does not exist.
    """
    policy = _object(api, "MutatingAdmissionPolicy", _spec(gangs=gangs))
    binding = _object(api, "MutatingAdmissionPolicyBinding", {"policyName": NAME})
    return policy, binding


def installed_version(policy: Object) -> int:
    """Return the version of an installed policy, 0 if it has none."""
    text = str((policy["metadata"].get("labels") or {}).get(POLICY_VERSION, ""))
    return int(text) if text.isdecimal() else 0


def sets_gangs(policy: Object) -> bool:
    """Whether an installed policy puts workers into PodGroups."""
    mutations = policy["spec"].get("mutations") or ()
    return any(
        "schedulingGroup" in str((mutation.get("applyConfiguration") or {}).get("expression"))
        for mutation in mutations
    )


def _object(api: str, kind: str, spec: Object) -> Object:
    labels = {MANAGED_BY: OWN_NAME, POLICY_VERSION: str(VERSION)}
    return {
        "apiVersion": f"{GROUP}/{api}",
        "kind": kind,
        "metadata": {"name": NAME, "labels": labels},
        "spec": spec,
    }


def _spec(*, gangs: bool) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        # A worker that was created without its pins would run anywhere: better no worker than one in the
        # wrong place.
        "failurePolicy": "Fail",
        # The first pass removes the lists, so that a second one would have none to read.
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": "asks-for-a-place", "expression": _has_a_list()},
            {"name": "has-an-index", "expression": _has_an_index()},
        ],
        "variables": [
            {"name": "index", "expression": _index()},
            {"name": "blocks", "expression": str([_BLOCK * number for number in range(_BLOCK)])},
            {"name": "steps", "expression": str(list(range(_BLOCK)))},
            *_lookup("node", PIN_NODES),
            *_lookup("gpus", PIN_GPUS),
            *_lookup("claim", PIN_CLAIMS),
        ],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": _node_patch()}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": _gpu_patch()}},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _claim_patch()}},
            *(
                [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _group_patch()}}]
                if gangs
                else []
            ),
            # Mutations apply in this order: the lists may go only after all of them were read.
            {"patchType": "JSONPatch", "jsonPatch": {"expression": _removal_patch()}},
        ],
    }


# A name says less than labels: it is asked last. Three versions of MPIJob share one rule.
_RULES = tuple(dict.fromkeys((kind.is_pinnable, kind.index) for kind in reversed(KINDS)))


def _index() -> str:
    """Return the index of the pod in the lists: its index in its role, after the roles before its own.

    Only pods of the kinds come here, so that the last rule need not ask whether it applies.
    """
    *rules, (_, last) = _RULES
    own = "".join(f"({condition}) ? {index} : " for condition, index in rules) + last
    offset = f"'{PIN_OFFSET}' in {_ANNOTATIONS} ? int({_ANNOTATIONS}['{PIN_OFFSET}']) : 0"
    return f"({own}) + ({offset})"


def _has_a_list() -> str:
    keys = " || ".join(f"'{key}' in {_ANNOTATIONS}" for key in _KEYS)
    return f"has({_ANNOTATIONS}) && ({keys})"


def _has_an_index() -> str:
    return " || ".join(f"({condition})" for condition, _ in _RULES)


def _lookup(name: str, key: str) -> list[dict[str, str]]:
    """Return variables with the pod's own value of list *key*: that of the last run that starts by its index.

    For worker 5 and the list ``0:node-a,4:node-b,8:`` the runs that start by 5 are ``0:node-a`` and
    ``4:node-b``, so that its value is ``node-b``. The runs are read in blocks: the first run of each, and
    then those of one block. Users may write any list, and the API server reads it for each pod: its form is
    checked first, in time linear in its length.
    """
    text, runs = f"{_ANNOTATIONS}['{key}']", f"variables.{name}Runs"

    def begins(number: str) -> str:
        run = f"{runs}[{number}]"
        return f"{number} < size({runs}) && int({run}.substring(0, {run}.indexOf(':'))) <= variables.index"

    found, last = f"variables.{name}Found", f"{runs}[variables.{name}Last]"
    return [
        {
            "name": f"{name}Runs",
            # Without such a list, a single run without a value pins no pod; a malformed run is refused.
            "expression": f"!('{key}' in {_ANNOTATIONS}) ? ['0:'] : {text}.matches('{_FORM}') ? {text}.split(',') : ['']",
        },
        {
            "name": f"{name}Block",
            "expression": f"size({runs}) > {_BLOCK**2} ? [int('too many runs: ' + string(size({runs})))] : variables.blocks"
            f".filter(first, {begins('first')})",
        },
        {
            "name": f"{name}Found",
            "expression": f"variables.steps.map(step, variables.{name}Block[size(variables.{name}Block) - 1] + step)"
            f".filter(number, {begins('number')})",
        },
        {"name": f"{name}Last", "expression": f"{found}[size({found}) - 1]"},
        {"name": name, "expression": f"{last}.substring({last}.indexOf(':') + 1)"},
    ]


def _node_patch() -> str:
    key = HOSTNAME.replace("/", "~1")
    # A JSON patch cannot add a key to a map that does not exist.
    into = f"JSONPatch{{op: 'add', path: '/spec/nodeSelector/{key}', value: variables.node}}"
    fresh = f"JSONPatch{{op: 'add', path: '/spec/nodeSelector', value: {{'{HOSTNAME}': variables.node}}}}"
    # A node that was chosen for this pod is newer than the plan: the pod keeps it.
    is_chosen = f"'{HOSTNAME}' in object.spec.nodeSelector"
    return f"variables.node == '' ? [] : !has(object.spec.nodeSelector) ? [{fresh}] : {is_chosen} ? [] : [{into}]"


def _gpu_patch() -> str:
    # A comma separates the runs of a list, so the UUIDs in it are joined by a plus sign, and by commas for
    # HAMi.
    path = f"/metadata/annotations/{HAMI_USE_GPUS.replace('/', '~1')}"
    patch = f"JSONPatch{{op: 'add', path: '{path}', value: variables.gpus.replace('+', ',')}}"
    return f"variables.gpus == '' ? [] : [{patch}]"


def _claim_patch() -> str:
    """Return the patch that gives the pod its claim, and the first container the claimed GPUs.

    It is an apply configuration, because a JSON patch with a list of objects makes kube-apiserver 1.36.3
    panic.
    """
    claim = f"Object.spec.resourceClaims{{name: '{_CLAIM}', resourceClaimName: variables.claim}}"
    used = f"Object.spec.containers.resources.claims{{name: '{_CLAIM}'}}"
    container = (
        "Object.spec.containers{name: object.spec.containers[0].name, "
        f"resources: Object.spec.containers.resources{{claims: [{used}]}}}}"
    )
    whole = f"Object{{spec: Object.spec{{resourceClaims: [{claim}], containers: [{container}]}}}}"
    return f"variables.claim == '' ? Object{{}} : {whole}"


def _group_patch() -> str:
    group = f"Object.spec.schedulingGroup{{podGroupName: {_ANNOTATIONS}['{POD_GROUP}']}}"
    whole = f"Object{{spec: Object.spec{{schedulingGroup: {group}}}}}"
    return f"'{POD_GROUP}' in {_ANNOTATIONS} ? {whole} : Object{{}}"


def _removal_patch() -> str:
    """Return the patch that removes the lists, which describe every pod of the role and may be long."""
    return " + ".join(
        f"('{key}' in {_ANNOTATIONS} ? [JSONPatch{{op: 'remove', "
        f"path: '/metadata/annotations/{key.replace('/', '~1')}'}}] : [])"
        for key in (PIN_NODES, PIN_GPUS, PIN_CLAIMS, PIN_OFFSET)
    )
