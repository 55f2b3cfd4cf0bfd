"""What users give a job reaches its ranks: variables, files, GPUs, the network of the node."""

from pathlib import Path

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.polling import eventually
from tests.ranks.jobs import Jobs, mpirun, places_of

pytestmark = pytest.mark.usefixtures("nodes")


def test_variables_reach_every_rank(jobs: Jobs, kube: Kube, namespace: str) -> None:
    """Those of --env and of a Secret, and the GPUs that
    differ from worker to worker: sshd starts ranks afresh.
    """
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys"},
        "stringData": {"TOKEN": "t0k"},
    }
    kube.create(secret, namespace)
    asked = ("--env", "FOO", "--env", "TOKEN", "--env", "CUDA_VISIBLE_DEVICES", "--env", "ODD")
    flags = ("-e", "FOO=bar", "-e", "ODD=$(FOO)$$'\"`", "--env-from=secret/keys")
    jobs.submit("vars", *flags, workers=2, gpus=2, command=mpirun(4, *asked))
    ranks = jobs.ranks("vars")

    assert [("bar", "t0k", "$(FOO)$$'\"`")] * 4 == [
        (rank.env["FOO"], rank.env["TOKEN"], rank.env["ODD"]) for rank in ranks
    ]
    assert [rank.gpus for rank in ranks] == [rank.env["CUDA_VISIBLE_DEVICES"] for rank in ranks]
    assert 2 == len({(rank.node, rank.gpus) for rank in ranks})


def test_small_files_and_shared_memory_are_in_every_pod(jobs: Jobs, tmp_path: Path) -> None:
    """--config-file and --share-memory, as each rank sees them."""
    (tmp_path / "train.sh").write_text(
        "echo $(cat /etc/train.conf) $(df --output=size -m /dev/shm | tail -1)\n"
    )
    (tmp_path / "train.conf").write_text("lr=0.1")
    files = (
        f"--config-file={tmp_path}/train.sh:/opt/train.sh",
        f"--config-file={tmp_path}/train.conf:/etc/train.conf",
    )
    command = mpirun(2).replace("/opt/ranks/ranks", "bash /opt/train.sh")
    jobs.submit("files", *files, "--share-memory=96Mi", workers=2, command=command)

    assert "lr=0.1 96\n" * 2 == jobs.log("files")


def test_ranks_in_the_network_of_their_node_have_its_gpus(jobs: Jobs) -> None:
    """One worker a node, whose sshd takes the node's port; the launcher takes no rank for its own."""
    flags = ("--gang", "--gputopology=true", "--hostNetwork")
    jobs.submit("host", *flags, workers=2, gpus=2, command=mpirun(4))
    ranks = jobs.ranks("host")
    planned = [node for _, node in jobs.places("host", slots=2)]

    assert planned == [rank.node for rank in ranks]
    assert [(node, node) for node in planned] == places_of(ranks)
    assert {"0,1"} == {rank.gpus for rank in ranks}
    assert 2 == len(set(planned))


def test_no_job_makes_the_operator_warn(jobs: Jobs, kube: Kube, namespace: str) -> None:
    """A pod template with a restartPolicy of its own would, for every job."""
    jobs.submit("quiet", workers=2, command=mpirun(2))
    jobs.wait("quiet", "SUCCEEDED")

    def all_events() -> list[Object]:
        """Return the operator's events, once the last one
        is among them: it writes them one after the other.
        """
        found = kube.list("v1", "Event", namespace, fieldSelector="involvedObject.kind=MPIJob")
        return found if "MPIJobSucceeded" in {event["reason"] for event in found} else []

    events = eventually(all_events, "the event of its success")
    assert [] == [event["message"] for event in events if event["type"] == "Warning"]
