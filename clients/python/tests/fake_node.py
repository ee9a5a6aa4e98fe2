"""A node for the tests, which tells its shards and notes which pair came by which stream."""

import asyncio
import json
from hashlib import sha256
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

SHARDS = 8
#: Two workers with half of the shards each.
HALVES = {"shards": SHARDS, "groups": [[0, 1, 2, 3], [4, 5, 6, 7]], "version": 1}
#: After a move.
MOVED = {"shards": SHARDS, "groups": [[0, 2, 4, 6], [1, 3, 5, 7]], "version": 2}


def shard_of(bot_id: int, shards: int = SHARDS) -> int:
    return int(sha256(str(bot_id).encode()).hexdigest()[:3], 16) % shards


class Arrived(NamedTuple):
    """A pair that the node has stored."""

    #: The shard that the stream names, as text; None if it names none.
    hint: Optional[str]
    stream: int
    bot_id: int
    n: int
    is_duplicate: bool


class FakeNode:
    """Stores each pair once for each key, in the order in which it comes, and answers each single push."""

    def __init__(self, shards: Any = HALVES) -> None:
        #: What `GET /v1/shards` answers: an object as JSON, bytes as they are, a status, or None for nothing ever.
        self.shards = shards
        self.looks = 0
        self.streams = 0
        self.open_streams = 0
        self.open_streams_max = 0
        self.hints: List[Optional[str]] = []
        self.arrived: List[Arrived] = []
        #: The authorization of each request.
        self.keys: Set[str] = set()
        self.answers = asyncio.Event()
        self.answers.set()
        #: The status with which a stream with this hint is refused.
        self.refusal: Callable[[Optional[str]], Optional[int]] = lambda _hint: None
        #: Whether to end the response after this pair, or to cut the connection.
        self.ends_after: Callable[[Arrived], Optional[str]] = lambda _pair: None
        #: The code of an error for a pair.
        self.code_for: Callable[[Arrived], Optional[str]] = lambda _pair: None
        #: Whether a stream lasts after the end of its body.
        self.ignores_end = False
        self._stored: Dict[str, int] = {}
        self._writers: Set[asyncio.StreamWriter] = set()
        self.url = ""

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._handle, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def close(self) -> None:
        """Ends as a process that is killed."""
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    @property
    def stored(self) -> List[Arrived]:
        return [pair for pair in self.arrived if not pair.is_duplicate]

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = head.split(" ")[1]
            self.keys.add(head.split("authorization: ")[1].split("\r\n")[0])
            if target == "/v1/shards":
                await self._tell(writer)
            elif target.startswith("/v1/bots/"):
                await self.answers.wait()
                writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"update_id":1}')
            else:
                path, _, hint = target.partition("?shard=")
                assert path == "/v1/updates", target
                await self._stream(reader, writer, hint or None)
            await writer.drain()
        except (EOFError, OSError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        self.looks += 1
        answer = self.shards(self.looks) if callable(self.shards) else self.shards
        if answer is None:
            await asyncio.sleep(60)
        if isinstance(answer, int):
            writer.write(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % answer)
            return
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hint: Optional[str]
    ) -> None:
        self.hints.append(hint)
        status = self.refusal(hint)
        if status is not None:
            writer.write(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % status)
            return
        self.streams += 1
        stream = self.streams
        self.open_streams += 1
        self.open_streams_max = max(self.open_streams_max, self.open_streams)
        try:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            rest = b""
            while True:
                size = int(await reader.readline(), 16)
                piece = (await reader.readexactly(size + 2))[:-2]
                lines = (rest + piece).split(b"\n")
                rest = lines.pop()
                await self.answers.wait()
                for head, update in zip(lines[::2], lines[1::2]):
                    end = self._store(writer, hint, stream, json.loads(head), json.loads(update))
                    if end == "cut":
                        writer.transport.abort()
                        return
                    if end == "end":
                        writer.write(b"0\r\n\r\n")
                        return
                if size == 0 and self.ignores_end:
                    await asyncio.sleep(60)
                if size == 0:
                    writer.write(b"0\r\n\r\n")
                    return
        finally:
            self.open_streams -= 1

    def _store(
        self,
        writer: asyncio.StreamWriter,
        hint: Optional[str],
        stream: int,
        head: Dict[str, Any],
        update: Dict[str, Any],
    ) -> Optional[str]:
        key = head.get("idempotency_key", f"none {len(self.arrived)}")
        pair = Arrived(hint, stream, head["bot_id"], update["message"].get("n", 0), key in self._stored)
        code = self.code_for(pair)
        if code is not None:
            result = json.dumps({"error": {"code": code, "message": "no"}}).encode()
        else:
            self.arrived.append(pair)
            update_id = self._stored.setdefault(key, len(self._stored) + 1)
            result = b'{"update_id":%d}' % update_id
        end = self.ends_after(pair)
        if end != "cut":
            writer.write(b"%x\r\n%b\n\r\n" % (len(result) + 1, result))
        return end
