"""What every attacker is: a frozen value of parameters. An identifying one learns people from one
material and names them in another; an inference attack wants something else of a release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet

if TYPE_CHECKING:
    from gazeveil.attacks.result import InferenceResult

#: What an attacker may put before everything else (:mod:`gazeveil.attacks.denoiser`).
DENOISERS = ("none", "lowpass")

#: What an attacker knows of the mechanism: nothing, some protected examples, or the mechanism
#: itself (and so makes releases to train on).
KNOWLEDGE = ("black-box", "exemplars", "white-box")


@dataclass(frozen=True, eq=False)
class Scores:
    """How much each probe looks like each known person; one row per person asked about.

    Parameters
    ----------
    known : tuple of str
        The people of the gallery.
    probes : tuple of str
        Whose material each row is (the truth).
    values : array of float64, shape (probes, known)
        Larger means more alike. A row of equal values is a guess.
    """

    known: tuple[str, ...]
    probes: tuple[str, ...]
    values: Floats

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.shape != (len(self.probes), len(self.known)):
            raise DataError(
                f"Scores need shape {(len(self.probes), len(self.known))}. Got {values.shape}."
            )
        object.__setattr__(self, "values", values)

    def credit(self) -> Floats:
        """1 where the true person has the largest score, 0 where not; a tie of m people that
        includes the true one counts 1/m.

        A person who is not in the gallery cannot be found and counts 0. NaN scores count as the
        smallest.
        """
        values = np.where(np.isnan(self.values), -np.inf, self.values)
        best = values == values.max(axis=1, keepdims=True)
        at = {p: i for i, p in enumerate(self.known)}
        return np.array(
            [
                best[row, at[p]] / best[row].sum() if p in at else 0.0
                for row, p in enumerate(self.probes)
            ],
            dtype=np.float64,
        )

    def answers(self) -> tuple[tuple[str, ...], ...]:
        """The best-scoring candidates of each probe; none where all scores are equal."""
        values = np.where(np.isnan(self.values), -np.inf, self.values)
        best = values == values.max(axis=1, keepdims=True)
        return tuple(
            () if row.all() else tuple(n for n, one in zip(self.known, row, strict=True) if one)
            for row in best
        )

    def genuine_and_impostor(self) -> tuple[Floats, Floats]:
        """Scores of people against themselves, and against all others."""
        same = np.array(self.probes)[:, None] == np.array(self.known)[None, :]
        return self.values[same], self.values[~same]


def standardised_scores(values: Floats) -> Floats:
    """Scores less their mean, over their deviation; rows of equal values become zeros (nothing to
    go by), NaN becomes the least score.
    """
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros_like(values)
    filled = np.where(finite, values, values[finite].min())
    varied = np.ptp(filled, axis=1) > 0
    spread = float(filled[varied].std()) if varied.any() else 0.0
    if spread < 1e-12:
        return np.zeros_like(values)
    return np.where(varied[:, None], (filled - filled[varied].mean()) / spread, 0.0)


def with_ties(values: Floats) -> Floats:
    """Scores to nine digits of the largest one of their row: people whose material is the same must
    tie, whatever the last digit of a product says.
    """
    size = np.abs(values).max(axis=1, keepdims=True)
    step = np.where(size > 0, size, 1.0)
    return (values / step).round(9) * step


@dataclass(frozen=True)
class Attack(ABC):
    """Base of identifying attackers.

    Class attributes
    ----------------
    name : str
        As in `gazeveil evaluate --attack name`.
    needs : tuple of str
        What it looks at: `fixation`, `saccade`, `window` (tables) or `samples`.

    Parameters
    ----------
    denoiser : str
        One of :data:`DENOISERS`, applied to released samples on both sides.
    knowledge : str
        One of :data:`KNOWLEDGE`; says what the gallery is made of where the scenario trains on raw
        material.
    draws : int
        How many releases of the raw gallery a white-box attacker makes to learn from.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]

    denoiser: str = field(default="none", kw_only=True)
    knowledge: str = field(default="black-box", kw_only=True)
    draws: int = field(default=3, kw_only=True)

    def __post_init__(self) -> None:
        checks.one_of(self.name, "denoiser", self.denoiser, DENOISERS)
        checks.one_of(self.name, "knowledge", self.knowledge, KNOWLEDGE)
        checks.count(self.name, "draws", self.draws)
        self.check()

    def check(self) -> None:  # noqa: B027 a hook, not a duty
        """Check the parameters; subclasses extend this."""

    @abstractmethod
    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Learn the people of the gallery, then score every person of the probe against them.

        Parameters
        ----------
        gallery : RecordingSet
            What the attacker has with names.
        probe : RecordingSet
            What the attacker wants names for; recordings of one person are known to belong together
            (one decision per person).
        seed : int
            For the attacker's own randomness.

        Returns
        -------
        Scores
            A person of the probe with nothing to go by gets a row of zeros.

        Raises
        ------
        DataError
            If there is nothing to learn from, or the release lacks what the attacker needs.
        """

    def trained_on(self, raw: RecordingSet) -> frozenset[str]:
        """Participants known to be in this attacker's earlier training set; a study leaves them
        out. Empty for attackers that learn from the gallery alone.
        """
        del raw
        return frozenset()

    def can(self, recording_set: RecordingSet) -> bool:
        """Whether a release holds what this attacker looks at."""
        return all(
            recording_set.cohort is not None if need == "samples" else recording_set.has(need)
            for need in self.needs
        )

    def store(self, name: str, value: object) -> None:
        """Put the checked form of a parameter in its place; only for :meth:`check`."""
        object.__setattr__(self, name, value)

    def __str__(self) -> str:
        """The command line's form: the name, and the parameters that are not the defaults."""
        parts = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return self.name + (":" + ",".join(parts) if parts else "")


@dataclass(frozen=True)
class InferenceAttack(ABC):
    """Base of the inference attacks (:mod:`gazeveil.attacks.infer.kinds`).

    Class attributes
    ----------------
    name, summary : str
        As in `gazeveil attack --kind`; what it wants, in one line.
    pieces : {"no", "yes", "any"}
        Whether it takes releases of pieces, whose names do not last; `yes`: and no others.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    pieces: ClassVar[str] = "no"

    @property
    def kind(self) -> str:
        """The name."""
        return self.name

    @abstractmethod
    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Attack a release.

        Parameters
        ----------
        raw : RecordingSet
            Raw recordings with true names: what the attacker knows, and the truth.
        release : RecordingSet
            The release. Names serve to judge the answer alone.
        seed : int
            Of the attacker's own randomness.

        Raises
        ------
        DataError
            If the recordings do not suffice for the attack.
        """
