"""One request of a lane: NDJSON both ways, pairs as fast as the connection takes them, and a line for each result."""

from __future__ import annotations

import asyncio
from typing import Awaitable, Callable, List, Optional

from ._errors import PostboteClientError, closed_error
from ._http import Connection, has_end, lost
from ._pushes import response_error
from ._shards import LanePlace

# A line of the response may have this many bytes: a result has 50, an error a few hundred.
_RESULT_BYTES_MAX = 64 * 2**10


class StreamRequest:
    """One NDJSON request: sends pieces as fast as the connection takes them, and reads lines of results."""

    def __init__(
        self,
        place: LanePlace,
        prepare: Callable[[], Awaitable[None]],
        take: Callable[[], bytes],
        on_results: Callable[[List[bytes]], None],
    ) -> None:
        self._server = place.server
        self._path = "/v1/updates" if place.shard is None else f"/v1/updates?shard={place.shard}"
        self._prepare = prepare
        self._take = take
        self._on_results = on_results
        self._reason: Optional[PostboteClientError] = None
        self._is_connected = False
        self._is_ending = False
        self._woken = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run())

    @property
    def outcome(self) -> Optional[PostboteClientError]:
        """After its end: None if the server ended the response normally or nothing was sent, otherwise the reason."""
        # A task that is cancelled before its first step never runs.
        return self._reason if self.task.cancelled() else self.task.result()

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        """Ends the body. The server then sends the results of what it has received, and ends its response."""
        self._is_ending = True
        self._woken.set()
        if not self._is_connected:
            self.task.cancel()

    def destroy(self, reason: PostboteClientError) -> None:
        if self._reason is None:
            self._reason = reason
        self.task.cancel()

    async def _run(self) -> Optional[PostboteClientError]:
        try:
            await self._prepare()
            connection = await self._server.connect()
            self._is_connected = True
            sender = asyncio.ensure_future(self._send(connection))
            try:
                await self._receive(connection)
                return None
            finally:
                sender.cancel()
                connection.abort()
                await asyncio.wait((sender,))
        except asyncio.CancelledError:
            if self._reason is not None:
                return self._reason
            if self._is_ending and not self._is_connected:
                return None
            # The event loop ends.
            return closed_error(True)
        except Exception as cause:
            return self._reason if self._reason is not None else lost(cause)

    async def _send(self, connection: Connection) -> None:
        writer = connection.writer
        lines = "content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n"
        writer.write(self._server.place.head("POST", self._path, lines))
        try:
            while True:
                piece = self._take()
                if piece:
                    writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await writer.drain()
                    # Without a full buffer, drain does not wait at all, and a lost connection is known in a later turn of
                    # the event loop: asyncio would log each piece that is written until then.
                    await asyncio.sleep(0)
                elif self._is_ending:
                    writer.write(b"0\r\n\r\n")
                    return
                else:
                    self._woken.clear()
                    await self._woken.wait()
        except OSError:
            # The response says more, or its end does.
            return

    async def _receive(self, connection: Connection) -> None:
        status, headers = await connection.read_head()
        if status != 200:
            refusal = response_error(status, headers, await connection.read_all(headers))
            raise self._server.place.without_key(refusal)
        rest = b""
        async for piece in connection.read_body(headers):
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            if len(rest) > _RESULT_BYTES_MAX:
                raise PostboteClientError("UNEXPECTED_ANSWER")
            if lines:
                self._on_results(lines)
        # Pairs are sent again after a normal end, also without a key: neither half a result, nor the mere end of the
        # connection, is one.
        if rest or not has_end(headers):
            raise PostboteClientError("CONNECTION_LOST")
