"""The sandbox's folder: ``$XDG_STATE_HOME/arena-topo/sandbox``, by default below ``~/.local/state``."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from arena_topo.model.objects import Object
from arena_topo.user_folders import state_folder

_TIMEOUT_SECONDS = 5.0


class Home:
    """The files of one sandbox.

    ``certificate`` is the server's, which is its own authority; ``tokens`` are those of the administrator and of the
    reader, who may only read; ``state`` holds all objects and logs, ``settings`` the layout, the speed and the port.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.reader_kubeconfig = folder / "kubeconfig-reader"
        self.state = folder / "state.json"
        self.settings = folder / "settings.json"
        self.pid = folder / "server.pid"
        self.log = folder / "server.log"
        self.certificate = folder / "server.crt"
        self.key = folder / "server.key"
        self.tokens = folder / "tokens.json"

    @classmethod
    def of_user(cls) -> "Home":
        """Return the folder of the user's own sandbox."""
        return cls(state_folder() / "sandbox")

    def prepare(self) -> None:
        """Create the folder, for its owner only."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def ask(self, method: str, path: str, body: Object | None = None) -> Object | None:
        """Return the answer of the running sandbox to its administrator, or None when it does not answer."""
        try:
            config = json.loads(self.kubeconfig.read_text("utf-8"))
            context = ssl.create_default_context(cafile=str(self.certificate))
        # Without a kubeconfig or a certificate, no sandbox has served from this folder yet.
        except (OSError, ValueError):
            return None
        request = urllib.request.Request(  # noqa: S310  # the address of our own server
            config["clusters"][0]["cluster"]["server"] + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {config['users'][0]['user']['token']}",
                "Content-Type": "application/json",
            },
            method=method,
        )
        # A proxy of the environment is not meant for loopback.
        handlers = (urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({}))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_SECONDS) as answer:
                document: Object = json.loads(answer.read())
                return document
        # Nobody listens, somebody else has the port (and another certificate), or the server is about to end.
        except (urllib.error.URLError, OSError, ValueError):
            return None
