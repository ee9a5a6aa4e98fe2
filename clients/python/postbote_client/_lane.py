"""One connection of a stream, for the pairs of some bots.

    add --> unsent --take--> sent --result--> the stream
              ^               |
              `----broken-----'

A request lasts until the server ends it (a reload, ten idle minutes) or the connection breaks. Pairs without a result are
then sent again in the next request, in the same order and with the same keys. When the stream deals its pairs to other
lanes, this one retires: it takes nothing more, and is idle once all that it has sent has its result.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent import futures
from itertools import islice
from typing import Any, Deque, Dict, List, Mapping, Optional, Protocol, Union

from ._errors import PostboteClientError
from ._pushes import PushOptions, PushResult, pair_bytes
from ._settings import Retry, Settings
from ._shards import LanePlace, ShardGroups
from ._stream_request import StreamRequest

# Pairs are passed to the connection in pieces of about this size, which is what a worker reads at a time.
PIECE_BYTES = 64 * 2**10

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


class HeldQueue:
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


class LaneStream(Protocol):
    """What a lane needs from its stream."""

    settings: Settings
    shards: ShardGroups
    #: By queue, the pairs that were refused for a moment.
    held: Dict[Any, HeldQueue]

    def clear_held(self, lane: Lane) -> List[Pair]:
        """Returns the held pairs of the bots of a lane, and forgets them."""

    def settle_one(self, pair: Pair, line: bytes) -> None:
        """Gives a pair its result, or holds it."""

    def fail(self, pair: Pair, error: PostboteClientError) -> None:
        """Gives a pair an error."""

    def on_settled(self) -> None:
        """Called when pairs have got results or have failed, and when a request has ended."""


class Lane:
    """A lane of a stream. All methods are called in the event loop."""

    def __init__(
        self, stream: LaneStream, place: LanePlace, since_s: float, failures: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._place = place
        #: The groups must have been read since then before a request is opened.
        self._since_s = since_s
        #: Number of requests in a row, also of the lanes before this one, that ended without a result.
        self.failures = failures
        self._unsent: Deque[Pair] = deque()
        self._unsent_bytes = 0
        #: In the order in which their results arrive.
        self._sent: Deque[Pair] = deque()
        self.request: Optional[StreamRequest] = None
        #: Number of results of the current request.
        self._results = 0
        self._is_scheduled = False
        self._is_retired = False
        self._reopening: Optional[asyncio.TimerHandle] = None
        self._silence: Optional[asyncio.TimerHandle] = None

    @property
    def has_piece(self) -> bool:
        """Whether a whole piece waits to be sent."""
        return self._unsent_bytes >= PIECE_BYTES

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is under way."""
        return self.request is None

    def add(self, pair: Pair) -> None:
        """Sends a pair after all others."""
        self._unsent.append(pair)
        self._unsent_bytes += len(pair.data)
        if not self._is_scheduled:
            self._schedule()

    def add_first(self, pairs: List[Pair]) -> None:
        """Sends pairs before all others that were not sent."""
        self._set_unsent((*pairs, *self._unsent))
        self._schedule()

    def retire(self) -> None:
        """Sends nothing more, and ends the request. The pairs that come meanwhile are unsent."""
        self._is_retired = True
        self._stop_reopening()
        if self.request is not None:
            self.request.end()
        self._expect_results()

    def take_unsent(self) -> List[Pair]:
        """Returns the pairs that are not sent, in their order, and forgets them."""
        pairs = list(self._unsent)
        self._set_unsent(())
        return pairs

    def give_up(self) -> List[Pair]:
        """Breaks off what is under way. Returns the pairs that were sent and have no result."""
        self._stop_reopening()
        sent = list(self._sent)
        self._sent.clear()
        for pair in sent:
            pair.may_be_stored = True
        self._expect_results()
        if self.request is not None:
            self.request.destroy(PostboteClientError("CLOSED"))
        return sent

    def _schedule(self) -> None:
        """Sends the pushes of one turn of the event loop together."""
        self._is_scheduled = True
        self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._is_scheduled = False
        self._stream.shards.refresh_old()
        if self.request is not None:
            self.request.wake()
        elif self._reopening is None and self._unsent and not self._is_retired:
            self._results = 0
            request = StreamRequest(self._place, self._prepare, self._take, self._settle)
            self.request = request
            request.task.add_done_callback(lambda _task: self._on_end(request.outcome))

    async def _prepare(self) -> None:
        await self._stream.shards.refresh(self._since_s)

    def _take(self) -> bytes:
        """Returns the next piece to send, empty if there is none now."""
        if self._is_retired:
            return b""
        data: List[bytes] = []
        size = 0
        held = self._stream.held
        were_sent = len(self._sent) > 0
        while self._unsent and size < PIECE_BYTES:
            pair = self._unsent.popleft()
            self._unsent_bytes -= len(pair.data)
            queue = held.get(pair.queue) if held else None
            if queue is not None:
                queue.insert(pair)
                continue
            data.append(pair.data)
            size += len(pair.data)
            self._sent.append(pair)
        if data and not were_sent:
            self._expect_results()
        return b"".join(data)

    def _expect_results(self) -> None:
        """A request that was ended is one to wait for, too: pairs go to other lanes after it."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if self._sent or (self._is_retired and self.request is not None):
            self._silence = self._loop.call_later(
                self._stream.settings.timeout_s, self._on_silence
            )

    def _on_silence(self) -> None:
        if self.request is not None:
            self.request.destroy(PostboteClientError("TIMEOUT"))

    def _settle(self, lines: List[bytes]) -> None:
        """Matches lines to pairs: the server sends the results in the order of the pairs."""
        self.failures = 0
        count = min(len(lines), len(self._sent))
        for line in islice(lines, count):
            self._stream.settle_one(self._sent.popleft(), line)
        self._results += count
        if count < len(lines) and self.request is not None:
            self.request.destroy(PostboteClientError("UNEXPECTED_ANSWER"))
        self._expect_results()
        self._stream.on_settled()

    def _on_end(self, error: Optional[PostboteClientError]) -> None:
        """Handles the end of a request: None for a normal end by the server."""
        self.request = None
        self._take_back(error)
        self._expect_results()
        if error is not None and self._place.shard is not None and _is_refusal(error):
            self._stream.shards.do_without()
        elif not self._is_retired:
            self._since_s = self._loop.time()
            if self._unsent:
                self._reopen(error)
        elif error is not None and self._unsent:
            self.failures += 1
            self._stream.settings.tell(Retry(error, self.failures, 0.0, None))
        self._stream.on_settled()

    def _take_back(self, error: Optional[PostboteClientError]) -> None:
        """Puts the pairs without a result before all unsent ones. After a normal end, none of them is stored."""
        unanswered = list(self._sent)
        self._sent.clear()
        if error is not None and error.is_outcome_unknown:
            for pair in unanswered:
                pair.may_be_stored = True
                if not pair.is_repeatable:
                    self._stream.fail(pair, error)
            unanswered = [pair for pair in unanswered if pair.is_repeatable]
        self._set_unsent((*unanswered, *self._unsent))

    def _reopen(self, ended: Optional[PostboteClientError]) -> None:
        if ended is None and self._results > 0:
            self._schedule()
            return
        self.failures += 1
        error = ended if ended is not None else PostboteClientError("CONNECTION_LOST")
        settings = self._stream.settings
        delay_s = settings.retry_delay_s(
            error,
            self.failures,
            is_repeatable=True,
            unreached_s=self._place.server.unreached_s(),
        )
        if delay_s is None:
            self.failures = 0
            for pair in [*self._stream.clear_held(self), *self.take_unsent()]:
                self._stream.fail(pair, error)
            return
        settings.tell(Retry(error, self.failures, delay_s, None))
        self._reopening = self._loop.call_later(delay_s, self._on_reopening)

    def _on_reopening(self) -> None:
        self._reopening = None
        self._schedule()

    def _stop_reopening(self) -> None:
        if self._reopening is not None:
            self._reopening.cancel()
            self._reopening = None

    def _set_unsent(self, pairs: Any) -> None:
        self._unsent = deque(pairs)
        self._unsent_bytes = sum(len(pair.data) for pair in self._unsent)


def _is_refusal(error: PostboteClientError) -> bool:
    """Whether a server has refused a whole request, for a reason other than its key and the limits of its key."""
    status = error.status or 0
    return 400 <= status < 500 and status != 401 and not error.is_retryable
