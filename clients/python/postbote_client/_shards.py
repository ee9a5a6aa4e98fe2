"""The groups of shards as the servers last told them, for all streams of a client.

A worker takes the pairs of its own shards for half of what it costs to take and forward others. Groups are a hint: with
old or wrong ones every pair is stored as ever, and without them a stream has one lane. So whatever is wrong with them
fails no push.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import PostboteClientError, copy_of
from ._http import Server
from ._pushes import Call, parsed_or_none
from ._settings import Retry, Settings

# A stream waits this long for the answer. Chosen: it takes no IO, and without it a stream only costs more.
_WAIT_S = 2.0
# Groups of this age are read again while pairs are sent, so a planned move is followed. Chosen: a move costs speed only.
_AGE_S_MAX = 30.0
# A stream has at most this many lanes with a shard; further groups share them. Chosen: more workers are rare.
_LANES_MAX = 64
# No server has more shards (docs/inside/storage.md).
_SHARDS_MAX = 256

_SHARDS_CALL = Call("GET", "/v1/shards")


class LanePlace(NamedTuple):
    """Where a lane opens its requests."""

    server: Server
    #: The shard that they name, for a worker that has it; None for any worker.
    shard: Optional[int]


class LaneMap(NamedTuple):
    """Which lane of a stream each bot has: one for each group of shards.

    slot = the first 12 bits of SHA-256 of the bot id in decimal; shard = slot mod S (docs/inside/storage.md)
    """

    #: By lane. The first is for the bots whose shard is in no group.
    places: Tuple[LanePlace, ...]
    #: The lane of each shard.
    lanes: Tuple[int, ...]

    def lane_of(self, bot_id: object) -> int:
        """Returns the lane of a bot. Whatever is no bot id is refused by any worker."""
        if len(self.places) == 1 or type(bot_id) is not int:
            return 0
        digest = sha256(b"%d" % bot_id).digest()
        slot = int.from_bytes(digest[:2], "big") >> 4
        return self.lanes[slot % len(self.lanes)]


class NodeGroups(NamedTuple):
    """The shards of one node, in groups, one for each of its workers."""

    server: Server
    #: The number of shards of the whole server: a power of two.
    shards: int
    groups: Sequence[Sequence[int]]


class ShardGroups:
    """The groups of one client. They are read in its event loop."""

    def __init__(
        self,
        server: Server,
        nodes: Sequence[Server],
        settings: Settings,
        on_change: Callable[[], None],
    ) -> None:
        self._server = server
        #: The nodes that the user has named. If there are any, they are asked in place of the server.
        self._nodes = nodes
        self._settings = settings
        self._on_change = on_change
        self._single = lane_map(server, ())
        #: The lanes that streams should have now.
        self.map = self._single
        #: When the groups were last asked for, on the clock of the loop.
        self._asked_s: Optional[float] = None
        #: Whether only a new request may meet a server that tells its groups.
        self._is_without_call = False
        self._asking: Optional[asyncio.Task[Optional[PostboteClientError]]] = None
        self._is_reported = False

    async def refresh(self, since_s: float) -> None:
        """Reads the groups, unless they were asked for since then.

        Raises:
            PostboteClientError: CONNECTION_FAILED, as the request of a stream would.
        """
        while True:
            asking = self._asking
            if asking is None:
                if self._asked_s is not None and self._asked_s >= since_s:
                    return
                asking = self._begin()
            is_enough = self._asked_s is not None and self._asked_s >= since_s
            # Neither ends with the other.
            await asyncio.wait((asking,))
            error = None if asking.cancelled() else asking.result()
            if error is not None:
                raise copy_of(error)
            if is_enough or asking.cancelled():
                return

    def refresh_old(self) -> None:
        """Reads the groups, without a wait for them, if they are old. Called when pairs are sent."""
        if self._asked_s is None or self._asking is not None or self._is_without_call:
            return
        if asyncio.get_running_loop().time() - self._asked_s >= _AGE_S_MAX:
            self._begin()

    def do_without(self) -> None:
        """Goes on with one lane until the groups are read again: a server has refused a request because it names a shard."""
        self._use(self._single)

    async def close(self) -> None:
        """Waits for no answer any more."""
        asking = self._asking
        if asking is not None:
            asking.cancel()
            await asyncio.wait((asking,))
            # A task that is cancelled before its first step never runs.
            self._asking = None

    def _begin(self) -> asyncio.Task[Optional[PostboteClientError]]:
        loop = asyncio.get_running_loop()
        self._asked_s = loop.time()
        self._asking = loop.create_task(self._ask())
        return self._asking

    async def _ask(self) -> Optional[PostboteClientError]:
        try:
            if self._nodes:
                answers = await asyncio.gather(*(_read(node, _WAIT_S) for node in self._nodes))
                # What the nodes without an answer have goes by the first lane, to whichever server that reaches.
                self._use_answers(answers)
                return None
            answer = await _read(self._server, None)
            if isinstance(answer, PostboteClientError) and _is_of_request(answer):
                # A stream is told itself that its key is none.
                return answer if answer.code == "CONNECTION_FAILED" else None
            if isinstance(answer, PostboteClientError) and not _is_without_call(answer):
                self._report_once(answer)
                return None
            self._use_answers([answer])
            return None
        finally:
            self._asking = None

    def _use_answers(self, answers: Sequence[Union[NodeGroups, PostboteClientError]]) -> None:
        found: List[NodeGroups] = []
        for answer in answers:
            if isinstance(answer, PostboteClientError):
                self._report_once(answer)
            elif found and answer.shards != found[0].shards:
                self._report_once(_unusable())
            else:
                found.append(answer)
        self._is_without_call = all(
            isinstance(answer, PostboteClientError) and _is_without_call(answer)
            for answer in answers
        )
        self._use(lane_map(self._server, found))

    def _use(self, lanes: LaneMap) -> None:
        if lanes != self.map:
            self.map = lanes
            self._on_change()

    def _report_once(self, error: PostboteClientError) -> None:
        """So that somebody sees it."""
        if self._is_reported or _is_without_call(error) or _is_of_request(error):
            return
        self._is_reported = True
        self._settings.tell(Retry(error, 1, 0.0, None))


def lane_map(server: Server, nodes: Sequence[NodeGroups]) -> LaneMap:
    """Returns a map with a lane for each group; all nodes name the same number of shards."""
    single = LaneMap((LanePlace(server, None),), (0,))
    groups = [(node.server, group) for node in nodes for group in node.groups]
    # One worker has it all, or all that this node has: the first lane reaches it.
    if not groups or (len(groups) == 1 and groups[0][0] is server):
        return single
    places = list(single.places)
    lanes = [0] * nodes[0].shards
    for nth, (node, group) in enumerate(groups):
        lane = 1 + nth % _LANES_MAX
        if lane == len(places):
            places.append(LanePlace(node, group[0]))
        for shard in group:
            # While a shard moves, two nodes may name it.
            lanes[shard] = lanes[shard] or lane
    return LaneMap(tuple(places), tuple(lanes))


async def _read(
    server: Server, connect_s: Optional[float]
) -> Union[NodeGroups, PostboteClientError]:
    """Asks one server, and returns what it has, or why that is unknown."""
    try:
        answer = parsed_or_none(await server.ask(_SHARDS_CALL, _WAIT_S, connect_s))
    except PostboteClientError as error:
        return error
    # A later version may add fields.
    if isinstance(answer, dict):
        shards, groups, version = (answer.get(name) for name in ("shards", "groups", "version"))
        if _is_shard_count(shards) and type(version) is int and _are_groups(groups, shards):
            return NodeGroups(server, shards, groups)
    return _unusable()


def _is_shard_count(shards: Any) -> bool:
    # True is an int, too.
    return type(shards) is int and 1 <= shards <= _SHARDS_MAX and shards & (shards - 1) == 0


def _are_groups(groups: Any, shards: int) -> bool:
    """Whether they are lists of shards, each shard at most once."""
    if not isinstance(groups, list) or len(groups) > _SHARDS_MAX:
        return False
    if not all(isinstance(group, list) and group for group in groups):
        return False
    named = [shard for group in groups for shard in group]
    are_shards = all(type(shard) is int and 0 <= shard < shards for shard in named)
    return are_shards and len(set(named)) == len(named)


def _unusable() -> PostboteClientError:
    return PostboteClientError(
        "UNEXPECTED_ANSWER", "Expected the shards of the server in groups, got something else"
    )


def _is_without_call(error: PostboteClientError) -> bool:
    """Whether it is an older server, a proxy that knows some paths only, or a key that may not ask."""
    return error.status in (403, 404, 405)


def _is_of_request(error: PostboteClientError) -> bool:
    """Whether a request of a stream would fail for the same reason."""
    return error.code == "CONNECTION_FAILED" or error.status == 401
