"""Numba behind a typed name, so that strict type checking still sees the functions it compiles.

A wheel brings the machine code of every kernel, for a plain processor of its kind and, on x86-64,
for one with AVX2 and FMA. What it does not bring is compiled on first call and kept beside the
source (or in the user's cache folder where that is read-only), so only the first run pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from llvmlite.binding import get_host_cpu_features
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

from gazeveil.compile_notice import listen

P = ParamSpec("P")
R = TypeVar("R")

#: Folder of the machine code of a wheel: a folder for each processor, in it the folders of modules.
KERNELS = Path(__file__).parent / "kernels"

#: Processors that a wheel has machine code for, best first -> what a processor must have to run it.
PROCESSORS = {
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64": (),
    "generic": (),
}

listen()


@cache
def processor() -> str | None:
    """The best processor that the wheel has machine code for and that this one can stand for."""
    has = get_host_cpu_features()
    fitting = (name for name, needed in PROCESSORS.items() if all(map(has.get, needed)))
    return next((name for name in fitting if (KERNELS / name).is_dir()), None)


def _held(function: Callable[..., Any], seen: set[object]) -> Iterator[bytes]:
    """What the machine code of a kernel is made of: its source, constants, kernels it calls, and
    the fields of named tuples it takes, which numba knows by their number alone.
    """
    seen.add(function)
    yield Path(function.__code__.co_filename).read_bytes()
    for name in (*function.__code__.co_names, *function.__annotations__.values()):
        value = function.__globals__.get(name)
        value = getattr(value, "_fields", None) if isinstance(value, type) else value
        called = getattr(value, "py_func", None)
        if called is not None and called not in seen:
            yield from _held(called, seen)
        elif isinstance(value, int | float | tuple | np.ndarray | np.generic):
            yield value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()


@cache
def _stamp(function: Callable[..., Any]) -> str:
    """Changes with all that a kernel is made of. Numba's own stamp is of the kernel's file alone:
    a mend in another file would wait until this one is edited.
    """
    return sha256(b"\0".join(_held(function, set()))).hexdigest()


class KernelCache(FunctionCache):
    """Numba's cache of one function, and before it the machine code that the wheel brings.

    Numba names machine code by the processor it was compiled for. What a wheel brings was compiled
    for another name than this processor's, and is asked for under that name: no setting of numba is
    changed, and what the wheel lacks is compiled for this processor.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        cast("Any", super()).__init__(function)
        self._brought: Any = None
        self._function = function
        source = Path(function.__code__.co_filename)
        if (name := processor()) is not None and source.is_relative_to(KERNELS.parent):
            self._brought = cast("Any", IndexDataCacheFile)(
                str(KERNELS / name / source.parent.relative_to(KERNELS.parent)),
                self._impl.filename_base,
                self._impl.locator.get_source_stamp(),
            )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code for these types, or None.

        Numba first learns all that it can compile, which takes a third of the time of a short
        command. What is compiled needs the runtime alone, and the compiler learns the rest itself.
        """
        cast("Any", rtsys).initialize(target_context)
        # Not before: a kernel may call one that stands below it.
        for file in filter(None, (cast("Any", self)._cache_file, self._brought)):
            file._source_stamp = _stamp(self._function)
        with cast("Any", self)._guard_against_spurious_io_errors():
            if self._brought is not None:
                _, machine, hashes = cast("Any", self)._index_key(sig, target_context.codegen())
                found = self._brought.load((sig, (machine[0], processor(), ""), hashes))
                if found is not None:
                    return self._impl.rebuild(target_context, found)
            try:
                return cast("Any", self)._load_overload(sig, target_context)
            except (ImportError, AttributeError):
                # An earlier version kept code that names a module which has moved since.
                cast("Any", self)._cache_file.flush()
        return None

    def is_kept(self) -> bool:
        """Whether there is machine code of the function, for some types of arguments."""
        return any(
            Path(file._index_path).is_file()
            for file in (cast("Any", self)._cache_file, self._brought)
            if file is not None
        )


def _kernel(function: Callable[P, R], **choices: Any) -> Callable[P, R]:
    made: Any = numba.njit(function, nogil=True, error_model="numpy", **choices)
    if hasattr(made, "stats"):  # numba may be switched off
        made._cache = KernelCache(function)
    return cast("Callable[P, R]", made)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first call: no Python objects inside, the GIL released, the machine
    code cached.
    """
    return _kernel(function)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`compiled`, and always compiled into its caller: for the parts of a loop over
    samples, which hand many numbers on.
    """
    return _kernel(function, forceinline=True)


def fused(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`compiled`, and a product that is added to something may be rounded once instead of
    twice; for code that bounds its own errors.
    """
    return _kernel(function, fastmath={"contract"})


def fused_inlined(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`fused`, and always compiled into its caller."""
    return _kernel(function, fastmath={"contract"}, forceinline=True)


def is_kept(function: Callable[..., Any]) -> bool:
    """Whether machine code of a compiled function came with the wheel or was kept by a run before
    or by this one. Other types may still have to be compiled.
    """
    kept = getattr(function, "_cache", None)
    return kept is None or kept.is_kept()  # without one, numba is switched off
