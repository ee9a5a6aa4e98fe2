"""Random idempotency keys."""

import os
from collections import deque
from typing import Deque

# Random numbers are read for this many keys at a time. Each read releases the lock of the interpreter, and a thread that
# pushes would wait for it each time as long as the rest of the push takes.
_KEYS_AT_A_TIME = 256
_KEY_BYTES = 16

_keys: Deque[str] = deque()

# A child that goes on with the keys of its parent would lose updates, as duplicates of those of the parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keys.clear)


def new_key() -> str:
    """Returns a key that nobody else has. Threads may call this at the same time."""
    try:
        return _keys.popleft()
    except IndexError:
        digits = 2 * _KEY_BYTES
        text = os.urandom(_KEYS_AT_A_TIME * _KEY_BYTES).hex()
        first, *others = (text[at : at + digits] for at in range(0, len(text), digits))
        _keys.extend(others)
        return first
