"""Writes pushes as single calls or as pairs of a stream, and reads their results (docs/use/api.md).

A push is written once, so every attempt sends the same bytes. What cannot be written is refused with BAD_UPDATE or
BAD_REQUEST, as the server would, and nothing is sent.
"""

from __future__ import annotations

import json
import re
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple, Union
from urllib.parse import quote, urlencode

from ._errors import PostboteClientError, bad_option
from ._tables import SERVER_CODES

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder().decode
# HTTP strips spaces from both ends of a header value, so the same key in a stream would be a different one.
_HEADER_TEXT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_CODE = re.compile(r"[A-Za-z0-9_]{1,64}")


class PushResult(NamedTuple):
    """The result of a push: stored under an update id, or filtered because the bot does not want its type."""

    #: None if the update was filtered.
    update_id: Optional[int]
    #: Whether the key was pushed before, possibly by an earlier attempt of this same push.
    is_duplicate: bool
    is_filtered: bool


class PushOptions(NamedTuple):
    """Options of a push, as docs/use/client.md explains them."""

    ordering_key: Optional[str] = None
    ttl_s: Optional[int] = None
    is_test: bool = False
    validate: Optional[str] = None
    idempotency_key: Optional[str] = None
    traceparent: Optional[str] = None


class Call(NamedTuple):
    """One call of the private API."""

    method: str
    path: str
    body: bytes = b""
    headers: Tuple[Tuple[str, str], ...] = ()


_FILTERED = PushResult(None, False, True)


def push_call(bot_id: int, update: Mapping[str, Any], options: PushOptions) -> Call:
    """Returns a push as a single call."""
    query: List[Tuple[str, str]] = []
    if options.ordering_key is not None:
        query.append(("ordering_key", options.ordering_key))
    if options.ttl_s is not None:
        query.append(("ttl", str(options.ttl_s)))
    if options.is_test:
        query.append(("test", "true"))
    if options.validate is not None:
        query.append(("validate", options.validate))
    headers: List[Tuple[str, str]] = []
    if options.idempotency_key is not None:
        key = _header_text("idempotency_key", options.idempotency_key)
        headers.append(("idempotency-key", key))
    if options.traceparent is not None:
        headers.append(("traceparent", _header_text("traceparent", options.traceparent)))
    try:
        end = f"?{urlencode(query)}" if query else ""
    except (TypeError, UnicodeError) as cause:
        raise bad_option("ordering_key and validate: expected texts") from cause
    path = f"{bot_path(bot_id)}/updates{end}"
    return Call("POST", path, _update_bytes(update), tuple(headers))


def bot_path(bot_id: int) -> str:
    """Returns the path of a bot; whatever is no number gets a path that no bot has."""
    return f"/v1/bots/{quote(str(bot_id), safe='')}"


def pair_bytes(bot_id: int, update: Mapping[str, Any], options: PushOptions) -> bytes:
    """Returns both lines of a pair, each with its line end."""
    ordering_key, ttl_s, is_test, validate, key, traceparent = options
    try:
        # Joined texts take half the time of one dict.
        head = f'{{"bot_id":{bot_id if type(bot_id) is int else _encode(bot_id)}'
        if ordering_key is not None:
            head += f',"ordering_key":{_encode(ordering_key)}'
        if key is not None:
            head += f',"idempotency_key":{_encode(key)}'
        if ttl_s is not None:
            head += f',"ttl":{_encode(ttl_s)}'
        if is_test:
            head += ',"test":true'
        if validate is not None:
            head += f',"validate":{_encode(validate)}'
        if traceparent is not None:
            head += f',"traceparent":{_encode(traceparent)}'
        line = f"{head}}}".encode()
    except (TypeError, ValueError) as cause:
        raise bad_option("expected options of the types that client.md tells") from cause
    return b"%b\n%b\n" % (line, _update_bytes(update))


def outcome_of(text: Union[bytes, str]) -> Union[PushResult, PostboteClientError]:
    """Reads the response to a single push, or a line of the response to a stream."""
    response = parsed_or_none(text)
    if isinstance(response, dict):
        update_id = response.get("update_id")
        if isinstance(update_id, int):
            return PushResult(update_id, response.get("duplicate") is True, False)
        if response.get("filtered") is True:
            return _FILTERED
    code, message = error_in(response)
    if code is None or code not in SERVER_CODES:
        got = "something else" if code is None else f"code {code}"
        return PostboteClientError(
            "UNEXPECTED_ANSWER", f"Expected the result of a push, got {got}"
        )
    return PostboteClientError(code, message)


def response_error(status: int, headers: Mapping[str, str], body: bytes) -> PostboteClientError:
    """Returns the error of a response with a status other than 200."""
    retry_after = headers.get("retry-after", "")
    retry_after_s = int(retry_after) if re.fullmatch(r"[0-9]{1,9}", retry_after) else None
    code, message = error_in(parsed_or_none(body))
    if code is None or code not in SERVER_CODES:
        shown = f"status {status}" if code is None else f"status {status}, code {code}"
        # The public listener responds with this to a path that it does not have.
        hint = ""
        if code is None and status == 404:
            hint = ": expected url to be the address of the private listener"
        return PostboteClientError(
            "UNEXPECTED_ANSWER",
            f"Expected a response of Postbote, got {shown}{hint}",
            status=status,
            retry_after_s=retry_after_s,
        )
    return PostboteClientError(code, message, status=status, retry_after_s=retry_after_s)


def error_in(response: object) -> Tuple[Optional[str], Optional[str]]:
    """Returns the code, unchecked, and the message of an error; None and None if there is none."""
    error = response.get("error") if isinstance(response, dict) else None
    if not isinstance(error, dict):
        return None, None
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        return None, None
    return code, message if isinstance(message, str) else None


def parsed_or_none(text: Union[bytes, str]) -> Any:
    """Parses JSON; None for text that is not JSON."""
    try:
        return _decode(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None


def _update_bytes(update: Mapping[str, Any]) -> bytes:
    try:
        return _encode(update).encode()
    except (TypeError, ValueError, RecursionError) as cause:
        raise PostboteClientError(
            "BAD_UPDATE",
            "Bad update: expected a value that json can write, and nothing was sent",
            cause=cause,
        ) from cause


def _header_text(option: str, text: str) -> str:
    if isinstance(text, str) and _HEADER_TEXT.fullmatch(text):
        return text
    raise bad_option(
        f"{option}: expected printable ASCII characters without a space at either end"
    )
