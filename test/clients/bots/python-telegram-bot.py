"""
python-telegram-bot, before 20 (threads, Updater) and since 20 (asyncio, Application). bot-program.ts describes the input
and output of a bot program.

The receiver of the framework sets the webhook before it listens, so a server that verifies the webhook by connecting to
it would fail. As in the framework's documentation, a reverse proxy is in front; here it is start_proxy.
"""
import asyncio
import json
import os
import socket
import sys
import threading
import time

import telegram
import telegram.ext
from telegram.error import RetryAfter

TASK = json.loads(os.environ["BOT_TASK"])
TOKEN, SECRET, UPLOAD = TASK["token"], TASK["secret"], TASK.get("upload")
BASE_URL = TASK["apiRoot"] + "/bot"
BASE_FILE_URL = TASK["apiRoot"] + "/file/bot"
POLLED = {"allowed_updates": TASK["allowedUpdates"]} if "allowedUpdates" in TASK else {}
IS_OLD = int(telegram.__version__.split(".")[0]) < 20
told_to_stop = threading.Event()


def tell(**line):
    # One write per line, because another thread may print before print() has written the line break.
    os.write(1, (json.dumps(line) + "\n").encode())


def give_up(error):
    tell(failed=str(error))
    os._exit(1)


def start_proxy(port):
    """Forwards connections to the port, and accepts them before a server listens there."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source, target):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    def accept():
        while True:
            client, _ = listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", port))
            except OSError:
                client.close()
                continue
            for ends in ((client, server), (server, client)):
                threading.Thread(target=copy, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return "http://127.0.0.1:%d/updates" % listener.getsockname()[1]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_old():
    updater = telegram.ext.Updater(TOKEN, base_url=BASE_URL, base_file_url=BASE_FILE_URL)

    def on_message(update, context):
        tell(text=update.message.text)
        if update.message.text == "send me the file":
            update.message.reply_text("here it is")
            tell(file=context.bot.get_file("FILE").download_as_bytearray().decode())
        if update.message.text == TASK.get("holdsAt"):
            told_to_stop.wait()

    updater.dispatcher.add_handler(telegram.ext.MessageHandler(telegram.ext.Filters.text, on_message))
    if TASK["mode"] == "polling":
        updater.start_polling(**POLLED)
    elif UPLOAD is None:
        port = free_port()
        url = start_proxy(port)
        updater.start_webhook(listen="127.0.0.1", port=port, url_path="updates", webhook_url=url)
        # start_webhook has no parameter for a secret, and the server sets a bot's webhook at most once a second.
        while True:
            try:
                updater.bot.set_webhook(url, secret_token=SECRET)
                break
            except RetryAfter as error:
                time.sleep(error.retry_after)
    else:
        with open(UPLOAD["certificate"], "rb") as certificate:
            updater.bot.set_webhook(UPLOAD["url"], certificate=certificate)
    tell(ready=True)
    told_to_stop.wait()
    if TASK["mode"] == "webhook":
        tell(webhook=updater.bot.get_webhook_info().to_dict())
        updater.bot.delete_webhook()
    updater.stop()


async def run_new():
    builder = telegram.ext.Application.builder().token(TOKEN)
    application = builder.base_url(BASE_URL).base_file_url(BASE_FILE_URL).build()

    async def on_message(update, context):
        tell(text=update.message.text)
        if update.message.text == "send me the file":
            await update.message.reply_text("here it is")
            file = await context.bot.get_file("FILE")
            tell(file=(await file.download_as_bytearray()).decode())
        if update.message.text == TASK.get("holdsAt"):
            await asyncio.to_thread(told_to_stop.wait)

    application.add_handler(telegram.ext.MessageHandler(telegram.ext.filters.TEXT, on_message))
    async with application:
        await application.start()
        if TASK["mode"] == "polling":
            await application.updater.start_polling(**POLLED)
        elif UPLOAD is None:
            port = free_port()
            url = start_proxy(port)
            at = {"listen": "127.0.0.1", "port": port, "url_path": "updates"}
            await application.updater.start_webhook(**at, webhook_url=url, secret_token=SECRET)
        else:
            with open(UPLOAD["certificate"], "rb") as certificate:
                await application.bot.set_webhook(UPLOAD["url"], certificate=certificate)
        tell(ready=True)
        await asyncio.to_thread(told_to_stop.wait)
        if TASK["mode"] == "webhook":
            tell(webhook=(await application.bot.get_webhook_info()).to_dict())
            await application.bot.delete_webhook()
        if application.updater.running:
            await application.updater.stop()
        await application.stop()


def wait_for_end_of_input():
    sys.stdin.read()
    told_to_stop.set()


threading.Thread(target=wait_for_end_of_input, daemon=True).start()
try:
    run_old() if IS_OLD else asyncio.run(run_new())
except Exception as error:
    give_up(error)
