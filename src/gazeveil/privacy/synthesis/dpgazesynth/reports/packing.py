"""Answers of frequency oracles as bytes: packed by the device, and added up by the curator without
unpacking them.

======== ================================================================================
oracle   one answer
======== ================================================================================
`grr`    one whole number of 1, 2 or 4 bytes
`oue`    one bit per category, lowest bit first, filled up with zeros to whole bytes
`subset` the same, with as many ones as the subset has members
`olh`    whole numbers of 4 bytes
======== ================================================================================

Bits are added up byte by byte: how often each value occurs in each byte says how many ones each
category has.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.privacy.noise.frequency_oracle import FrequencyOracle, Tally
from gazeveil.privacy.noise.local import GRR, OLH, Subset

Bytes = NDArray[np.uint8]

#: An honest OUE answer has a number of ones farther than this many standard deviations from the
#: mean less than once in 10**22 answers.
_DEVIATIONS = 10.0

_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(
    np.int64
)
_COUNT = _ONES.sum(axis=1)

_TILE = 16


def _number(oracle: FrequencyOracle) -> np.dtype[np.unsignedinteger]:
    """The type of one whole number of an answer."""
    if isinstance(oracle, OLH):
        return np.dtype("<u4")
    return np.dtype(
        "u1" if oracle.categories <= 1 << 8 else "<u2" if oracle.categories <= 1 << 16 else "<u4"
    )


def width(oracle: FrequencyOracle) -> int:
    """Bytes of one answer: they depend on the oracle alone."""
    if isinstance(oracle, GRR | OLH):
        return oracle._shape[0] * _number(oracle).itemsize
    return -(-oracle.categories // 8)


def pack(oracle: FrequencyOracle, rows: NDArray[np.generic]) -> Bytes:
    """Answers as bytes, shape (answers, width)."""
    if isinstance(oracle, GRR | OLH):
        return (
            np.ascontiguousarray(rows.astype(_number(oracle)))
            .view(np.uint8)
            .reshape(len(rows), width(oracle))
        )
    if isinstance(oracle, Subset):
        bits = np.zeros((len(rows), oracle.categories), dtype=np.uint8)
        np.put_along_axis(bits, rows.astype(np.int64), np.uint8(1), axis=1)
        rows = bits
    return np.packbits(rows.astype(np.uint8), axis=1, bitorder="little")


@compiled
def _values(packed: NDArray[np.uint8], ones: Ints, often: Ints) -> tuple[int, int]:
    """How often each byte has each value, and the least and the largest number of ones of an
    answer.
    """
    rows, width = packed.shape
    count = np.zeros(rows, dtype=np.int64)
    # A few bytes of all answers at a time: what is counted then stays in the fastest memory.
    for begin in range(0, width, _TILE):
        for row in range(rows):
            for place in range(begin, min(begin + _TILE, width)):
                value = packed[row, place]
                often[place, value] += 1
                count[row] += ones[value]
    return count.min(), count.max()


def tally(oracle: FrequencyOracle, packed: Bytes) -> Tally:
    """Add answers up.

    Raises
    ------
    DataError
        For answers that no honest device sends.
    """
    if packed.ndim != 2 or packed.shape[1] != width(oracle):
        raise DataError(f"an answer has {packed.shape[-1]} bytes where {width(oracle)} are due")
    if len(packed) == 0:
        return Tally(np.zeros(oracle.categories, dtype=np.int64), 0)
    if isinstance(oracle, GRR | OLH):
        rows: Ints = (
            np.ascontiguousarray(packed)
            .view(_number(oracle))
            .reshape(len(packed), -1)
            .astype(np.int64)
        )
        return oracle.tally(rows)
    often = np.zeros((packed.shape[1], 256), dtype=np.int64)
    least, most = _values(np.ascontiguousarray(packed), _COUNT, often)
    supports = (often @ _ONES).ravel()
    if supports[oracle.categories :].any():
        raise DataError("a bit is set beyond the last category")
    if isinstance(oracle, Subset):
        low = high = float(oracle.size)
    else:
        q = float(oracle.q)
        mean = (oracle.categories - 1) * q + 0.5
        deviation = math.sqrt((oracle.categories - 1) * q * (1 - q) + 0.25)
        low, high = mean - _DEVIATIONS * deviation, mean + _DEVIATIONS * deviation
    if least < low or most > high:
        raise DataError("an answer has too few or too many ones to be an honest one")
    return Tally(supports[: oracle.categories], len(packed))
