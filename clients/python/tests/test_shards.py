"""A stream has a connection for each group of shards: its pairs come to the worker that stores them, and nothing else changes."""

import asyncio
import json
import os
import sys
import time
import unittest
from collections import defaultdict
from typing import Any, Dict, List, Optional, Tuple
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from fake_node import HALVES, MOVED, SHARDS, Arrived, FakeNode, shard_of  # noqa: E402
from fake_server import KEY  # noqa: E402

from postbote_client import (  # noqa: E402
    AsyncPostboteClient,
    AsyncPushStream,
    PostboteClient,
    PostboteClientError,
    PushItem,
    Retry,
)
from postbote_client import _http, _shards, _stream  # noqa: E402
from postbote_client._http import Place, Server  # noqa: E402
from postbote_client._shards import LaneMap, LanePlace, NodeGroups, lane_map  # noqa: E402

BOTS = list(range(100, 140))
_LIMIT_S = 20


def update_of(n: int) -> Dict[str, Any]:
    return {"message": {"n": n}}


def some_server() -> Server:
    return Server(Place(None, None, KEY, None), timeout_s=1, connections=1)


class Maps(unittest.TestCase):
    def test_a_bot_has_the_slot_that_storage_md_says(self) -> None:
        slots = {100: 2773, 101: 365, 42424242: 2075, 123456789: 350, 2147483648: 927}
        slots.update({9594860579: 2203, 4503599627370495: 1075})
        place = LanePlace(some_server(), 0)
        lanes = LaneMap((place, place), tuple(range(4096)))
        self.assertEqual({bot: lanes.lane_of(bot) for bot in slots}, slots)

    def test_no_group_and_the_one_group_of_the_server_need_one_lane(self) -> None:
        server = some_server()
        for groups in ([], [[0, 1, 2, 3]], [[2]]):
            lanes = lane_map(server, [NodeGroups(server, 4, groups)])
            self.assertEqual([place.shard for place in lanes.places], [None])
            self.assertEqual({lanes.lane_of(bot) for bot in BOTS}, {0})

    def test_the_one_group_of_a_node_has_a_lane_at_the_node(self) -> None:
        node = some_server()
        lanes = lane_map(some_server(), [NodeGroups(node, 1, [[0]])])
        self.assertEqual(lanes.places[lanes.lane_of(100)], (node, 0))

    def test_further_groups_share_64_lanes(self) -> None:
        server = some_server()
        lanes = lane_map(server, [NodeGroups(server, 256, [[shard] for shard in range(256)])])
        self.assertEqual(len(lanes.places), 65)
        self.assertEqual({lanes.lane_of(bot) for bot in range(10_000)}, set(range(1, 65)))

    def test_what_is_no_bot_id_has_the_first_lane(self) -> None:
        server = some_server()
        lanes = lane_map(server, [NodeGroups(server, 2, [[0], [1]])])
        for bot_id in ("100", None, True, [1], 1.5, {}):
            self.assertEqual(lanes.lane_of(bot_id), 0)
        self.assertIn(lanes.lane_of(-5), (1, 2))

    def test_while_a_shard_moves_the_first_node_that_names_it_has_it(self) -> None:
        one, two = some_server(), some_server()
        lanes = lane_map(some_server(), [NodeGroups(one, 2, [[0, 1]]), NodeGroups(two, 2, [[1]])])
        self.assertEqual({lanes.lane_of(bot) for bot in BOTS}, {1})


class Options(unittest.TestCase):
    def test_without_a_url_the_first_node_has_the_single_calls(self) -> None:
        urls = ["http://127.0.0.2:9", "http://127.0.0.3:9"]
        self.assertEqual(AsyncPostboteClient(key=KEY, node_urls=urls)._server.place.host, "127.0.0.2")

    def test_addresses_of_nodes_that_cannot_be_used_are_a_type_error_that_names_them(self) -> None:
        bad: List[Any] = [
            "http://127.0.0.1:1",
            7,
            None,
            [None],
            [""],
            [7],
            ["ftp://x"],
            ["http://user:secret@x"],
            ["http://x/?shard=1"],
            ["http://127.0.0.1:1"] * 65,
        ]
        for node_urls in bad:
            for client in (AsyncPostboteClient, PostboteClient):
                with self.subTest(node_urls), self.assertRaisesRegex(TypeError, "^node_urls: "):
                    client(key=KEY, node_urls=node_urls)


class _NodesTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.nodes: List[FakeNode] = []
        self.retries: List[Retry] = []

    async def asyncTearDown(self) -> None:
        for node in self.nodes:
            node.close()
        await asyncio.sleep(0.01)

    async def node(self, shards: Any = HALVES) -> FakeNode:
        node = FakeNode(shards)
        await node.start()
        self.nodes.append(node)
        return node

    def client(self, url: str, **options: Any) -> AsyncPostboteClient:
        given = {"retry_delay_s_min": 0.005, "retry_delay_s_max": 0.05, **options}
        return AsyncPostboteClient(key=KEY, url=url, on_retry=self.retries.append, **given)

    async def push(self, client: AsyncPostboteClient, count: int = 600) -> List[Any]:
        """Pushes, each bot in turn, and returns the codes of the errors."""
        items = (PushItem(BOTS[n % len(BOTS)], update_of(n)) for n in range(count))
        codes = []

        async def run() -> None:
            async for each in client.push_all(items, pairs_max=500):
                if each.error is not None:
                    codes.append(each.error.code)

        await asyncio.wait_for(run(), _LIMIT_S)
        return codes

    def check_order(self, count: int, *nodes: FakeNode) -> None:
        """Each pair is stored once, those of a bot in the order of their pushes."""
        stored = [pair for node in nodes for pair in node.stored]
        self.assertEqual(sorted(pair.n for pair in stored), list(range(count)))
        by_bot: Dict[int, List[int]] = defaultdict(list)
        for pair in stored:
            by_bot[pair.bot_id].append(pair.n)
        for bot, numbers in by_bot.items():
            self.assertEqual(numbers, sorted(numbers), bot)

    @property
    def codes(self) -> List[str]:
        return [retry.error.code for retry in self.retries]


def hint_of(bot_id: int, groups: Any = HALVES) -> Optional[str]:
    shard = shard_of(bot_id)
    return next((str(group[0]) for group in groups["groups"] if shard in group), None)


class Lanes(_NodesTest):
    async def test_each_pair_comes_by_the_stream_of_its_group(self) -> None:
        node = await self.node()
        async with self.client(node.url) as client:
            self.assertEqual(await self.push(client), [])
        self.check_order(600, node)
        wrong = [pair for pair in node.arrived if pair.hint != hint_of(pair.bot_id)]
        self.assertEqual(wrong, [])
        self.assertEqual((node.looks, sorted(node.hints)), (1, ["0", "4"]))
        self.assertEqual(self.codes, [])

    async def test_programs_with_threads_have_the_lanes_too(self) -> None:
        node = await self.node()

        def run() -> List[Any]:
            with PostboteClient(key=KEY, url=node.url) as client:
                items = [PushItem(BOTS[n % len(BOTS)], update_of(n)) for n in range(500)]
                return [each.error for each in client.push_all(items)]

        self.assertEqual(await asyncio.wait_for(asyncio.to_thread(run), _LIMIT_S), [None] * 500)
        self.check_order(500, node)
        self.assertEqual([pair for pair in node.arrived if pair.hint != hint_of(pair.bot_id)], [])

    async def test_a_lane_is_opened_with_its_first_pair(self) -> None:
        node = await self.node()
        async with self.client(node.url) as client:
            async with client.open_stream() as stream:
                await asyncio.sleep(0.02)
                self.assertEqual((node.looks, node.hints), (0, []))
                await stream.push(100, update_of(0))
                self.assertEqual(node.hints, [hint_of(100)])
                other = next(bot for bot in BOTS if hint_of(bot) != hint_of(100))
                await stream.push(other, update_of(1))
                self.assertEqual((node.looks, node.streams), (1, 2))

    async def test_a_server_without_the_call_has_one_stream_and_nobody_hears_of_it(self) -> None:
        for status in (403, 404, 405):
            with self.subTest(status):
                node = await self.node(status)
                async with self.client(node.url) as client:
                    self.assertEqual(await self.push(client), [])
                self.check_order(600, node)
                self.assertEqual((node.looks, node.hints, self.codes), (1, [None], []))

    async def test_one_group_has_one_stream_without_a_shard(self) -> None:
        for groups in ([], [[0, 1, 2, 3, 4, 5, 6, 7]]):
            node = await self.node({"shards": SHARDS, "groups": groups, "version": 1})
            async with self.client(node.url) as client:
                self.assertEqual(await self.push(client, 200), [])
            self.assertEqual(node.hints, [None])

    async def test_pairs_of_shards_in_no_group_come_by_a_stream_without_a_shard(self) -> None:
        some = {"shards": SHARDS, "groups": [[3, 0], [5]], "version": 1}
        node = await self.node(some)
        async with self.client(node.url) as client:
            self.assertEqual(await self.push(client), [])
        self.check_order(600, node)
        wrong = [pair for pair in node.arrived if pair.hint != hint_of(pair.bot_id, some)]
        self.assertEqual(wrong, [])
        self.assertEqual({pair.hint for pair in node.arrived}, {None, "3", "5"})

    async def test_more_groups_than_lanes_share_them(self) -> None:
        node = await self.node(
            {"shards": 256, "groups": [[shard] for shard in range(256)], "version": 1}
        )
        async with self.client(node.url) as client:
            items = [PushItem(1_000 + n, update_of(n)) for n in range(600)]
            errors = [each.error async for each in client.push_all(items)]
        self.assertEqual(errors, [None] * 600)
        self.check_order(600, node)
        self.assertEqual(node.open_streams_max, 64)

    async def test_the_bounds_are_those_of_all_lanes_together(self) -> None:
        node = await self.node()
        node.answers.clear()
        async with self.client(node.url) as client:
            stream = client.open_stream(pairs_max=10)
            pushes = []
            for n in range(10):
                await stream.ready()
                pushes.append(stream.push(BOTS[n], update_of(n)))
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(stream.ready(), 0.1)
            pushes += [stream.push(BOTS[n], update_of(n)) for n in range(10, 20)]
            refused = stream.push(BOTS[0], update_of(99))
            self.assertEqual(getattr(refused.exception(), "code", None), "TOO_MANY_UNDER_WAY")
            self.assertEqual(stream.pairs_in_flight, 20)
            node.answers.set()
            await asyncio.wait_for(asyncio.gather(*pushes), _LIMIT_S)
            self.assertEqual((stream.pairs_in_flight, stream.bytes_under_way), (0, 0))

    async def test_a_pair_that_is_refused_for_a_moment_goes_back_to_its_lane(self) -> None:
        node = await self.node()
        refused = set()

        def code_for(pair: Arrived) -> Optional[str]:
            if pair.n % 50 != 7 or pair.n in refused:
                return None
            refused.add(pair.n)
            return "STORE_UNAVAILABLE"

        node.code_for = code_for
        async with self.client(node.url) as client:
            self.assertEqual(await self.push(client), [])
        self.assertEqual(sorted(pair.n for pair in node.stored), list(range(600)))
        self.assertEqual([pair for pair in node.arrived if pair.hint != hint_of(pair.bot_id)], [])
        self.assertEqual(set(self.codes), {"STORE_UNAVAILABLE"})

    async def test_a_server_that_refuses_streams_with_a_shard_gets_one_without(self) -> None:
        for status in (400, 404):
            node = await self.node()
            node.refusal = lambda hint, status=status: status if hint else None  # type: ignore[misc]
            async with self.client(node.url) as client:
                self.assertEqual(await self.push(client), [])
            self.check_order(600, node)
            self.assertEqual({pair.hint for pair in node.arrived}, {None})
            self.assertEqual((node.looks, self.codes), (1, []))

    async def test_a_lane_that_cannot_go_on_fails_its_own_pairs_alone(self) -> None:
        node = await self.node()
        node.refusal = lambda hint: 401 if hint == "4" else None
        async with self.client(node.url) as client:
            codes = await self.push(client, 400)
        own = [pair for pair in range(400) if hint_of(BOTS[pair % len(BOTS)]) == "4"]
        self.assertEqual(codes, ["UNEXPECTED_ANSWER"] * len(own))
        self.assertEqual(len(node.stored), 400 - len(own))

    async def test_a_lane_that_cannot_go_on_leaves_the_held_pairs_of_others(self) -> None:
        node = await self.node()
        held, failing = (next(bot for bot in BOTS if hint_of(bot) == hint) for hint in ("0", "4"))
        node.refusal = lambda hint: 401 if hint == "4" else None
        node.code_for = lambda pair: None if len(self.retries) > 0 else "STORE_UNAVAILABLE"
        async with self.client(node.url, retry_delay_s_min=0.5, retry_delay_s_max=0.5) as client:
            async with client.open_stream() as stream:
                with mock.patch("random.random", lambda: 1.0):
                    first = stream.push(held, update_of(0))
                    while not self.retries:
                        await asyncio.sleep(0.01)
                second = stream.push(failing, update_of(1))
                error = await asyncio.wait_for(asyncio.gather(second, return_exceptions=True), _LIMIT_S)
                self.assertEqual(getattr(error[0], "status", None), 401)
                self.assertFalse(first.done())
                await asyncio.wait_for(first, _LIMIT_S)


class BadAnswers(_NodesTest):
    async def test_an_answer_that_cannot_be_used_is_told_once_and_fails_no_push(self) -> None:
        bad: List[Any] = [
            b"",
            b"<h1>Welcome</h1>",
            b"null",
            b"[" * 100_000,
            b"\xff\xfe",
            json.dumps({**HALVES, "more": "a" * 2**20}).encode(),
            [8],
            {"shards": 8, "groups": HALVES["groups"]},
            {"shards": 8, "version": 1},
            {**HALVES, "version": "1"},
            {**HALVES, "version": True},
            {**HALVES, "version": 1.5},
            {**HALVES, "groups": {"0": [0]}},
            {**HALVES, "groups": [0, 1]},
            {**HALVES, "groups": [[]]},
            {**HALVES, "groups": [[0], [0]]},
            {**HALVES, "groups": [[0, 0], [1]]},
            {**HALVES, "groups": [[0], [8]]},
            {**HALVES, "groups": [[0], [-1]]},
            {**HALVES, "groups": [[0], ["1"]]},
            {**HALVES, "groups": [[0], [True]]},
            {**HALVES, "groups": [[0], [1.0]]},
            {**HALVES, "groups": [[0], [[1]]]},
            {**HALVES, "groups": [[0], [{}]]},
            {**HALVES, "groups": [[n] for n in range(257)]},
            *({**HALVES, "shards": shards} for shards in (0, -8, 3, 512, "8", True, 8.0, None)),
            500,
            503,
            302,
        ]
        for answer in bad:
            with self.subTest(str(answer)[:80]):
                self.retries.clear()
                node = await self.node(answer)
                async with self.client(node.url) as client:
                    self.assertEqual(await self.push(client, 3), [])
                    # The next stream asks again.
                    self.assertEqual(await self.push(client, 3), [])
                self.assertEqual((node.looks, node.hints), (2, [None, None]))
                self.assertEqual(self.codes, ["UNEXPECTED_ANSWER"])
                told = self.retries[0]
                self.assertEqual((told.attempt, told.delay_s, told.bot_id), (1, 0.0, None))

    async def test_an_answer_that_never_comes_is_waited_for_shortly(self) -> None:
        node = await self.node(None)
        with mock.patch.object(_shards, "_WAIT_S", 0.1):
            async with self.client(node.url) as client:
                self.assertEqual(await self.push(client), [])
        self.check_order(600, node)
        self.assertEqual((node.hints, self.codes), ([None], ["TIMEOUT"]))

    async def test_a_bad_answer_later_leaves_the_lanes_as_they_were(self) -> None:
        node = await self.node(lambda look: HALVES if look == 1 else b"no")
        async with self.client(node.url) as client:
            self.assertEqual(await self.push(client, 500), [])
            self.assertEqual(await self.push(client, 500), [])
        self.assertEqual({pair.hint for pair in node.arrived}, {"0", "4"})
        self.assertEqual(self.codes, ["UNEXPECTED_ANSWER"])

    async def test_a_key_that_is_none_fails_the_pushes_with_the_error_of_the_stream(self) -> None:
        node = await self.node(401)
        node.refusal = lambda _hint: 401
        async with self.client(node.url) as client:
            self.assertEqual(await self.push(client, 3), ["UNEXPECTED_ANSWER"] * 3)
        self.assertEqual(self.codes, [])

    async def test_groups_that_are_others_each_time_do_not_keep_a_failing_stream_alive(self) -> None:
        node = await self.node(lambda look: MOVED if look % 2 else HALVES)
        node.refusal = lambda _hint: 503
        async with self.client(node.url, retries=4) as client:
            codes = await asyncio.wait_for(self.push(client, 3), _LIMIT_S)
        self.assertEqual(codes, ["UNEXPECTED_ANSWER"] * 3)
        self.assertLess(len(node.hints), 20)

    async def test_a_server_that_is_not_there_is_the_failure_that_it_was(self) -> None:
        node = await self.node()
        node.close()
        async with self.client(node.url, retries=2) as client:
            self.assertEqual(await self.push(client, 3), ["CONNECTION_FAILED"] * 3)
        self.assertEqual(self.codes, ["CONNECTION_FAILED"] * 2)


class Changes(_NodesTest):
    async def test_groups_that_change_with_each_end_of_a_stream_leave_the_order(self) -> None:
        for how in ("end", "cut"):
            with self.subTest(how):
                node = await self.node(lambda look: HALVES if look % 2 else MOVED)
                seen = set()

                def ends(pair: Arrived) -> Optional[str]:
                    if pair.n % 31 or pair.n in seen:
                        return None
                    seen.add(pair.n)
                    return how

                node.ends_after = ends
                async with self.client(node.url, retries=100) as client:
                    self.assertEqual(await self.push(client), [])
                self.check_order(600, node)
                self.assertGreater(node.looks, 5)
                self.assertEqual({pair.hint for pair in node.arrived}, {"0", "1", "4"})

    async def test_a_call_that_comes_and_goes_leaves_the_order(self) -> None:
        node = await self.node(lambda look: HALVES if look % 2 else 404)
        seen = set()

        def ends(pair: Arrived) -> Optional[str]:
            if pair.n % 31 or pair.n in seen:
                return None
            seen.add(pair.n)
            return "end"

        node.ends_after = ends
        async with self.client(node.url) as client:
            self.assertEqual(await self.push(client), [])
        self.check_order(600, node)
        self.assertEqual({pair.hint for pair in node.arrived}, {"0", "4", None})

    async def test_old_groups_are_read_again_while_pairs_are_sent_and_followed_without_an_inversion(
        self,
    ) -> None:
        node = await self.node(lambda look: HALVES if look % 2 else MOVED)
        with mock.patch.object(_shards, "_AGE_S_MAX", 0.02):
            async with self.client(node.url) as client:
                self.assertEqual(await self.push(client, 4_000), [])
        self.check_order(4_000, node)
        self.assertEqual(len(node.arrived), 4_000)
        self.assertGreater(node.looks, 2)
        self.assertEqual(self.codes, [])

    async def test_a_bot_changes_its_lane_only_after_the_results_of_what_is_under_way(self) -> None:
        node = await self.node(lambda look: HALVES if look == 1 else MOVED)
        bot = next(bot for bot in BOTS if hint_of(bot) != hint_of(bot, MOVED))
        async with self.client(node.url) as client:
            async with client.open_stream() as stream:
                await stream.push(bot, update_of(0))
                node.answers.clear()
                first = stream.push(bot, update_of(1))
                await asyncio.sleep(0.05)
                with mock.patch.object(_shards, "_AGE_S_MAX", 0.0):
                    second = stream.push(bot, update_of(2))
                    while node.looks < 2:
                        await asyncio.sleep(0.01)
                    await asyncio.sleep(0.05)
                third = stream.push(bot, update_of(3))
                await asyncio.sleep(0.05)
                self.assertEqual(node.hints, [hint_of(bot)])
                node.answers.set()
                await asyncio.wait_for(asyncio.gather(first, second, third), _LIMIT_S)
        self.assertEqual([pair.n for pair in node.arrived], [0, 1, 2, 3])
        self.assertEqual(node.hints, [hint_of(bot), hint_of(bot, MOVED)])

    async def test_pairs_without_keys_are_never_stored_twice_by_a_change(self) -> None:
        node = await self.node(lambda look: HALVES if look % 2 else MOVED)
        with mock.patch.object(_shards, "_AGE_S_MAX", 0.02):
            async with self.client(node.url, has_idempotency_keys=False) as client:
                self.assertEqual(await self.push(client, 3_000), [])
        self.check_order(3_000, node)
        self.assertGreater(node.looks, 2)

    async def test_a_server_that_does_not_end_a_stream_holds_a_change_no_longer_than_its_time(
        self,
    ) -> None:
        node = await self.node(lambda look: HALVES if look == 1 else MOVED)
        bot = next(bot for bot in BOTS if hint_of(bot) != hint_of(bot, MOVED))
        async with self.client(node.url, timeout_s=0.3) as client:
            stream = client.open_stream()
            await stream.push(bot, update_of(0))
            node.answers.clear()
            with mock.patch.object(_shards, "_AGE_S_MAX", 0.0):
                pushed = stream.push(bot, update_of(1))
                while node.looks < 2:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.5)
            node.answers.set()
            await asyncio.wait_for(pushed, _LIMIT_S)
            await stream.close()
        self.assertEqual([pair.n for pair in node.stored], [0, 1])
        self.assertIn("TIMEOUT", self.codes)

    async def test_a_server_that_does_not_end_a_stream_without_pairs_holds_a_change_no_longer_either(
        self,
    ) -> None:
        node = await self.node(lambda look: HALVES if look == 1 else MOVED)
        node.ignores_end = True
        async with self.client(node.url, timeout_s=0.3) as client:
            stream = client.open_stream()
            await stream.push(100, update_of(0))
            with mock.patch.object(_shards, "_AGE_S_MAX", 0.0):
                await asyncio.wait_for(stream.push(100, update_of(1)), _LIMIT_S)
            while node.looks < 2:
                await asyncio.sleep(0.01)
            await asyncio.wait_for(stream.push(100, update_of(2)), _LIMIT_S)
            self.assertEqual(node.arrived[-1].hint, hint_of(100, MOVED))
            await stream.close(timeout_s=0.1)

    async def test_what_is_not_sent_when_the_groups_change_goes_to_the_new_lane(self) -> None:
        node = await self.node()
        bot = next(bot for bot in BOTS if hint_of(bot) != hint_of(bot, MOVED))
        async with self.client(node.url) as client:
            async with client.open_stream() as stream:
                await stream.push(bot, update_of(0))
                pushed = stream.push(bot, update_of(1))
                groups: Any = MOVED["groups"]
                client._shards._use_answers([NodeGroups(client._server, SHARDS, groups)])
                await asyncio.wait_for(pushed, _LIMIT_S)
        self.assertEqual([pair.hint for pair in node.arrived], [hint_of(bot), hint_of(bot, MOVED)])

    async def test_a_request_that_has_not_begun_when_the_groups_change_holds_nothing(self) -> None:
        node = await self.node(MOVED)
        groups: Any = HALVES["groups"]
        async with self.client(node.url) as client:
            async with client.open_stream() as stream:
                pushed = stream.push(100, update_of(0))
                told = [NodeGroups(client._server, SHARDS, groups)]
                # After the turn in which the lane begins its request, and before the first step of that.
                asyncio.get_running_loop().call_soon(client._shards._use_answers, told)
                await asyncio.wait_for(pushed, _LIMIT_S)
        self.assertEqual(len(node.arrived), 1)

    async def test_the_groups_are_not_read_for_a_server_without_the_call_while_a_stream_lasts(
        self,
    ) -> None:
        node = await self.node(404)
        with mock.patch.object(_shards, "_AGE_S_MAX", 0.0):
            async with self.client(node.url) as client:
                self.assertEqual(await self.push(client), [])
        self.assertEqual(node.looks, 1)

    async def test_streams_of_a_client_share_a_look(self) -> None:
        node = await self.node()
        async with self.client(node.url) as client:
            streams = [client.open_stream() for _ in range(10)]
            pushes = [stream.push(100, update_of(n)) for n, stream in enumerate(streams)]
            await asyncio.wait_for(asyncio.gather(*pushes), _LIMIT_S)
            self.assertEqual((node.looks, node.streams), (1, 10))


class Closes(_NodesTest):
    async def _in_a_change(
        self,
    ) -> Tuple[FakeNode, AsyncPostboteClient, AsyncPushStream, List[Any]]:
        """Returns a stream whose groups have changed while its pushes wait for results that the node holds back."""
        node = await self.node(lambda look: HALVES if look == 1 else MOVED)
        client = self.client(node.url)
        stream = client.open_stream()
        await asyncio.gather(*(stream.push(bot, update_of(n)) for n, bot in enumerate(BOTS)))
        node.answers.clear()
        with mock.patch.object(_shards, "_AGE_S_MAX", 0.0):
            pushes = [stream.push(bot, update_of(100 + n)) for n, bot in enumerate(BOTS)]
            while node.looks < 2:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.02)
        return node, client, stream, pushes

    async def test_close_waits_for_the_results_of_all_lanes(self) -> None:
        node = await self.node()
        node.answers.clear()
        client = self.client(node.url)
        stream = client.open_stream()
        pushes = [stream.push(bot, update_of(n)) for n, bot in enumerate(BOTS)]
        closing = asyncio.ensure_future(client.close())
        await asyncio.sleep(0.1)
        self.assertFalse(closing.done())
        node.answers.set()
        await asyncio.wait_for(closing, _LIMIT_S)
        self.assertTrue(all(push.done() and push.exception() is None for push in pushes))
        await asyncio.sleep(0.02)
        self.assertEqual(node.open_streams, 0)

    async def test_pairs_of_all_lanes_without_a_result_fail_with_closed(self) -> None:
        node = await self.node()
        node.answers.clear()
        client = self.client(node.url)
        stream = client.open_stream()
        pushes = [stream.push(bot, update_of(n)) for n, bot in enumerate(BOTS)]
        await asyncio.sleep(0.1)
        await asyncio.wait_for(client.close(timeout_s=0), _LIMIT_S)
        errors = [push.exception() for push in pushes]
        self.assertEqual({getattr(error, "code", None) for error in errors}, {"CLOSED"})
        self.assertEqual({getattr(error, "is_outcome_unknown", None) for error in errors}, {True})
        self.assertEqual((stream.pairs_in_flight, stream.bytes_under_way), (0, 0))

    async def test_close_ends_a_look_that_nobody_answers(self) -> None:
        node = await self.node(None)
        client = self.client(node.url)
        stream = client.open_stream()
        pushed = stream.push(100, update_of(0))
        await asyncio.sleep(0.05)
        before_s = time.monotonic()
        await client.close(timeout_s=0)
        self.assertLess(time.monotonic() - before_s, 1.5)
        error = pushed.exception()
        self.assertEqual(getattr(error, "code", None), "CLOSED")
        self.assertFalse(getattr(error, "is_outcome_unknown", None))
        left = [task for task in asyncio.all_tasks() if "postbote_client" in repr(task)]
        self.assertEqual([task for task in left if not task.done()], [])

    async def test_close_during_a_change_gives_each_pair_its_result(self) -> None:
        node, client, stream, pushes = await self._in_a_change()
        pushes += [stream.push(bot, update_of(200 + n)) for n, bot in enumerate(BOTS)]
        closing = asyncio.ensure_future(client.close())
        await asyncio.sleep(0.05)
        node.answers.set()
        await asyncio.wait_for(closing, _LIMIT_S)
        self.assertEqual([push.exception() for push in pushes], [None] * 80)
        self.assertEqual(len(node.stored), 120)

    async def test_close_gives_up_pairs_of_a_change(self) -> None:
        node, client, stream, pushes = await self._in_a_change()
        unsent = stream.push(100, update_of(200))
        await asyncio.wait_for(client.close(timeout_s=0.05), _LIMIT_S)
        codes = {getattr(push.exception(), "code", None) for push in [*pushes, unsent]}
        self.assertEqual(codes, {"CLOSED"})
        self.assertFalse(getattr(unsent.exception(), "is_outcome_unknown", None))


class SeveralNodes(_NodesTest):
    LOWER = {"shards": SHARDS, "groups": [[0, 1], [2, 3]], "version": 1}
    UPPER = {"shards": SHARDS, "groups": [[4, 5, 6, 7]], "version": 9}

    async def test_each_stream_is_opened_at_the_node_that_has_the_shards(self) -> None:
        lower, upper, balancer = (
            await self.node(self.LOWER),
            await self.node(self.UPPER),
            await self.node(404),
        )
        async with self.client(balancer.url, node_urls=[lower.url, upper.url]) as client:
            self.assertEqual(await self.push(client), [])
        self.check_order(600, lower, upper)
        self.assertEqual({pair.hint for pair in lower.arrived}, {"0", "2"})
        self.assertEqual({pair.hint for pair in upper.arrived}, {"4"})
        self.assertEqual((balancer.looks, balancer.streams), (0, 0))

    async def test_the_shards_of_a_node_that_does_not_answer_go_to_the_url(self) -> None:
        lower, gone, balancer = (
            await self.node(self.LOWER),
            await self.node(self.UPPER),
            await self.node(404),
        )
        gone.close()
        urls = [lower.url, gone.url]
        async with self.client(balancer.url, node_urls=urls) as client:
            self.assertEqual(await self.push(client), [])
        self.check_order(600, lower, balancer)
        self.assertEqual({shard_of(pair.bot_id) for pair in balancer.arrived}, {4, 5, 6, 7})
        self.assertEqual({pair.hint for pair in balancer.arrived}, {None})
        self.assertEqual(self.codes, [])

    async def test_a_node_that_is_killed_is_left_out_and_comes_back_without_a_loss(self) -> None:
        lower, upper, balancer = (
            await self.node(self.LOWER),
            await self.node(self.UPPER),
            await self.node(404),
        )
        # All nodes of a cluster know a key.
        balancer._stored = lower._stored = upper._stored
        upper.ends_after = lambda pair: "cut" if pair.n > 300 else None
        async with self.client(balancer.url, node_urls=[lower.url, upper.url]) as client:
            pushing = asyncio.ensure_future(self.push(client, 2_000))
            while not upper.arrived or upper.arrived[-1].n <= 300:
                await asyncio.sleep(0.001)
            upper.close()
            self.assertEqual(await pushing, [])
            stored = lower.stored + upper.stored + balancer.stored
            self.assertEqual(sorted(pair.n for pair in stored), list(range(2_000)))
            self.assertGreater(len(balancer.stored), 100)
            upper.ends_after = lambda _pair: None
            await upper.start(upper.port)
            before = len(upper.arrived)
            self.assertEqual(await self.push(client, 400), [])
            self.assertGreater(len(upper.arrived), before)

    async def test_a_node_that_takes_no_connection_is_waited_for_shortly(self) -> None:
        lower, balancer = await self.node(self.LOWER), await self.node(404)
        opened = Server._open

        async def open_all_but_one(server: Server) -> Any:
            if server.place.name == "gone":
                await asyncio.sleep(600)
            return await opened(server)

        usual = mock.patch.multiple(_http, FIRST_CONNECT_S=600, FIRST_REPORT_S=600)
        with usual, mock.patch.object(Server, "_open", open_all_but_one):
            with mock.patch.object(_shards, "_WAIT_S", 0.2):
                urls = [lower.url, "http://gone"]
                async with self.client(balancer.url, node_urls=urls, timeout_s=600) as client:
                    self.assertEqual(await self.push(client, 40), [])
        self.check_order(40, lower, balancer)

    async def test_nodes_that_tell_another_number_of_shards_are_not_used(self) -> None:
        lower, other, balancer = (
            await self.node(self.LOWER),
            await self.node({"shards": 16, "groups": [[4, 5, 6, 7]], "version": 1}),
            await self.node(404),
        )
        async with self.client(balancer.url, node_urls=[lower.url, other.url]) as client:
            self.assertEqual(await self.push(client), [])
        self.check_order(600, lower, balancer)
        self.assertEqual((other.arrived, self.codes), ([], ["UNEXPECTED_ANSWER"]))

    async def test_no_address_is_taken_from_an_answer(self) -> None:
        stranger = await self.node(self.UPPER)
        lies = {**self.LOWER, "nodes": [stranger.url], "url": stranger.url, "node_urls": [stranger.url]}
        node = await self.node(lies)
        async with self.client(node.url, node_urls=[node.url]) as client:
            self.assertEqual(await self.push(client), [])
        self.assertEqual((stranger.keys, stranger.looks), (set(), 0))

    async def test_all_nodes_that_are_gone_leave_one_stream_to_the_url(self) -> None:
        one, two, balancer = await self.node(), await self.node(), await self.node(404)
        one.close()
        two.close()
        async with self.client(balancer.url, node_urls=[one.url, two.url]) as client:
            self.assertEqual(await self.push(client), [])
        self.check_order(600, balancer)
        self.assertEqual(balancer.hints, [None])


class Memory(_NodesTest):
    async def test_so_many_bots_are_remembered_and_no_more(self) -> None:
        node = await self.node()
        with mock.patch.object(_stream, "_BOTS_REMEMBERED_MAX", 10):
            async with self.client(node.url) as client:
                async with client.open_stream() as stream:
                    pushes = [stream.push(bot, update_of(n)) for n, bot in enumerate(BOTS)]
                    await asyncio.wait_for(asyncio.gather(*pushes), _LIMIT_S)
                    self.assertLessEqual(len(stream._core._lane_of_bot), 10)
        self.assertEqual([pair for pair in node.arrived if pair.hint != hint_of(pair.bot_id)], [])

    async def test_what_is_no_bot_id_is_answered_by_the_server(self) -> None:
        node = await self.node()
        node.code_for = lambda pair: "BAD_REQUEST"
        async with self.client(node.url) as client:
            async with client.open_stream() as stream:
                for bot_id in ("100", None, 1.5, True):
                    with self.assertRaises(PostboteClientError) as raised:
                        await asyncio.wait_for(stream.push(bot_id, update_of(0)), _LIMIT_S)  # type: ignore[arg-type]
                    self.assertEqual(raised.exception.code, "BAD_REQUEST")


if __name__ == "__main__":
    unittest.main()
