"""Short names of array types, so that signatures fit on a line; read-only arrays."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Texts: TypeAlias = NDArray[np.str_]
Codes: TypeAlias = NDArray[np.int8]

Array = TypeVar("Array", bound=NDArray[np.generic])


def frozen(array: Array) -> Array:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array


def own_floats(values: ArrayLike) -> Floats:
    """Return values without a writable alias: a copy, or the array itself where it is frozen and
    has memory of its own or of another frozen array. Large arrays are handed on frozen so that they
    are not there twice.
    """
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        owner = values if values.base is None else values.base
        # What lies behind a buffer or a mapped file may change although no array can write to it.
        owned = isinstance(owner, np.ndarray) and owner.base is None and not owner.flags.writeable
        if owned and not values.flags.writeable:
            return values
    return np.array(values, dtype=np.float64)
