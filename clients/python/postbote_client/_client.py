"""The client for asyncio."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, AsyncGenerator, Mapping, NamedTuple, Optional, Sequence, Set, Type, TypeVar
from types import TracebackType

from . import _tables
from ._calls import RepeatedCalls
from ._errors import PostboteClientError
from ._http import Place, Server, node_places
from ._keys import new_key
from ._push_all import Items, PushAllResult, push_all
from ._pushes import (
    Call,
    PushOptions,
    PushResult,
    _encode,
    bot_path,
    outcome_of,
    parsed_or_none,
    push_call,
)
from ._settings import settings_of, stream_bounds
from ._shards import ShardGroups
from ._stream import AsyncPushStream, StreamCore

_Item = TypeVar("_Item")


class IssuedToken(NamedTuple):
    """A bot id with its new token, which the server shows only this once."""

    bot_id: int
    token: str


class BotState(NamedTuple):
    """The part of a bot's state that a producer needs."""

    bot_id: int
    first_name: str
    username: str
    #: ``polling`` or ``webhook``.
    mode: str
    #: Updates that the bot has not confirmed yet, or that its webhook has not accepted yet.
    pending_count: int


class AsyncPostboteClient:
    """Pushes updates to bots and manages bots over the private API of one server.

    Calls that fail raise a PostboteClientError. They are repeated as long as that may help and cannot do anything twice.
    Only an option that does not exist or cannot be used is a TypeError. Use a client in one event loop only.

    Args:
        key: A key of the private API. White space around it, such as the line break of a file, is ignored.
        url: The private listener. Default: the first of `node_urls`, or http://127.0.0.1:8082. A path is kept as a prefix.
        node_urls: The private listeners of the nodes of a cluster, each with its own address. Streams then send the pairs
            of a bot to the node that has its shard. All else goes to `url`.
        socket_path: The Unix socket of the private listener, instead of `url`.
        ssl_context: For https; default: the certificates that the system trusts.
        settings: `timeout_s`, `retries`, `retry_delay_s_min`, `retry_delay_s_max`, `connections`,
            `has_idempotency_keys` and `on_retry`, a function that gets a `Retry`.

    Example:
        >>> async with AsyncPostboteClient(key=key) as client:
        ...     bot = await client.create_bot(first_name="Echo", username="echo_bot")
        ...     result = await client.push(bot.bot_id, {"message": message}, ordering_key="42")
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
        self._settings = settings_of(**settings)
        places = node_places(node_urls, key, ssl_context)
        if url is None and socket_path is None and places:
            # The key goes to a node that was named, and not to the default address.
            url = node_urls[0]
        self._server = self._server_at(Place(url, socket_path, key, ssl_context))
        nodes = [self._server_at(place) for place in places]
        self._shards = ShardGroups(self._server, nodes, self._settings, self._on_shards)
        self._calls = RepeatedCalls(self._server, self._settings)
        self._streams: Set[StreamCore] = set()
        self._is_closed = False

    async def __aenter__(self) -> AsyncPostboteClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def create_bot(
        self,
        *,
        first_name: str,
        username: str,
        bot_id: Optional[int] = None,
        polls: Optional[str] = None,
        token: Optional[str] = None,
    ) -> IssuedToken:
        """Registers a bot. A call that may have been carried out is not repeated, because that could not return the token.

        Args:
            bot_id: From 100 to 2^52 - 1. Default: the server chooses one.
            polls: ``take_over``: a later getUpdates call ends the one that waits with an empty list, instead of 409.
            token: One that another server has made, for a server with ``--foreign-tokens``.
        """
        fields = {
            "bot_id": bot_id,
            "first_name": first_name,
            "username": username,
            "polls": polls,
            "token": token,
        }
        return _issued_token(await self._call("POST", "/v1/bots", fields, is_repeatable=False))

    async def get_bot(self, bot_id: int) -> BotState:
        """Returns the names, the mode and the number of pending updates of a bot."""
        return _bot_state(await self._call("GET", bot_path(bot_id), None, is_repeatable=True))

    async def rotate_token(
        self, bot_id: int, *, overlap_s: int = 0, token: Optional[str] = None
    ) -> IssuedToken:
        """Issues a new token for a bot. A call that may have been carried out is not repeated.

        Args:
            overlap_s: Seconds for which the old token stays valid, at most a week.
            token: One that another server has made for this bot. Default: a new one.
        """
        fields = {"overlap": overlap_s, "token": token}
        path = f"{bot_path(bot_id)}/token"
        return _issued_token(await self._call("POST", path, fields, is_repeatable=False))

    async def remove_bot(self, bot_id: int) -> None:
        """Removes a bot with its queues. A call that may have been carried out is not repeated."""
        await self._call("DELETE", bot_path(bot_id), None, is_repeatable=False)

    async def push(
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
    ) -> PushResult:
        """Pushes one update, and returns when it is synced to disk or filtered.

        To end the wait, cancel the task: the update may have been stored by then.

        Args:
            update: The update without its id: one of the update types as its only key.
            ttl_s: Seconds after which the update is no longer delivered.
        """
        key = idempotency_key if idempotency_key is not None else self._new_key()
        options = PushOptions(ordering_key, ttl_s, is_test, validate, key, traceparent)
        self._refuse_if_closed()
        call = push_call(bot_id, update, options)
        outcome = outcome_of(await self._calls.run(call, is_repeatable=key is not None))
        if isinstance(outcome, PostboteClientError):
            raise self._server.place.without_key(outcome)
        return outcome

    def open_stream(
        self, *, pairs_max: int = _tables.PAIRS_MAX, bytes_max: int = _tables.BYTES_MAX
    ) -> AsyncPushStream:
        """Opens a stream: many pushes at a time, where no push waits for the result of another.

        It has one connection for each group of shards that the server names, so that a pair comes to the worker that stores
        it. Call this in the event loop. The stream connects with its first push.

        Args:
            pairs_max: `ready` waits while this many pushes have no result.
            bytes_max: `ready` waits while the pushes without a result have this many bytes.
        """
        return AsyncPushStream(self._open_core(pairs_max, bytes_max), self._new_key)

    def push_all(
        self,
        items: Items[_Item],
        *,
        pairs_max: int = _tables.PAIRS_MAX,
        bytes_max: int = _tables.BYTES_MAX,
    ) -> AsyncGenerator[PushAllResult[_Item], None]:
        """Pushes all items over one stream, as `open_stream`, and yields the results in the order of the items.

        The source is read only as far as the server keeps up and results are taken. If the caller leaves the loop early
        and closes the generator (`contextlib.aclosing`), what was pushed is finished.

        Args:
            items: Any iterable or async iterable of objects with the attributes `bot_id`, `update` and, optionally,
                `options`, a mapping of the options of `push`; such as `PushItem`.
        """
        bounds = stream_bounds(pairs_max, bytes_max)
        return push_all(items, lambda: self.open_stream(**bounds._asdict()), pairs_max)

    async def close(self, *, timeout_s: Optional[float] = None) -> None:
        """Accepts no more calls, waits for those in progress, and closes the connections.

        Calls and pushes without a result after `timeout_s` fail with CLOSED.

        Args:
            timeout_s: The longest wait, in seconds. Default: the client's.
        """
        limit_s = self._settings.close_timeout_s(timeout_s)
        self._is_closed = True
        timer = asyncio.get_running_loop().call_later(limit_s, self._calls.give_up)
        try:
            streams = [stream.close(limit_s) for stream in list(self._streams)]
            await asyncio.gather(self._calls.idle(), *streams)
        finally:
            timer.cancel()
            await self._shards.close()
            await self._server.close()
            # Aborted connections are closed in the next turn, before the event loop is.
            await asyncio.sleep(0)

    def _open_core(self, pairs_max: int, bytes_max: int) -> StreamCore:
        bounds = stream_bounds(pairs_max, bytes_max)
        self._refuse_if_closed()
        core = StreamCore(
            self._server, self._shards, self._settings, bounds, self._streams.discard
        )
        self._streams.add(core)
        return core

    def _server_at(self, place: Place) -> Server:
        settings = self._settings
        return Server(place, timeout_s=settings.timeout_s, connections=settings.connections)

    def _on_shards(self) -> None:
        for stream in list(self._streams):
            stream.on_shards()

    def _new_key(self) -> Optional[str]:
        return new_key() if self._settings.has_idempotency_keys else None

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise PostboteClientError("CLOSED")

    async def _call(
        self, method: str, path: str, fields: Optional[Mapping[str, Any]], *, is_repeatable: bool
    ) -> Any:
        self._refuse_if_closed()
        body = b""
        if fields is not None:
            given = {name: value for name, value in fields.items() if value is not None}
            body = _encode(given).encode()
        return parsed_or_none(
            await self._calls.run(Call(method, path, body), is_repeatable=is_repeatable)
        )


def _issued_token(response: Any) -> IssuedToken:
    if isinstance(response, dict):
        bot_id, token = response.get("bot_id"), response.get("token")
        if isinstance(bot_id, int) and isinstance(token, str):
            return IssuedToken(bot_id, token)
    raise PostboteClientError("UNEXPECTED_ANSWER")


def _bot_state(response: Any) -> BotState:
    if isinstance(response, dict):
        names = ("bot_id", "first_name", "username", "mode", "pending")
        bot_id, first_name, username, mode, pending = (response.get(name) for name in names)
        are_texts = isinstance(first_name, str) and isinstance(username, str)
        are_numbers = isinstance(bot_id, int) and isinstance(pending, int)
        if are_texts and are_numbers and mode in ("polling", "webhook"):
            return BotState(bot_id, first_name, username, mode, pending)  # type: ignore[arg-type]
    raise PostboteClientError("UNEXPECTED_ANSWER")
