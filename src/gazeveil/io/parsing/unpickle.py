"""Pickles from elsewhere, read without running anything they bring.

A pickle can name any function and have it called. This reader knows a fixed list of harmless names
(numbers, texts, containers, NumPy arrays), turns every name of pandas into an inert record of what
it was given, and refuses all others. Nothing of pandas is imported:
:func:`frame_rows` reads the records of a data frame, as old (Python 2) and new pandas write them.
"""

from __future__ import annotations

import builtins
import collections
import io
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from gazeveil.errors import FormatError
from gazeveil.io.source import read_bytes


class Inert:
    """A stand-in for an object of pandas: it keeps its arguments and its
    state, and does nothing.
    """

    name = ""

    def __new__(cls, *args: object, **_: object) -> Inert:
        """Keep the arguments, whatever they are."""
        record = object.__new__(cls)
        record.args = args
        record.state = None
        return record

    args: tuple[object, ...]
    state: object

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        self.state = state


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """What pickles of bytes call in protocol 2, for the one encoding they use."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"the encoding '{encoding}'")
    return text.encode("latin1")


def _rebuild(cls: type, base: type, state: object) -> object:
    """`copyreg._reconstructor` for stand-ins only."""
    if not issubclass(cls, Inert):
        raise pickle.UnpicklingError(f"an object of {cls.__name__}")
    return cls()


def _array(*args: object) -> object:
    """`numpy._reconstruct` for plain arrays only."""
    return np._core.multiarray._reconstruct(np.ndarray, (0,), b"b")  # type: ignore[attr-defined]


def _buffer(
    data: bytes,
    dtype: np.dtype[np.generic],
    shape: tuple[int, ...],
    order: Literal["C", "F"] = "C",
    axes: object = None,
) -> object:
    """`numpy._frombuffer`, which protocol 5 calls, for numbers only."""
    if dtype.hasobject:
        raise pickle.UnpicklingError("objects in a buffer")
    return np.frombuffer(data, dtype=dtype).reshape(shape, order=order)


_BUILTINS = [
    "object",
    "list",
    "dict",
    "set",
    "frozenset",
    "tuple",
    "int",
    "float",
    "complex",
    "bool",
    "str",
    "bytes",
    "bytearray",
    "slice",
    "range",
]
_SCALAR = np._core.multiarray.scalar  # type: ignore[attr-defined]

_ALLOWED: dict[tuple[str, str], object] = {
    **{(m, n): getattr(builtins, n) for m in ("builtins", "__builtin__") for n in _BUILTINS},
    ("__builtin__", "long"): int,
    ("__builtin__", "unicode"): str,
    ("__builtin__", "xrange"): range,
    ("_codecs", "encode"): _encode,
    ("copy_reg", "_reconstructor"): _rebuild,
    ("copyreg", "_reconstructor"): _rebuild,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "bool_"): np.bool_,
    **{(f"numpy.{c}.multiarray", "_reconstruct"): _array for c in ("core", "_core")},
    **{(f"numpy.{c}.numeric", "_frombuffer"): _buffer for c in ("core", "_core")},
    **{(f"numpy.{c}.multiarray", "scalar"): _SCALAR for c in ("core", "_core")},
}


# What a pickle that was cut or overwritten may raise.
_BROKEN = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class _Refused(pickle.UnpicklingError):
    """A name that is not on the list."""


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        allowed = _ALLOWED.get((module, name))
        if allowed is not None:
            return allowed
        if module == "pandas" or module.startswith("pandas."):
            return type("Inert", (Inert,), {"name": f"{module}.{name}"})
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: object) -> object:
        raise _Refused("a persistent object")


def read_pickle(path: Path) -> object:
    """What a pickle holds: plain values, NumPy arrays, and :class:`Inert` records in place of
    pandas objects.

    Raises
    ------
    FormatError
        For a pickle that names anything else, and for one that was cut.
    """
    data = read_bytes(path)
    try:
        return _Reader(io.BytesIO(data), encoding="latin1").load()
    except _Refused as error:
        raise FormatError(
            path,
            f"the pickle asks for '{error}', which could run code, and is refused",
            "Only read files from the publisher; save others as CSV.",
        ) from error
    except _BROKEN as error:
        raise FormatError(
            path,
            "it is not a whole pickle of plain data",
            "Copy it again; it was cut or is of another kind.",
        ) from error


def frame_rows(record: object) -> list[dict[str, object]] | None:
    """The rows of a data frame as dicts of column to value, or None if the record is not one."""
    if not isinstance(record, Inert) or not record.name.endswith("DataFrame"):
        return None
    state = record.state if isinstance(record.state, dict) else {}
    manager = state.get("_mgr", state.get("_data", record.args[0] if record.args else None))
    if not isinstance(manager, Inert):
        return None
    axes, blocks = _manager(manager)
    if axes is None:
        return None
    names = [str(n) for n in axes[0]]
    columns: dict[int, np.ndarray] = {}
    for values, places in blocks:
        if values.ndim == 1:
            values = values[None, :]
        for place, column in zip(places, values, strict=False):
            columns[int(place)] = column
    return [
        {names[i]: c[row] for i, c in sorted(columns.items()) if i < len(names)}
        for row in range(len(axes[1]))
    ]


Blocks = list[tuple[np.ndarray, list[int]]]


def _manager(manager: Inert) -> tuple[tuple[np.ndarray, np.ndarray] | None, Blocks]:
    """Axes and blocks of a block manager, from its state (old pandas) or its arguments (new
    pandas).
    """
    state = manager.state
    if (
        isinstance(state, tuple)
        and len(state) >= 4
        and isinstance(state[3], dict)
        and "0.14.1" in state[3]
    ):
        inner = state[3]["0.14.1"]
        axes = [_labels(a) for a in inner["axes"]]
        blocks = [(np.asarray(b["values"]), _places(b["mgr_locs"])) for b in inner["blocks"]]
    elif (
        len(manager.args) >= 2
        and isinstance(manager.args[0], tuple | list)
        and isinstance(manager.args[1], tuple | list)
    ):
        axes = [_labels(a) for a in manager.args[1]]
        blocks = []
        for block in manager.args[0]:
            if isinstance(block, Inert) and len(block.args) >= 2:
                blocks.append((_labels(block.args[0]), _places(block.args[1])))
    else:
        return None, []
    return ((axes[0], axes[1]) if len(axes) == 2 else None), blocks


def _labels(index: object) -> np.ndarray:
    """The values of an index or an array, however deep pandas wraps them."""
    if isinstance(index, np.ndarray):
        return index
    if isinstance(index, Inert):
        for inner in _parts(index):
            if isinstance(inner, np.ndarray):
                return inner
            if isinstance(inner, dict) and "start" in inner and "stop" in inner:
                return np.arange(int(inner["start"]), int(inner["stop"]), int(inner.get("step", 1)))
            if isinstance(inner, dict) and "data" in inner:
                return _labels(inner["data"])
            if isinstance(inner, Inert) and (labels := _labels(inner)).size:
                return labels
    if isinstance(index, list | tuple):
        array = np.empty(len(index), dtype=object)
        array[:] = list(index)
        return array
    return np.empty(0, dtype=object)


def _parts(record: Inert) -> Iterator[object]:
    for part in (*record.args, record.state):
        if isinstance(part, tuple | list):
            yield from part
        else:
            yield part


def _places(places: object) -> list[int]:
    if isinstance(places, slice):
        return list(range(places.start or 0, places.stop or 0, places.step or 1))
    if isinstance(places, Inert) and places.args:
        return _places(places.args[0])
    return [int(i) for i in np.atleast_1d(np.asarray(places))]


def walk(value: object, wanted: Callable[[dict[str, object]], bool]) -> Iterator[dict[str, object]]:
    """All dicts in a value that are wanted, in the order they stand; the rows of data frames are
    looked through too.
    """
    if isinstance(value, dict):
        record = {str(k): v for k, v in value.items()}
        if wanted(record):
            yield record
        else:
            for inner in value.values():
                yield from walk(inner, wanted)
    elif isinstance(value, list | tuple) or (
        isinstance(value, np.ndarray) and value.dtype == object
    ):
        for inner in value:
            yield from walk(inner, wanted)
    elif isinstance(value, Inert):
        for row in frame_rows(value) or []:
            if wanted(row):
                yield row
                continue
            # A column of runs: what the row says beside it belongs to the run.
            beside = {
                k: v for k, v in row.items() if not isinstance(v, dict | list | np.ndarray | Inert)
            }
            for inner in row.values():
                yield from ({**beside, **run} for run in walk(inner, wanted))
