"""Pushes all items of an iterable over one stream, and yields the results in order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import (
    Any,
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Deque,
    Generic,
    Iterable,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
    Union,
)

from ._errors import PostboteClientError
from ._http import seen
from ._pushes import PushResult
from ._stream import AsyncPushStream

Item = TypeVar("Item")
Items = Union[Iterable[Item], AsyncIterable[Item]]


class PushItem(NamedTuple):
    """One item of `push_all`. Any object with these attributes will do."""

    bot_id: int
    update: Mapping[str, Any]
    #: The options of `push`, by name.
    options: Mapping[str, Any] = {}


class PushAllResult(Generic[Item]):
    """An item with its result, or with its error; the other one is None."""

    __slots__ = ("item", "result", "error")

    def __init__(
        self, item: Item, result: Optional[PushResult], error: Optional[PostboteClientError]
    ) -> None:
        self.item = item
        self.result = result
        self.error = error


async def push_all(
    items: Items[Item], open_stream: Callable[[], AsyncPushStream], results_max: int
) -> AsyncGenerator[PushAllResult[Item], None]:
    """Implements `AsyncPostboteClient.push_all`.

    Args:
        results_max: How many results may wait to be taken.
    """
    stream = open_stream()
    pump = _Pump(items, stream, results_max)
    try:
        async for item, future in pump.taken():
            try:
                yield PushAllResult(item, await future, None)
            except PostboteClientError as error:
                yield PushAllResult(item, None, error)
    finally:
        await pump.stop()
        await stream.close()
    pump.raise_source_error()


class _Pump(Generic[Item]):
    """Reads the source and pushes the items, independently of the consumer, which takes the results in order."""

    def __init__(self, items: Items[Item], stream: AsyncPushStream, results_max: int) -> None:
        self._items = items
        self._stream = stream
        self._results_max = results_max
        self._results: Deque[Tuple[Item, asyncio.Future[PushResult]]] = deque()
        self._on_result = asyncio.Event()
        self._on_room = asyncio.Event()
        self._error: Optional[BaseException] = None
        self._task = asyncio.ensure_future(self._run())

    async def taken(self) -> AsyncIterator[Tuple[Item, asyncio.Future[PushResult]]]:
        while True:
            while self._results:
                taken = self._results.popleft()
                self._on_room.set()
                yield taken
            if self._task.done():
                return
            self._on_result.clear()
            await self._on_result.wait()

    async def stop(self) -> None:
        """Stops reading and pushing."""
        self._task.cancel()
        await asyncio.wait((self._task,))
        # Nobody takes these any more.
        for _item, future in self._results:
            future.add_done_callback(seen)

    def raise_source_error(self) -> None:
        if self._error is not None:
            raise self._error

    async def _run(self) -> None:
        try:
            if isinstance(self._items, AsyncIterable):
                async for item in self._items:
                    await self._push(item)
            else:
                for item in self._items:
                    await self._push(item)
        except Exception as error:
            self._error = error
        finally:
            # After this task is done.
            asyncio.get_running_loop().call_soon(self._on_result.set)

    async def _push(self, item: Any) -> None:
        while len(self._results) >= self._results_max:
            self._on_room.clear()
            await self._on_room.wait()
        await self._stream.ready()
        options = getattr(item, "options", None) or {}
        self._results.append((item, self._stream.push(item.bot_id, item.update, **options)))
        self._on_result.set()
