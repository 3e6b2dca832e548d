"""Marks of the recordings that a network was trained on, so that a test on one of them is noticed.

A mark is a salted digest of the beginning of a recording: where its first valid samples lay, in
thousandths of a degree. There is one for the first 128 of them, one for the first 256, and so on by
doubling. Names and times are not in it, so a recording under another name, or one that ends
earlier, is known again. It is not known again once its beginning was cut off, or it was resampled,
protected, or read with options that move its samples; and another recording of the same person has
no mark at all.

A mark does not reveal gaze, but the holder of a recording can test whether it is marked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording

#: Steps of a degree that a mark tells apart, so that rounding in a file changes nothing.
_STEPS = 1000.0

#: Valid samples of the shortest beginning that has a mark, and how many of them must differ: gaze
#: that stands still would be alike by chance.
SHORTEST, FEWEST_PLACES = 128, 64


@dataclass(frozen=True)
class RecordingMarks:
    """Marks of recordings.

    Parameters
    ----------
    salt : str
        Differs from training to training: marks of two files cannot be compared.
    marks : frozenset of str
        Several per recording; none of one with fewer than :data:`SHORTEST` valid samples.
    """

    salt: str
    marks: frozenset[str]

    @classmethod
    def of(cls, recordings: Iterable[Recording], salt: str) -> RecordingMarks:
        """The marks of some recordings."""
        return cls(salt, frozenset(m for r in recordings for m in marks_of(r, salt)))

    @classmethod
    def from_dict(cls, written: Mapping[str, object]) -> RecordingMarks:
        """The way back from :meth:`to_dict`; TypeError or KeyError for something else."""
        marks = written["marks"]
        if not isinstance(marks, list):
            raise TypeError(type(marks))
        return cls(str(written["salt"]), frozenset(map(str, marks)))

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"salt": self.salt, "marks": sorted(self.marks)}

    def knows(self, recording: Recording) -> bool:
        """Whether gaze that begins so was trained on.

        Examples
        --------
        >>> from gazeveil.gaze.simulate import simulate
        >>> one, other = simulate(2, 1, 5.0, 60.0, seed=1)
        >>> known = RecordingMarks.of([one], "salt")
        >>> known.knows(one.with_(person="somebody else")), known.knows(other)
        (True, False)
        """
        return any(mark in self.marks for mark in marks_of(recording, self.salt))

    def people(self, cohort: Cohort) -> frozenset[str]:
        """Who has a recording that was trained on: the people who were, as far as it is known.

        Examples
        --------
        >>> from gazeveil.gaze.simulate import simulate
        >>> three = simulate(3, 1, 5.0, 60.0, seed=1)
        >>> RecordingMarks.of([three[1]], "salt").people(three) == {three[1].person}
        True
        """
        known: set[str] = set()
        if self.marks:
            for i, key in enumerate(cohort.keys):
                if key[0] not in known and self.knows(cohort[i]):
                    known.add(key[0])
        return frozenset(known)


#: Of a file that was written before files had marks, and of a network that was not kept.
NO_MARKS = RecordingMarks("", frozenset())


def marks_of(recording: Recording, salt: str) -> Iterator[str]:
    """The marks of a recording, of its shortest beginning first."""
    valid = recording.valid
    degrees = np.stack((recording.x_deg[valid], recording.y_deg[valid]), axis=1)
    places = np.round(degrees * _STEPS).astype("<i8")
    digest = hashlib.blake2b(key=salt.encode()[:64], digest_size=16)
    done, count = 0, SHORTEST
    while count <= len(places):
        digest.update(np.ascontiguousarray(places[done:count]).data)
        if len(np.unique(places[:count], axis=0)) >= FEWEST_PLACES:
            yield digest.hexdigest()
        done, count = count, 2 * count
