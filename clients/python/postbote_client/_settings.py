"""The options of the client with their checks, and when a failed attempt is repeated."""

from __future__ import annotations

import asyncio
import math
import random
from typing import Callable, NamedTuple, Optional

from . import _tables
from ._errors import PostboteClientError

# A longer Retry-After is reported to the caller instead of waited for (clients/typescript/retry-delay.ts).
RETRY_AFTER_S_MAX = 60


class Retry(NamedTuple):
    """A failed attempt that the client repeats, as `on_retry` gets it."""

    error: PostboteClientError
    #: Number of failed attempts so far, from 1.
    attempt: int
    #: Time until the next attempt, in seconds.
    delay_s: float
    #: The bot of a pair that the server refused within a stream; None otherwise.
    bot_id: Optional[int]


OnRetry = Callable[[Retry], object]


class Settings(NamedTuple):
    """The options that have defaults."""

    timeout_s: float
    retries: int
    retry_delay_s_min: float
    retry_delay_s_max: float
    connections: int
    has_idempotency_keys: bool
    on_retry: Optional[OnRetry]

    def checked(self) -> Settings:
        """Returns itself; raises a TypeError that names the first option that cannot be used."""
        check_seconds("timeout_s", self.timeout_s, above=0)
        check_whole("retries", self.retries, 0)
        check_seconds("retry_delay_s_min", self.retry_delay_s_min)
        check_seconds("retry_delay_s_max", self.retry_delay_s_max)
        if self.retry_delay_s_max < self.retry_delay_s_min:
            raise TypeError("retry_delay_s_max: expected at least retry_delay_s_min")
        check_whole("connections", self.connections, 1)
        if self.on_retry is not None and not callable(self.on_retry):
            raise TypeError("on_retry: expected a function")
        return self

    def close_timeout_s(self, timeout_s: Optional[float]) -> float:
        """Returns the time limit of a `close`; raises a TypeError if it cannot be used."""
        if timeout_s is None:
            return self.timeout_s
        check_seconds("timeout_s", timeout_s)
        return timeout_s

    def tell(self, retry: Retry) -> None:
        """An exception of the callback goes to the handler of the event loop; the push goes on."""
        if self.on_retry is not None:
            asyncio.get_running_loop().call_soon(self.on_retry, retry)

    def retry_delay_s(
        self,
        error: PostboteClientError,
        attempt: int,
        *,
        is_repeatable: bool,
        unreached_s: Optional[float],
    ) -> Optional[float]:
        """Returns the seconds until the next attempt; None if the error is final.

        Args:
            error: Why the last attempt failed.
            attempt: Number of attempts so far, from 1.
            is_repeatable: Whether carrying out the call twice has the same effect as once.
            unreached_s: For how long the server has been tried in vain; None once it was reached.
        """
        if not error.is_retryable or attempt > self.retries:
            return None
        if error.is_outcome_unknown and not is_repeatable:
            return None
        retry_after_s = error.retry_after_s or 0
        if retry_after_s > RETRY_AFTER_S_MAX:
            return None
        # TOO_MANY_KEYS lasts until the end of the UTC day. Only the response to a single push tells how long that is.
        if error.code == "TOO_MANY_KEYS" and retry_after_s == 0:
            return None
        # The exponent is bounded, so that the power stays a number.
        ceiling_s = min(self.retry_delay_s_max, self.retry_delay_s_min * 2 ** min(attempt - 1, 60))
        delay_s = retry_after_s + random.random() * ceiling_s
        if unreached_s is not None and unreached_s + delay_s > _tables.FIRST_CONTACT_S:
            return None
        return delay_s


class StreamBounds(NamedTuple):
    """The bounds at which `ready` waits."""

    pairs_max: int
    bytes_max: int


def stream_bounds(pairs_max: int, bytes_max: int) -> StreamBounds:
    """Raises a TypeError that names a bound that cannot be used."""
    check_whole("pairs_max", pairs_max, 1)
    check_whole("bytes_max", bytes_max, 1)
    return StreamBounds(pairs_max, bytes_max)


def settings_of(
    timeout_s: float = _tables.TIMEOUT_S,
    retries: int = _tables.RETRIES,
    retry_delay_s_min: float = _tables.RETRY_DELAY_S_MIN,
    retry_delay_s_max: float = _tables.RETRY_DELAY_S_MAX,
    connections: int = _tables.CONNECTIONS,
    has_idempotency_keys: bool = True,
    on_retry: Optional[OnRetry] = None,
) -> Settings:
    """Returns all settings; raises a TypeError that names one that does not exist or cannot be used."""
    return Settings(
        timeout_s,
        retries,
        retry_delay_s_min,
        retry_delay_s_max,
        connections,
        has_idempotency_keys,
        on_retry,
    ).checked()


def check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return
    raise TypeError(f"{name}: expected a whole number from {least}, got {value!r}")


def check_seconds(name: str, value: object, above: Optional[float] = None) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and value >= 0 and (above is None or value > above):  # type: ignore[arg-type,operator]
        return
    raise TypeError(f"{name}: expected a number of seconds, got {value!r}")
