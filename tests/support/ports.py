"""Ports of this machine for what a test starts.

A port that the system gave out and that was closed again may be given to another test before the
first one uses it: a service takes seconds to start. So ports come from below those that the system
gives out by itself, and each process of the tests goes through them from a place of its own.
"""

from __future__ import annotations

import itertools
import os
import socket

_FIRST, _COUNT = 20_000, 12_000  # Linux gives out 32768 and above
_APART = 97  # processes that were started one after the other are so many ports apart

_NUMBERS = itertools.count(os.getpid() * _APART)


def free_port() -> int:
    """A port nobody uses now, and no other test is given."""
    for number in itertools.islice(_NUMBERS, _COUNT):
        port = _FIRST + number % _COUNT
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError(f"no port from {_FIRST} to {_FIRST + _COUNT - 1} is free")
