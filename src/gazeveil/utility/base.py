"""What every utility is: a frozen value of parameters that measures what released material is still
good for.

Averages of figures of recordings over people.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats, Texts
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means

#: What a note says where a release has no fixation at all, so that its map is an even one.
NO_FIXATION = "no fixation was found in the release"


@dataclass(frozen=True, eq=False)
class UtilityResult:
    """One figure of a utility.

    Parameters
    ----------
    metric : str
        What it is, with its unit where it has one: `accuracy`, `dwell_rmse_s`, `kl`...
    value : float
        The figure; NaN where it could not be measured, and then `note` says why.
    parts : array of float64
        Its parts, over which an interval can be drawn: one per person or per stimulus (as `of`
        says). The value is their mean unless `note` says otherwise.
    of : str
        What the parts are: `person`, `stimulus`, `recording`.
    names : tuple of str
        Names of the parts.
    chance : float
        What knowing nothing would give; NaN where there is no such thing.
    better : {"higher", "lower"}
        Which way is better.
    note : str
        Protocol, in a few words.
    """

    metric: str
    value: float
    parts: Floats
    of: str
    names: tuple[str, ...]
    chance: float = float("nan")
    better: str = "lower"
    note: str = ""


@dataclass(frozen=True)
class Utility(ABC):
    """Base of all utilities.

    Class attributes
    ----------------
    name : str
        As in `gazeveil evaluate --utility name`.
    needs : tuple of str
        What it looks at: `fixation`, `saccade`, `window` (tables) or `samples`.
    trains : bool
        Whether it learns on one recording set and is tested on another, and so depends on the
        scenario.
    files : tuple of str
        Parameters that name a file.
    halves : {"", "people", "recordings"}
        What raw recordings are compared with where nothing is protected, so that a reader sees how
        far apart two halves are that are equally good: every second person's with the others', or
        every second recording of each person with the others; empty where a figure needs the same
        ones.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    trains: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ()
    halves: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:  # noqa: B027 a hook, not a duty
        """Check the parameters; subclasses extend this."""

    @abstractmethod
    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Measure.

        Parameters
        ----------
        raw : RecordingSet
            As recorded: the truth.
        train : RecordingSet
            What an analyst trains on; a utility that does not train ignores it.
        test : RecordingSet
            What the analyst uses in the end: the release in question.
        seed : int
            For the analyst's own randomness.

        Raises
        ------
        DataError
            If the recording set cannot be measured this way, with the reason.
        """

    def can(self, recording_set: RecordingSet) -> bool:
        """Whether a release holds what this utility looks at."""
        return all(
            recording_set.cohort is not None if need == "samples" else recording_set.has(need)
            for need in self.needs
        )

    def halved(self, raw: RecordingSet) -> tuple[RecordingSet, RecordingSet]:
        """The halves of raw recordings; all of them twice where there are none."""
        keys = sorted(raw.keys)
        if self.halves == "people":
            place = {person: i for i, person in enumerate(dict.fromkeys(k[0] for k in keys))}
            first = {key for key in keys if place[key[0]] % 2 == 0}
        else:
            own = groupby(keys, key=itemgetter(0))
            first = {key for _, recordings in own for key in list(recordings)[::2]}
        if not self.halves or len(first) == len(raw.keys):
            return raw, raw
        return raw.where(first.__contains__), raw.where(lambda key: key not in first)

    def store(self, name: str, value: object) -> None:
        """Put the checked form of a parameter in its place; only for :meth:`check`."""
        object.__setattr__(self, name, value)

    def __str__(self) -> str:
        """The command line's form: the name, and the parameters that are not the defaults."""
        return self._written(lambda _, value: value)

    @property
    def public_text(self) -> str:
        """The command line's form as it may be published: `str`, with the names of files instead of
        where they lie.
        """
        return self._written(
            lambda name, value: PurePath(str(value)).name if name in self.files else value
        )

    def _written(self, shown: Callable[[str, object], object]) -> str:
        parts = [
            f"{f.name}={shown(f.name, getattr(self, f.name))}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return self.name + (":" + ",".join(parts) if parts else "")


def over_people(
    metric: str,
    values: Floats,
    persons: Texts,
    note: str,
    better: str = "lower",
    chance: float = np.nan,
) -> UtilityResult:
    """Average over a person's recordings, then over features, then over people; people without a
    figure are left out of the value.
    """
    names = np.unique(persons).tolist()
    parts = np.array([float(column_means(column_means(values[persons == name]))) for name in names])
    lost = int(np.isnan(parts).sum())
    if lost:
        note += f"; {lost} of {len(parts)} people have no figure"
        names = [n for n, p in zip(names, parts.tolist(), strict=True) if not np.isnan(p)]
        parts = parts[~np.isnan(parts)]
    value = float(parts.mean()) if len(parts) else float("nan")
    return UtilityResult(metric, value, parts, "person", tuple(names), chance, better, note)
