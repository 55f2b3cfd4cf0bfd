"""Raw objects from and to one API server, with its refusals as errors.

Objects stay the dictionaries that the server sends: every version of every resource fits, and nothing is lost
between reading and writing one.
"""

import json
import sys
import time
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from arena_topo.errors import (
    ApiError,
    ArenaTopoError,
    Conflict,
    ConnectionFailed,
    DocumentError,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerAway,
    TooManyRequests,
    Unauthorized,
    WrongServer,
)
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.kubeconfig import Target, configured_target
from arena_topo.kube.resources import answered_at, is_of
from arena_topo.kube.transport import (
    GZIP,
    AnswerTooLarge,
    HttpTransport,
    Request,
    Response,
    Transport,
    unpacked,
)
from arena_topo.model.kind import Kind
from arena_topo.model.objects import LIST, OBJECT, Object
from arena_topo.model.text.documents import fitted, misfit
from arena_topo.model.text.json import read_body
from arena_topo.model.text.words import plural, written_duration

# The errors that users see for the refusals of the API server, from its Status objects.

_CLASSES: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}
_HINTS = {
    401: "your credentials have expired or are wrong: log in again, or check the user of your context "
    "with kubectl config view --minify",
    403: "ask the cluster's admin for this permission; kubectl auth can-i --list shows what you may do",
    429: "the server asks to slow down: try again in a moment",
}
_LONGEST_MESSAGE = 2000
"""Characters that are shown of what the server says, which may be a proxy's page in HTML."""


def api_error(status: int, body: bytes) -> ApiError:
    """Return the error for an answer with the HTTP code *status* and *body*, a Status object or any text.

    A proxy or a login page before the API server answers with HTML, of which the user sees the beginning.
    """
    document = _status(body)
    message = str(document.get("message") or "") or body.decode(errors="replace").strip()
    message = message[:_LONGEST_MESSAGE]
    details = document.get("details")
    # The server's own message is the one word Unauthorized, which does not say that the credentials are the
    # reason.
    if status == 401:
        message = f"the server does not accept your credentials ({message or 'Unauthorized'})"
    kind = _CLASSES.get(status, ApiError)
    return kind(
        message or f"the server answered with HTTP status {status}",
        hint=_HINTS.get(status, ""),
        status=status,
        reason=str(document.get("reason") or "")[:_LONGEST_MESSAGE],
        details=details if isinstance(details, dict) else {},
    )


def http_date(text: str) -> datetime | None:
    """Return the time of a header such as Date, None for none and for an unreadable one.

    >>> http_date("Sun, 06 Nov 1994 08:49:37 GMT")
    datetime.datetime(1994, 11, 6, 8, 49, 37, tzinfo=datetime.timezone.utc)
    """
    try:
        found = parsedate_to_datetime(text)
        # One without a zone could be the time of anywhere.
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def is_unserved(error: NotFound) -> bool:
    """Whether a 404 means that the resource type is not served, rather than that one object is missing."""
    # Only a server that knows the type can name the object that is missing.
    return not error.details.get("name")


def is_passing(error: ArenaTopoError) -> bool:
    """Whether *error* is of the moment: no server answers, or it is overloaded or has failed."""
    if isinstance(error, ConnectionFailed):
        return not isinstance(error, WrongServer | ServerAway)
    return isinstance(error, ApiError) and (error.status == 429 or error.status >= 500)


def _status(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) and document.get("kind") == "Status" else {}


Query = Mapping[str, str | int | bool | None]

PatchKind = Literal["merge", "json"]

MOST_RETRIES = 5
"""Retries of one request, after which the server's refusal is the answer."""

LONGEST_WAIT = 10.0
"""Seconds before a retry, however long the server asks for."""

MOST_PAGES = 400
"""Pages of one list: 200,000 objects or more. Kubernetes supports clusters of 150,000 pods."""

LARGEST_LIST = 512 * 2**20
"""Bytes of all pages of one list: 10,000 nodes take half of it."""

LIST_TIMEOUTS = 5
"""A list may take this many times as long as one request."""

COMMAND_TIMEOUTS = 10
"""All requests of a command between two pauses of its own may take this many times as long as one."""

_OWN_PAUSE = 0.2
"""Seconds without a request that a command lets pass by itself: the shortest pause between two looks."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
"""Seconds before a read is tried again while the server is away; each pause is twice the one before."""

_SETTLING = 15.0
"""Seconds after a failure in which a 403 may pass: a starting server answers before it has read the roles."""

_SHORTEST_TIMEOUT = 0.001
"""Seconds for a request that is out of time: it fails with the transport's own words."""

_LONGEST_HOST = 253
"""Characters of a name in DNS."""

Page = TypeVar("Page")
Decoded = TypeVar("Decoded")

Decode = Callable[[bytes], Any]
"""Returns the JSON in a body; raises ``ValueError``."""

Choice = dict[str, str | int | None]
"""What chooses a page of a list, as parameters of the API: ``limit`` and ``continue``."""

_PAGE = 500
"""Items of a list for each call, as kubectl asks for them."""

_ROWS = 5000
"""Rows of a table for each call: a row has a fiftieth of the bytes of a pod."""

_DISCOVERY_AGE = 60.0
"""Seconds after which a discovery document is read again."""

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

_METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


class NotSent(ArenaTopoError):
    """A request that must not be sent any more."""


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


class _CommandClock:
    """The time of one request after another, until the command itself pauses, as a watch does.

    With a limit of 20 s, fifteen requests of 1.5 s each are too many; ``get -w`` with such a request and a
    pause of 1 s in turn never ends.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began = self._ended = now()
        self.has_answer = False
        # Bytes of the answers so far, unpacked.
        self.received = 0
        self._failed = float("-inf")

    def begin(self, limit: float) -> float:
        """Return when the requests must have ended.

        Raises ``ConnectionFailed`` where they must have before.
        """
        now = self._now()
        if now - self._ended >= _OWN_PAUSE:
            self._began = now
        if now - self._began >= limit:
            raise ConnectionFailed(
                f"the server is too slow: the requests of this command took more than {limit:g} s in all",
                hint="is the network, or the VPN, up? --request-timeout allows more",
            )
        return self._began + limit

    def end(self) -> None:
        """Note that a request has its whole answer, or has none."""
        self._ended = self._now()

    def note(self, error: ArenaTopoError) -> None:
        """Note that a request failed because of *error*."""
        if is_passing(error):
            self._failed = self._now()

    def is_settling(self) -> bool:
        """Whether the server was away a moment ago."""
        return self._now() - self._failed < _SETTLING


class _Absence:
    """Says once that the server is away, and once that it is back, for all threads of a command."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify, self._lock, self._requests = notify, allocate_lock(), 0

    def begin(self, error: ArenaTopoError, limit: float) -> None:
        """Note that a request failed because of *error*, and is tried again for *limit* seconds."""
        with self._lock:
            self._requests += 1
            if self._requests == 1:
                self._notify(f"{error.message}; trying again for up to {written_duration(limit)}")

    def end(self, *, answered: bool) -> None:
        """Note that such a request was *answered*, or is given up."""
        with self._lock:
            self._requests -= 1
            if answered and not self._requests:
                self._notify("the API server answers again")


class Session:
    """One user at one API server.

    *timeout* is in seconds for one request with all that it takes to have its whole answer, 0 for no limit;
    those of a command that does not pause have ``COMMAND_TIMEOUTS`` times that together. *reconnect* is in
    seconds for the reads of ``patient``. *user* is the kubeconfig's entry, for the identity to act as.
    *notify* gets what a request waits for, and *sleep* passes the time. Every method raises the errors of
    ``arena_topo.errors``: ``ConnectionFailed`` when no server answers, a kind of ``ApiError`` when the server
    refuses.
    """

    def __init__(
        self,
        transport: HttpTransport,
        *,
        namespace: str,
        timeout: float = 0.0,
        reconnect: float = 0.0,
        server: str = "",
        user: Mapping[str, Any] | None = None,
        notify: Callable[[str], None] = _tell,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._notify, self._sleep, self._now = notify, sleep, now
        self._timeout = timeout or None
        self._reconnect, self._ends = reconnect, float("inf")
        self._absence: _Absence | None = None
        # Sessions for other namespaces belong to the same command.
        self._clock = _CommandClock(now)
        self._headers = (("User-Agent", "arena-topo"), *impersonation(user or {}))
        self.namespace = namespace
        self.kinds: tuple[Kind, ...] = ()
        """The kinds of jobs that the user means, all where it is empty."""
        self.server = server
        # The header Date of the last answer, and when that came; copies of this session share it.
        self._date = [("", 0.0)]
        self._discovered: dict[str, tuple[float, Object]] = {}
        self._may_send: Callable[[], bool] | None = None

    def now(self) -> datetime:
        """Return the server's time, to a second or so; before its first answer that of this machine."""
        date, then = self._date[0]
        answered = http_date(date)
        try:
            return answered + timedelta(seconds=self._now() - then) if answered else datetime.now(UTC)
        except OverflowError:
            return datetime.now(UTC)

    def version(self) -> str | None:
        """Return the version of Kubernetes that the server says it is, None where it does not say."""
        version = self.get("/version").get("gitVersion")
        return str(version) if version else None

    def of_kinds(self, kinds: tuple[Kind, ...]) -> "Session":
        """Return this session for a user who means only jobs of *kinds*."""
        other = copy(self)
        other.kinds = kinds
        return other

    def within(self, namespace: str) -> "Session":
        """Return this session in another *namespace*."""
        other = copy(self)
        other.namespace = namespace
        return other

    def anew(self) -> "Session":
        """Return this session as a new command has it, for a process that never ends."""
        other = copy(self)
        other._clock, other._discovered = _CommandClock(self._now), {}  # noqa: SLF001  # they are this class's own
        return other

    def outlasts(self, error: ArenaTopoError) -> bool:
        """Whether this session tries again what failed because of *error*."""
        passes = is_passing(error) or (isinstance(error, Forbidden) and self._clock.is_settling())
        return passes and self._absence is not None and self._reconnect > 0 and self._clock.has_answer

    def patient(self, until: float | None = None) -> "Session":
        """Return this session, whose reads outlast an API server that is away, as in an upgrade.

        Once the server has answered, each read that fails for the moment is tried again for the seconds that
        the user allows, at most *until* a time of the session's clock. Raises ``ServerAway`` afterwards. What
        is broken from the beginning, and what waiting does not mend, is raised at once. A stream is opened
        again by its reader.
        """
        other = copy(self)
        other._absence = self._absence or _Absence(self._notify)  # noqa: SLF001  # they are this class's own
        other._ends = self._ends if until is None else min(self._ends, until)  # noqa: SLF001
        return other

    def only_while(self, may_send: Callable[[], bool]) -> "Session":
        """Return this session, which only sends, retries included, while *may_send* says so.

        Its methods raise ``NotSent`` then.
        """
        other = self.anew()
        other._may_send = may_send  # noqa: SLF001  # it is this class's own
        return other

    def get(self, path: str, **query: str | int | bool | None) -> Object:
        """Return the object at *path*."""
        return self._object("GET", path, query)

    def exists(self, path: str) -> bool | None:
        """Whether there is an object at *path*; only its metadata is sent.

        None where that cannot be known: the user cannot read it, or nothing of its type is served.
        """
        try:
            self._object("GET", path, {}, accept=_METADATA)
        except NotFound as error:
            return None if is_unserved(error) else False
        except ApiError:
            return None
        return True

    def discovery(self, path: str) -> Object:
        """Return the discovery document at *path*, read once a minute at most: some commands run for days."""
        read_at, document = self._discovered.get(path, (0.0, None))
        if document is None or self._now() - read_at > _DISCOVERY_AGE:
            document = self.get(path)
            self._discovered[path] = self._now(), document
        return document

    def get_raw(self, path: str, **query: str | int | bool | None) -> bytes:
        """Return the JSON at *path* undecoded, for callers who read few of its fields."""
        headers = (*self._headers, ("Accept", "application/json"), GZIP)
        return self._read(Request("GET", _with_query(path, query), None, headers, self._timeout), bytes)

    def create(self, path: str, body: Object, *, dry_run: bool = False) -> Object:
        """Create *body* under the collection *path*; unknown and duplicate fields are errors."""
        query = {
            "fieldValidation": "Strict",
            "fieldManager": "arena-topo",
            "dryRun": "All" if dry_run else None,
        }
        return self._object("POST", path, query, body)

    def patch(
        self, path: str, body: Object | list[Object], kind: PatchKind = "merge", **query: str
    ) -> Object:
        """Patch the object at *path* with a merge patch, or with the operations of a JSON patch."""
        content = f"application/{kind}-patch+json"
        return self._object("PATCH", path, {"fieldManager": "arena-topo", **query}, body, content)

    def apply(self, path: str, body: Object) -> Object:
        """Create or change the object at *path* by server-side apply, taking over fields of others."""
        query: Query = {"fieldManager": "arena-topo", "fieldValidation": "Strict", "force": True}
        return self._object("PATCH", path, query, body, "application/apply-patch+yaml")

    def delete(
        self, path: str, *, propagation: str = "Background", uid: str = "", at_once: bool = False
    ) -> Object:
        """Delete the object at *path*, only if it still has *uid* where one is given.

        *at_once*: without waiting for its kubelet, which may be gone with its node.
        """
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if at_once:
            options["gracePeriodSeconds"] = 0
        # Without it, an object that was recreated under the name meanwhile would be deleted in its place.
        if uid:
            options["preconditions"] = {"uid": uid}
        return self._object("DELETE", path, {}, options)

    def pages(
        self, path: str, decode: Decode = read_body, /, **query: str | int | bool | None
    ) -> Iterator[Object]:
        """Yield the list at *path* page by page; *decode* may leave out what no shape names."""

        def read(choice: Choice) -> tuple[Object, str]:
            page = self._object("GET", path, {**query, **choice}, decode=decode)
            return page, str((page.get("metadata") or {}).get("continue") or "")

        return self.read_pages(path, read, _PAGE)

    def read_pages(self, path: str, read: Callable[[Choice], tuple[Page, str]], size: int) -> Iterator[Page]:
        """Yield the pages of the list at *path*.

        *read* returns one, with the token of the next, empty at the end.
        A page that is too large is asked for again with a tenth of its
        items: objects may have a megabyte each. Raises ``DocumentError`` for a list that does not end.
        """
        token, started, before = "", self._now(), self._clock.received
        for number in range(1, MOST_PAGES + 1):
            try:
                page, following = read({"limit": size, "continue": token or None})
            except AnswerTooLarge:
                if size == 1:
                    raise
                size = max(1, size // 10)
                continue
            yield page
            if not following:
                return
            # A server that sends the same token again sends the same page again.
            if following == token:
                raise endless(path, f"page {number} leads to itself")
            if self._timeout is not None and self._now() - started > LIST_TIMEOUTS * self._timeout:
                raise endless(
                    path,
                    f"{plural(number, 'page')} so far",
                    "--request-timeout allows more time for each page",
                )
            if self._clock.received - before > LARGEST_LIST:
                raise endless(path, f"more than {LARGEST_LIST >> 20} MiB so far")
            token = following
        raise endless(path, f"{MOST_PAGES} pages so far")

    def list(
        self, path: str, *, decode: Decode = read_body, **query: str | int | bool | None
    ) -> list[Object]:
        """Return every item of the list at *path*, of which *decode* may leave out what no shape names."""
        return [item for page in self.pages(path, decode, **query) for item in items_of(page)]

    def rows(
        self, path: str, columns: Sequence[str], *, metadata: bool = False, **query: str | int | bool | None
    ) -> Iterator[tuple[Object, tuple[str, ...]]]:
        """Yield the metadata and the cells of *columns* of each object in the list at *path*.

        Without *metadata*, {}. The server prints the cells, as for ``kubectl get``: of 3,000 pods that is 0.8
        MB, where the pods are 29 MB.
        """
        include = "Metadata" if metadata else "None"

        def read(choice: Choice) -> tuple[Object, str]:
            page = self._object("GET", path, {**query, **choice, "includeObject": include}, accept=_TABLE)
            return page, str((page.get("metadata") or {}).get("continue") or "")

        for page in self.read_pages(path, read, _ROWS):
            names = [column["name"] for column in page.get("columnDefinitions") or []]
            # An empty table may leave out its columns.
            places = [names.index(column) for column in columns if column in names]
            if page.get("rows") and len(places) < len(columns):
                raise DocumentError(f"the server's table of {path} lacks one of {', '.join(columns)}")
            for row in page.get("rows") or []:
                meta = (row.get("object") or {}).get("metadata") or {}
                yield meta, tuple(str(row["cells"][place]) for place in places)

    def stream(
        self, path: str, *, timeout: float | None = None, **query: str | int | bool | None
    ) -> Response:
        """Open an answer that is read for long, as a log is; *timeout* is the longest silence in seconds."""
        return self._stream(path, query, timeout, own=True)

    def stream_once(
        self, path: str, *, timeout: float | None = None, **query: str | int | bool | None
    ) -> Response:
        """Like ``stream``, over the kept connection, without another TLS handshake.

        It is read before anything else is asked.
        """
        return self._stream(path, query, timeout, own=False)

    def _stream(self, path: str, query: Query, silence: float | None, *, own: bool) -> Response:
        request = Request("GET", _with_query(path, query), None, self._headers, self._timeout, silence)
        return self._accepted(request, stream=own)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _object(
        self,
        method: str,
        path: str,
        query: Query,
        body: object = None,
        content: str = "application/json",
        *,
        accept: str = "application/json",
        decode: Decode = read_body,
    ) -> Object:
        headers = (*self._headers, ("Accept", accept))
        if method == "GET":
            headers += (GZIP,)
        if body is not None:
            headers += (("Content-Type", content),)
        encoded = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        request = Request(method, _with_query(path, query), encoded, headers, self._timeout)
        try:
            document = self._read(request, lambda body: decode(body or b"{}"))
        except ValueError:
            document = None
        # A login page before the server answers 200 with HTML.
        if not isinstance(document, dict):
            raise DocumentError(
                f"the server answered {method} {path} with something that is not an object",
                hint="is it an API server, or a login page before one? kubectl cluster-info shows its address",
            )
        return (
            self._checked_table(document, path) if accept == _TABLE else self._checked(document, method, path)
        )

    @staticmethod
    def _checked_table(document: Object, path: str) -> Object:
        """Return *document*, which is a table of rows with as many cells as columns.

        Raises ``DocumentError``.
        """
        columns, rows = document.get("columnDefinitions") or [], document.get("rows") or []
        named = isinstance(columns, list) and all(
            isinstance(column, dict) and isinstance(column.get("name"), str) for column in columns
        )
        is_listed = isinstance(document.get("metadata") or {}, dict)
        if (
            not named
            or not is_listed
            or not isinstance(rows, list)
            or not all(_is_row(row, len(columns)) for row in rows)
        ):
            raise DocumentError(f"the server answered GET {path} with something that is not a table")
        return document

    def _checked(self, document: Object, method: str, path: str) -> Object:
        """Return *document* in the shape that its readers rely on, without what has another one.

        Raises ``DocumentError`` where it is something else altogether. Resources whose schema is open may
        hold anything, and one such object must not stop users who list all of them.
        """
        expected = answered_at(method, path)
        fault = ""
        if expected.is_list and not str(document.get("kind") or "List").endswith("List"):
            fault = "it is not a list"
        elif expected.is_list:
            fault = misfit(document, LIST)
        elif expected.is_named:
            fault = _unnamed(document)
            kind = str(document.get("kind") or "")
            if kind and not is_of(kind, expected.plural):
                fault = f"it is a {kind[:_LONGEST_HOST]}"
        if fault:
            raise DocumentError(
                f"the server answered {method} {path} with something unexpected: {fault}",
                hint="is it an API server? kubectl cluster-info shows its address",
            )
        if not expected.is_list:
            return dict(fitted(document, expected.shape))
        return {**document, "items": [fitted(item, expected.shape) for item in document.get("items") or ()]}

    def _read(self, request: Request, decode: Callable[[bytes], Decoded]) -> Decoded:
        def read(request: Request) -> Decoded:
            try:
                body = unpacked(self._accepted(request))
                self._clock.received += len(body)
                return decode(body)
            finally:
                self._clock.end()

        return self._outlasting(request, read)

    def _outlasting(self, request: Request, attempt: Callable[[Request], Decoded]) -> Decoded:
        """Return what *attempt* returns for *request*, tried again as ``patient`` says."""
        absence, pause, began, ends = self._absence, _FIRST_PAUSE, 0.0, 0.0
        if absence is None or request.method != "GET":
            return attempt(request)
        answered = False
        try:
            while True:
                try:
                    result = attempt(request)
                except ArenaTopoError as error:
                    if not self.outlasts(error):
                        raise
                    now = self._now()
                    if not ends:
                        began, ends = now, min(now + self._reconnect, self._ends)
                        absence.begin(error, ends - now)
                    if now >= ends:
                        raise _away(error, now - began) from error
                    self._sleep(min(pause, ends - now))
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    left = max(ends - self._now(), _SHORTEST_TIMEOUT)
                    request = replace(request, timeout=min(self._timeout or left, left))
                else:
                    answered = True
                    return result
        finally:
            if ends:
                absence.end(answered=answered)

    def _accepted(self, request: Request, *, stream: bool = False) -> Response:
        """Send until the server accepts.

        Once more with new credentials, up to five more times when it says to retry.
        All of this has the time that the user gives to one request, and less where others of the command took
        long.
        """
        send = self._transport.stream if stream else self._transport.send
        retries, is_renewed = 0, False
        ends = None
        if request.timeout is not None:
            all_end = self._clock.begin(COMMAND_TIMEOUTS * request.timeout)
            ends = min(self._now() + request.timeout, all_end)
        while True:
            left = None if ends is None else max(ends - self._now(), _SHORTEST_TIMEOUT)
            # As late as can be: a retry may have waited for long.
            if self._may_send and not self._may_send():
                raise NotSent("it is too late to send this")
            try:
                answer = send(replace(request, timeout=left))
            except ArenaTopoError as unanswered:
                self._clock.note(unanswered)
                raise
            if answer.status < 300:
                self._date[0] = answer.header("Date"), self._now()
                self._clock.has_answer = True
                return answer
            error = _refusal(answer)
            # A stream has a connection of its own; the others continue over the kept one.
            if stream:
                answer.close()
            # Tokens of exec plugins expire while a log is followed.
            if answer.status == 401 and not is_renewed and self._transport.renew():
                is_renewed = True
                continue
            wait = _retry_after(answer)
            if wait is None or retries == MOST_RETRIES or (ends is not None and self._now() + wait > ends):
                self._clock.note(error)
                raise error
            retries += 1
            # A second is no wait that anybody wonders about.
            if wait > 1:
                self._notify(
                    f"the server asks to try again in {wait:g} s (HTTP status {answer.status}), "
                    f"attempt {retries} of {MOST_RETRIES}"
                )
            self._sleep(wait)


def endless(path: str, why: str, hint: str = "") -> DocumentError:
    """Return the error for a list of more than any cluster has."""
    return DocumentError(
        f"the server's list of {path} does not end: {why}",
        hint=hint or "is it an API server, or something before one? kubectl cluster-info shows its address",
    )


def _away(error: ArenaTopoError, seconds: float) -> ServerAway:
    return ServerAway(
        f"the API server has been away for {written_duration(seconds)}: {error.message}",
        hint="the job continues without this command, which can be run again; --reconnect waits longer",
    )


def items_of(page: Object) -> Iterator[Object]:
    """Yield the objects in a *page* of a list; what is no object cannot be read as one."""
    items = page.get("items")
    yield from (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))


def _refusal(answer: Response) -> ArenaTopoError:
    # Read to its end, so that the connection can be kept.
    body = unpacked(answer)
    if answer.status < 400:
        where = urlsplit(answer.header("Location")).netloc[:_LONGEST_HOST]
        return DocumentError(
            f"the server redirects to {where or 'another place'!r} (HTTP status {answer.status}), where credentials are not sent",
            hint="is it an API server, or a login page before one? kubectl cluster-info shows its address",
        )
    return api_error(answer.status, body)


def _unnamed(document: Object) -> str:
    """Return what is wrong with an answer that must be an object with a name, empty where it is one."""
    if fault := misfit(document, OBJECT):
        return fault
    return "" if (document.get("metadata") or {}).get("name") else "metadata.name is missing"


def _is_row(row: object, columns: int) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("cells"), list) or len(row["cells"]) != columns:
        return False
    item = row.get("object") or {}
    return isinstance(item, dict) and isinstance(item.get("metadata") or {}, dict)


def _retry_after(answer: Response) -> float | None:
    """Return the seconds after which the server says to come back, None where it does not say so."""
    if answer.status != 429 and answer.status < 500:
        return None
    # A date is allowed in HTTP as well; the API server sends seconds.
    seconds = answer.header("Retry-After")
    return min(float(seconds), LONGEST_WAIT) if seconds.isdecimal() else None


def _with_query(path: str, query: Query) -> str:
    # False is the default of every switch of the API.
    pairs = {key: _text(value) for key, value in query.items() if value is not None and value is not False}
    return f"{path}?{urlencode(pairs, quote_via=quote)}" if pairs else path


def _text(value: str | int | bool | None) -> str:
    return "true" if value is True else str(value)


def impersonation(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the headers for the identity that *user* acts as, by the keys of a kubeconfig."""
    for key, header in (("as", "Impersonate-User"), ("as-uid", "Impersonate-Uid")):
        if user.get(key):
            yield header, str(user[key])
    for group in user.get("as-groups") or ():
        yield "Impersonate-Group", str(group)
    for name, values in (user.get("as-user-extra") or {}).items():
        for value in values:
            yield f"Impersonate-Extra-{quote(str(name), safe='')}", str(value)


def connect(connection: ConnectionFlags, target: Target | None = None) -> Session:
    """Return a session with the cluster of *connection*; nothing is sent yet.

    *target* is that cluster where it has been resolved already. Raises ``DocumentError`` when no kubeconfig
    names a cluster, or names one that cannot be used.
    """
    target = target or configured_target(connection)
    return Session(
        Transport(target),
        namespace=target.namespace,
        timeout=connection.request_timeout,
        reconnect=connection.reconnect,
        server=target.server,
        user=target.user,
    )
