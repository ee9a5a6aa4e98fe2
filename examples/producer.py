#!/usr/bin/env python3
"""
Pushes messages with nothing but the standard library of Python: "hello" with a single call, and then each line of its
input over one stream. It prints the result of each push.

    ./scripts/example producer.py [token] < lines.txt

If a push fails and may succeed later, it is sent again with the same idempotency key, so that it is stored only once. The
exit code is 1 if the server has refused an update.
"""
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import uuid
from collections import deque
from urllib.parse import urlsplit

if "ADMIN_KEY" not in os.environ or "BOT_TOKEN" not in os.environ:
    sys.exit("producer: expected ADMIN_KEY and BOT_TOKEN in the environment")
SERVER = urlsplit(os.environ.get("ADMIN_URL", "http://127.0.0.1:8082"))
HEADERS = {"Authorization": "Bearer " + os.environ["ADMIN_KEY"].strip()}
BOT_ID = os.environ["BOT_TOKEN"].split(":")[0]
if not BOT_ID.isdecimal():
    sys.exit("producer: expected BOT_TOKEN to begin with the id of the bot")
ATTEMPTS = 10
TIMEOUT_S = 30
# The codes of a pair that may succeed if it is sent again (docs/use/protocol.md, section 9.3).
PASSING = {"STORE_UNAVAILABLE", "OUTCOME_UNKNOWN", "INTERNAL"}


def message(text):
    chat = {"id": 1, "type": "private", "first_name": "Ada"}
    sender = {"id": 1, "is_bot": False, "first_name": "Ada"}
    return {"message": {"message_id": 1, "date": int(time.time()), "chat": chat, "from": sender, "text": text}}


def connect():
    kind = http.client.HTTPSConnection if SERVER.scheme == "https" else http.client.HTTPConnection
    return kind(SERVER.hostname, SERVER.port, timeout=TIMEOUT_S)


class TryLaterError(Exception):
    """The server has refused a request that may succeed later, after `retry_after` seconds if it says so."""

    def __init__(self, text, retry_after):
        super().__init__(text)
        self.retry_after = retry_after


# What may be solved by another attempt.
FAILURES = (TryLaterError, OSError, http.client.HTTPException)


def check(response):
    """Returns if the server has accepted the request. Ends the program if another attempt would not help."""
    if response.status == 200:
        return
    text = response.read().decode()
    # 507 means that the queue or the disk is full. It takes longer than a retry until that changes.
    if response.status in (408, 429) or (response.status >= 500 and response.status != 507):
        raise TryLaterError(text, response.headers.get("Retry-After"))
    sys.exit(f"producer: the server refused the request: {text}")


def wait(attempt, reason):
    """Waits before the next attempt: as long as the server says, or a random time that grows."""
    retry_after = getattr(reason, "retry_after", None)
    if attempt >= ATTEMPTS:
        sys.exit(f"producer: gave up after {attempt} attempts: {reason}")
    delay_s = float(retry_after or random.uniform(0, min(10, 0.1 * 2**attempt)))
    print(f"{reason}: next attempt in {delay_s:.1f} s", file=sys.stderr)
    time.sleep(delay_s)


def push(update):
    """Pushes one update and returns the result."""
    headers = {**HEADERS, "Idempotency-Key": str(uuid.uuid4())}
    for attempt in range(1, ATTEMPTS + 1):
        connection = connect()
        try:
            connection.request("POST", f"{SERVER.path}/v1/bots/{BOT_ID}/updates", json.dumps(update), headers)
            response = connection.getresponse()
            check(response)
            return json.loads(response.read())
        except FAILURES as error:
            # The push may have been stored. The next attempt has the same key.
            wait(attempt, error)
        finally:
            connection.close()


def push_all(updates):
    """Pushes updates over streams and yields each update with its result."""
    left = deque((str(uuid.uuid4()), update) for update in updates)
    attempt = 0
    while left:
        refused = []
        reason = "the stream ended early"
        try:
            for result in stream(list(left)):
                pair = left.popleft()
                code = result.get("error", {}).get("code")
                if code in PASSING:
                    refused.append(pair)
                    reason = code
                else:
                    attempt = 0
                    yield pair[1], result
        except FAILURES as error:
            reason = error
        # Pairs without a result are sent again in a new stream, with the same keys.
        left.extendleft(reversed(refused))
        if left:
            attempt += 1
            wait(attempt, reason)


def stream(pairs):
    """Sends pairs over one stream and yields their results in the same order, while it sends."""
    connection = connect()
    try:
        connection.connect()
        connection.putrequest("POST", f"{SERVER.path}/v1/updates")
        for name, value in {**HEADERS, "Transfer-Encoding": "chunked"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        # The server reads on only while the results are read, so one thread sends and this one reads.
        threading.Thread(target=send, args=(connection.sock, pairs), daemon=True).start()
        response = connection.getresponse()
        check(response)
        for line in response:
            if line.endswith(b"\n"):
                yield json.loads(line)
    finally:
        connection.close()


def send(socket, pairs):
    try:
        for key, update in pairs:
            header = {"bot_id": int(BOT_ID), "idempotency_key": key}
            chunk = f"{json.dumps(header)}\n{json.dumps(update)}\n".encode()
            socket.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        socket.sendall(b"0\r\n\r\n")
    except OSError:
        pass  # The thread that reads notices it, too.


# Ctrl-C ends the program without a stack trace.
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("hello:", json.dumps(push(message("hello"))))
refusals = 0
for pushed, outcome in push_all(message(line.rstrip("\n")) for line in sys.stdin):
    print(f"{pushed['message']['text']}: {json.dumps(outcome)}")
    refusals += "error" in outcome
if refusals > 0:
    sys.exit(f"producer: the server has refused {refusals} updates")
