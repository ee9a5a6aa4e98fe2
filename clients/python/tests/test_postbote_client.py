"""What the conformance suite does not see: options, laziness, leaving early. ``python3 -m unittest discover clients/python/tests``."""

import asyncio
import os
import sys
import threading
import unittest
from typing import Any, AsyncIterator, Iterator, List

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from fake_server import KEY, UPDATE, FakeServer  # noqa: E402

from postbote_client import (  # noqa: E402
    AsyncPostboteClient,
    PostboteClient,
    PostboteClientError,
    PushItem,
)


class Options(unittest.TestCase):
    def test_an_option_that_cannot_be_used_is_a_type_error_that_names_it(self) -> None:
        bad: List[Any] = [
            {"timeout_s": 0},
            {"timeout_s": float("nan")},
            {"retries": -1},
            {"retries": True},
            {"retry_delay_s_min": 20},
            {"connections": 0},
            {"on_retry": 7},
            {"url": "ftp://x"},
            {"url": "http://user:secret@x"},
            {"url": "http://x/?q"},
            {"socket_path": 7},
            {"ssl_context": "a.pem"},
            {"timeoutS": 3},
        ]
        for options in bad:
            for client in (AsyncPostboteClient, PostboteClient):
                (name,) = options
                name = "retry_delay_s_max" if name == "retry_delay_s_min" else name
                with self.subTest(options=options), self.assertRaisesRegex(TypeError, name):
                    client(key=KEY, **options)

    def test_a_key_that_cannot_be_used_is_not_shown(self) -> None:
        for key in ("", "two words", KEY + "\r\nhost: x", None):
            with self.assertRaises(TypeError) as raised:
                AsyncPostboteClient(key=key)  # type: ignore[arg-type]
            self.assertNotIn("words", str(raised.exception))
            self.assertNotIn(KEY, str(raised.exception))

    def test_what_cannot_be_written_is_refused_and_nothing_is_sent(self) -> None:
        cycle: Any = {}
        cycle["message"] = cycle
        with PostboteClient(key=KEY, url="http://127.0.0.1:9") as client:
            for update in (cycle, {"message": float("nan")}, {"message": "\ud800"}, {"message": {1, 2}}):
                with self.assertRaises(PostboteClientError) as raised:
                    client.push(100, update)
                self.assertEqual(raised.exception.code, "BAD_UPDATE")
                stream = client.open_stream()
                self.assertEqual(stream.push(100, update).exception(1).code, "BAD_UPDATE")  # type: ignore[union-attr]
            for options in ({"idempotency_key": " x"}, {"traceparent": "a\r\nb"}):
                with self.assertRaises(PostboteClientError) as raised:
                    client.push(100, UPDATE, **options)
                self.assertEqual(raised.exception.code, "BAD_REQUEST")
            with self.assertRaises(TypeError):
                client.push(100, UPDATE, orderingKey="42")

    def test_a_place_that_no_system_call_takes_is_a_failed_connection(self) -> None:
        for place in ({"url": "http://a..b"}, {"socket_path": "/tmp/a\0b"}):
            with self.subTest(place), PostboteClient(key=KEY, retries=0, **place) as client:
                with client.open_stream() as stream:
                    error = stream.push(100, UPDATE).exception(20)
                self.assertEqual(getattr(error, "code", None), "CONNECTION_FAILED", error)

    def test_a_closed_client_refuses_calls(self) -> None:
        client = PostboteClient(key=KEY)
        client.close()
        client.close()
        for call in (lambda: client.push(100, UPDATE), client.open_stream, lambda: client.get_bot(1)):
            with self.assertRaises(PostboteClientError) as raised:
                call()
            self.assertEqual(raised.exception.code, "CLOSED")


class PushAll(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.server = FakeServer()
        await self.server.start()
        self.read = 0

    async def asyncTearDown(self) -> None:
        self.server.close()
        await asyncio.sleep(0.01)

    def items(self, count: int = 1_000_000) -> Iterator[PushItem]:
        for _ in range(count):
            self.read += 1
            yield PushItem(100, UPDATE)

    async def async_items(self, count: int) -> AsyncIterator[PushItem]:
        for item in self.items(count):
            await asyncio.sleep(0)
            yield item
        raise KeyError("the source")

    async def test_the_source_is_read_as_far_as_there_is_room(self) -> None:
        async with AsyncPostboteClient(key=KEY, url=self.server.url) as client:
            self.server.answers.clear()
            results = client.push_all(self.items(), pairs_max=50)
            first = asyncio.ensure_future(results.__anext__())
            while self.server.pairs < 50:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            self.assertLessEqual(self.read, 51)
            self.server.answers.set()
            self.assertIsNone((await first).error)
            await results.aclose()
            self.assertLess(self.read, 500)

    async def test_results_that_are_not_taken_hold_the_source_back(self) -> None:
        async with AsyncPostboteClient(key=KEY, url=self.server.url) as client:
            results = client.push_all(self.items(), pairs_max=50)
            await results.__anext__()
            await asyncio.sleep(0.1)
            self.assertLess(self.read, 110)
            await results.aclose()

    async def test_an_error_of_the_source_comes_after_the_results_before_it(self) -> None:
        async with AsyncPostboteClient(key=KEY, url=self.server.url) as client:
            count = 0
            with self.assertRaisesRegex(KeyError, "the source"):
                async for each in client.push_all(self.async_items(30)):
                    self.assertIsNone(each.error)
                    count += 1
            self.assertEqual(count, 30)

    async def test_a_program_with_threads_holds_its_source_back_too(self) -> None:
        url = self.server.url

        def run() -> int:
            with PostboteClient(key=KEY, url=url) as client:
                results = client.push_all(self.items(), pairs_max=50)
                for _ in range(10):
                    next(results)
                read = self.read
                results.close()
                return read

        self.assertLess(await asyncio.to_thread(run), 120)

    async def test_callers_of_ready_wait_in_turn_and_push_no_more_than_there_is_room_for(self) -> None:
        async with AsyncPostboteClient(key=KEY, url=self.server.url) as client:
            self.server.answers.clear()
            stream = client.open_stream(pairs_max=10)
            most = 0

            async def push() -> None:
                nonlocal most
                await stream.ready()
                future = stream.push(100, UPDATE)
                most = max(most, stream.pairs_in_flight)
                await future

            pushes = [asyncio.ensure_future(push()) for _ in range(100)]
            await asyncio.sleep(0.05)
            self.assertEqual(most, 10)
            self.server.answers.set()
            await asyncio.gather(*pushes)
            self.assertLessEqual(most, 10)

    async def test_pushes_past_twice_the_bounds_are_refused(self) -> None:
        async with AsyncPostboteClient(key=KEY, url=self.server.url) as client:
            stream = client.open_stream(pairs_max=10)
            pushed = [stream.push(100, UPDATE) for _ in range(21)]
            with self.assertRaises(PostboteClientError) as raised:
                await pushed[20]
            self.assertEqual(raised.exception.code, "TOO_MANY_UNDER_WAY")
            await asyncio.gather(*pushed[:20])

    async def test_a_push_that_is_cancelled_frees_its_place(self) -> None:
        async with AsyncPostboteClient(key=KEY, url=self.server.url, connections=1) as client:
            self.server.answers.clear()
            task = asyncio.ensure_future(client.push(100, UPDATE))
            await asyncio.sleep(0.05)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.server.answers.set()
            self.assertEqual((await client.push(100, UPDATE)).update_id, 1)

    async def test_a_callback_that_raises_does_not_end_the_push(self) -> None:
        loop = asyncio.get_running_loop()
        seen: List[Any] = []
        loop.set_exception_handler(lambda _loop, context: seen.append(context["exception"]))

        def raising(_retry: object) -> None:
            raise KeyError("of the callback")

        client = AsyncPostboteClient(
            key=KEY, url="http://127.0.0.1:9", retry_delay_s_max=0.1, on_retry=raising, retries=1
        )
        with self.assertRaises(PostboteClientError) as raised:
            await client.push(100, UPDATE)
        self.assertEqual(raised.exception.code, "CONNECTION_FAILED")
        self.assertIsInstance(seen[0], KeyError)
        await client.close()

    async def test_threads_share_a_stream(self) -> None:
        url = self.server.url

        def run() -> List[int]:
            ids: List[int] = []
            with PostboteClient(key=KEY, url=url) as client:
                stream = client.open_stream(pairs_max=20)

                def push() -> None:
                    for _ in range(200):
                        stream.ready()
                        ids.append(stream.push(100, UPDATE).result(10).update_id or 0)

                threads = [threading.Thread(target=push) for _ in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            return ids

        self.assertEqual(len(await asyncio.to_thread(run)), 1_600)


if __name__ == "__main__":
    unittest.main()
