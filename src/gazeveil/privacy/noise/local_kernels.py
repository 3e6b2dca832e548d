"""Compiled parts of the frequency oracles: bits with an exact probability, random subsets, and the
counting of hashes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.randomness.rng import WordArray
from gazeveil.privacy.randomness.uniform import draw_below


@compiled
def _unary(
    truth: Ints,
    top: np.uint64,
    bottom: np.uint64,
    room: NDArray[np.uint8],
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    """Rows of bits: 1 with probability top / bottom, and one half at the true category, byte by
    byte of the binary expansion.
    """
    eight, byte = np.uint64(8), np.uint64(255)
    first, left = (top << eight) // bottom, (top << eight) % bottom
    while done < len(truth):
        after, held, word = position, 0, np.uint64(0)
        true = truth[done]
        for i in range(room.shape[1]):
            limit, rest = (np.uint64(128), np.uint64(0)) if i == true else (first, left)
            while True:
                if held == 0:
                    if after >= len(words):
                        return done, position
                    word, held = words[after], 8
                    after += 1
                drawn = word & byte
                word >>= eight
                held -= 1
                if drawn != limit or rest == np.uint64(0):
                    break
                # a tie: the next byte is compared with the next digit of the probability
                limit, rest = (rest << eight) // bottom, (rest << eight) % bottom
            room[done, i] = np.uint8(drawn < limit)
        done += 1
        position = after
    return done, position


class UnaryKernel:
    """Rows of bits: 1 with probability top / bottom, fair at the true category. Written into
    `room`, one value of the run per row.
    """

    def __init__(self, truth: Ints, top: int, bottom: int, room: NDArray[np.uint8]) -> None:
        self.truth, self.top, self.bottom, self.room = (
            truth,
            np.uint64(top),
            np.uint64(bottom),
            room,
        )

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        """See :data:`gazeveil.privacy.randomness.rng.Kernel`."""
        return _unary(self.truth, self.top, self.bottom, self.room, done, words, position)


@compiled
def _subsets(
    truth: Ints,
    top: np.uint64,
    bottom: np.uint64,
    categories: int,
    size: int,
    marks: Ints,
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    """Subsets by Floyd's method: the others are drawn from the d - 1 categories without the truth.
    `marks` says who is in which row.
    """
    while done < len(out):
        row = done // size
        true = truth[row]
        drawn, after = draw_below(bottom, words, position)
        if after < 0:
            return done, position
        filled = 0
        if drawn < top:
            out[done] = true
            filled = 1
        wanted = size - filled
        for j in range(categories - 1 - wanted, categories - 1):
            drawn, after = draw_below(np.uint64(j + 1), words, after)
            if after < 0:
                marks[:] = -1  # the row is drawn again from its beginning
                return done, position
            pick = np.int64(drawn)
            if marks[pick] == row:
                pick = np.int64(j)
            marks[pick] = row
            out[done + filled] = pick + (1 if pick >= true else 0)
            filled += 1
        done += size
        position = after
    return done, position


class SubsetKernel:
    """Rows of `size` categories, the true one among them with probability top / bottom."""

    def __init__(self, truth: Ints, top: int, bottom: int, categories: int, size: int) -> None:
        self.arguments = (
            truth,
            np.uint64(top),
            np.uint64(bottom),
            categories,
            size,
            np.full(categories, -1, dtype=np.int64),
        )

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        """See :data:`gazeveil.privacy.randomness.rng.Kernel`."""
        return _subsets(*self.arguments, out, done, words, position)


@compiled
def hash_supports(reports: Ints, written: Ints, field: int) -> Ints:
    """How many reports (coefficients, hashed value) support each category, given in digits."""
    supports = np.zeros(len(written), dtype=np.int64)
    digits = written.shape[1]
    for r in range(len(reports)):
        for v in range(len(written)):
            total = 0
            for i in range(digits):
                total += reports[r, i] * written[v, i]
            supports[v] += total % field == reports[r, digits]
    return supports
