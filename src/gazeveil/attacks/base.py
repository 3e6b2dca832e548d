"""What every attacker is: a frozen value of parameters. An identifying one learns people from one
material and names them in another; an inference attack wants something else of a release.

The denoiser: a low-pass filter that an attacker puts on released samples before looking at them.

Independent noise averages away (a mean over n samples of David-John et al.'s (2021) Gaussian noise
has 1/sqrt(n) of it), so an attacker filters a release first. The filter measures, in the samples it
is given, how much white noise there is and how much the eye moves, and filters accordingly: next to
nothing on a clean recording, hard on a noisy one.

* The noise of one sample, sigma: with steps d_i = x_(i+1) - x_i of a path that wanders and has
  independent noise on every sample, var(d) = 2 sigma^2 + q and var(d_(i+1) - d_i) = 6 sigma^2 + 2
  q, so sigma^2 = (var of second - 2 var of first differences) / 2. Both are taken from medians, so
  that saccades do not count. Tracker noise that is filtered already, and steps of a grid, give 0.
* The movement, Q in deg^2/s: the mean squared step between averages over 0.5 s, less what the noise
  adds.
* Movement and noise have equal power at the frequency f = sqrt(Q rate) / (2 pi sigma) (a wandering
  path has the spectrum Q / (2 pi f)^2, the noise sigma^2 / rate): `lowpass` is a Gaussian kernel
  with this cut.

On a sphere the coordinates of the unit vector are filtered and brought back to length one, so
nothing happens at 0/360 or at the poles. Lost samples stay lost; they are bridged for the filter
only, and gaps of more than 0.5 s are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.gaze.scratch import is_set_aside, set_aside

if TYPE_CHECKING:
    from gazeveil.attacks.result import InferenceResult

#: What an attacker may put before everything else (:mod:`gazeveil.attacks.base`).
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
    """Base of the inference attacks (:mod:`gazeveil.attacks.infer`).

    Class attributes
    ----------------
    name, summary : str
        As in `gazeveil attack --kind`; what it wants, in one line.
    pieces : {"no", "yes"}
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


#: Gaps longer than this, in seconds, end a stretch.
LONGEST_GAP_S = 0.5

_AVERAGE_S = 0.5
_LEAST_Q = 1.0  # deg^2/s; a path that does not move at all would be averaged over its whole length
_MAD = 0.6744897501960817  # median of |N(0, 1)|
_DEG = 180.0 / np.pi

# Rows of a stretch without a long gap, and its coordinates in degrees.
_Stretch = tuple[slice, list[Floats]]


# Recordings in which a filter finds nothing to do, of each whole: other splits ask for them again.
_CLEAN: WeakKeyDictionary[RecordingSet, set[RecordingKey]] = WeakKeyDictionary()


class Denoised(RecordingSet):
    """Filtered samples that remember those they came from (`before`): an attacker holds both."""

    def __init__(
        self, cohort: Cohort, before: RecordingSet, tables: Mapping[str, FeatureTable] | None = None
    ) -> None:
        super().__init__(cohort, tables, before.pipeline, before.people)
        self.before = before
        self.piece_windows = before.piece_windows

    def where(self, predicate: Callable[[RecordingKey], bool]) -> RecordingSet:
        """As of any recording set; both signals are selected from."""
        return self._with(super().where(predicate), self.before.where(predicate))

    def halves(self) -> tuple[RecordingSet, RecordingSet]:
        """As of any recording set; both signals are cut."""
        first, second = (
            self._with(part, before)
            for part, before in zip(super().halves(), self.before.halves(), strict=True)
        )
        return first, second

    @staticmethod
    def _with(part: RecordingSet, before: RecordingSet) -> RecordingSet:
        return part if part.cohort is None else Denoised(part.cohort, before, part._tables)


def before(recording_set: RecordingSet) -> RecordingSet:
    """The material as released: without the denoiser, where there is one."""
    return recording_set.before if isinstance(recording_set, Denoised) else recording_set


def apply_denoiser(denoiser: str, recording_set: RecordingSet) -> RecordingSet:
    """A recording set behind a denoiser: samples filtered, tables found again on first use. One
    without samples is given back as it is, because there is nothing to filter.

    Returns
    -------
    RecordingSet
        With `before`, the material as released (:class:`Denoised`), unless nothing was done.
    """
    checks.one_of("apply_denoiser", "denoiser", denoiser, DENOISERS)
    clean = _CLEAN.setdefault(recording_set.part_of or recording_set, set())
    if denoiser == "none" or recording_set.cohort is None or clean.issuperset(recording_set.keys):
        return recording_set
    given = recording_set.cohort

    # One after the other: all of them twice would be the largest thing an attacker holds. What is
    # left as it was stays where it lies.
    def smooth() -> Iterator[Recording | Handle]:
        for item in given.items:
            recording = item.load() if isinstance(item, Handle) else item
            after = filtered(recording)
            if after is recording:
                clean.add(item.key)
            yield item if after is recording and is_set_aside(item) else after

    after = set_aside(smooth(), given.people, given.name)
    return recording_set if clean.issuperset(recording_set.keys) else Denoised(after, recording_set)


def identify(attack: Attack, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
    """The scores of an attacker who holds both signals: the filtered and the released one.

    A filter takes away noise and some of the person with it, so who looks at the filtered signal
    only may see less than before. Every attacker therefore judges both signals, each learnt for
    itself, and adds the standardised scores; one that weighs them better itself says so by a class
    attribute `two_signals`. Where no side is filtered this is `attack.identify`.
    """
    if getattr(attack, "two_signals", False) or not (
        isinstance(gallery, Denoised) or isinstance(probe, Denoised)
    ):
        return attack.identify(gallery, probe, seed)
    plain = attack.identify(before(gallery), before(probe), seed)
    try:
        smooth = attack.identify(gallery, probe, seed)
    except DataError:
        # A filter may leave no events to learn from; then there is one signal only.
        return plain
    if (smooth.known, smooth.probes) != (plain.known, plain.probes):
        return plain
    return Scores(
        plain.known,
        plain.probes,
        standardised_scores(plain.values) + standardised_scores(smooth.values),
    )


@dataclass(frozen=True)
class NoiseLevel:
    """How noisy a recording is, along one axis.

    Parameters
    ----------
    sigma_deg : float
        Standard deviation of the independent noise of one sample.
    movement : float
        Mean squared movement in deg^2/s.
    rate_hz : float
        Samples per second.
    """

    sigma_deg: float
    movement: float
    rate_hz: float

    @property
    def cut_hz(self) -> float:
        """Where movement and noise have equal power; infinite without noise."""
        if self.sigma_deg == 0:
            return float("inf")
        return float(np.sqrt(self.movement * self.rate_hz) / (2 * np.pi * self.sigma_deg))

    @property
    def clean(self) -> bool:
        """Whether the cut lies above what the rate can show, so that filtering would do nothing."""
        return not self.cut_hz < self.rate_hz / 2


def filtered(recording: Recording) -> Recording:
    """One recording behind the low-pass filter; the same samples are valid, and a clean recording
    is given back itself.
    """
    stretches = list(_stretches(recording))
    level = _level(recording.rate_hz, stretches)
    if level.clean:
        return recording
    from scipy.ndimage import gaussian_filter1d

    # The gain of this Gaussian kernel is 1/sqrt(2) at the cut.
    width = float(np.sqrt(np.log(2.0))) / (2 * np.pi * level.cut_hz) * level.rate_hz
    x, y = recording.x_deg.copy(), recording.y_deg.copy()
    for rows, axes in stretches:
        smooth = [gaussian_filter1d(a, width, mode="reflect", truncate=4.0) for a in axes]
        inside = np.flatnonzero(recording.valid[rows])
        here = rows.start + inside
        if isinstance(recording.space, Sphere):
            new_x, new_y = recording.space.degrees(
                np.stack([axis[inside] for axis in smooth], axis=1)
            )
        else:
            new_x, new_y = smooth[0][inside], smooth[1][inside]
        # A mean of directions that cancel has none: there the sample stays as it was.
        finite = np.isfinite(new_x) & np.isfinite(new_y)
        x[here[finite]], y[here[finite]] = new_x[finite], new_y[finite]
    return recording.with_(x_deg=x, y_deg=y)


def noise_level(recording: Recording) -> NoiseLevel:
    """Independent noise and movement of a recording, measured in its own samples."""
    return _level(recording.rate_hz, list(_stretches(recording)))


def _level(rate: float, stretches: Sequence[_Stretch]) -> NoiseLevel:
    if not rate > 0:
        return NoiseLevel(0.0, _LEAST_Q, 1.0)
    first: list[list[Floats]] = []
    second: list[list[Floats]] = []
    coarse: list[Floats] = []
    block = max(1, round(_AVERAGE_S * rate))
    for _, axes in stretches:
        first.append([np.diff(a) for a in axes])
        second.append([np.diff(a, 2) for a in axes])
        whole = len(axes[0]) // block * block
        if whole >= 2 * block:
            means = np.stack([a[:whole].reshape(-1, block).mean(axis=1) for a in axes], axis=1)
            coarse.append((np.diff(means, axis=0) ** 2).sum(axis=1) / 2)
    if not first:
        return NoiseLevel(0.0, _LEAST_Q, rate)
    # Gaze moves in two directions whatever the number of coordinates, so the sum over axes is
    # halved.
    v1, v2 = (sum(map(_robust_variance, zip(*d, strict=True))) / 2 for d in (first, second))
    sigma2 = max(0.0, (v2 - 2 * v1) / 2)
    moved = float(np.concatenate(coarse).mean()) if coarse else 0.0
    movement = max(_LEAST_Q, (moved - 2 * sigma2 / block) * 1.5 / _AVERAGE_S)
    return NoiseLevel(float(np.sqrt(sigma2)), movement, rate)


def _robust_variance(parts: Sequence[Floats]) -> float:
    """Variance of the bulk, from the median of absolute values (differences have mean 0); 0 without
    values.
    """
    sizes = np.abs(np.concatenate(parts))
    return float(np.median(sizes) / _MAD) ** 2 if len(sizes) else 0.0


def _stretches(recording: Recording) -> Iterator[_Stretch]:
    """Runs of samples without a long gap, with their coordinates in degrees, lost samples bridged
    by straight lines; on a sphere the three of the unit vector.
    """
    good = np.flatnonzero(recording.valid)
    if len(good) == 0:
        return
    longest_ns = 1e9 * max(LONGEST_GAP_S, 1.5 / recording.rate_hz if recording.rate_hz > 0 else 0.0)
    cuts = np.flatnonzero(np.diff(recording.t_ns[good]) > longest_ns) + 1
    x_deg, y_deg = recording.x_deg[good], recording.y_deg[good]
    columns = (x_deg, y_deg)
    if isinstance(recording.space, Sphere):
        columns = tuple((recording.space.vectors(x_deg, y_deg) * _DEG).T)
    for a, b in pairwise([0, *cuts.tolist(), len(good)]):
        rows = slice(int(good[a]), int(good[b - 1]) + 1)
        if b - a == rows.stop - rows.start:  # nothing is lost here
            yield rows, [np.ascontiguousarray(column[a:b]) for column in columns]
            continue
        places = np.arange(rows.start, rows.stop)
        yield rows, [np.interp(places, good[a:b], column[a:b]) for column in columns]
