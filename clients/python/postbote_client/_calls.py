"""The single calls in progress. Each is repeated as long as that may help, until `close` gives it up."""

from __future__ import annotations

import asyncio
from typing import List, Optional, Set

from ._errors import PostboteClientError, closed_error, copy_of
from ._http import Server
from ._pushes import Call
from ._settings import Retry, Settings

# As many as a stream has pairs by default; a stream takes more at less cost (clients/typescript/repeated-calls.ts).
_CALLS_MAX = 16_384


class RepeatedCalls:
    """Runs single calls with repetitions."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self._server = server
        self._settings = settings
        #: One for each call in progress; its result ends the call.
        self._under_way: Set[asyncio.Future[None]] = set()
        self._on_idle: List[asyncio.Future[None]] = []

    async def run(self, call: Call, *, is_repeatable: bool) -> bytes:
        """Runs a call until an attempt succeeds or no retry is left, and returns the body of the response.

        Raises:
            PostboteClientError: the last attempt's, CLOSED if the call was given up, or TOO_MANY_UNDER_WAY.
        """
        if len(self._under_way) >= _CALLS_MAX:
            raise PostboteClientError("TOO_MANY_UNDER_WAY")
        given_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way.add(given_up)
        try:
            return await self._repeat(call, is_repeatable, given_up)
        finally:
            self._under_way.discard(given_up)
            if not self._under_way:
                for waiter in self._on_idle:
                    if not waiter.done():
                        waiter.set_result(None)
                self._on_idle.clear()

    async def idle(self) -> None:
        """Returns when no call is in progress."""
        if self._under_way:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._on_idle.append(waiter)
            await waiter

    def give_up(self) -> None:
        """Ends all calls in progress with CLOSED."""
        for given_up in self._under_way:
            if not given_up.done():
                given_up.set_result(None)

    async def _repeat(
        self, call: Call, is_repeatable: bool, given_up: asyncio.Future[None]
    ) -> bytes:
        attempt = 0
        is_unknown = False
        while True:
            attempt += 1
            try:
                return await self._attempt(call, given_up)
            except PostboteClientError as error:
                is_unknown = is_unknown or error.is_outcome_unknown
                if given_up.done():
                    raise closed_error(is_unknown) from None
                delay_s = self._settings.retry_delay_s(
                    error,
                    attempt,
                    is_repeatable=is_repeatable,
                    unreached_s=self._server.unreached_s(),
                )
                if delay_s is None:
                    if is_unknown and not error.is_outcome_unknown:
                        raise copy_of(error, is_outcome_unknown=True) from error.__cause__
                    raise
                self._settings.tell(Retry(error, attempt, delay_s, None))
            await asyncio.wait((given_up,), timeout=delay_s)
            if given_up.done():
                raise closed_error(is_unknown)

    async def _attempt(self, call: Call, given_up: asyncio.Future[None]) -> bytes:
        task = asyncio.ensure_future(self._server.call(call))
        try:
            await asyncio.wait(
                (task, given_up),
                timeout=self._settings.timeout_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        except asyncio.CancelledError:
            await _cancelled(task)
            raise
        if not task.done():
            await _cancelled(task)
            if task.cancelled():
                raise PostboteClientError("TIMEOUT")
        return task.result()


async def _cancelled(task: asyncio.Future[bytes]) -> None:
    # Before Python 3.12, wait_for ignores that it is cancelled if what it waits for ends at the same moment.
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=1)
