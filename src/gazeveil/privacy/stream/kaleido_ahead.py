"""Records of words for Kaleido: in long blocks one thread makes noise of scale 1 while another decides what is released.

A record is a fixed number of words (:func:`gazeveil.privacy.stream.kaleido_step.words_of_record`). Records are used in the order in which
the source gives them, so who made them and when changes nothing that is released. Words and what was made of them are overwritten with
zeros when they are used; words that are left over stay for the next block, as in :class:`gazeveil.privacy.noise.rng.Words`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.privacy.noise.rng import WordArray, Words, _process
from gazeveil.privacy.stream import kaleido_step as step

Numbers: TypeAlias = NDArray[np.float64]

#: `work(done, words, position, ahead, made) -> (done, position)`; `made` records of the words have their numbers in `ahead`.
Work: TypeAlias = Callable[[int, WordArray, int, Numbers, int], tuple[int, int]]

#: Records made at a time, and slots from which on a second thread is worth its start.
CHUNK, MANY = 8192, 16384

_FEW_WORDS, _MOST_WORDS, _AHEAD = 256, 1 << 16, 32
_NO_WORDS = np.empty(0, dtype=np.uint64)


class Records(Words):
    """Words in records, and the numbers made of them."""

    def serve(self, work: Work, count: int, whole: NDArray[np.int64], real: Numbers) -> None:
        """Run `work` until `count` samples are done."""
        if self._process != _process():
            self._renew(_NO_WORDS if self.source.secure else self._left)
        with self._lock:
            words, self._left = self._left, _NO_WORDS  # if the source fails, half-used words are not used again
            per, skip = step.words_of_record(whole), int(whole[step.SKIP])
            ahead = np.empty((_AHEAD, step.NUMBERS))
            if count // skip >= MANY:
                done, words, position = self._in_two_threads(work, count, whole, real, words, per, skip)
            else:
                done, position = work(0, words, 0, ahead, 0)
            while done < count:
                wanted = min(max(((count - done) // skip + 1) * per, _FEW_WORDS), _MOST_WORDS)
                words, position = _joined(words, position, self.source.take(wanted)), 0
                done, position = work(done, words, 0, ahead, 0)
            words[:position] = 0  # used bits must not linger in memory
            ahead[...] = 0
            self._left = words[position:]

    def _in_two_threads(
        self, work: Work, count: int, whole: NDArray[np.int64], real: Numbers, words: WordArray, per: int, skip: int
    ) -> tuple[int, WordArray, int]:
        """As far as whole chunks go: samples done, words at hand, position among them."""
        made = 0
        buffers = [np.empty((CHUNK, step.NUMBERS)) for _ in range(2)]

        def chunk(records: int, ahead: Numbers) -> WordArray:
            taken = self.source.take(records * per)
            step.make(taken, 0, records, ahead, whole, real)
            return taken

        if len(words) % per:
            words = _joined(words, 0, self.source.take(per - len(words) % per))
        done, position, turn = 0, 0, 0
        try:
            with ThreadPoolExecutor(1) as pool:
                # chunks follow what is left from before
                coming: Future[WordArray] | None = pool.submit(chunk, CHUNK, buffers[turn])
                done, position = work(done, words, position, buffers[1 - turn][:_AHEAD], 0)
                while coming is not None:
                    fresh, made, ahead = coming.result(), CHUNK, buffers[turn]
                    if position < len(words):  # a draw that is decided with whole numbers wants more words than were left
                        made = 0
                        fresh, ahead = _joined(words, position, fresh), ahead[:_AHEAD]
                    else:
                        words[...] = 0
                    words, position, turn = fresh, 0, 1 - turn
                    more = (count - done) // skip > 2 * CHUNK
                    coming = pool.submit(chunk, CHUNK, buffers[turn]) if more else None
                    done, position = work(done, words, 0, ahead, made)
        finally:
            # also where the source of random bits fails
            for buffer in buffers:
                buffer[...] = 0
        return done, words, position


def _joined(words: WordArray, position: int, taken: WordArray) -> WordArray:
    """What is left of the words, and further ones; the old places are overwritten."""
    fresh = np.concatenate((words[position:], taken)) if position < len(words) else taken
    if fresh is not taken:
        taken[...] = 0
    words[...] = 0
    return fresh
