"""Alias tables in whole numbers: a law on a few thousand outcomes, drawn with one word.

A table (Walker 1977, Vose 1991) shares 2**63 equal slots: outcome x owns the whole part of
p(x) 2**63, and one word picks the slot. The few slots nobody owns are the outcome "escape", drawn
about once in 2**50 values: there the outcome is chosen among the fractions of slots with 1,200
further bits, on Python's integers. So the table is fast and every probability is right to 2**-1200.
Proof: proofs/noise-table.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.randomness.rng import WordArray
from gazeveil.privacy.randomness.uniform import draw_below

#: Bits of a word that pick a slot where the word's lowest bit is a sign and nothing else is needed.
WHOLE_WORD = 63

#: Weights of the outcomes 0, 1, ... in units of 2**-bits, each right to 2**64 units, with a sum of
#: at least 2**bits.
Law: TypeAlias = Callable[[int], Sequence[int]]

_TABLE_BITS = 256
_ESCAPE_WORDS = 19
_ESCAPE_BITS = 64 * _ESCAPE_WORDS


@compiled
def _pair_up(weights: WordArray, capacity: np.uint64, keep: WordArray, alias: Ints) -> None:
    """Vose's pairing on whole numbers: column i keeps `keep[i]` of its slots and gives the others
    to `alias[i]`.
    """
    n = len(weights)
    small, large = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    smalls, larges = 0, 0
    for i in range(n):
        if weights[i] < capacity:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0:
        # The weights sum to n capacities, so a column that lacks slots always finds one that has
        # too many.
        i, j = small[smalls - 1], large[larges - 1]
        smalls -= 1
        keep[i], alias[i] = weights[i], j
        weights[j] -= capacity - weights[i]
        if weights[j] < capacity:
            larges -= 1
            small[smalls] = j
            smalls += 1
    for k in range(larges):
        keep[large[k]], alias[large[k]] = capacity, large[k]


@dataclass(frozen=True, eq=False)
class AliasTable:
    """One law on the outcomes 0, 1, ...

    Parameters
    ----------
    law : callable
        The law to any number of bits, for escapes.
    owned : list of int
        Slots of each outcome; later outcomes own none.
    bits : int
        There are 2**bits columns of 2**(slot_bits - bits) slots.
    keep, alias : arrays, shape (2**bits,)
        Column i is outcome i in its first `keep[i]` slots, `alias[i]` in the others; outcome
        `len(owned)` is "escape".
    slot_bits : int
        There are 2**slot_bits slots.
    """

    law: Law
    owned: list[int]
    bits: int
    keep: WordArray
    alias: Ints
    slot_bits: int = WHOLE_WORD

    @property
    def escapes(self) -> int:
        """Slots nobody owns."""
        return (1 << self.slot_bits) - sum(self.owned)

    def look_up(self, words: WordArray, position: int) -> tuple[int, int, int]:
        """An outcome, a fair bit and the position after them, escapes included; position -1 when
        the words ran out.
        """
        x, bit, position = look_up(
            self.slot_bits - self.bits, self.keep, self.alias, words, position
        )
        if position >= 0 and x == len(self.owned):
            x, position = self.escape(words, position)
        return int(x), int(bit), position

    def escape(self, words: WordArray, position: int) -> tuple[int, int]:
        """The outcome of a slot that nobody owns, x in proportion to what p(x) 2**slot_bits exceeds
        the slots of x, and the position after it; position -1 when the words ran out.
        """
        slot, position = draw_below(np.uint64(self.escapes), words, position)
        if position < 0 or position + _ESCAPE_WORDS > len(words):
            return 0, -1
        place = int.from_bytes(
            words[position : position + _ESCAPE_WORDS].astype(">u8").tobytes(), "big"
        ) + (int(slot) << _ESCAPE_BITS)
        weights = self.law(_ESCAPE_BITS + 80)
        total, before = sum(weights), 0
        for x, weight in enumerate(weights):
            slots = self.owned[x] if x < len(self.owned) else 0
            before += max(
                0, (weight << (self.slot_bits + _ESCAPE_BITS)) // total - (slots << _ESCAPE_BITS)
            )
            if before > place:
                return x, position + _ESCAPE_WORDS
        return 0, position + _ESCAPE_WORDS


def alias_table(law: Law, slot_bits: int = WHOLE_WORD) -> AliasTable:
    """The table of a law, with 2**slot_bits slots."""
    weights = law(_TABLE_BITS)
    total = sum(weights)
    # Less 2**-100 of a slot, far more than the weights' error: no outcome is given more than it
    # has.
    owned = [max(0, ((w << (slot_bits + 100)) // total - 1) >> 100) for w in weights]
    while owned[-1] == 0:
        owned.pop()
    bits = len(owned).bit_length()
    slots = np.zeros(1 << bits, dtype=np.uint64)
    slots[: len(owned)] = owned
    slots[len(owned)] = (1 << slot_bits) - sum(owned)
    keep, alias = np.empty_like(slots), np.empty(len(slots), dtype=np.int64)
    _pair_up(slots, np.uint64(1 << (slot_bits - bits)), keep, alias)
    return AliasTable(law, owned, bits, keep, alias, slot_bits)


@compiled
def look_up(
    shift: int, keep: WordArray, alias: Ints, words: WordArray, position: int
) -> tuple[int, np.uint64, int]:
    """An outcome of a table (or "escape"), a fair bit and the position after them; position -1 when
    the words ran out.
    """
    if position >= len(words):
        return 0, np.uint64(0), -1
    slot = words[position] >> np.uint64(1)
    x = np.int64(slot >> np.uint64(shift))
    if slot & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1)) >= keep[x]:
        x = alias[x]
    return int(x), words[position] & np.uint64(1), position + 1
