"""Arena's flags for what comes next to a job, in both spellings, and what is wrong with them."""

import json

import pytest

from tests.cli.conftest import Invoke

SUBMIT = ("submit", "mpi", "--name=job", "--image=i", "--dry-run=client", "-o", "json", "c")


@pytest.mark.parametrize(
    ("new", "old"),
    [("--sync-mode", "--syncMode"), ("--sync-source", "--syncSource"), ("--sync-image", "--syncImage")],
)
def test_the_older_spellings_work(invoke: Invoke, new: str, old: str) -> None:
    """They say the same."""
    line = ("--sync-mode=git", "--sync-source=https://git.example.com/a", "--sync-image=g:1")
    older = tuple(word.replace(new, old, 1) for word in line)

    assert 0 == invoke(*SUBMIT, *line).code
    assert invoke(*SUBMIT, *line).out == invoke(*SUBMIT, *older).out
    board = invoke(*SUBMIT, "--tensorboard", "--tensorboardImage=t:1", "--logdir=/l")
    assert board.out == invoke(*SUBMIT, "--tensorboard", "--tensorboard-image=t:1", "--logdir=/l").out


def test_git_and_tensorboard_have_public_images(invoke: Invoke) -> None:
    """Of those who publish the programs, not of a vendor's registry."""
    out = invoke(*SUBMIT, "--sync-mode=git", "--sync-source=https://git.example.com/a", "--tensorboard").out
    items = json.loads(out)["items"]
    worker = items[0]["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]

    assert ["MPIJob", "Service", "Deployment"] == [item["kind"] for item in items]
    assert worker["initContainers"][0]["image"].startswith("registry.k8s.io/git-sync/git-sync:")
    board = items[2]["spec"]["template"]["spec"]["containers"][0]
    assert board["image"].startswith("tensorflow/tensorflow:")


def test_a_model_is_kept_on_the_job(invoke: Invoke) -> None:
    """Under the label that Arena gives it; its source is no label's value."""
    out = invoke(*SUBMIT, "--model-name=vgg16", "--model-source=pvc://ml/models/vgg16").out
    metadata = json.loads(out)["metadata"]

    assert "vgg16" == metadata["labels"]["modelName"]
    assert "pvc://ml/models/vgg16" == metadata["annotations"]["arena-topo.dev/model-source"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--sync-mode=git",), "--sync-source must be set for --sync-mode=git"),
        (("--sync-source=x",), "--sync-source and --sync-image need --sync-mode"),
        (("--sync-mode=hdfs", "--sync-source=x"), "unsupported --sync-mode 'hdfs'"),
        (("--sync-mode=rsync", "--sync-source=x"), "--sync-mode=rsync needs --sync-image"),
        (("--model-name=m",), "--model-source must be set with --model-name"),
        (("--model-source=m",), "--model-source needs --model-name"),
        (("--model-name=a b", "--model-source=m"), "cannot be the value of label 'modelName'"),
    ],
)
def test_what_is_missing_is_told(invoke: Invoke, flags: tuple[str, ...], message: str) -> None:
    """Before anything is created."""
    outcome = invoke(*SUBMIT, *flags)

    assert (2, "") == (outcome.code, outcome.out)
    assert message in outcome.err
