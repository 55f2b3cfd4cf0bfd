"""The admission policy: the lists that a pod template carries for all of its pods become the pins of each pod.

One MutatingAdmissionPolicy for the whole cluster, installed once by an admin, looks at each pod at its creation. Which
entry of the lists is a pod's own, its index, depends on who made the pod:

| pods of | index |
|---|---|
| MPIJob, every version | the number at the end of the name ``JOB-worker-N``, as in the hostfile |
| PyTorchJob, TFJob | label ``training.kubeflow.org/replica-index``, counted in each role |
| an indexed Job | label ``batch.kubernetes.io/job-completion-index`` |
| JobSet, TrainJob | job index x pods per Job + completion index; the template says how many pods a Job has |

A worker of an MPIJob is known by its name: its label counts from one where the launcher is a worker too, and v1alpha1
has none. Every role has a template and lists of its own. No process has to stay alive for the policy, and a recreated
pod gets its place again.

Sources: k8s.io/api/admissionregistration/v1; names and labels of pods in mpi-operator 0.8.2 (``workerName``),
training-operator 1.9, Arena's operator, JobSet 0.12 and Kubernetes' Job controller.
"""

from arena_topo.model.keys import (
    COMPLETION_INDEX,
    HAMI_USE_GPUS,
    HOSTNAME,
    JOBSET_JOB_INDEX,
    MANAGED_BY,
    OPERATOR_NAME,
    OPERATOR_REPLICA_INDEX,
    OWN_NAME,
    PIN_CLAIMS,
    PIN_GPUS,
    PIN_NODES,
    POD_GROUP,
    PODS_PER_JOB,
    POLICY_VERSION,
)
from arena_topo.model.objects import Object

NAME = "arena-topo"
GROUP = "admissionregistration.k8s.io"
VERSION = 3
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


def policy_objects(api: str, *, gangs: bool) -> tuple[Object, Object]:
    """Return the policy and its binding for the *api* that is served.

    *gangs*: whether pods have ``spec.schedulingGroup`` (Kubernetes 1.36 or later); the server refuses a policy that
    names a field which does not exist.
    """
    policy = _object(api, "MutatingAdmissionPolicy", _spec(gangs=gangs))
    binding = _object(api, "MutatingAdmissionPolicyBinding", {"policyName": NAME})
    return policy, binding


def installed_version(policy: Object) -> int:
    """Return the version of an installed policy, 0 where it has none."""
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
        # A worker that was created without its pins would run anywhere: better no worker than one in the wrong place.
        "failurePolicy": "Fail",
        # The first pass removes the lists, so that a second one would have none to read.
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": "asks-for-a-place", "expression": _has_a_list()},
            {"name": "has-an-index", "expression": _has_an_index()},
        ],
        "variables": [
            {"name": "index", "expression": _INDEX},
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


_MPI_OPERATOR = "mpi-operator"
_UNPINNED = 1_000_000_000
"""Added to the index of a pod whose Job is not the first of a JobSet that does not say how many pods a Job has."""


# Looked up without optionals: in kube-apiserver 1.36.3 the value of one is no string that int() would take.
_LABELS = "object.metadata.labels"
_IS_INDEXED = f"(has({_LABELS}) && '{COMPLETION_INDEX}' in {_LABELS})"
_IS_REPLICA = (
    f"(has({_LABELS}) && '{OPERATOR_REPLICA_INDEX}' in {_LABELS} && '{OPERATOR_NAME}' in {_LABELS} && "
    f"{_LABELS}['{OPERATOR_NAME}'] != '{_MPI_OPERATOR}')"
)
_JOB_INDEX = f"('{JOBSET_JOB_INDEX}' in {_LABELS} ? int({_LABELS}['{JOBSET_JOB_INDEX}']) : 0)"
_PODS_PER_JOB = f"('{PODS_PER_JOB}' in {_ANNOTATIONS} ? int({_ANNOTATIONS}['{PODS_PER_JOB}']) : {_UNPINNED})"
_INDEX = (
    f"{_IS_INDEXED} ? {_JOB_INDEX} * {_PODS_PER_JOB} + int({_LABELS}['{COMPLETION_INDEX}'])"
    f" : {_IS_REPLICA} ? int({_LABELS}['{OPERATOR_REPLICA_INDEX}'])"
    " : int(object.metadata.name.substring(object.metadata.name.lastIndexOf('-') + 1))"
)


def _has_a_list() -> str:
    keys = " || ".join(f"'{key}' in {_ANNOTATIONS}" for key in _KEYS)
    return f"has({_ANNOTATIONS}) && ({keys})"


def _has_an_index() -> str:
    # v1alpha1 gives the launcher the workers' template with the same lists, so that the name must decide.
    # A pod whose name is generated may have none yet when the policy sees it.
    is_worker = "has(object.metadata.name) && object.metadata.name.matches('-worker-[0-9]+$')"
    return f"{_IS_INDEXED} || {_IS_REPLICA} || ({is_worker})"


def _lookup(name: str, key: str) -> list[dict[str, str]]:
    """Return variables that hold the pod's own value of list *key*: that of the last run that starts by its index.

    For worker 5 and the list ``0:node-a,4:node-b,8:`` the runs that start by 5 are ``0:node-a`` and ``4:node-b``, so
    that its value is ``node-b``.
    """
    # Where there is no such list, a single run without a value pins nobody.
    runs = (
        f"'{key}' in {_ANNOTATIONS} ? {_ANNOTATIONS}['{key}'].split(',')"
        ".filter(run, int(run.substring(0, run.indexOf(':'))) <= variables.index) : ['0:']"
    )
    last = f"variables.{name}Runs[size(variables.{name}Runs) - 1]"
    return [
        {"name": f"{name}Runs", "expression": runs},
        {"name": name, "expression": f"{last}.substring({last}.indexOf(':') + 1)"},
    ]


def _node_patch() -> str:
    key = HOSTNAME.replace("/", "~1")
    # A JSON patch cannot add a key to a map that does not exist.
    into = f"JSONPatch{{op: 'add', path: '/spec/nodeSelector/{key}', value: variables.node}}"
    fresh = f"JSONPatch{{op: 'add', path: '/spec/nodeSelector', value: {{'{HOSTNAME}': variables.node}}}}"
    # Somebody who chose a node for this pod knows better than a plan that was made before: the pod keeps it.
    is_chosen = f"'{HOSTNAME}' in object.spec.nodeSelector"
    return f"variables.node == '' ? [] : !has(object.spec.nodeSelector) ? [{fresh}] : {is_chosen} ? [] : [{into}]"


def _gpu_patch() -> str:
    # A comma separates the runs of a list, so the UUIDs in it are joined by a plus sign, and by commas for HAMi.
    path = f"/metadata/annotations/{HAMI_USE_GPUS.replace('/', '~1')}"
    patch = f"JSONPatch{{op: 'add', path: '{path}', value: variables.gpus.replace('+', ',')}}"
    return f"variables.gpus == '' ? [] : [{patch}]"


def _claim_patch() -> str:
    """Return the patch that gives the pod its claim, and the first container the claimed GPUs.

    It is an apply configuration, because a JSON patch with a list of objects makes kube-apiserver 1.36.3 panic.
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
    """Return the patch that removes the lists from the pod: they describe every pod of its role, and may be long."""
    return " + ".join(
        f"('{key}' in {_ANNOTATIONS} ? [JSONPatch{{op: 'remove', "
        f"path: '/metadata/annotations/{key.replace('/', '~1')}'}}] : [])"
        for key in (PIN_NODES, PIN_GPUS, PIN_CLAIMS, PODS_PER_JOB)
    )
