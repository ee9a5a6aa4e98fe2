"""What programs do to a client for threads besides pushing: callbacks that end threads or call back, forks, interrupts, forgetting."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
from typing import Any, Callable, List

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from fake_server import KEY, UPDATE, FakeServer  # noqa: E402

from postbote_client import PostboteClient, PostboteClientError  # noqa: E402

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_LIMIT_S = 20


class _ThreadsTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.server = FakeServer()
        await self.server.start()

    async def asyncTearDown(self) -> None:
        self.server.close()
        await asyncio.sleep(0.01)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.wait_for(asyncio.to_thread(work), _LIMIT_S)

    async def output_of(self, program: str, interrupt: bool = False) -> str:
        """Runs a program that has KEY, UPDATE and `url`, and returns its output and its exit code."""
        head = (
            "import os, sys\n"
            f"sys.path[:0] = [{_FOLDER!r}, {os.path.dirname(_FOLDER)!r}]\n"
            "from fake_server import KEY, UPDATE\n"
            "from postbote_client import PostboteClient, PostboteClientError\n"
            f"url = {self.server.url!r}\n"
        )
        process = await asyncio.create_subprocess_exec(
            # Newer versions warn of a fork among threads, which is what the test does.
            *(sys.executable, "-B", "-W", "ignore::DeprecationWarning", "-c", head + program),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if interrupt:
            assert process.stdout is not None
            await process.stdout.readline()
            await asyncio.sleep(0.1)
            process.send_signal(signal.SIGINT)
        try:
            out, _ = await asyncio.wait_for(process.communicate(), _LIMIT_S)
        except asyncio.TimeoutError:
            process.kill()
            raise
        return f"{out.decode()}{process.returncode}"


class Callbacks(_ThreadsTest):
    async def test_a_callback_that_ends_its_thread_leaves_the_other_pushes_alone(self) -> None:
        def raising(_future: object) -> None:
            raise SystemExit

        loop = asyncio.get_running_loop()
        self.server.answers.clear()

        def run() -> List[Any]:
            with PostboteClient(key=KEY, url=self.server.url) as client:
                with client.open_stream() as stream:
                    futures = [stream.push(100, UPDATE) for _ in range(100)]
                    futures[3].add_done_callback(raising)
                    loop.call_soon_threadsafe(self.server.answers.set)
                    return [each.result(_LIMIT_S).update_id for each in futures]

        with self.assertLogs("asyncio", "ERROR"):
            self.assertEqual(await self.in_thread(run), [1] * 100)

    async def test_a_callback_of_a_repetition_that_ends_its_thread_ends_nothing_else(self) -> None:
        def raising(_retry: object) -> None:
            raise SystemExit

        def run() -> str:
            url = "http://127.0.0.1:9"
            client = PostboteClient(key=KEY, url=url, retry_delay_s_max=0.1, retries=2, on_retry=raising)
            with client, self.assertRaises(PostboteClientError) as raised:
                client.push(100, UPDATE)
            return raised.exception.code

        self.assertEqual(await self.in_thread(run), "CONNECTION_FAILED")

    async def test_a_callback_that_would_wait_for_its_own_thread_is_told_so(self) -> None:
        def run() -> List[str]:
            texts: List[str] = []
            is_called = threading.Event()
            with PostboteClient(key=KEY, url=self.server.url) as client:
                stream = client.open_stream(pairs_max=1)

                def waiting(_future: object) -> None:
                    # There is no room for the next push.
                    stream.push(100, UPDATE)
                    for call in (stream.ready, stream.close, client.close, lambda: client.get_bot(1)):
                        try:
                            call()
                        except RuntimeError as error:
                            texts.append(str(error))
                    is_called.set()

                stream.push(100, UPDATE).add_done_callback(waiting)
                is_called.wait(_LIMIT_S)
            return texts

        texts = await self.in_thread(run)
        self.assertEqual([text.split(":")[1] for text in texts], [" use another thread"] * 4)


class Ends(_ThreadsTest):
    async def test_close_while_threads_push_gives_each_push_a_result(self) -> None:
        def run() -> List[str]:
            codes: List[str] = []
            client = PostboteClient(key=KEY, url=self.server.url)
            stream = client.open_stream(pairs_max=50)

            def push() -> None:
                while True:
                    stream.ready()
                    future = stream.push(100, UPDATE)
                    error = future.exception(_LIMIT_S)
                    codes.append(getattr(error, "code", "stored"))
                    if error is not None:
                        return

            threads = [threading.Thread(target=push) for _ in range(8)]
            for thread in threads:
                thread.start()
            time.sleep(0.1)
            client.close()
            for thread in threads:
                thread.join(_LIMIT_S)
            return codes

        codes = await self.in_thread(run)
        self.assertEqual(codes.count("CLOSED"), 8)
        self.assertEqual(codes.count("stored"), self.server.pairs)

    async def test_a_client_that_is_forgotten_ends_its_thread_after_what_is_under_way(self) -> None:
        def run() -> List[Any]:
            before = threading.active_count()
            future = PostboteClient(key=KEY, url=self.server.url).open_stream().push(100, UPDATE)
            result = future.result(_LIMIT_S)
            client = PostboteClient(key=KEY, url=self.server.url)
            client.push(100, UPDATE)
            del client
            gc.collect()
            until = time.monotonic() + _LIMIT_S
            # The stream that was not closed keeps its thread.
            while threading.active_count() > before + 1 and time.monotonic() < until:
                time.sleep(0.01)
            return [result.update_id, threading.active_count() - before]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            self.assertEqual(await self.in_thread(run), [1, 1])

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    async def test_in_a_child_a_client_is_closed_and_a_new_one_works(self) -> None:
        text = await self.output_of(
            """
client = PostboteClient(key=KEY, url=url)
unused = PostboteClient(key=KEY, url=url)
stream = client.open_stream()
stream.push(100, UPDATE).result(20)
child = os.fork()
if child == 0:
    stream.ready()
    codes = [stream.push(100, UPDATE).exception(20).code]
    for call in (lambda: client.push(100, UPDATE), client.open_stream):
        try:
            call()
        except PostboteClientError as error:
            codes.append(error.code)
    stream.close()
    client.close()
    unused.push(100, UPDATE)
    unused.close()
    print(*codes, "in the child", flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(client.push(100, UPDATE).update_id, "in the parent")
client.close()
"""
        )
        self.assertEqual(text, "CLOSED CLOSED CLOSED in the child\n1 in the parent\n0")

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    async def test_a_child_never_makes_the_keys_of_its_parent(self) -> None:
        text = await self.output_of(
            """
from postbote_client._keys import new_key
known = {new_key()}
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, " ".join(new_key() for _ in range(300)).encode())
    os._exit(0)
os.wait()
theirs = os.read(read, 20_000).decode().split()
mine = [new_key() for _ in range(300)]
print(len({*known, *mine, *theirs}))
"""
        )
        self.assertEqual(text, "601\n0")

    async def test_an_interrupt_ends_each_kind_of_wait(self) -> None:
        waits = {
            "client.push(100, UPDATE)": "push",
            "stream.push(100, UPDATE).result()": "result",
            "stream.push(100, UPDATE); stream.ready()": "ready",
            "stream.push(100, UPDATE); stream.close()": "close",
        }
        self.server.answers.clear()
        for wait, name in waits.items():
            with self.subTest(name):
                text = await self.output_of(
                    f"""
client = PostboteClient(key=KEY, url=url)
stream = client.open_stream(pairs_max=1)
print("waiting", flush=True)
try:
    {wait}
except KeyboardInterrupt:
    print("interrupted")
client.close(timeout_s=0)
""",
                    interrupt=True,
                )
                self.assertEqual(text, "interrupted\n0")
        self.server.answers.set()
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
