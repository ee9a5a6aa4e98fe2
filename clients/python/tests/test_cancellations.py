"""Tasks of a program for asyncio are cancelled wherever they wait, as drawn from a seed: nothing hangs, and what is not cancelled has its result."""

import asyncio
import os
import random
import sys
import unittest
from typing import Any, List
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from fake_node import HALVES, MOVED, FakeNode  # noqa: E402
from fake_server import KEY, UPDATE, FakeServer  # noqa: E402

from postbote_client import AsyncPostboteClient, PostboteClientError, PushItem, _shards  # noqa: E402

_SEEDS = 10
_LIMIT_S = 20


class Cancellations(unittest.IsolatedAsyncioTestCase):
    async def test_cancelled_tasks_leave_the_others_their_results_and_close_ends(self) -> None:
        for seed in range(_SEEDS):
            with self.subTest(seed=seed):
                await asyncio.wait_for(self.life(random.Random(seed), FakeServer()), _LIMIT_S)

    async def test_they_do_so_while_the_groups_of_shards_change_all_the_time(self) -> None:
        for seed in range(_SEEDS):
            with self.subTest(seed=seed), mock.patch.object(_shards, "_AGE_S_MAX", 0.05):
                node = FakeNode(lambda look: HALVES if look % 2 else MOVED)
                await asyncio.wait_for(self.life(random.Random(seed), node), _LIMIT_S)

    async def life(self, drawn: random.Random, server: Any) -> None:
        await server.start()
        client = AsyncPostboteClient(key=KEY, url=server.url, connections=2)
        stream = client.open_stream(pairs_max=drawn.choice([1, 3, 10]))
        codes: List[Any] = []

        async def push_in_stream() -> None:
            for _ in range(10):
                await stream.ready()
                future = stream.push(drawn.randrange(100, 140), UPDATE)
                if drawn.random() < 0.3:
                    future.cancel()
                    continue
                await note(future)

        async def push_alone() -> None:
            for _ in range(5):
                await note(client.push(100, UPDATE))

        async def push_all() -> None:
            items = (PushItem(100 + n, UPDATE) for n in range(30))
            try:
                async for each in client.push_all(items, pairs_max=4):
                    codes.append("stored" if each.error is None else each.error.code)
            except PostboteClientError as error:
                codes.append(error.code)

        async def note(push: Any) -> None:
            try:
                await push
                codes.append("stored")
            except PostboteClientError as error:
                codes.append(error.code)

        kinds = [push_in_stream, push_alone, push_all]
        tasks = [asyncio.ensure_future(drawn.choice(kinds)()) for _ in range(12)]
        for _ in range(6):
            await asyncio.sleep(drawn.random() * 0.01)
            drawn.choice(tasks).cancel()
        if drawn.random() < 0.5:
            closing = asyncio.ensure_future(client.close())
            await asyncio.sleep(drawn.random() * 0.003)
            closing.cancel()
        await asyncio.wait(tasks)
        await client.close()
        failed = [task.exception() for task in tasks if not task.cancelled()]
        self.assertEqual([error for error in failed if error is not None], [])
        self.assertLessEqual(set(codes), {"stored", "CLOSED"})
        self.assertEqual((stream.pairs_in_flight, stream.bytes_under_way), (0, 0))
        left = [task for task in asyncio.all_tasks() if "postbote_client" in repr(task)]
        self.assertEqual([task for task in left if not task.done()], [])
        server.close()


if __name__ == "__main__":
    unittest.main()
