"""A server for the tests, which answers what it is asked once it may."""

import asyncio

KEY = "a-key-that-nobody-may-see"
UPDATE = {"message": {"text": "hello"}}


class FakeServer:
    """Answers each pair of a stream with an id, once `answers` is set, and each single push. It does not tell its shards."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.answers.set()
        self.pairs = 0
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        self._server.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET /v1/shards "):
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                return
            if b"/v1/updates HTTP" not in head:
                await self.answers.wait()
                writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"update_id":1}')
                return
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                size = int(await reader.readline(), 16)
                piece = await reader.readexactly(size + 2)
                count = piece.count(b"\n") // 2
                self.pairs += count
                await self.answers.wait()
                if size == 0:
                    writer.write(b"0\r\n\r\n")
                    return
                lines = b'{"update_id":1}\n' * count
                if lines:
                    writer.write(b"%x\r\n%b\r\n" % (len(lines), lines))
        except (EOFError, OSError, ValueError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
