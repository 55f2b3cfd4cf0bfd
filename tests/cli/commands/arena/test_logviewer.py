"""`logviewer` prints Arena's sentence, and where the log is."""

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call
from tests.objects import mpijob


def test_a_job_without_a_launcher_has_no_log_yet(invoke: Invoke, serve: Serve) -> None:
    """It is told so, and nothing is looked for."""

    def script(call: Call) -> Answer:
        return Answer(body={"items": []}) if call.path.endswith("/pods") else Answer(body=mpijob("job"))

    transport = serve(script)
    outcome = invoke("logviewer", "job", "-T", "mpijob")

    assert (1, True) == (outcome.code, "the launcher of job job does not exist yet" in outcome.err)
    assert [] == [call for call in transport.calls if "services" in call.path]
