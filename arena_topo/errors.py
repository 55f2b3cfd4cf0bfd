"""The errors that users see, and the exit code of each.

::

    ArenaTopoError            1  anything that went wrong
      UsageError              2  a flag, an argument or a file the user gave is not valid
      DoesNotFit              3  the gang does not fit on the cluster
      WaitTimeout             4  something did not happen within the time that the user gave it
      JobFailed               5  the job itself failed
      DocumentError           1  a document (kubeconfig, template, snapshot) cannot be used
      ConnectionFailed        1  no API server answered
        WrongServer           1  and none will: its certificate is not trusted, or its name does not exist
        ServerAway           10  it had answered before, and was away for longer than the user waits for it
      ApiError                1  the API server answered with a refusal
        Unauthorized          1  401
        Forbidden             1  403
        NotFound              1  404
        Conflict              1  409, also AlreadyExists
        Expired               1  410
        Invalid               1  422, and 400 for a malformed object
        TooManyRequests       1  429

Each error says what happened and why in its message, and what to do next in its hint.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """The exit codes of the process (docs/reference/exit-codes.md)."""

    OK = 0
    ERROR = 1
    USAGE = 2
    DOES_NOT_FIT = 3
    TIMEOUT = 4
    JOB_FAILED = 5
    # What ``why`` has found.
    JOB_WAITS = 6
    JOB_IS_SLOW = 7
    JOB_IS_STUCK = 8
    UNDECIDED = 9
    SERVER_AWAY = 10
    # What shells report of a program that Ctrl-C ended: 128 + SIGINT.
    INTERRUPTED = 130


class ArenaTopoError(Exception):
    """Something went wrong; ``message`` says what and why, ``hint`` what to do next."""

    exit_code = ExitCode.ERROR

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ArenaTopoError):
    """A flag, an argument or a file of the user is not valid."""

    exit_code = ExitCode.USAGE


class DoesNotFit(ArenaTopoError):
    """The gang does not fit on the cluster as it is now."""

    exit_code = ExitCode.DOES_NOT_FIT


class WaitTimeout(ArenaTopoError):
    """Something did not happen within the time that the user gave it."""

    exit_code = ExitCode.TIMEOUT


class JobFailed(ArenaTopoError):
    """The job ended, and not well."""

    exit_code = ExitCode.JOB_FAILED


class DocumentError(ArenaTopoError):
    """A kubeconfig, template, snapshot or matrix cannot be used; the message names it."""


class ConnectionFailed(ArenaTopoError):
    """No API server answered: refused, unreachable, or not trusted."""


class WrongServer(ConnectionFailed):
    """The address or the authority is wrong: trying again changes nothing."""


class ServerAway(ConnectionFailed):
    """The API server answered before, and then did not for as long as a waiting command outlasts that."""

    exit_code = ExitCode.SERVER_AWAY


class ApiError(ArenaTopoError):
    """The API server refused; ``status`` is the HTTP code, ``reason`` and ``details`` its Status object's."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        status: int = 0,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.reason = reason
        self.details: Mapping[str, Any] = details or {}


class Unauthorized(ApiError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """403: the credentials are good, the permission is missing."""


class NotFound(ApiError):
    """404: no such object, or no such resource type."""


class Conflict(ApiError):
    """409: the name is taken, or the object has changed since it was read."""


class Expired(ApiError):
    """410: the resource version is too old; list again."""


class Invalid(ApiError):
    """422 or 400: the object does not pass the server's validation."""


class TooManyRequests(ApiError):
    """429: the server asks to slow down."""
