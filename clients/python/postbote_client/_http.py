"""The connections to the private API: HTTP/1.1 over asyncio streams, as far as this API uses it.

A pool serves single calls; each stream has a connection of its own. Only this file translates errors of the network
into errors of the client.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from typing import Any, AsyncIterator, Deque, Dict, List, Optional, Sequence, Tuple
from collections import deque
from urllib.parse import urlsplit

from ._errors import PostboteClientError, copy_of
from ._pushes import Call, parsed_or_none, response_error
from ._tables import FIRST_CONNECT_S, FIRST_CONTACT_S, FIRST_REPORT_S

# The response to a single call is far smaller (clients/typescript/limits.ts).
RESPONSE_BYTES_MAX = 2**20
# A stream asks each of its nodes before it opens. Chosen: a cluster has a few.
NODES_MAX = 64
# A connection that was idle for longer may have been closed by a proxy at this very moment; a call on it would be lost.
_IDLE_S_MAX = 4.0
# The head of a response, and a line of chunks.
_LINE_BYTES_MAX = 64 * 2**10
_NETWORK_ERRORS = (OSError, EOFError, asyncio.LimitOverrunError, ValueError)

Headers = Dict[str, str]


class Place:
    """Where the server is. Raises a TypeError if `url`, `socket_path` or `key` cannot be used."""

    def __init__(
        self,
        url: Optional[str],
        socket_path: Optional[str],
        key: str,
        ssl_context: Optional[ssl.SSLContext],
    ) -> None:
        self.socket_path = socket_path
        self.host, self.port, self.prefix = "localhost", 80, ""
        self.tls: Optional[ssl.SSLContext] = None
        if ssl_context is not None and not isinstance(ssl_context, ssl.SSLContext):
            raise TypeError("ssl_context: expected an ssl.SSLContext")
        if socket_path is not None:
            if not isinstance(socket_path, (str, os.PathLike)):
                raise TypeError("socket_path: expected the path of a socket")
            if url is not None:
                raise TypeError("url and socket_path: expected one of them")
            self.name, authority = str(socket_path), "localhost"
        else:
            authority = self._read(url or "http://127.0.0.1:8082", ssl_context)
            self.name = authority
        # The error does not show the text, because it may be most of a key.
        text = key.strip() if isinstance(key, str) else ""
        if not re.fullmatch(r"[\x21-\x7e]+", text):
            raise TypeError("key: expected a key, printable ASCII characters without spaces")
        self._key = text
        self._head = f"host: {authority}\r\nauthorization: Bearer {text}\r\n"

    def _read(self, url: str, ssl_context: Optional[ssl.SSLContext]) -> str:
        expected = "url: expected http or https, a host, and optionally a port and a path"
        try:
            parts = urlsplit(url)
            port = parts.port
        except (ValueError, AttributeError, TypeError):
            raise TypeError("url: expected a URL such as http://127.0.0.1:8082") from None
        is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
            raise TypeError(expected)
        if not re.fullmatch(r"[\x21-\x7e]*", parts.netloc + parts.path):
            raise TypeError(expected)
        if parts.scheme == "https":
            self.tls = ssl_context or ssl.create_default_context()
        self.host = parts.hostname
        self.port = port or (443 if self.tls else 80)
        self.prefix = parts.path.rstrip("/")
        return parts.netloc

    def without_key(self, error: PostboteClientError) -> PostboteClientError:
        """Returns an error without the key, which the text of a faulty server may repeat."""
        message = str(error)
        if self._key not in message:
            return error
        return copy_of(error, message=message.replace(self._key, "(the key)"))

    def head(self, method: str, path: str, lines: str) -> bytes:
        """Returns the head of a request with some further header lines."""
        return f"{method} {self.prefix}{path} HTTP/1.1\r\n{self._head}{lines}\r\n".encode("latin-1")


def node_places(
    urls: Sequence[str], key: str, ssl_context: Optional[ssl.SSLContext]
) -> List[Place]:
    """Returns where the nodes are. Raises a TypeError that names `node_urls` if they cannot be used."""
    are_texts = isinstance(urls, (list, tuple)) and all(isinstance(url, str) for url in urls)
    if not are_texts or "" in urls or len(urls) > NODES_MAX:
        raise TypeError(f"node_urls: expected a list of URLs, at most {NODES_MAX}")
    try:
        return [Place(url, None, key, ssl_context) for url in urls]
    except TypeError as cause:
        raise TypeError(f"node_{cause}".replace("url:", "urls:", 1)) from None


def has_end(headers: Headers) -> bool:
    """Whether the response says where it ends; otherwise the end of the connection ends it."""
    return "content-length" in headers or "transfer-encoding" in headers


class Connection:
    """One connection, with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._idle_since = 0.0
        #: While the connection is idle: the byte that nobody asked for, or the end of the connection.
        self._unasked: Optional[asyncio.Task[bytes]] = None
        #: Whether another request may follow, known after the response.
        self.is_reusable = False

    async def read_head(self) -> Tuple[int, Headers]:
        """Returns the status and the headers of the response, with names in lower case."""
        while True:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            match = re.match(r"HTTP/1\.([01]) ([0-9]{3})(?: |$)", first)
            if match is None:
                raise ValueError("not HTTP")
            headers: Headers = {}
            for line in lines:
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            status = int(match[2])
            if status >= 200:
                break
        keeps = "close" not in headers.get("connection", "").lower()
        self.is_reusable = match[1] == "1" and keeps and has_end(headers)
        return status, headers

    async def read_body(self, headers: Headers) -> AsyncIterator[bytes]:
        """Yields the body as it arrives."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            async for piece in self._read_chunks():
                yield piece
            return
        left = headers.get("content-length")
        if left is None:
            while True:
                piece = await self._reader.read(_LINE_BYTES_MAX)
                if not piece:
                    return
                yield piece
        yield await self._reader.readexactly(min(int(left), RESPONSE_BYTES_MAX + 1))

    async def _read_chunks(self) -> AsyncIterator[bytes]:
        while True:
            line = await self._reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            if size == 0:
                while (await self._reader.readuntil(b"\r\n")) != b"\r\n":
                    pass
                return
            left = size
            while left > 0:
                piece = await self._reader.read(left)
                if not piece:
                    raise EOFError
                left -= len(piece)
                yield piece
            await self._reader.readexactly(2)

    async def read_all(self, headers: Headers) -> bytes:
        """Returns the body of a response to a single call, or of a refusal."""
        body = b""
        async for piece in self.read_body(headers):
            body += piece
            if len(body) > RESPONSE_BYTES_MAX:
                raise ValueError("the response is too long")
        return body

    def rest(self) -> None:
        """Leaves the connection idle between two calls."""
        loop = asyncio.get_running_loop()
        self._idle_since = loop.time()
        self._unasked = loop.create_task(self._reader.read(1))
        self._unasked.add_done_callback(seen)

    async def resume(self) -> bool:
        """Returns whether the connection serves another call: the server neither ended it nor sent a response too many."""
        # What has arrived by now is seen in this turn of the event loop.
        await asyncio.sleep(0)
        is_quiet = self._unasked is None or not self._unasked.done()
        await self._stop_watching()
        is_fresh = asyncio.get_running_loop().time() - self._idle_since < _IDLE_S_MAX
        return is_quiet and is_fresh and not self.writer.is_closing()

    async def end(self) -> None:
        """Ends an idle connection."""
        self.abort()
        await self._stop_watching()

    def abort(self) -> None:
        """Ends the connection at once."""
        self.writer.transport.abort()

    async def _stop_watching(self) -> None:
        if self._unasked is not None:
            self._unasked.cancel()
            await asyncio.wait((self._unasked,))
            self._unasked = None


class Server:
    """The connections of one client. All of its calls are made in one event loop."""

    def __init__(self, place: Place, *, timeout_s: float, connections: int) -> None:
        self.place = place
        self._timeout_s = timeout_s
        self._connections = connections
        self._slots: Optional[asyncio.Semaphore] = None
        self._idle: Deque[Connection] = deque()
        #: When the first connection was tried, on the clock of the loop.
        self._tried_s: Optional[float] = None
        self._is_reached = False

    def unreached_s(self) -> Optional[float]:
        """Returns for how long the server was tried in vain; None before that, and once it was reached."""
        if self._is_reached or self._tried_s is None:
            return None
        return asyncio.get_running_loop().time() - self._tried_s

    async def connect(self, limit_s: Optional[float] = None) -> Connection:
        """Opens a connection. Whatever fails before it is established is CONNECTION_FAILED: nothing was sent.

        Args:
            limit_s: A time limit below that of the client.
        """
        if self._tried_s is None:
            self._tried_s = asyncio.get_running_loop().time()
        try:
            usual_s = self._connect_limit_s()
            wait_s = usual_s if limit_s is None else min(usual_s, limit_s)
            reader, writer = await asyncio.wait_for(self._open(), wait_s)
        except (OSError, ValueError, asyncio.TimeoutError) as cause:
            # ValueError: a name or a path that no system call takes.
            reason = str(cause) or type(cause).__name__
            message = (
                f"The client could not connect to {self.place.name} ({reason}), and nothing was sent"
            )
            raise PostboteClientError("CONNECTION_FAILED", message, cause=cause) from cause
        self._is_reached = True
        return Connection(reader, writer)

    def _connect_limit_s(self) -> float:
        tried_s = self.unreached_s()
        if tried_s is None:
            return self._timeout_s
        # A later call has one attempt.
        left_s = FIRST_CONNECT_S if tried_s > FIRST_CONTACT_S else FIRST_REPORT_S - tried_s
        return min(self._timeout_s, FIRST_CONNECT_S, left_s)

    async def _open(self) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        place = self.place
        if place.socket_path is not None:
            return await asyncio.open_unix_connection(place.socket_path, limit=_LINE_BYTES_MAX)
        return await asyncio.open_connection(
            place.host, place.port, ssl=place.tls, limit=_LINE_BYTES_MAX
        )

    async def call(self, call: Call) -> bytes:
        """Makes one attempt of a call, and returns the body of a response with status 200.

        Raises:
            PostboteClientError: CONNECTION_FAILED, CONNECTION_LOST, UNEXPECTED_ANSWER, or the server's code.
        """
        if self._slots is None:
            # Not earlier: in Python 3.9 it belongs to the event loop of the thread that makes it.
            self._slots = asyncio.Semaphore(self._connections)
        async with self._slots:
            connection = await self._idle_connection() or await self.connect()
            try:
                status, headers, body = await self._exchange(connection, call)
            except BaseException:
                connection.abort()
                raise
            if connection.is_reusable:
                connection.rest()
                self._idle.append(connection)
            else:
                connection.abort()
        self._refuse(status, headers, body)
        if parsed_or_none(body) is None:
            raise PostboteClientError("UNEXPECTED_ANSWER")
        return body

    async def ask(self, call: Call, wait_s: float, connect_s: Optional[float]) -> bytes:
        """Makes one attempt of a call that waits for no other, on a connection of its own, and returns the body.

        Args:
            wait_s: The longest wait for the response.
            connect_s: The longest wait for the connection, if it is shorter than that of other calls.

        Raises:
            PostboteClientError: TIMEOUT, or as `call`; UNEXPECTED_ANSWER also for what is too long or no HTTP.
        """
        connection = await self.connect(connect_s)
        try:
            exchange = self._exchange(connection, call)
            status, headers, body = await asyncio.wait_for(exchange, wait_s)
        except asyncio.TimeoutError as cause:
            raise PostboteClientError("TIMEOUT", cause=cause) from cause
        except PostboteClientError as error:
            if isinstance(error.__cause__, ValueError):
                raise PostboteClientError("UNEXPECTED_ANSWER", cause=error) from error
            raise
        finally:
            connection.abort()
        self._refuse(status, headers, body)
        return body

    def _refuse(self, status: int, headers: Headers, body: bytes) -> None:
        if status != 200:
            raise self.place.without_key(response_error(status, headers, body))

    async def _exchange(self, connection: Connection, call: Call) -> Tuple[int, Headers, bytes]:
        lines = "".join(f"{name}: {value}\r\n" for name, value in call.headers)
        if call.method == "POST":
            lines += f"content-type: application/json\r\ncontent-length: {len(call.body)}\r\n"
        try:
            connection.writer.write(self.place.head(call.method, call.path, lines) + call.body)
            status, headers = await connection.read_head()
            body = await connection.read_all(headers)
        except _NETWORK_ERRORS as cause:
            raise PostboteClientError("CONNECTION_LOST", cause=cause) from cause
        return status, headers, body

    async def _idle_connection(self) -> Optional[Connection]:
        while self._idle:
            connection = self._idle.pop()
            try:
                if await connection.resume():
                    return connection
            except BaseException:
                connection.abort()
                raise
            connection.abort()
        return None

    async def close(self) -> None:
        """Ends the idle connections. Call this when no call is in progress."""
        while self._idle:
            await self._idle.pop().end()


def seen(future: asyncio.Future[Any]) -> None:
    """Reads the result, so that asyncio does not report an exception that nobody read."""
    if not future.cancelled():
        future.exception()


def lost(cause: BaseException) -> PostboteClientError:
    """Returns the error of an exception of the network; others are bugs, and are raised again."""
    if isinstance(cause, PostboteClientError):
        return cause
    if isinstance(cause, _NETWORK_ERRORS):
        return PostboteClientError("CONNECTION_LOST", cause=cause)
    raise cause
