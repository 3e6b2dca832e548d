"""Uniform choices from random words: whole numbers without modulo bias, shuffles, and a float
generator for what needs no proof.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.arrays import Ints
from gazeveil.checks import refuse
from gazeveil.compiled import compiled
from gazeveil.privacy.randomness.rng import Source, WordArray, Words


@compiled
def high_word(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper 64 bits of the product."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half)


@compiled
def draw_below(m: np.uint64, words: WordArray, position: int) -> tuple[np.uint64, int]:
    """A uniform integer in [0, m) and the position after it; position -1 when the words ran out."""
    while True:
        if position >= len(words):
            return np.uint64(0), -1
        word = words[position]
        position += 1
        low = word * m
        # only where low < m can the word be one of the 2**64 mod m that make the blocks unequal
        if low >= m or low >= (np.uint64(0) - m) % m:
            return high_word(word, m), position


@compiled
def _choose(
    limits: WordArray, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    while done < len(out):
        value, after = draw_below(limits[done], words, position)
        if after < 0:
            return done, position
        out[done] = np.int64(value)
        done += 1
        position = after
    return done, position


def uniform_below(limits: ArrayLike, words: Words) -> Ints:
    """For each limit m a whole number, uniform on 0, ..., m - 1, exactly.

    Parameters
    ----------
    limits : array of int, shape (n,)
        Each at least 1.
    words : Words
        Random bits.
    """
    whole = np.asarray(limits, dtype=np.int64)
    if len(whole) and whole.min() < 1:
        refuse("uniform_below", "limits", "whole numbers of at least 1", int(whole.min()))
    return words.run(partial(_choose, whole.astype(np.uint64)), len(whole), 1)


def shuffled(count: int, words: Words) -> Ints:
    """The numbers 0, ..., count - 1 in uniformly random order (Fisher and Yates)."""
    order = np.arange(count, dtype=np.int64)
    for place, pick in enumerate(uniform_below(np.arange(count, 0, -1), words).tolist()):
        order[place], order[place + pick] = order[place + pick], order[place]
    return order


def generator(source: Source) -> np.random.Generator:
    """A numpy generator keyed from a source, for sampling from what is already released and for
    `published` float noise.

    Its floats have holes (Mironov 2012): no proof may rest on them.
    """
    return np.random.Generator(np.random.Philox(key=source.take(2)))
