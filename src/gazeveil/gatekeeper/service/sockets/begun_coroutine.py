"""Awaiting a coroutine that was begun by hand, as is cheaper where most end at once."""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import Any


@types.coroutine
def resume(begun: Any, waits_for: object) -> Generator[object, Any, Any]:
    """Await a coroutine that has already been begun and waits for something;
    gives what it returns.
    """
    while True:
        try:
            try:
                answer = yield waits_for
            except BaseException as error:
                waits_for = begun.throw(error)
            else:
                waits_for = begun.send(answer)
        except StopIteration as done:
            return done.value
