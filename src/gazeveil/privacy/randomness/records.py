"""Random words in records of equal length, for draws that may need more exact words.

Records are used in the order in which the source gives them, so the size of a block changes
nothing that is drawn. A real that has to be known more exactly goes on in words that belong to the
number of its record. Used words are overwritten with zeros; words left over stay for the next
block.
"""

from __future__ import annotations

import numpy as np

from gazeveil.privacy.randomness.rng import Source, WordArray, Words

#: Most records asked for at a time.
MOST_RECORDS = 32768

_LEAST_RECORDS = 64  # a session stays small when it is pickled


class WordRecords(Words):
    """A sequence of words of a source in numbered records of `per` words."""

    def __init__(self, source: Source, per: int) -> None:
        super().__init__(source)
        self.per = per
        self.first = 0  # number of the record that begins the words at hand
        self.position = 0
        self._further: dict[int, WordArray] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "per": self.per, "first": self.first}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(state["source"], state["per"])  # type: ignore[misc]
        self._left = np.asarray(state["left"], dtype=np.uint64)
        self.first = int(state["first"])  # type: ignore[call-overload]

    @property
    def words(self) -> WordArray:
        """The words at hand."""
        return self._left

    def __enter__(self) -> None:
        """Hold the words for one block of draws; a forked child has words of its own."""
        if not self._identity.original:
            self._identity.renew(self._leave)
        self._lock.acquire()

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Keep the words that were not used; after an error not the half-used ones either."""
        try:
            if error is None:
                self._drop()
            else:
                self._left[...] = 0
                self._left, self.position = np.empty(0, dtype=np.uint64), 0
            for words in self._further.values():
                words[...] = 0
            self._further.clear()
        finally:
            self._lock.release()

    def more(self, records: int) -> None:
        """Append the words of about so many records to those at hand."""
        self._drop()
        records = min(max(records, _LEAST_RECORDS), MOST_RECORDS)
        taken = self.source.take(records * self.per)
        if len(self._left):
            fresh = np.concatenate((self._left, taken))
            self._left[...], taken[...] = 0, 0
            taken = fresh
        self._left = taken

    def further(self, record: int, count: int) -> WordArray:
        """Words in which reals of a record go on; within a block always the same ones."""
        if record not in self._further:
            self._further[record] = self.source.child("further", record).take(count)
        return self._further[record]

    def drawn_on(self, words: int, further: int) -> WordArray:
        """The first `words` words of the record at hand, and `further` words in which they go
        on.
        """
        own = self._left[self.position : self.position + words]
        return np.concatenate((own, self.further(self.first + self.position // self.per, further)))

    def _drop(self) -> None:
        """Overwrite the used words."""
        self._left[: self.position] = 0
        self.first += self.position // self.per
        self._left, self.position = self._left[self.position :], 0
