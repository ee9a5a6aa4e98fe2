"""Many pushes over one connection for each group of shards, each with its own result.

    push --> a lane --result--> resolved
              ^  |  `---503-----> held --after a delay--> the lane of its bot
              |  |                  ^
              |  `--pairs of a queue that has held pairs
              `--all that are not sent, when the groups have changed and all that are sent have their results

It works as clients/typescript/push-stream.ts does, which explains the rules of order and repetition. `StreamCore` runs in the
event loop and takes both kinds of futures. Callers see it as `AsyncPushStream`, or as `PushStream` of `_sync`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional

from ._errors import PostboteClientError, closed_error, copy_of
from ._http import Server
from ._lane import HeldQueue, Lane, Pair
from ._pushes import PushOptions, PushResult, outcome_of
from ._settings import Retry, Settings, StreamBounds
from ._shards import ShardGroups

# Past this many times the bounds, a push is refused: for callers that never await `ready`.
HARD_BOUND_FACTOR = 2
# The lanes of this many bots are remembered, so that not each push computes a hash. Chosen: some MiB.
_BOTS_REMEMBERED_MAX = 65_536


class StreamCore:
    """The state of a stream. All methods are called in the event loop."""

    def __init__(
        self,
        server: Server,
        shards: ShardGroups,
        settings: Settings,
        bounds: StreamBounds,
        on_closed: Callable[[StreamCore], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = server
        self.shards = shards
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
        #: By queue, the pairs that were refused for a moment.
        self.held: Dict[Any, HeldQueue] = {}
        self._map = shards.map
        #: By the lanes of the map; each is made with its first pair.
        self._lanes: Dict[int, Lane] = {}
        self._lane_of_bot: Dict[int, Lane] = {}
        #: The groups must have been read since then before a lane opens its first request.
        self._since_s = self._loop.time()
        #: How often lanes have failed in a row before these were made.
        self._failures = 0
        #: The lane of the last push.
        self._last: Optional[Lane] = None
        #: While the lanes retire, the pairs that come.
        self._undealt: Optional[List[Pair]] = None
        self._on_empty: List[asyncio.Future[None]] = []
        self._finish: Optional[asyncio.Task[None]] = None

    @property
    def has_piece(self) -> bool:
        """Whether a whole piece waits to be sent."""
        return self._undealt is not None or (self._last is not None and self._last.has_piece)

    def add(self, pair: Pair) -> None:
        """Takes a new push."""
        size = len(pair.data)
        pair.nth = self.pushes
        self.pushes += 1
        self.pushed_bytes += size
        self.pairs += 1
        self.bytes += size
        if self._undealt is not None:
            self._undealt.append(pair)
            return
        self._last = self._lane_of(pair.bot_id)
        self._last.add(pair)

    def on_shards(self) -> None:
        """Called when the groups have changed: pairs go to other lanes once all that are sent have their results."""
        if self._undealt is not None or self.shards.map == self._map:
            return
        self._undealt = []
        for lane in self._lanes.values():
            lane.retire()
        self._deal_if_idle()

    async def close(self, timeout_s: float) -> None:
        """Accepts no more pushes, and returns when each has its result and the connections are closed."""
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
        requests = [lane.request for lane in self._lanes.values() if lane.request is not None]
        for request in requests:
            request.end()
        if requests:
            await asyncio.wait([request.task for request in requests])
        self._on_closed(self)

    def _give_up(self) -> None:
        lanes = list(self._lanes.values())
        pairs = [pair for lane in lanes for pair in lane.give_up()]
        pairs += self._clear_all_held()
        pairs += self._take_unsent()
        for pair in pairs:
            self.fail(pair, closed_error(pair.may_be_stored))
        self._wake()

    def settle_one(self, pair: Pair, line: bytes) -> None:
        self._failures = 0
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
            self.fail(pair, outcome)
            return
        self.settings.tell(Retry(outcome, pair.refusals, delay_s, pair.bot_id))
        self._hold(pair, delay_s)

    def fail(self, pair: Pair, error: PostboteClientError) -> None:
        self.pairs -= 1
        self.bytes -= len(pair.data)
        is_unknown = error.is_outcome_unknown or pair.may_be_stored
        copied = copy_of(error, is_outcome_unknown=is_unknown)
        self._resolve(pair.future.set_exception, copied)

    def clear_held(self, lane: Lane) -> List[Pair]:
        bots = [queue for queue in self.held if self._lane_of(queue[0]) is lane]
        return [pair for queue in bots for pair in self._unhold(queue)]

    def on_settled(self) -> None:
        self._deal_if_idle()
        self._wake()

    def _lane_of(self, bot_id: int) -> Lane:
        lane = self._lane_of_bot.get(bot_id) if type(bot_id) is int else None
        if lane is not None:
            return lane
        at = self._map.lane_of(bot_id)
        lane = self._lanes.get(at)
        if lane is None:
            lane = Lane(self, self._map.places[at], self._since_s, self._failures)
            self._lanes[at] = lane
        if type(bot_id) is int:
            if len(self._lane_of_bot) >= _BOTS_REMEMBERED_MAX:
                self._lane_of_bot.clear()
            self._lane_of_bot[bot_id] = lane
        return lane

    def _deal_if_idle(self) -> None:
        """Deals all pairs that are not sent to the lanes of the groups of now, in the order of their pushes."""
        if self._undealt is None or not all(lane.is_idle for lane in self._lanes.values()):
            return
        pairs = sorted(self._take_unsent(), key=lambda pair: pair.nth)
        self._failures = max((lane.failures for lane in self._lanes.values()), default=0)
        self._undealt = None
        self._map = self.shards.map
        self._lanes = {}
        self._lane_of_bot = {}
        self._last = None
        for pair in pairs:
            self._last = self._lane_of(pair.bot_id)
            self._last.add(pair)

    def _take_unsent(self) -> List[Pair]:
        pairs = [pair for lane in self._lanes.values() for pair in lane.take_unsent()]
        if self._undealt is not None:
            pairs += self._undealt
            self._undealt.clear()
        return pairs

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
        queue = self.held.get(pair.queue)
        if queue is None:
            timer = self._loop.call_at(due_s, self._on_due, pair.queue)
            self.held[pair.queue] = HeldQueue(pair, due_s, timer)
            return
        queue.insert(pair)
        if due_s > queue.due_s:
            queue.timer.cancel()
            queue.due_s = due_s
            queue.timer = self._loop.call_at(due_s, self._on_due, pair.queue)

    def _on_due(self, queue: Any) -> None:
        pairs = self._unhold(queue)
        if self._undealt is not None:
            self._undealt += pairs
        elif pairs:
            self._lane_of(pairs[0].bot_id).add_first(pairs)

    def _unhold(self, queue: Any) -> List[Pair]:
        held = self.held.pop(queue, None)
        if held is None:
            return []
        held.timer.cancel()
        return held.pairs

    def _clear_all_held(self) -> List[Pair]:
        return [pair for queue in list(self.held) for pair in self._unhold(queue)]

    def _wake(self) -> None:
        self.on_room()
        if self.pairs == 0:
            for waiter in self._on_empty:
                if not waiter.done():
                    waiter.set_result(None)
            self._on_empty.clear()


class AsyncPushStream:
    """A stream of pushes over one connection for each group of shards; `AsyncPostboteClient.open_stream` opens it.

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
