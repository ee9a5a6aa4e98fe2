"""Checks the signature of a delivery to a webhook (Standard Webhooks), for programs that receive updates."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

from ._ed25519 import is_signed_by

#: As Standard Webhooks advises.
_TOLERANCE_S = 300.0
#: Only so many signatures are looked at: the server sends four at most.
_SIGNATURES_MAX = 16
#: The secret is not shown, because it may be most of a right one.
_SECRET_ERROR = "secrets: expected whsec_... or whpk_... with a key in base64"


def verify_webhook(
    headers: Union[Mapping[Any, Any], Iterable[Tuple[Any, Any]]],
    body: Union[bytes, bytearray, memoryview, str],
    secrets: Union[str, Iterable[str]],
    *,
    tolerance_s: float = _TOLERANCE_S,
    now_s: Optional[float] = None,
) -> bool:
    """Returns whether a delivery was signed with one of the secrets, for this body, within the tolerance.

    :param headers: a mapping with names in any case, or pairs of names and values, which may be str or bytes
    :param body: the bytes as they came; a str is taken as UTF-8. Anything else was not signed
    :param secrets: ``whsec_...`` (HMAC-SHA256) or ``whpk_...`` (ed25519), or several while keys are rotated
    :param now_s: the time in seconds since 1970; by default, now
    :raises ValueError: if there is no secret, or one of another form; whatever a stranger sends, the result is False
    """
    keys = [_key_in(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ValueError("secrets: expected at least one")
    ids, times, signatures = (
        _values_in(headers, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    if not isinstance(body, (bytes, bytearray, memoryview, str)):
        return False
    if len(ids) != 1 or len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]):
        return False
    if not abs((time.time() if now_s is None else now_s) - int(times[0])) <= tolerance_s:
        return False
    signed = _bytes_of(f"{ids[0]}.{times[0]}.") + _bytes_of(body)
    given = [_bytes_of(each) for each in " ".join(signatures).split(" ")[:_SIGNATURES_MAX]]
    return any(_is_by(key, each, signed) for key in keys for each in given)


def _key_in(secret: object) -> Tuple[str, bytes]:
    kind, _, text = str(secret).strip().partition("_")
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(_SECRET_ERROR) from None
    if kind == "whsec" and key or kind == "whpk" and len(key) == 32:
        return kind, key
    raise ValueError(_SECRET_ERROR)


def _is_by(key: Tuple[str, bytes], signature: bytes, signed: bytes) -> bool:
    kind, secret = key
    if kind == "whsec":
        mac = hmac.new(secret, signed, hashlib.sha256).digest()
        return hmac.compare_digest(signature, b"v1," + base64.b64encode(mac))
    if not re.fullmatch(rb"v1a,[A-Za-z0-9+/]{86}==", signature):
        return False
    return is_signed_by(secret, signed, base64.b64decode(signature[4:]))


def _values_in(headers: Any, name: str) -> List[str]:
    pairs = headers.items() if hasattr(headers, "items") else headers
    values = [value for each, value in pairs if _text_of(each).lower() == name]
    lists = [value if isinstance(value, (list, tuple)) else [value] for value in values]
    return [_text_of(value) for each in lists for value in each if isinstance(value, (str, bytes))]


def _text_of(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes_of(value: Any) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)
