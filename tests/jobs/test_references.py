"""What a job names and does not bring with it is looked up, and only what is missing is said."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.jobs.prepare import missing_references
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import kind_of
from arena_topo.manifest.render import Manifest
from tests.fakes import Answer, Call, FakeTransport, missing, refusal, session, unserved
from tests.jobs.manifests import MANIFESTS

CLAIM = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
WAIT = "pods that use it wait until it is created"


def written(pod: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Manifest:
    """Return an MPIJob whose launcher and workers are both *pod*, with a ConfigMap of its own."""
    role = {"replicas": 1, "template": {"spec": pod}}
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "job", "namespace": "team", "labels": labels or {}},
        "spec": {"mpiReplicaSpecs": {"Launcher": role, "Worker": role}},
    }
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job-files"}}
    return Manifest(job, ApiVersion.V2BETA1, (files,))


def said(
    manifest: Manifest,
    *there: str,
    backend: str = "",
    queue: str = "",
    otherwise: Callable[[str], Answer] = missing,
) -> tuple[list[str], FakeTransport]:
    """Return what is said of *manifest* where only the names of *there* exist, and what was asked."""
    groups = [
        {"name": name, "versions": [{"groupVersion": f"{name}/{version}"}]}
        for name, version in (
            ("kueue.x-k8s.io", "v1beta2"),
            ("scheduling.volcano.sh", "v1beta1"),
            ("scheduling.run.ai", "v2"),
        )
    ]

    def script(call: Call) -> Answer:
        name = call.path.rpartition("/")[2]
        if name == "apis":
            return Answer(body={"kind": "APIGroupList", "groups": groups})
        return Answer(body={"metadata": {"name": name}}) if name in there else otherwise(name)

    opened, transport = session(script)
    return list(missing_references(opened, manifest, backend, queue)), transport


@pytest.mark.parametrize(
    ("pod", "sentence"),
    [
        (CLAIM, f"PersistentVolumeClaim data does not exist in namespace team: {WAIT}"),
        (
            {"volumes": [{"name": "s", "secret": {"secretName": "key"}}]},
            f"Secret key does not exist in namespace team: {WAIT}",
        ),
        (
            {"volumes": [{"name": "p", "projected": {"sources": [{"configMap": {"name": "conf"}}]}}]},
            f"ConfigMap conf does not exist in namespace team: {WAIT}",
        ),
        (
            {"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "env"}}]}]},
            f"Secret env does not exist in namespace team: {WAIT}",
        ),
        (
            {
                "initContainers": [
                    {
                        "name": "i",
                        "env": [
                            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "a"}}}
                        ],
                    }
                ]
            },
            f"ConfigMap conf does not exist in namespace team: {WAIT}",
        ),
        (
            {"imagePullSecrets": [{"name": "registry"}]},
            "Secret registry does not exist in namespace team: images are pulled without its credentials",
        ),
        (
            {"serviceAccountName": "trainer"},
            "ServiceAccount trainer does not exist in namespace team: no pod is created until it is",
        ),
    ],
)
def test_what_is_missing_is_said_once_with_what_follows(pod: Mapping[str, Any], sentence: str) -> None:
    """Launcher and workers name the same, which is asked for once; nothing is said where it exists."""
    sentences, transport = said(written(pod))

    assert ([sentence], 1) == (sentences, len(transport.calls))
    name = sentence.split()[1]
    assert [] == said(written(pod), name)[0]


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"volumes": [{"name": "f", "configMap": {"name": "job-files"}}]},
        {"volumes": [{"name": "o", "secret": {"secretName": "maybe", "optional": True}}]},
        {"containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "maybe", "optional": True}}]}]},
    ],
    ids=["nothing named", "the job's own", "optional volume", "optional environment"],
)
def test_what_the_job_brings_or_can_do_without_is_not_asked_for(pod: Mapping[str, Any]) -> None:
    """A plain submit costs no call more."""
    sentences, transport = said(written(pod))

    assert ([], []) == (sentences, transport.calls)


@pytest.mark.parametrize(
    "answer",
    [refusal(403, "Forbidden", "no"), unserved(), refusal(500, "InternalError", "broken")],
    ids=["forbidden", "not served", "broken"],
)
def test_where_it_cannot_be_known_nothing_is_said(answer: Answer) -> None:
    """The look is a courtesy: it never keeps anybody from submitting."""
    assert [] == said(written(CLAIM), otherwise=lambda _: answer)[0]


@pytest.mark.parametrize(
    ("backend", "path", "sentence"),
    [
        (
            "kueue",
            "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues/q",
            "LocalQueue q does not exist in namespace team: the job waits until it is created",
        ),
        (
            "volcano",
            "/apis/scheduling.volcano.sh/v1beta1/queues/q",
            "Queue q does not exist: the job waits until it is created",
        ),
        (
            "kai",
            "/apis/scheduling.run.ai/v2/queues/q",
            "Queue q does not exist: the job waits until it is created",
        ),
    ],
)
def test_a_queue_that_does_not_exist_is_said(backend: str, path: str, sentence: str) -> None:
    """Kueue's in the job's namespace, those of schedulers in the cluster; YuniKorn's are no objects."""
    sentences, transport = said(written({}), backend=backend, queue="q")

    assert ([sentence], path) == (sentences, transport.calls[-1].path)
    assert [] == said(written({}), "q", backend=backend, queue="q")[0]
    assert [] == said(written({}), backend="yunikorn", queue="q")[0]


def test_a_manifest_in_a_queue_needs_no_flag() -> None:
    """Its label says it."""
    sentences, _ = said(written({}, {"kueue.x-k8s.io/queue-name": "own"}))

    assert ["LocalQueue own does not exist in namespace team: the job waits until it is created"] == sentences


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=list(MANIFESTS))
def test_every_kind_of_job_is_read(manifest: dict[str, Any]) -> None:
    """None has a part that this stumbles over."""
    job = {**manifest, "metadata": {**manifest["metadata"], "namespace": "team"}}

    assert [] == said(Manifest(job, kind_of(job)))[0]


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
KEYS = st.sampled_from(
    ["volumes", "secret", "secretName", "name", "containers", "env", "envFrom", "valueFrom", "projected"]
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, ANYTHING, max_size=4))
def test_a_template_of_any_shape_is_read(pod: dict[str, Any]) -> None:
    """What a user has written is judged by the server, in its own words."""
    said(written(pod))


def test_a_template_that_names_very_much_is_looked_up_in_part() -> None:
    """A submit does not become a thousand calls."""
    pod = {"imagePullSecrets": [{"name": f"s{number}"} for number in range(1000)]}

    assert 32 == len(said(written(pod))[1].calls)
