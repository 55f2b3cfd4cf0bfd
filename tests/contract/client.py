"""A client of either cluster from its kubeconfig alone: raw requests, nothing of the product's code."""

import base64
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

Object = dict[str, Any]
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: its code, its body (decoded JSON, or text), its warnings."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The reason of a Status."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """The message of a Status."""
        return str(self.body.get("message", ""))


class Client:
    """One user's connection."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text("utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = cluster["server"]
        folder = Path(tempfile.mkdtemp(dir=kubeconfig.parent))
        authority = _file_of(folder, cluster, "certificate-authority")
        self._headers = {"Accept": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._pool = urllib3.PoolManager(
            ca_certs=authority,
            cert_file=_file_of(folder, user, "client-certificate"),
            key_file=_file_of(folder, user, "client-key"),
            retries=False,
        )

    def passed_on(self, method: str, path: str, body: bytes, content: str) -> tuple[int, bytes, str]:
        """Return the code, the body and its type of the answer to somebody else's request."""
        headers = {**self._headers, **({"Content-Type": content} if content else {})}
        answer = self._pool.request(
            method, self.server + path, body=body or None, headers=headers, timeout=120
        )
        return answer.status, answer.data, answer.headers.get("Content-Type", "")

    def close(self) -> None:
        """Close all connections."""
        self._pool.clear()

    def send(
        self, method: str, path: str, body: Any = None, media: str = "application/json", **query: str
    ) -> Answer:
        """Send one request; refusals are answers, too."""
        answer = self._pool.request(
            method,
            self._url(path, query),
            body=None if body is None else json.dumps(body),
            headers={**self._headers, "Content-Type": media},
            timeout=120,
        )
        text = answer.data.decode(errors="replace")
        is_json = "watch" not in query and answer.headers.get("Content-Type", "").startswith(
            "application/json"
        )
        return Answer(
            answer.status, json.loads(text) if is_json else text, tuple(answer.headers.getlist("Warning"))
        )

    def get(self, path: str, **query: str) -> Answer:
        """Send a GET request."""
        return self.send("GET", path, **query)

    def watch(self, path: str, **query: str) -> list[Object]:
        """Return the events of a watch, which ``timeoutSeconds`` ends."""
        body = self.get(path, watch="true", **query).body
        lines = body.splitlines() if isinstance(body, str) else [json.dumps(body)]
        return [json.loads(line) for line in lines]

    def _url(self, path: str, query: dict[str, str]) -> str:
        return f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")


def _file_of(folder: Path, entry: dict[str, str], key: str) -> str | None:
    """Return the path of a file that a kubeconfig names, or whose content it has itself."""
    if f"{key}-data" not in entry:
        return entry.get(key)
    path = folder / key
    path.write_bytes(base64.b64decode(entry[f"{key}-data"]))
    return str(path)
