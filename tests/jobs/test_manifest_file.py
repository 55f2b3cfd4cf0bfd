"""Manifests that somebody has: which are submitted, and what else is said of the others."""

from copy import deepcopy
from typing import Any

import pytest

from arena_topo.errors import ArenaTopoError, DocumentError
from arena_topo.jobs.sources import FromManifest, job_in, plannable
from arena_topo.kinds.table import kind_of
from tests.jobs.manifests import MANIFESTS


@pytest.mark.parametrize("name", MANIFESTS)
def test_every_kind_is_taken_as_it_was_written(name: str) -> None:
    """In all of its versions; the namespace alone is added, and what its kind is found and pinned by."""
    manifest = MANIFESTS[name]
    before = deepcopy(manifest)
    job = FromManifest(job_in([manifest], "job.yaml")).offline("ml").job

    assert before == manifest
    added = {"TrainJob": {"runtimePatches"}}.get(manifest["kind"], set())
    assert manifest["spec"] == {key: value for key, value in job["spec"].items() if key not in added}
    assert manifest["metadata"]["annotations"] == job["metadata"]["annotations"]
    assert manifest["metadata"]["labels"].items() <= job["metadata"]["labels"].items()
    assert 3 == sum(role.count for role in kind_of(job).replicas(job) if role.role != "launcher")


def changed(name: str, *path: str | int, value: Any) -> dict[str, Any]:
    """Return a manifest with *value* at *path*."""
    job = deepcopy(MANIFESTS[name])
    item: Any = job
    for key in path[:-1]:
        item = item[key] if isinstance(key, int) else item.setdefault(key, {})
    item[path[-1]] = value
    return job


POD = ("spec", "template", "spec")


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ([], "is empty"),
        ([MANIFESTS["Job"], MANIFESTS["Job"]], "has 2 documents"),
        ([{"name": "bert", "workers": 4}], "no apiVersion and no kind"),
        ([["a"]], "no apiVersion and no kind"),
        ([{"apiVersion": "v1", "kind": "List", "items": []}], "is a List"),
        ([{"apiVersion": "apps/v1", "kind": "Deployment"}], "unsupported kind: Deployment (apps/v1)"),
        ([changed("Job", "metadata", value={"generateName": "a-"})], "generateName in place of a name"),
        ([changed("Job", "metadata", value={})], "no name"),
        ([changed("Job", "metadata", "name", value="a/../b")], "metadata.name"),
        ([changed("Job", "metadata", "uid", value="1")], "comes from a cluster"),
        ([changed("Job", "metadata", "annotations", "arena-topo.dev/plan", value="{}")], "has a plan already"),
        ([changed("Job", "spec", value=3)], "spec must be a mapping"),
        ([changed("Job", "spec", "suspend", value=True)], "the Job is suspended"),
        ([changed("Job", "spec", "completionMode", value="NonIndexed")], "not indexed"),
        ([changed("Job", "spec", "completions", value=9)], "does not run all of its pods at once"),
        ([changed("Job", "spec", "template", value={})], "a role without a pod template"),
        ([changed("Job", *POD, "nodeName", value="n1")], "name their node by nodeName"),
        ([changed("Job", *POD, "nodeSelector", value={"kubernetes.io/hostname": "n"})], "select their node"),
        (
            [changed("Job", "spec", "template", "metadata", "annotations", value={"arena-topo.dev/pin-nodes": "0:a"})],
            "pinned by an annotation",
        ),
        (
            [changed("JobSet", "metadata", "annotations", value={"alpha.jobset.sigs.k8s.io/exclusive-topology": "r"})],
            "places the pods of this JobSet by itself",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_submitted_is_said(documents: list[object], words: str) -> None:
    """One clear error, before anything is asked of a cluster."""
    with pytest.raises(ArenaTopoError) as caught:
        job_in(documents, "job.yaml")

    assert words in caught.value.message


def test_pods_that_request_nothing_cannot_be_planned() -> None:
    """Any place would do."""
    job = changed("Job", *POD, "containers", value=[{"name": "a", "image": "i"}])
    with pytest.raises(DocumentError, match="request nothing"):
        plannable(None, job_in([job], "job.yaml"))
