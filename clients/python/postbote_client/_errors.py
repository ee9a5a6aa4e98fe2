"""The one error of the client. docs/use/client.md has its codes; no message contains the key."""

from __future__ import annotations

from typing import Optional

from ._tables import CLIENT_CODES, NOTHING_STORED, SERVER_CODES


class PostboteClientError(Exception):
    """What calls and pushes raise.

    Attributes:
        code: A code of docs/reference/errors.md, or one of the client.
        status: The HTTP status of the response, or the one that belongs to the code; None if there was no response.
        retry_after_s: The server's Retry-After, in seconds, or None.
        is_outcome_unknown: Whether the update may have been stored all the same. A push with the same
            idempotency key stores it only once.
        is_retryable: Whether the same push may succeed later. The client itself has stopped retrying by then.
    """

    code: str
    status: Optional[int]
    retry_after_s: Optional[int]
    is_outcome_unknown: bool

    def __init__(
        self,
        code: str,
        message: Optional[str] = None,
        *,
        status: Optional[int] = None,
        retry_after_s: Optional[int] = None,
        is_outcome_unknown: Optional[bool] = None,
        cause: Optional[BaseException] = None,
    ) -> None:
        super().__init__(message if message is not None else _default_message(code))
        self.code = code
        if status is None and code in SERVER_CODES:
            status = SERVER_CODES[code][0]
        self.status = status
        self.retry_after_s = retry_after_s
        if is_outcome_unknown is None:
            is_outcome_unknown = _leaves_outcome_unknown(code, status or 0)
        self.is_outcome_unknown = is_outcome_unknown
        self.__cause__ = cause

    @property
    def is_retryable(self) -> bool:
        if self.code in CLIENT_CODES and CLIENT_CODES[self.code][1]:
            return True
        status = self.status or 0
        return status == 429 or (status >= 500 and status != 507)


def copy_of(
    error: PostboteClientError,
    *,
    message: Optional[str] = None,
    is_outcome_unknown: Optional[bool] = None,
) -> PostboteClientError:
    """Returns the error for one push: each has its own exception, because raising one changes it."""
    if is_outcome_unknown is None:
        is_outcome_unknown = error.is_outcome_unknown
    return PostboteClientError(
        error.code,
        message or str(error),
        status=error.status,
        retry_after_s=error.retry_after_s,
        is_outcome_unknown=is_outcome_unknown,
        cause=error.__cause__,
    )


def closed_error(is_outcome_unknown: bool = False) -> PostboteClientError:
    """Returns the error of a call or push that `close` ended."""
    when = "the response arrived" if is_outcome_unknown else "anything was sent"
    message = f"The client or the stream was closed before {when}"
    return PostboteClientError("CLOSED", message, is_outcome_unknown=is_outcome_unknown)


def bad_option(message: str) -> PostboteClientError:
    """Returns the error of an option of a push that cannot be used."""
    return PostboteClientError("BAD_REQUEST", message)


def _leaves_outcome_unknown(code: str, status: int) -> bool:
    if code in SERVER_CODES:
        return status >= 500 and code not in NOTHING_STORED
    return CLIENT_CODES[code][2] and (status < 400 or status >= 500)


def _default_message(code: str) -> str:
    if code in SERVER_CODES:
        return SERVER_CODES[code][1]
    return CLIENT_CODES[code][0]
