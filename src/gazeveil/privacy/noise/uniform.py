"""Uniform choices from random words: whole numbers without modulo bias, shuffles, and a float generator for what needs no proof."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil.checks import refuse
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.exact import _below
from gazeveil.privacy.noise.rng import Source, WordArray, Words


@compiled
def _choose(limits: WordArray, out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
    while done < len(out):
        value, after = _below(limits[done], words, position)
        if after < 0:
            return done, position
        out[done] = np.int64(value)
        done += 1
        position = after
    return done, position


class _ChoiceKernel:
    def __init__(self, limits: WordArray) -> None:
        self.limits = limits

    def __call__(self, out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
        return _choose(self.limits, out, done, words, position)


def uniform_below(limits: ArrayLike, words: Words) -> NDArray[np.int64]:
    """For each limit m a whole number, uniform on 0, ..., m - 1, exactly.

    Parameters
    ----------
    limits : array of int, shape (n,)
        Each at least 1.
    words : Words
        Random bits.
    """
    given = np.asarray(limits, dtype=np.int64)
    if len(given) and given.min() < 1:
        refuse("uniform_below", "limits", "whole numbers of at least 1", int(given.min()))
    return words.run(_ChoiceKernel(given.astype(np.uint64)), len(given), 1)


def shuffled(count: int, words: Words) -> NDArray[np.int64]:
    """The numbers 0, ..., count - 1 in uniformly random order (Fisher and Yates)."""
    order = np.arange(count, dtype=np.int64)
    for place, pick in enumerate(uniform_below(np.arange(count, 0, -1), words).tolist()):
        order[place], order[place + pick] = order[place + pick], order[place]
    return order


def generator(source: Source) -> np.random.Generator:
    """A numpy generator keyed from a source, for sampling from what is already released and for `published` float noise.

    Its floats have holes (Mironov 2012): no proof may rest on them.
    """
    return np.random.Generator(np.random.Philox(key=source.take(2)))
