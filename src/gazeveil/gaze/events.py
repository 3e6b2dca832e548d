"""Events: what the eye did and when, as parallel arrays.

An event is a run of samples with one word from :data:`KINDS`. `onset` and `offset` are inclusive
indices into the recording as it was read; `onset_ns` and `offset_ns` are the times of those
samples. Datasets that publish fixations only have times and places but no samples: there both
indices are -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.checks import one_of, refuse
from gazeveil.errors import DataError
from gazeveil.gaze import exchange
from gazeveil.gaze.exchange import Tabular

if TYPE_CHECKING:
    from gazeveil.gaze.recording import Recording

#: The words of an event. `pursuit` is smooth pursuit, `pso` a post-saccadic oscillation.
KINDS = ("fixation", "saccade", "pursuit", "blink", "pso", "noise", "undefined")

Scalar = TypeVar("Scalar", bound=np.generic)

#: dtype of words: wide enough for every kind and every secondary label.
WORD = np.dtype("<U12")


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A view that cannot be written through; the caller's own array stays as it is.

    Nothing is copied, because recordings are large: an array that went into a value must not be
    changed afterwards.
    """
    view = array.view()
    view.setflags(write=False)
    return view


@dataclass(frozen=True)
class Event:
    """One event, as iteration over :class:`Events` gives it."""

    kind: str
    onset: int
    offset: int
    onset_ns: int
    offset_ns: int

    @property
    def duration_ns(self) -> int:
        """Time from the first to the last sample."""
        return self.offset_ns - self.onset_ns


@dataclass(frozen=True, eq=False)
class Events(Tabular):
    """Events of one recording, in order of onset.

    Parameters
    ----------
    kind : array of str
        Words of :data:`KINDS`.
    onset, offset : array of int64
        First and last sample, inclusive; -1 where the recording has no samples.
    onset_ns, offset_ns : array of int64
        Times of those samples.
    x_deg, y_deg : array of float64, optional
        Place of each event (mean direction) where it is known without samples.
    secondary : array of str, optional
        Second tier of labels (`vor`, `okn`, `okn+vor`, `head_pursuit`, or empty).
    source : str
        Detector, labeller or dataset that says so.
    """

    kind: Texts
    onset: Ints
    offset: Ints
    onset_ns: Ints
    offset_ns: Ints
    x_deg: Floats | None = field(default=None, repr=False)
    y_deg: Floats | None = field(default=None, repr=False)
    secondary: Texts | None = field(default=None, repr=False)
    source: str = ""

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "kind", np.ascontiguousarray(self.kind, dtype=WORD))
        for name in ("onset", "offset", "onset_ns", "offset_ns"):
            store(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.int64))
        for name in ("x_deg", "y_deg"):
            if getattr(self, name) is not None:
                store(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.float64))
        if self.secondary is not None:
            store(self, "secondary", np.ascontiguousarray(self.secondary, dtype=WORD))
        lengths = {len(a) for a in self.columns().values()}
        if len(lengths) > 1:
            raise DataError(f"Events needs columns of one length. Got lengths {sorted(lengths)}.")
        unknown = sorted(set(self.kind.tolist()) - set(KINDS))
        if unknown:
            refuse("Events", "kind", "words of " + ", ".join(KINDS), unknown[0])
        if (self.offset < self.onset).any() or (self.offset_ns < self.onset_ns).any():
            raise DataError("Events needs every offset at or after its onset. Got one before it.")
        for name, column in self.columns().items():
            store(self, name, read_only(column))

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """The columns that are there, by name."""
        names = ("kind", "onset", "offset", "onset_ns", "offset_ns", "x_deg", "y_deg", "secondary")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Event]:
        for k, a, b, ta, tb in zip(
            self.kind, self.onset, self.offset, self.onset_ns, self.offset_ns, strict=True
        ):
            yield Event(str(k), int(a), int(b), int(ta), int(tb))

    @property
    def duration_s(self) -> Floats:
        """Seconds from first to last sample."""
        return (self.offset_ns - self.onset_ns) / 1e9

    def where(self, mask: ArrayLike) -> Events:
        """The events a boolean mask or an index array picks."""
        picked = (
            np.asarray(mask) if len(np.atleast_1d(mask)) else np.empty(0, dtype=np.int64)
        )  # an empty list has no type
        return Events(**{n: c[picked] for n, c in self.columns().items()}, source=self.source)

    def of(self, *kinds: str) -> Events:
        """The events of the given kinds.

        Raises
        ------
        ParameterError
            For a word that is not in :data:`KINDS`.
        """
        for kind in kinds:
            one_of("Events.of", "kind", kind, KINDS)
        return self.where(np.isin(self.kind, kinds))

    def words(self, samples: int) -> Texts:
        """One word per sample; samples in no event are `undefined`."""
        result = np.full(samples, "undefined", dtype=WORD)
        for k, a, b in zip(self.kind, self.onset, self.offset, strict=True):
            if a >= 0:
                result[a : b + 1] = k
        return result

    @classmethod
    def from_words(
        cls, words: ArrayLike, t_ns: ArrayLike, secondary: ArrayLike | None = None, source: str = ""
    ) -> Events:
        """Runs of equal words (and equal secondary words) become events; times must be those of the
        same samples.
        """
        labels = np.asarray(words, dtype=WORD)
        t = np.asarray(t_ns, dtype=np.int64)
        if len(labels) == 0:
            return cls.empty(source)
        cut = labels[1:] != labels[:-1]
        second = None if secondary is None else np.asarray(secondary, dtype=WORD)
        if second is not None:
            cut = cut | (second[1:] != second[:-1])
        onset = np.concatenate(([0], np.flatnonzero(cut) + 1))
        offset = np.concatenate((onset[1:] - 1, [len(labels) - 1]))
        # Invalid samples may carry times that go back; an event never ends before it starts.
        return cls(
            labels[onset],
            onset,
            offset,
            t[onset],
            np.maximum(t[offset], t[onset]),
            secondary=None if second is None else second[onset],
            source=source,
        )

    @classmethod
    def from_frame(cls, frame: object, recording: Recording | None = None) -> Events:
        """Events from a data frame, as :meth:`to_polars` makes one.

        Parameters
        ----------
        frame : polars, pandas or Arrow data frame
            One row per event: `kind` (words of :data:`KINDS`), `onset_ns`, `offset_ns`, and where
            known `onset`, `offset` (samples), `x_deg`, `y_deg`, `secondary`, `source`.
        recording : Recording, optional
            Whose events they are: samples are found by time where the frame does not have them, and
            checked where it does.

        Raises
        ------
        DataError
            In one sentence, for a frame that holds no events or not those of the recording.
        """
        return exchange.value_of("Events", frame, {"recording": recording})

    @classmethod
    def empty(cls, source: str = "") -> Events:
        """No events at all."""
        none = np.empty(0, dtype=np.int64)
        return cls(np.empty(0, dtype=WORD), none, none, none, none, source=source)
