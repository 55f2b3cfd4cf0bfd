"""``arena-topo doctor`` reports what it finds, and fails on a problem only if asked."""

import json

import pytest

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing


def bare(call: Call) -> Answer:
    """Serve a cluster without the MPIJob resource, which is a problem."""
    if call.path == "/version":
        return Answer(body={"gitVersion": "v1.36.0"})
    return Answer(body={"groups": []}) if call.path == "/apis" else missing("x")


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--strict"], 1)], ids=["report", "strict"])
def test_a_problem_is_an_error_only_if_asked(
    invoke: Invoke, serve: Serve, flags: list[str], code: int
) -> None:
    """The report is the same."""
    serve(bare)
    outcome = invoke("doctor", *flags)

    assert code == outcome.code, outcome.err
    assert outcome.out.startswith("CHECK ")


def test_findings_are_a_document_too(invoke: Invoke, serve: Serve) -> None:
    """One entry for each check."""
    serve(bare)
    findings = json.loads(invoke("doctor", "-o", "json").out)

    assert "problem" == {finding["topic"]: finding["state"] for finding in findings}["MPIJob"]
