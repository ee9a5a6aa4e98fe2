"""The client for programs without an event loop: the one for asyncio in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import threading
import warnings
import weakref
from collections import deque
from concurrent import futures
from typing import (
    Any,
    Coroutine,
    Deque,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from . import _tables
from ._client import AsyncPostboteClient, BotState, IssuedToken
from ._errors import PostboteClientError
from ._push_all import PushAllResult
from ._pushes import PushOptions, PushResult
from ._settings import stream_bounds
from ._stream import HARD_BOUND_FACTOR, Pair, StreamCore

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# `close` ends by itself; this is only for a loop that hangs.
_SPARE_S = 10.0


class PostboteClient:
    """Pushes updates to bots and manages bots over the private API of one server.

    It has the methods, options and errors of `AsyncPostboteClient`, and may be shared by threads. Its thread is a daemon:
    a program that ends without `close` loses what is under way, so use `with`. `on_retry` and the callbacks of futures are
    called in that thread, where nothing may wait for the client. After a fork, a client that had been used is closed in
    the child; what is under way goes on in the parent.

    Example:
        >>> with PostboteClient(key=key) as client:
        ...     result = client.push(100, {"message": message}, ordering_key="42")
    """

    def __init__(
        self,
        *,
        key: str,
        url: Optional[str] = None,
        node_urls: Sequence[str] = (),
        socket_path: Optional[str] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
        **settings: Any,
    ) -> None:
        self._client = AsyncPostboteClient(
            key=key,
            url=url,
            node_urls=node_urls,
            socket_path=socket_path,
            ssl_context=ssl_context,
            **settings,
        )
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._thread: Optional[threading.Thread] = None
        self._streams: weakref.WeakSet[PushStream] = weakref.WeakSet()
        _clients.add(self)

    def __enter__(self) -> PostboteClient:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self) -> None:
        thread, loop = getattr(self, "_thread", None), getattr(self, "_loop", None)
        if thread is None or loop is None or self._is_closed or sys.is_finalizing():
            return
        self._is_closed = True
        # What is under way has its results first.
        asyncio.run_coroutine_threadsafe(_end(self._client, loop), loop)
        warnings.warn("a PostboteClient was not closed", ResourceWarning, source=self)

    def create_bot(
        self,
        *,
        first_name: str,
        username: str,
        bot_id: Optional[int] = None,
        polls: Optional[str] = None,
        token: Optional[str] = None,
    ) -> IssuedToken:
        """As `AsyncPostboteClient.create_bot`."""
        return self._run(
            self._client.create_bot(
                first_name=first_name,
                username=username,
                bot_id=bot_id,
                polls=polls,
                token=token,
            )
        )

    def get_bot(self, bot_id: int) -> BotState:
        """As `AsyncPostboteClient.get_bot`."""
        return self._run(self._client.get_bot(bot_id))

    def rotate_token(
        self, bot_id: int, *, overlap_s: int = 0, token: Optional[str] = None
    ) -> IssuedToken:
        """As `AsyncPostboteClient.rotate_token`."""
        return self._run(self._client.rotate_token(bot_id, overlap_s=overlap_s, token=token))

    def remove_bot(self, bot_id: int) -> None:
        """As `AsyncPostboteClient.remove_bot`."""
        self._run(self._client.remove_bot(bot_id))

    def push(self, bot_id: int, update: Mapping[str, Any], **options: Any) -> PushResult:
        """Pushes one update, and returns when it is synced to disk or filtered. Options: as `AsyncPostboteClient.push`."""
        return self._run(self._client.push(bot_id, update, **options))

    def open_stream(
        self, *, pairs_max: int = _tables.PAIRS_MAX, bytes_max: int = _tables.BYTES_MAX
    ) -> PushStream:
        """As `AsyncPostboteClient.open_stream`."""
        stream_bounds(pairs_max, bytes_max)

        async def opened() -> StreamCore:
            return self._client._open_core(pairs_max, bytes_max)

        core = self._run(opened())
        stream = PushStream(core, self)
        self._streams.add(stream)
        return stream

    def push_all(
        self,
        items: Iterable[_Item],
        *,
        pairs_max: int = _tables.PAIRS_MAX,
        bytes_max: int = _tables.BYTES_MAX,
    ) -> Generator[PushAllResult[_Item], None, None]:
        """Pushes all items over one stream, and yields the results in the order of the items.

        The source is read in the thread of the caller, so a result waits while the source blocks. Items: as
        `AsyncPostboteClient.push_all`.
        """
        stream_bounds(pairs_max, bytes_max)
        return self._push_all(items, pairs_max, bytes_max)

    def _push_all(
        self, items: Iterable[_Item], pairs_max: int, bytes_max: int
    ) -> Generator[PushAllResult[_Item], None, None]:
        waiting: Deque[Tuple[_Item, futures.Future[PushResult]]] = deque()
        with self.open_stream(pairs_max=pairs_max, bytes_max=bytes_max) as stream:
            source: Iterator[Any] = iter(items)
            failure: Optional[Exception] = None
            while True:
                try:
                    item = next(source)
                except StopIteration:
                    break
                except Exception as error:
                    failure = error
                    break
                while waiting and (len(waiting) >= pairs_max or waiting[0][1].done()):
                    yield _result_of(*waiting.popleft())
                stream.ready()
                options = getattr(item, "options", None) or {}
                waiting.append((item, stream.push(item.bot_id, item.update, **options)))
            while waiting:
                yield _result_of(*waiting.popleft())
        if failure is not None:
            raise failure

    def close(self, *, timeout_s: Optional[float] = None) -> None:
        """As `AsyncPostboteClient.close`; then the thread ends."""
        limit_s = self._client._settings.close_timeout_s(timeout_s)
        self._refuse_own_thread()
        with self._lock:
            self._is_closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        closing = self._client.close(timeout_s=limit_s)
        asyncio.run_coroutine_threadsafe(closing, loop).result(limit_s + _SPARE_S)
        try:
            loop.call_soon_threadsafe(loop.stop)
        except RuntimeError:
            # Another thread has closed the client at the same time.
            pass
        thread.join(_SPARE_S)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._is_closed:
                raise PostboteClientError("CLOSED")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_loop,
                    args=(self._loop, self._client),
                    name="postbote-client",
                    daemon=True,
                )
                self._thread.start()
            return self._loop

    def _run(self, call: Coroutine[Any, Any, _Result]) -> _Result:
        try:
            self._refuse_own_thread()
            loop = self._started()
        except BaseException:
            call.close()
            raise
        future = asyncio.run_coroutine_threadsafe(call, loop)
        try:
            return future.result()
        except BaseException:
            # Such as KeyboardInterrupt: nobody waits any more.
            future.cancel()
            raise

    def _refuse_own_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "A callback of the client called it in its own thread, which would wait for itself: use another thread"
            )

    def _forget(self) -> None:
        """In a child: the thread does not exist here, and nobody unlocks what it had locked."""
        self._lock = threading.Lock()
        if self._loop is not None:
            self._is_closed = True
            for stream in self._streams:
                stream._forget()


#: Those of this process.
_clients: weakref.WeakSet[PostboteClient] = weakref.WeakSet()


def _forget_all() -> None:
    for client in list(_clients):
        client._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class PushStream:
    """A stream of pushes over one connection for each group of shards; `PostboteClient.open_stream` opens it. Threads may share it."""

    def __init__(self, core: StreamCore, client: PostboteClient) -> None:
        self._core = core
        self._client = client
        self._loop = client._started()
        self._new_key = client._client._new_key
        self._room = threading.Condition()
        #: Pushed, and not yet handed to the event loop.
        self._handed: Deque[Pair] = deque()
        self._handed_bytes = 0
        self._is_closed = False
        core.on_room = self._on_room
        core.on_closing = self._on_closing

    def __enter__(self) -> PushStream:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def pairs_in_flight(self) -> int:
        """Number of pushes that have no result yet."""
        with self._room:
            return self._core.pairs + len(self._handed)

    @property
    def bytes_under_way(self) -> int:
        """Bytes of the pushes that have no result yet, with their header lines."""
        with self._room:
            return self._core.bytes + self._handed_bytes

    def ready(self) -> None:
        """Returns when there is room for one push, or at once after `close`. Call it before each push."""
        core = self._core
        if self._is_below(1):
            return
        self._client._refuse_own_thread()
        with self._room:
            while not core.is_closed and not self._is_below(1):
                self._room.wait()

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
    ) -> futures.Future[PushResult]:
        """Pushes one update, without waiting for the results of earlier pushes.

        Returns:
            A future of the result, or of a PostboteClientError. It cannot be cancelled.
        """
        future: futures.Future[PushResult] = futures.Future()
        future.set_running_or_notify_cancel()
        try:
            key = idempotency_key if idempotency_key is not None else self._new_key()
            options = PushOptions(ordering_key, ttl_s, is_test, validate, key, traceparent)
            pair = Pair(bot_id, update, options, future)
            with self._room:
                if self._is_closed:
                    raise PostboteClientError("CLOSED")
                if not self._is_below(HARD_BOUND_FACTOR):
                    raise PostboteClientError("TOO_MANY_UNDER_WAY")
                # The event loop waits for the lock. In this order, an interrupt leaves no pair behind that the loop does not take.
                if not self._handed:
                    self._loop.call_soon_threadsafe(self._take)
                self._handed_bytes += len(pair.data)
                self._handed.append(pair)
        except PostboteClientError as error:
            future.set_exception(error)
        return future

    def close(self, *, timeout_s: Optional[float] = None) -> None:
        """As `AsyncPushStream.close`."""
        limit_s = self._core.settings.close_timeout_s(timeout_s)
        thread = self._client._thread
        if thread is None or not thread.is_alive():
            return
        self._client._refuse_own_thread()
        asyncio.run_coroutine_threadsafe(self._core.close(limit_s), self._loop).result()

    def _is_below(self, factor: int) -> bool:
        pairs_max, bytes_max = self._core.bounds
        pairs = self._core.pairs + len(self._handed)
        return pairs < factor * pairs_max and (
            self._core.bytes + self._handed_bytes < factor * bytes_max
        )

    def _take(self) -> None:
        """In the event loop: takes all that was pushed since the last turn."""
        with self._room:
            for pair in self._handed:
                self._core.add(pair)
            self._handed.clear()
            self._handed_bytes = 0

    def _forget(self) -> None:
        self._room = threading.Condition()
        self._is_closed = self._core.is_closed = True

    def _on_closing(self) -> None:
        """In the event loop: what was pushed before belongs to the stream, and nothing is pushed after."""
        with self._room:
            self._is_closed = True
        self._take()

    def _on_room(self) -> None:
        with self._room:
            self._room.notify_all()


def _result_of(item: _Item, future: futures.Future[PushResult]) -> PushAllResult[_Item]:
    try:
        return PushAllResult(item, future.result(), None)
    except PostboteClientError as error:
        return PushAllResult(item, None, error)


def _run_loop(loop: asyncio.AbstractEventLoop, _client: AsyncPostboteClient) -> None:
    """Keeps the open streams of the client, too: asyncio itself does not keep a task that waits."""
    asyncio.set_event_loop(loop)
    try:
        while True:
            try:
                return loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # Of `on_retry`. As in any thread, it ends neither the program nor what is under way.
                continue
    finally:
        loop.close()


async def _end(client: AsyncPostboteClient, loop: asyncio.AbstractEventLoop) -> None:
    try:
        await client.close()
    finally:
        loop.stop()
