"""The sandbox's folder: ``$XDG_STATE_HOME/arena-topo/sandbox``, by default below ``~/.local/state``."""

from dataclasses import dataclass
from pathlib import Path

from arena_topo.user_folders import state_folder


@dataclass(frozen=True, slots=True)
class Home:
    """The files of one sandbox."""

    folder: Path

    @classmethod
    def of_user(cls) -> "Home":
        """Return the user's own."""
        return cls(state_folder() / "sandbox")

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def reader_kubeconfig(self) -> Path:
        """The kubeconfig of a user who may only read."""
        return self.folder / "kubeconfig-reader"

    @property
    def state(self) -> Path:
        """All objects and logs."""
        return self.folder / "state.json"

    @property
    def settings(self) -> Path:
        """The layout and the port in use."""
        return self.folder / "settings.json"

    @property
    def pid(self) -> Path:
        """The number of the running server's process."""
        return self.folder / "server.pid"

    @property
    def log(self) -> Path:
        """What the server had to say."""
        return self.folder / "server.log"

    @property
    def certificate(self) -> Path:
        """The server's certificate, which is its own authority."""
        return self.folder / "server.crt"

    @property
    def key(self) -> Path:
        """The server's private key."""
        return self.folder / "server.key"

    @property
    def tokens(self) -> Path:
        """The tokens of the administrator and the reader."""
        return self.folder / "tokens.json"

    def prepare(self) -> None:
        """Make the folder, for its owner only."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
