"""The sandbox's folder: ``$XDG_STATE_HOME/arena-topo/sandbox``, by default below ``~/.local/state``."""

import contextlib
import fcntl
import json
import os
import ssl
import stat
import urllib.error
import urllib.request
from pathlib import Path

from arena_topo.errors import ArenaTopoError
from arena_topo.model.objects import Object
from arena_topo.user_folders import state_folder

_TIMEOUT_SECONDS = 20.0


class Home:
    """The files of one sandbox.

    ``certificate`` is the server's, which is its own authority; ``tokens`` are those of the administrator and of the
    reader, who may only read; ``state`` holds all objects and logs, ``settings`` the layout, the speed and the port.
    The server's process holds a lock on ``served``, which the kernel releases however the process ends.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.reader_kubeconfig = folder / "kubeconfig-reader"
        self.state = folder / "state.json"
        self.settings = folder / "settings.json"
        self.process = folder / "server.process"
        self.served = folder / "server.lock"
        self.log = folder / "server.log"
        self.certificate = folder / "server.crt"
        self.key = folder / "server.key"
        self.tokens = folder / "tokens.json"

    @classmethod
    def of_user(cls) -> "Home":
        """Return the folder of the user's own sandbox."""
        return cls(state_folder() / "sandbox")

    def prepare(self) -> None:
        """Create the folder, for its owner only; raises ``ArenaTopoError`` where it is somebody else's."""
        # Like the XDG specification, for each folder that is missing on the way; mkdir's own parents ignore a mode.
        for missing in reversed([path for path in self.folder.parents if not path.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.folder.mkdir(mode=0o700)
        self.check()
        self.folder.chmod(0o700)

    def check(self) -> None:
        """Raise ``ArenaTopoError`` unless the folder, where there is one, is a folder of this user's alone.

        Whoever else can write there chooses which server gets the administrator's requests.
        """
        try:
            found = self.folder.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(found.st_mode):
            what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a folder"
            raise _unsafe(self.folder, f"is {what}")
        if found.st_uid != os.getuid():
            raise _unsafe(self.folder, f"belongs to the user {found.st_uid}")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _unsafe(self.folder, "can be written by other users")

    def hold(self) -> int:
        """Return the descriptor of the lock that a server's process holds until it ends, or closes the descriptor.

        Raises ``ArenaTopoError`` where another process serves from this folder.
        """
        descriptor = os.open(self.served, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ArenaTopoError(f"another process serves the sandbox in {self.folder}") from None
        return descriptor

    def is_held(self) -> bool:
        """Whether a server's process is alive, even one that answers nobody."""
        try:
            os.close(self.hold())
        except ArenaTopoError:
            return True
        return False

    def ask(self, method: str, path: str, body: Object | None = None) -> Object | None:
        """Return the answer of the running sandbox to its administrator, or None when it does not answer.

        Raises ``ArenaTopoError`` where others could have written the folder.
        """
        self.check()
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


def _unsafe(folder: Path, why: str) -> ArenaTopoError:
    hint = "move it away, or name another folder for state in XDG_STATE_HOME"
    return ArenaTopoError(f"the sandbox's folder {folder} {why}", hint=hint)
