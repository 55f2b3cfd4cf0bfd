"""`whoami` prints Arena's document."""

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing


def test_the_document_is_arenas(invoke: Invoke, serve: Serve) -> None:
    """On one line, in Arena's order; the namespace of its configuration is a flag."""

    def script(call: Call) -> Answer:
        if call.method == "POST":
            return Answer(body={"status": {"userInfo": {"username": "ann"}}})
        return Answer(body={"data": {"adminUsers": "ann"}}) if "/mine/" in call.path else missing("c")

    serve(script)

    assert (
        invoke("whoami").out == '{"Name":"ann","Id":"7e0d7f8a5d96c24ffcc840f31bce72b2","IsAdminUser":false}\n'
    )
    assert '"IsAdminUser":true' in invoke("whoami", "--arena-namespace=mine").out
