"""Arena finds our jobs by the record that it would have written itself."""

import pytest

from arena_topo.errors import ApiError
from arena_topo.jobs.create import is_arena_record, write_arena_record
from arena_topo.model.objects import Object
from tests.fakes import Answer, in_turn, missing, refusal, session
from tests.objects import mpijob

JOB = {**mpijob("job"), "metadata": {**mpijob("job")["metadata"], "namespace": "default"}}
TAKEN = refusal(409, "AlreadyExists", 'configmaps "job-mpijob" already exists')
CREATED = Answer(body={})


def leftover(**labels: str) -> Object:
    """Return a ConfigMap of the record's name that is there already."""
    metadata = {"name": "job-mpijob", "uid": "old", "labels": labels}
    return {"metadata": metadata, "data": {"app": "mpijob.kubeflow.org/job"}}


def test_the_record_names_the_job_and_is_owned_by_it() -> None:
    """Under the keys and the label that Arena reads; it goes with the job."""
    opened, transport = session(in_turn(CREATED))
    note = write_arena_record(opened, JOB)
    written = transport.calls[0].body

    assert "" == note
    assert ("job-mpijob", "arena") == (
        written["metadata"]["name"],
        written["metadata"]["labels"]["createdBy"],
    )
    assert "mpijob.kubeflow.org/job" == written["data"]["app"]
    assert ["uid-job"] == [owner["uid"] for owner in written["metadata"]["ownerReferences"]]


def test_a_record_of_an_earlier_job_makes_room() -> None:
    """By its uid: another one that is written meanwhile stays."""
    opened, transport = session(
        in_turn(TAKEN, Answer(body=leftover(createdBy="arena")), Answer(body={}), CREATED)
    )

    assert "" == write_arena_record(opened, JOB)
    assert ["POST", "GET", "DELETE", "POST"] == [call.method for call in transport.calls]
    assert {"uid": "old"} == transport.calls[2].body["preconditions"]


def test_a_record_that_goes_meanwhile_makes_room_too() -> None:
    """The garbage collector was faster."""
    opened, _ = session(in_turn(TAKEN, missing("job-mpijob"), CREATED))

    assert "" == write_arena_record(opened, JOB)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((refusal(403, "Forbidden", "configmaps is forbidden"),), "configmaps is forbidden"),
        ((TAKEN, Answer(body=leftover(createdBy="me")), TAKEN), "already exists"),
    ],
    ids=["not allowed", "a user's own"],
)
def test_a_job_that_cannot_be_recorded_is_worth_a_note(answers: tuple[Answer, ...], why: str) -> None:
    """It runs anyway, and nothing of others is touched."""
    opened, transport = session(in_turn(*answers))
    note = write_arena_record(opened, JOB)

    assert note.startswith("'arena delete' will not find the job")
    assert why in note
    assert "DELETE" not in [call.method for call in transport.calls]


def test_other_refusals_are_raised() -> None:
    """Then the job goes, as with everything else that belongs to it."""
    opened, _ = session(in_turn(refusal(500, "InternalError", "etcd")))
    with pytest.raises(ApiError, match="etcd"):
        write_arena_record(opened, JOB)


@pytest.mark.parametrize(
    ("config_map", "record"),
    [
        (leftover(createdBy="arena"), True),
        (leftover(), False),
        ({"metadata": {"labels": {"createdBy": "arena"}}}, False),
        ({"metadata": {}}, False),
    ],
    ids=["a record", "no label", "no data", "nothing"],
)
def test_a_record_is_told_from_a_users_config_map(config_map: Object, record: bool) -> None:
    """By its label and its key."""
    assert record is is_arena_record(config_map)
