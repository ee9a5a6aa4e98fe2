"""The driver of the client for Python (clients/conformance/README.md): for asyncio, or with ``--sync`` for threads."""

import asyncio
import json
import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, NamedTuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from postbote_client import (  # noqa: E402
    AsyncPostboteClient,
    PostboteClient,
    PostboteClientError,
    PushResult,
    Retry,
)

# Names and units of docs/use/client.md.
_OPTIONS: Dict[str, Callable[[Any], Any]] = {
    "timeoutMs": lambda ms: ("timeout_s", ms / 1000),
    "retries": lambda count: ("retries", count),
    "retryDelayMsMin": lambda ms: ("retry_delay_s_min", ms / 1000),
    "retryDelayMsMax": lambda ms: ("retry_delay_s_max", ms / 1000),
    "connections": lambda count: ("connections", count),
    "hasIdempotencyKeys": lambda has: ("has_idempotency_keys", has),
    "url": lambda url: ("url", url),
    "nodeUrls": lambda urls: ("node_urls", urls),
    "key": lambda key: ("key", key),
    "pairsMax": lambda count: ("pairs_max", count),
    "bytesMax": lambda count: ("bytes_max", count),
}


class _Item(NamedTuple):
    n: int
    bot_id: int
    update: Dict[str, Any]
    options: Dict[str, Any]


def _named(options: Dict[str, Any]) -> Dict[str, Any]:
    return dict(_OPTIONS[name](value) for name, value in options.items())


def _item(job: Dict[str, Any], n: int) -> _Item:
    chat = {"id": n % 7 + 1, "type": "private"}
    message = {"message_id": n, "date": 1_795_259_700, "chat": chat, "text": job["text"]}
    prefix = job.get("keyPrefix")
    options = _fields(job.get("options", {}))
    if prefix is not None:
        options["idempotency_key"] = f"{prefix}{n}"
    return _Item(n, job["bots"][n % len(job["bots"])], {"message": message}, options)


def _fields(options: Dict[str, Any]) -> Dict[str, Any]:
    """Names of client.md that differ in their spelling alone."""
    return {re.sub("[A-Z]", lambda of: f"_{of[0].lower()}", name): options[name] for name in options}


_printing = threading.Lock()


_encode = json.JSONEncoder(separators=(",", ":")).encode


def _print(line: Dict[str, Any]) -> None:
    text = _encode(line)
    with _printing:
        sys.stdout.write(f"{text}\n")


def _print_result(n: int, result: PushResult) -> None:
    if result.is_filtered:
        _print({"n": n, "isFiltered": True})
    else:
        _print({"n": n, "updateId": result.update_id, "isDuplicate": result.is_duplicate})


def _print_outcome(n: int, future: Any) -> None:
    error = future.exception()
    if error is None:
        _print_result(n, future.result())
    else:
        _print({"n": n, "error": _error(error)})


def _error(error: PostboteClientError) -> Dict[str, Any]:
    line = {
        "code": error.code,
        "status": error.status,
        "retryAfterS": error.retry_after_s,
        "isRetryable": error.is_retryable,
        "isOutcomeUnknown": error.is_outcome_unknown,
        "message": str(error),
    }
    return {name: value for name, value in line.items() if value is not None}


def _on_retry(retry: Retry) -> None:
    line = {"code": retry.error.code, "attempt": retry.attempt}
    if retry.bot_id is not None:
        line["botId"] = retry.bot_id
    _print({"retry": line})


def _calls(client: Any, job: Dict[str, Any]) -> Dict[str, Callable[[], Any]]:
    bot_id = job["bots"][0]
    return {
        "createBot": lambda: client.create_bot(**_fields(job["newBot"])),
        "getBot": lambda: client.get_bot(bot_id),
        "rotateToken": lambda: client.rotate_token(bot_id, **_fields(job["rotation"])),
        "removeBot": lambda: client.remove_bot(bot_id),
    }


_CALL_NAMES = {
    "bot_id": "botId",
    "first_name": "firstName",
    "pending_count": "pendingCount",
}


def _print_call(call: str, result: Any) -> None:
    fields = {} if result is None else result._asdict()
    named = {_CALL_NAMES.get(name, name): value for name, value in fields.items()}
    _print({"call": call, "result": named})


class _AsyncRun:
    def __init__(self, job: Dict[str, Any]) -> None:
        self.job = job
        self.in_flight_max = 0
        self.client = AsyncPostboteClient(on_retry=_on_retry, **_named(job["client"]))

    async def run(self) -> None:
        began = time.monotonic()
        await getattr(self, self.job["mode"])()
        push_ms = round((time.monotonic() - began) * 1000)
        await self.client.close()
        _print({"done": True, "pushMs": push_ms, "inFlightMax": self.in_flight_max})

    async def settled(self, n: int, result: Any) -> None:
        try:
            _print_result(n, await result)
        except PostboteClientError as error:
            _print({"n": n, "error": _error(error)})

    async def single(self) -> None:
        numbers = iter(range(self.job["count"]))

        async def lane() -> None:
            for n in numbers:
                _, bot_id, update, options = _item(self.job, n)
                await self.settled(n, self.client.push(bot_id, update, **options))

        lanes = [asyncio.ensure_future(lane()) for _ in range(self.job["concurrency"])]
        await asyncio.sleep(0)
        await asyncio.gather(*lanes, self.close_early())

    async def stream(self) -> None:
        stream = self.client.open_stream(**_named(self.job["stream"]))
        left = self.job["count"]
        done = asyncio.get_running_loop().create_future()

        def on_done(n: int, future: Any) -> None:
            nonlocal left
            _print_outcome(n, future)
            left -= 1
            if left == 0:
                done.set_result(None)

        for n in range(self.job["count"]):
            await stream.ready()
            _, bot_id, update, options = _item(self.job, n)
            future = stream.push(bot_id, update, **options)
            future.add_done_callback(lambda each, n=n: on_done(n, each))
            self.in_flight_max = max(self.in_flight_max, stream.pairs_in_flight)
        await asyncio.gather(done, self.close_early())

    async def pushAll(self) -> None:  # noqa: N802 - the name of the mode
        items = (_item(self.job, n) for n in range(self.job["count"]))
        async for each in self.client.push_all(items, **_named(self.job["stream"])):
            if each.error is None:
                _print_result(each.item.n, each.result)
            else:
                _print({"n": each.item.n, "error": _error(each.error)})

    async def calls(self) -> None:
        for call, make in _calls(self.client, self.job).items():
            try:
                _print_call(call, await make())
            except PostboteClientError as error:
                _print({"call": call, "error": _error(error)})

    async def close_early(self) -> None:
        if "closeMs" in self.job:
            await self.client.close(timeout_s=self.job["closeMs"] / 1000)


class _SyncRun:
    def __init__(self, job: Dict[str, Any]) -> None:
        self.job = job
        self.in_flight_max = 0
        self.client = PostboteClient(on_retry=_on_retry, **_named(job["client"]))

    def run(self) -> None:
        began = time.monotonic()
        getattr(self, self.job["mode"])()
        push_ms = round((time.monotonic() - began) * 1000)
        self.client.close()
        _print({"done": True, "pushMs": push_ms, "inFlightMax": self.in_flight_max})

    def single(self) -> None:
        def push(n: int) -> None:
            _, bot_id, update, options = _item(self.job, n)
            try:
                _print_result(n, self.client.push(bot_id, update, **options))
            except PostboteClientError as error:
                _print({"n": n, "error": _error(error)})

        with ThreadPoolExecutor(self.job["concurrency"]) as pool:
            for n in range(self.job["count"]):
                pool.submit(push, n)
            self.close_early()

    def stream(self) -> None:
        stream = self.client.open_stream(**_named(self.job["stream"]))
        left = self.job["count"]
        is_done = threading.Event()

        def on_done(n: int, future: Any) -> None:
            nonlocal left
            _print_outcome(n, future)
            # A push that is refused has its result in this thread, the others in that of the client.
            with _printing:
                left -= 1
            if left == 0:
                is_done.set()

        for n in range(self.job["count"]):
            stream.ready()
            _, bot_id, update, options = _item(self.job, n)
            future = stream.push(bot_id, update, **options)
            future.add_done_callback(lambda each, n=n: on_done(n, each))
            self.in_flight_max = max(self.in_flight_max, stream.pairs_in_flight)
        self.close_early()
        is_done.wait()

    def pushAll(self) -> None:  # noqa: N802 - the name of the mode
        items = (_item(self.job, n) for n in range(self.job["count"]))
        for each in self.client.push_all(items, **_named(self.job["stream"])):
            if each.error is None:
                _print_result(each.item.n, each.result)
            else:
                _print({"n": each.item.n, "error": _error(each.error)})

    def calls(self) -> None:
        for call, make in _calls(self.client, self.job).items():
            try:
                _print_call(call, make())
            except PostboteClientError as error:
                _print({"call": call, "error": _error(error)})

    def close_early(self) -> None:
        if "closeMs" in self.job:
            # After the pushes of the other threads have begun.
            time.sleep(0.1)
            self.client.close(timeout_s=self.job["closeMs"] / 1000)


def _main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        if "--sync" in sys.argv:
            _SyncRun(job).run()
        else:
            asyncio.run(_AsyncRun(job).run())
        sys.stdout.flush()


_main()
