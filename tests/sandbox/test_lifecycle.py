"""Starting, stopping, keeping and using a sandbox."""

import gc
import json
import os
import signal
import socket
import ssl
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from arena_topo.errors import ArenaTopoError, DocumentError, UsageError
from arena_topo.sandbox import lifecycle
from arena_topo.sandbox.lifecycle import Home
from tests.contract.bodies import config_map
from tests.contract.client import Client
from tests.contract.cluster import eventually
from tests.sandbox.served import served


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Run a sandbox of two DGX-1 in a process of its own, as a user does."""
    own = Home(tmp_path_factory.mktemp("lifecycle") / "home")
    lifecycle.start(own, "two-dgx1", speed=20)
    yield own
    lifecycle.remove(own)


@pytest.fixture
def new_home(tmp_path: Path) -> Iterator[Home]:
    """Folder of a sandbox that does not run yet; whatever happens, its process ends with the test."""
    own = Home(tmp_path / "home")
    yield own
    lifecycle.remove(own)


def test_state_is_kept_over_a_restart(new_home: Home) -> None:
    """What was created before a stop is there after the next start, on the same port, for the same token."""
    home = new_home
    lifecycle.start(home)
    before = home.kubeconfig.read_bytes()
    client = Client(home.kubeconfig)
    created = client.send("POST", "/api/v1/namespaces/default/configmaps", config_map("a", x="1")).body
    client.close()
    stopped = lifecycle.stop(home)
    lifecycle.start(home)
    again = Client(home.kubeconfig)
    kept = again.get("/api/v1/namespaces/default/configmaps/a").body
    again.close()
    after = home.kubeconfig.read_bytes()

    assert stopped
    assert created == kept
    assert before == after


def test_a_server_that_ends_leaves_no_connection_open(tmp_path: Path) -> None:
    """Neither one that is idle nor a watch, whose clients do not close them."""
    with warnings.catch_warnings(record=True) as caught, ExitStack() as clients:
        warnings.simplefilter("always")
        with served(tmp_path / "home", "two-dgx1") as home:
            config = json.loads(home.kubeconfig.read_text("utf-8"))
            port = urlsplit(config["clusters"][0]["cluster"]["server"]).port
            context = ssl.create_default_context(cafile=str(home.certificate))
            for path in ("/api/v1/nodes", "/api/v1/nodes?watch=true"):
                raw = clients.enter_context(socket.create_connection(("127.0.0.1", port)))
                client = clients.enter_context(context.wrap_socket(raw, server_hostname="127.0.0.1"))
                token = config["users"][0]["user"]["token"]
                client.sendall(
                    f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
                )
                assert client.recv(1)
        gc.collect()

    assert [] == [text for each in caught if "unclosed transport" in (text := str(each.message))]


def test_starting_twice_is_starting_once(home: Home) -> None:
    """A second start finds the running server."""
    first = lifecycle.status(home)
    again = lifecycle.start(home)

    assert first.pid == again.pid


def test_a_running_sandbox_keeps_its_layout(home: Home) -> None:
    """Another layout needs a reset, and the error says how."""
    with pytest.raises(UsageError) as caught:
        lifecycle.start(home, "racks")

    assert caught.value.message == "the sandbox already has the layout two-dgx1"
    assert caught.value.hint == "arena-topo sandbox reset --layout racks deletes its jobs, and starts over"


@pytest.mark.parametrize(
    ("options", "present", "flags"),
    [
        pytest.param({"speed": 5.0}, "speed 20", "--speed 5", id="speed"),
        pytest.param({"port": 1}, "port {port}", "--port 1", id="port"),
        pytest.param({"speed": 5.0, "port": 1}, "speed 20 and port {port}", "--speed 5 --port 1", id="both"),
    ],
)
def test_a_running_sandbox_keeps_its_options(
    home: Home, options: dict[str, float], present: str, flags: str
) -> None:
    """Other options need a restart, and the error says what runs and how to restart it."""
    with pytest.raises(UsageError) as caught:
        lifecycle.start(home, **options)  # type: ignore[arg-type]  # a port is an int
    port = json.loads(home.settings.read_text("utf-8"))["port"]

    assert f"the sandbox is already running, with {present.format(port=port)}" == caught.value.message
    assert f"its state is kept by: arena-topo sandbox stop && arena-topo sandbox start {flags}" == (
        caught.value.hint
    )


def test_the_same_options_find_the_running_sandbox(home: Home) -> None:
    """A script may start the sandbox that it needs again and again."""
    first = lifecycle.status(home)

    assert first.pid == lifecycle.start(home, "two-dgx1", speed=20).pid


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_is_a_positive_number(tmp_path: Path, speed: float) -> None:
    """Anything else is refused before anything starts."""
    with pytest.raises(UsageError, match="--speed: "):
        lifecycle.start(Home(tmp_path / "home"), speed=speed)


def test_status_says_that_it_is_a_simulation(home: Home) -> None:
    """The status names layout, kubeconfig and context, and that nothing is real."""
    lines = "\n".join(lifecycle.status(home).lines())

    assert "It is a simulation" in lines
    assert str(home.kubeconfig) in lines
    assert "arena-topo-sandbox" in lines


def test_reset_forgets_everything(new_home: Home) -> None:
    """After a reset to another layout its nodes are there and nothing else."""
    lifecycle.start(new_home)
    status = lifecycle.reset(new_home, "racks")

    assert ("racks", 16, 0) == (status.layout, status.nodes, status.pods)


def test_a_sandbox_that_was_started_where_sigint_is_ignored_stops(new_home: Home) -> None:
    """A background job of a script ignores SIGINT; its server still ends on SIGTERM and leaves no process."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pid = lifecycle.start(new_home).pid
    finally:
        signal.signal(signal.SIGINT, before)

    assert lifecycle.stop(new_home)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_stopping_nothing_is_no_error(tmp_path: Path) -> None:
    """A stop without a sandbox says that there was none."""
    assert lifecycle.stop(Home(tmp_path / "home")) is False


def test_an_unknown_layout_is_named(tmp_path: Path) -> None:
    """A layout that does not exist is a usage error that lists those there are."""
    with pytest.raises(UsageError) as caught:
        lifecycle.start(Home(tmp_path / "home"), "moon")

    assert caught.value.message == "there is no layout 'moon'"
    assert "two-dgx1" in caught.value.hint


def test_a_broken_layout_file_is_named(tmp_path: Path) -> None:
    """A file that declares no nodes is refused before anything is started."""
    path = tmp_path / "own.yaml"
    path.write_text("machines: []", "utf-8")
    with pytest.raises(DocumentError, match="has no list of nodes"):
        lifecycle.start(Home(tmp_path / "home"), str(path))


def test_run_gives_a_command_the_sandbox(home: Home, tmp_path: Path) -> None:
    """A command sees the sandbox's kubeconfig, and its exit code comes back."""
    out = tmp_path / "out"
    code = lifecycle.run(home, ["sh", "-c", f'printf %s "$KUBECONFIG" > {out}; exit 7'])

    assert code == 7
    assert str(home.kubeconfig) == out.read_text("utf-8")


def test_run_needs_a_sandbox(tmp_path: Path) -> None:
    """Without a running sandbox the error says how to start one."""
    with pytest.raises(ArenaTopoError) as caught:
        lifecycle.run(Home(tmp_path / "home"), ["true"])

    assert caught.value.hint == "arena-topo sandbox start"


def test_secrets_are_for_their_owner_only(home: Home) -> None:
    """Nobody else can read keys, tokens and kubeconfigs."""
    private = (home.key, home.tokens, home.kubeconfig, home.reader_kubeconfig)

    assert {0o600} == {path.stat().st_mode & 0o777 for path in private}
    assert home.folder.stat().st_mode & 0o777 == 0o700


def test_the_state_is_a_document(home: Home) -> None:
    """What is kept on disk is JSON with the layout and all objects."""
    eventually(home.state.exists, "the state's file")
    state = json.loads(home.state.read_text("utf-8"))

    assert state["layout"] == "two-dgx1"
