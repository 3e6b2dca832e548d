"""Numba behind a typed name, so that strict type checking still sees the functions it compiles.

Compiled code is cached beside the source (or in the user's cache folder where that is read-only),
so only the first run pays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

from gazeveil.compile_notice import listen

P = ParamSpec("P")
R = TypeVar("R")

listen()


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first call: no Python objects inside, the GIL released, the machine
    code cached.
    """
    return cast("Callable[P, R]", numba.njit(function, cache=True, nogil=True, error_model="numpy"))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`compiled`, and always compiled into its caller: for the parts of a loop over
    samples, which hand many numbers on.
    """
    return cast(
        "Callable[P, R]",
        numba.njit(function, cache=True, nogil=True, error_model="numpy", forceinline=True),
    )


def fused(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`compiled`, and a product that is added to something may be rounded once instead of
    twice; for code that bounds its own errors.
    """
    return cast(
        "Callable[P, R]",
        numba.njit(function, cache=True, nogil=True, error_model="numpy", fastmath={"contract"}),
    )


def fused_inlined(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`fused`, and always compiled into its caller."""
    return cast(
        "Callable[P, R]",
        numba.njit(
            function,
            cache=True,
            nogil=True,
            error_model="numpy",
            fastmath={"contract"},
            forceinline=True,
        ),
    )


def is_kept(function: Callable[..., Any]) -> bool:
    """Whether machine code of a compiled function was kept by an earlier run, or this one. Other
    types of arguments may still have to be compiled.
    """
    if not hasattr(function, "stats"):
        return True  # numba is switched off, and nothing is ever compiled
    kept = Path(cast("Any", function).stats.cache_path)
    plain = cast("Any", function).py_func
    # The names that numba gives its files: a function that moved within its file has others.
    name = plain.__qualname__.replace("<", "").replace(">", "")
    source, line = Path(plain.__code__.co_filename).stem, plain.__code__.co_firstlineno
    return any(kept.glob(f"{source}.{name}-{line}.*.nbi"))
