"""Many pushes over one connection, each with its own result.

    push --> unsent --take--> sent --result--> resolved
               ^  ^             |  `--503-----> held --after a delay--> unsent
               |  `--broken-----'                 ^
               `--pairs of a queue that has held pairs

It works as src/client/push-stream.ts does, which explains the rules of order and repetition. `StreamCore` runs in the
event loop and takes both kinds of futures. Callers see it as `AsyncPushStream`, or as `PushStream` of `_sync`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent import futures
from itertools import islice
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Union

from ._errors import PostboteClientError, closed_error, copy_of
from ._http import Connection, Server, has_end, lost
from ._pushes import PushOptions, PushResult, outcome_of, pair_bytes, response_error
from ._settings import Retry, Settings, StreamBounds

# Pairs are passed to the connection in pieces of about this size, which is what a worker reads at a time.
PIECE_BYTES = 64 * 2**10
# A line of the response may have this many bytes: a result has 50, an error a few hundred.
_RESULT_BYTES_MAX = 64 * 2**10
# Past this many times the bounds, a push is refused: for callers that never await `ready`.
HARD_BOUND_FACTOR = 2

AnyFuture = Union["asyncio.Future[PushResult]", "futures.Future[PushResult]"]


class Pair:
    """A push of a stream that has no result yet."""

    __slots__ = (
        "nth",
        "bot_id",
        "queue",
        "data",
        "is_repeatable",
        "refusals",
        "may_be_stored",
        "future",
    )

    def __init__(
        self, bot_id: int, update: Mapping[str, Any], options: PushOptions, future: AnyFuture
    ) -> None:
        #: Position in the order of pushes, which `StreamCore.add` gives.
        self.nth = 0
        self.bot_id = bot_id
        self.queue = (bot_id, options.is_test)
        self.data = pair_bytes(bot_id, update, options)
        self.is_repeatable = options.idempotency_key is not None
        #: How often the server refused the pair.
        self.refusals = 0
        #: Whether an earlier attempt may have stored the update.
        self.may_be_stored = False
        self.future = future


class _Lane:
    """Pairs of one queue that wait for their next attempt, in the order in which they were pushed."""

    __slots__ = ("pairs", "due_s", "timer")

    def __init__(self, pair: Pair, due_s: float, timer: asyncio.TimerHandle) -> None:
        self.pairs = [pair]
        self.due_s = due_s
        self.timer = timer

    def insert(self, pair: Pair) -> None:
        # From the end, where nearly all pairs belong.
        at = len(self.pairs)
        while at > 0 and self.pairs[at - 1].nth > pair.nth:
            at -= 1
        self.pairs.insert(at, pair)


class StreamCore:
    """The state of a stream. All methods are called in the event loop."""

    def __init__(
        self,
        server: Server,
        settings: Settings,
        bounds: StreamBounds,
        on_closed: Callable[[StreamCore], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = server
        self.settings = settings
        self.bounds = bounds
        self._on_closed = on_closed
        #: Called after results have arrived, for callers that wait for room.
        self.on_room: Callable[[], None] = lambda: None
        #: Called before the stream takes no more pushes.
        self.on_closing: Callable[[], None] = lambda: None
        #: Number and bytes of the pushes that have no result.
        self.pairs = 0
        self.bytes = 0
        self.is_closed = False
        #: Number and bytes of all pushes so far, for their average size.
        self.pushes = 0
        self.pushed_bytes = 0
        self._unsent: Deque[Pair] = deque()
        self._unsent_bytes = 0
        #: In the order in which their results arrive.
        self._sent: Deque[Pair] = deque()
        self._held: Dict[Any, _Lane] = {}
        self._request: Optional[_StreamRequest] = None
        #: Number of results of the current request.
        self._results = 0
        #: Number of requests in a row that ended without a result.
        self._failures = 0
        self._is_scheduled = False
        self._reopening: Optional[asyncio.TimerHandle] = None
        self._silence: Optional[asyncio.TimerHandle] = None
        self._on_empty: List[asyncio.Future[None]] = []
        self._finish: Optional[asyncio.Task[None]] = None

    @property
    def has_piece(self) -> bool:
        """Whether a whole piece waits to be sent."""
        return self._unsent_bytes >= PIECE_BYTES

    def add(self, pair: Pair) -> None:
        """Takes a new push."""
        size = len(pair.data)
        pair.nth = self.pushes
        self.pushes += 1
        self.pushed_bytes += size
        self.pairs += 1
        self.bytes += size
        self._unsent.append(pair)
        self._unsent_bytes += size
        if not self._is_scheduled:
            self._schedule()

    async def close(self, timeout_s: float) -> None:
        """Accepts no more pushes, and returns when each has its result and the connection is closed."""
        if not self.is_closed:
            self.on_closing()
            self.is_closed = True
        if self._finish is None:
            self._finish = self._loop.create_task(self._finished())
        self.on_room()
        timer = self._loop.call_later(timeout_s, self._give_up)
        try:
            # The task goes on if only this wait is cancelled.
            await asyncio.shield(self._finish)
        finally:
            timer.cancel()

    async def _finished(self) -> None:
        if self.pairs > 0:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._on_empty.append(waiter)
            await waiter
        request = self._request
        if request is not None:
            request.end()
            await asyncio.wait((request.task,))
        self._on_closed(self)

    def _give_up(self) -> None:
        if self._reopening is not None:
            self._reopening.cancel()
            self._reopening = None
        for pair in self._sent:
            pair.may_be_stored = True
        pairs = [*self._sent, *self._clear_held(), *self._unsent]
        self._sent.clear()
        self._set_unsent(())
        for pair in pairs:
            self._fail(pair, closed_error(pair.may_be_stored))
        self._expect_results()
        self._wake()
        if self._request is not None:
            self._request.destroy(PostboteClientError("CLOSED"))

    def _schedule(self) -> None:
        """Sends the pushes of one turn of the event loop together."""
        self._is_scheduled = True
        self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._is_scheduled = False
        if self._request is not None:
            self._request.wake()
        elif self._reopening is None and self._unsent:
            self._results = 0
            request = _StreamRequest(self._server, self._take, self._settle)
            self._request = request
            request.task.add_done_callback(lambda task: self._on_end(task.result()))

    def _take(self) -> bytes:
        """Returns the next piece to send, empty if there is none now."""
        data: List[bytes] = []
        size = 0
        were_sent = len(self._sent) > 0
        while self._unsent and size < PIECE_BYTES:
            pair = self._unsent.popleft()
            self._unsent_bytes -= len(pair.data)
            if self._held:
                lane = self._held.get(pair.queue)
                if lane is not None:
                    lane.insert(pair)
                    continue
            data.append(pair.data)
            size += len(pair.data)
            self._sent.append(pair)
        if data and not were_sent:
            self._expect_results()
        return b"".join(data)

    def _expect_results(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if self._sent:
            self._silence = self._loop.call_later(self.settings.timeout_s, self._on_silence)

    def _on_silence(self) -> None:
        if self._request is not None:
            self._request.destroy(PostboteClientError("TIMEOUT"))

    def _settle(self, lines: List[bytes]) -> None:
        """Matches lines to pairs: the server sends the results in the order of the pairs."""
        self._failures = 0
        count = min(len(lines), len(self._sent))
        for line in islice(lines, count):
            self._settle_one(self._sent.popleft(), line)
        self._results += count
        if count < len(lines) and self._request is not None:
            self._request.destroy(PostboteClientError("UNEXPECTED_ANSWER"))
        self._expect_results()
        self._wake()

    def _settle_one(self, pair: Pair, line: bytes) -> None:
        outcome = outcome_of(line)
        if isinstance(outcome, PushResult):
            self.pairs -= 1
            self.bytes -= len(pair.data)
            self._resolve(pair.future.set_result, outcome)
            return
        outcome = self._server.place.without_key(outcome)
        pair.refusals += 1
        pair.may_be_stored = pair.may_be_stored or outcome.is_outcome_unknown
        delay_s = self.settings.retry_delay_s(
            outcome, pair.refusals, is_repeatable=pair.is_repeatable, unreached_s=None
        )
        if delay_s is None:
            self._fail(pair, outcome)
            return
        self.settings.tell(Retry(outcome, pair.refusals, delay_s, pair.bot_id))
        self._hold(pair, delay_s)

    def _fail(self, pair: Pair, error: PostboteClientError) -> None:
        self.pairs -= 1
        self.bytes -= len(pair.data)
        is_unknown = error.is_outcome_unknown or pair.may_be_stored
        copied = copy_of(error, is_outcome_unknown=is_unknown)
        self._resolve(pair.future.set_exception, copied)

    def _resolve(self, resolve: Callable[[Any], None], outcome: object) -> None:
        try:
            resolve(outcome)
        except asyncio.InvalidStateError:
            # The caller has cancelled it. A future for threads cannot be cancelled.
            pass
        except (SystemExit, KeyboardInterrupt) as error:
            # Of a callback of a future for threads: the pairs after this one have results, too.
            context = {"message": "A callback of a push ended its thread", "exception": error}
            self._loop.call_exception_handler(context)

    def _hold(self, pair: Pair, delay_s: float) -> None:
        """Holds a pair that was refused for a moment. All pairs of its queue come due together, after the longest delay."""
        due_s = self._loop.time() + delay_s
        lane = self._held.get(pair.queue)
        if lane is None:
            timer = self._loop.call_at(due_s, self._on_due, pair.queue)
            self._held[pair.queue] = _Lane(pair, due_s, timer)
            return
        lane.insert(pair)
        if due_s > lane.due_s:
            lane.timer.cancel()
            lane.due_s = due_s
            lane.timer = self._loop.call_at(due_s, self._on_due, pair.queue)

    def _on_due(self, queue: object) -> None:
        lane = self._held.pop(queue, None)
        if lane is not None:
            self._set_unsent((*lane.pairs, *self._unsent))
            self._schedule()

    def _clear_held(self) -> List[Pair]:
        lanes = list(self._held.values())
        self._held.clear()
        for lane in lanes:
            lane.timer.cancel()
        return [pair for lane in lanes for pair in lane.pairs]

    def _on_end(self, error: Optional[PostboteClientError]) -> None:
        """Handles the end of a request: None for a normal end by the server."""
        self._request = None
        self._take_back(error)
        self._expect_results()
        if self._unsent:
            self._reopen(error)
        self._wake()

    def _take_back(self, error: Optional[PostboteClientError]) -> None:
        """Puts the pairs without a result before all unsent ones. After a normal end, none of them is stored."""
        unanswered = list(self._sent)
        self._sent.clear()
        if error is not None and error.is_outcome_unknown:
            for pair in unanswered:
                pair.may_be_stored = True
                if not pair.is_repeatable:
                    self._fail(pair, error)
            unanswered = [pair for pair in unanswered if pair.is_repeatable]
        self._set_unsent((*unanswered, *self._unsent))

    def _reopen(self, ended: Optional[PostboteClientError]) -> None:
        if ended is None and self._results > 0:
            self._schedule()
            return
        self._failures += 1
        error = ended if ended is not None else PostboteClientError("CONNECTION_LOST")
        delay_s = self.settings.retry_delay_s(
            error, self._failures, is_repeatable=True, unreached_s=self._server.unreached_s()
        )
        if delay_s is None:
            self._failures = 0
            pairs = [*self._clear_held(), *self._unsent]
            self._set_unsent(())
            for pair in pairs:
                self._fail(pair, error)
            return
        self.settings.tell(Retry(error, self._failures, delay_s, None))
        self._reopening = self._loop.call_later(delay_s, self._on_reopening)

    def _on_reopening(self) -> None:
        self._reopening = None
        self._schedule()

    def _set_unsent(self, pairs: Any) -> None:
        self._unsent = deque(pairs)
        self._unsent_bytes = sum(len(pair.data) for pair in self._unsent)

    def _wake(self) -> None:
        self.on_room()
        if self.pairs == 0:
            for waiter in self._on_empty:
                if not waiter.done():
                    waiter.set_result(None)
            self._on_empty.clear()


class _StreamRequest:
    """One NDJSON request: sends pieces as fast as the connection takes them, and reads lines of results."""

    def __init__(
        self,
        server: Server,
        take: Callable[[], bytes],
        on_results: Callable[[List[bytes]], None],
    ) -> None:
        self._server = server
        self._take = take
        self._on_results = on_results
        self._reason: Optional[PostboteClientError] = None
        self._is_ending = False
        self._woken = asyncio.Event()
        #: Its result is None if the server ended the response normally, otherwise the reason.
        self.task = asyncio.get_running_loop().create_task(self._run())

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        """Ends the body. The server then sends the results of what it has received, and ends its response."""
        self._is_ending = True
        self._woken.set()

    def destroy(self, reason: PostboteClientError) -> None:
        if self._reason is None:
            self._reason = reason
        self.task.cancel()

    async def _run(self) -> Optional[PostboteClientError]:
        try:
            connection = await self._server.connect()
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
            # The event loop ends.
            return closed_error(True)
        except Exception as cause:
            return self._reason if self._reason is not None else lost(cause)

    async def _send(self, connection: Connection) -> None:
        writer = connection.writer
        lines = "content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n"
        writer.write(self._server.place.head("POST", "/v1/updates", lines))
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


class AsyncPushStream:
    """A stream of pushes over one connection; `AsyncPostboteClient.open_stream` opens it.

    Example:
        >>> async with client.open_stream() as stream:
        ...     await stream.ready()
        ...     future = stream.push(bot_id, {"message": message})
    """

    def __init__(self, core: StreamCore, new_key: Callable[[], Optional[str]]) -> None:
        self._core = core
        self._new_key = new_key
        self._loop = asyncio.get_running_loop()
        core.on_room = self._on_room
        self._waiting: Deque[asyncio.Future[None]] = deque()
        #: Callers that `ready` admitted and that have not pushed yet.
        self._admitted = 0

    async def __aenter__(self) -> AsyncPushStream:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    @property
    def pairs_in_flight(self) -> int:
        """Number of pushes that have no result yet."""
        return self._core.pairs

    @property
    def bytes_under_way(self) -> int:
        """Bytes of the pushes that have no result yet, with their header lines."""
        return self._core.bytes

    async def ready(self) -> None:
        """Returns when there is room for one push, or at once after `close`. Await it before each push."""
        core = self._core
        if core.is_closed:
            return
        if self._has_room and not self._waiting:
            if core.has_piece:
                # Otherwise a caller that never waits for anything else would fill the stream before it is sent.
                await asyncio.sleep(0)
            if self._has_room and not self._waiting:
                self._admit()
                return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            if waiter.cancelled():
                # Its place goes to the next one.
                self._loop.call_soon(self._on_room)

    def push(
        self,
        bot_id: int,
        update: Mapping[str, Any],
        *,
        ordering_key: Optional[str] = None,
        ttl_s: Optional[int] = None,
        is_test: bool = False,
        validate: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        traceparent: Optional[str] = None,
    ) -> asyncio.Future[PushResult]:
        """Pushes one update, without waiting for the results of earlier pushes.

        Returns:
            A future of the result, or of a PostboteClientError. Cancelling it does not take the push back.
        """
        future: asyncio.Future[PushResult] = self._loop.create_future()
        core = self._core
        try:
            if core.is_closed:
                raise PostboteClientError("CLOSED")
            pairs_max, bytes_max = core.bounds
            is_full = core.pairs >= HARD_BOUND_FACTOR * pairs_max
            if is_full or core.bytes >= HARD_BOUND_FACTOR * bytes_max:
                raise PostboteClientError("TOO_MANY_UNDER_WAY")
            key = idempotency_key if idempotency_key is not None else self._new_key()
            options = PushOptions(ordering_key, ttl_s, is_test, validate, key, traceparent)
            core.add(Pair(bot_id, update, options, future))
        except PostboteClientError as error:
            future.set_exception(error)
        if self._admitted > 0:
            self._admitted -= 1
        return future

    async def close(self, *, timeout_s: Optional[float] = None) -> None:
        """Accepts no more pushes, and returns when every push has its result.

        Args:
            timeout_s: Pushes without a result after this many seconds fail with CLOSED. Default: the client's.
        """
        await self._core.close(self._core.settings.close_timeout_s(timeout_s))

    @property
    def _has_room(self) -> bool:
        core = self._core
        pairs_max, bytes_max = core.bounds
        if self._admitted == 0:
            return core.pairs < pairs_max and core.bytes < bytes_max
        # The average size is not known before the first push, so a single caller is admitted.
        usual = core.pushed_bytes / core.pushes if core.pushes else bytes_max
        admitted_bytes = self._admitted * usual
        return core.pairs + self._admitted < pairs_max and core.bytes + admitted_bytes < bytes_max

    def _admit(self) -> None:
        """An admitted caller counts as a push until it has pushed, or has had its turn."""
        if self._admitted == 0:
            self._loop.call_soon(self._loop.call_soon, self._forget_admitted)
        self._admitted += 1

    def _forget_admitted(self) -> None:
        self._admitted = 0
        self._on_room()

    def _on_room(self) -> None:
        while self._waiting and (self._has_room or self._core.is_closed):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._admit()
                waiter.set_result(None)
