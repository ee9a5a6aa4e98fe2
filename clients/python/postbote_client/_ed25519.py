"""Verifies ed25519 signatures (RFC 8032), which the standard library of Python lacks. It is slow, a few milliseconds for each,
and knows no secret, so its time tells nobody anything."""

from __future__ import annotations

import hashlib
from typing import Optional, Tuple

_Point = Tuple[int, int, int, int]

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT_OF_MINUS_1 = pow(2, (_P - 1) // 4, _P)


def is_signed_by(public_key: bytes, signed: bytes, signature: bytes) -> bool:
    """Returns whether a signature of 64 bytes is of this key, which has 32 bytes."""
    scalar = int.from_bytes(signature[32:], "little")
    key, point = _point_in(public_key), _point_in(signature[:32])
    if key is None or point is None or scalar >= _ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + signed).digest()
    factor = int.from_bytes(digest, "little") % _ORDER
    return _is_same(_times(scalar, _BASE), _sum(point, _times(factor, key)))


def _point_in(encoded: bytes) -> Optional[_Point]:
    """Returns a point in extended coordinates; None if the bytes are none."""
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    x = _x_of(y, sign) if y < _P else None
    return None if x is None else (x, y, 1, x * y % _P)


def _x_of(y: int, sign: int) -> Optional[int]:
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    if square == 0:
        return None if sign else 0
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P != 0:
        x = x * _ROOT_OF_MINUS_1 % _P
    if (x * x - square) % _P != 0:
        return None
    return _P - x if x & 1 != sign else x


def _sum(one: _Point, other: _Point) -> _Point:
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = other
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = 2 * t1 * t2 * _D % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _times(factor: int, point: _Point) -> _Point:
    result = (0, 1, 1, 0)
    while factor > 0:
        if factor & 1:
            result = _sum(result, point)
        point = _sum(point, point)
        factor >>= 1
    return result


def _is_same(one: _Point, other: _Point) -> bool:
    x1, y1, z1, _ = one
    x2, y2, z2, _ = other
    return (x1 * z2 - x2 * z1) % _P == 0 and (y1 * z2 - y2 * z1) % _P == 0


_BASE_Y = 4 * pow(5, _P - 2, _P) % _P
_BASE_X = _x_of(_BASE_Y, 0) or 0
_BASE = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _P)
