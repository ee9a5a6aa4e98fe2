"""The client for producers of Postbote, for asyncio and for threads. README.md and docs/use/client.md explain its rules."""

from ._client import AsyncPostboteClient, BotState, IssuedToken
from ._errors import PostboteClientError
from ._push_all import PushAllResult, PushItem
from ._pushes import PushResult
from ._settings import Retry
from ._stream import AsyncPushStream
from ._sync import PostboteClient, PushStream
from ._verify import verify_webhook

__all__ = [
    "AsyncPostboteClient",
    "AsyncPushStream",
    "BotState",
    "IssuedToken",
    "PostboteClient",
    "PostboteClientError",
    "PushAllResult",
    "PushItem",
    "PushResult",
    "PushStream",
    "Retry",
    "verify_webhook",
]
