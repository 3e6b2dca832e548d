"""Denoisers: filters that an attacker puts on released samples before looking at them.

Independent noise averages away (a mean over n samples of David-John et al.'s (2021) Gaussian noise
has 1/sqrt(n) of it), so an attacker filters a release first. The filters are in
:mod:`gazeveil.attacks.filters`.

`denoiser=unet`: a denoiser that is learnt, by an attacker who knows the mechanism and has raw
recordings of the gallery: it makes releases of them and learns to undo the change, beginning with
what a Kalman smoother makes of them.

Both signals are kept, as with every denoiser (:mod:`gazeveil.attacks.denoiser`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import FILTERS, Attack, Scores
from gazeveil.attacks.filters import filtered
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.gaze.scratch import is_set_aside, set_aside
from gazeveil.models.resumable import StepPlan
from gazeveil.models.train import best_device
from gazeveil.models.unet import UNet, train_unet


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


def apply_denoiser(denoiser: str, recording_set: RecordingSet) -> RecordingSet:
    """A recording set behind a denoiser: samples filtered, tables found again on first use. One
    without samples is given back as it is, because there is nothing to filter.

    Returns
    -------
    RecordingSet
        With `before`, the material as released (:class:`Denoised`), unless nothing was done.
    """
    checks.one_of("apply_denoiser", "denoiser", denoiser, FILTERS)
    if denoiser == "none" or recording_set.cohort is None:
        return recording_set
    changed = False

    def smooth(recording: Recording) -> Recording:
        nonlocal changed
        after = filtered(recording, denoiser)
        changed |= after is not recording
        return after

    after = each_recording(recording_set.cohort, smooth)
    return Denoised(after, recording_set) if changed else recording_set


def each_recording(cohort: Cohort, change: Callable[[Recording], Recording]) -> Cohort:
    """Every recording as `change` gives it, one after the other: all of them twice would be the
    largest thing an attacker holds. What is left as it was stays where it lies.
    """

    def changed() -> Iterator[Recording | Handle]:
        for item in cohort.items:
            before = item.load() if isinstance(item, Handle) else item
            after = change(before)
            yield item if after is before and is_set_aside(item) else after

    return set_aside(changed(), cohort.people, cohort.name)


def before(recording_set: RecordingSet) -> RecordingSet:
    """The material as released: without the denoiser, where there is one."""
    return recording_set.before if isinstance(recording_set, Denoised) else recording_set


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


#: Releases of the raw gallery that the attacker makes to learn from, steps of training, and windows
#: of a step.
RELEASES, STEPS, BATCH = 3, 300, 32

#: The filter whose output the network improves.
GUESS = "kalman"


@dataclass(frozen=True, eq=False)
class LearnedDenoiser:
    """A denoiser that was learnt from releases: a trained network."""

    network: UNet

    def apply(self, recording_set: RecordingSet) -> RecordingSet:
        """A release behind the denoiser: samples changed, tables found again on first use."""
        if recording_set.cohort is None:
            return recording_set
        return Denoised(each_recording(recording_set.cohort, self.recording), recording_set)

    def recording(self, recording: Recording) -> Recording:
        """One recording without its noise; the same samples are valid."""
        if not recording.valid.any():
            return recording
        made = self.network.denoise(recording.vectors, filtered(recording, GUESS).vectors)
        x, y = recording.space.degrees(made)
        # A vector that points away from a screen has no place on it: there the sample stays.
        new = recording.valid & np.isfinite(x) & np.isfinite(y)
        return recording.with_(
            x_deg=np.where(new, x, recording.x_deg), y_deg=np.where(new, y, recording.y_deg)
        )


def learn_denoiser(
    raw: RecordingSet,
    releases: Sequence[RecordingSet],
    seed: int,
    steps: int = STEPS,
    batch: int = BATCH,
) -> LearnedDenoiser:
    """Learn to undo a mechanism from independent releases of the same raw recordings, with the
    times of their samples.

    Raises
    ------
    DataError
        Without samples on both sides, or without a time in common.
    MissingExtraError
        Without torch.
    """
    if raw.cohort is None or any(r.cohort is None for r in releases):
        raise DataError(
            "denoiser=unet learns from samples, raw and released, and one side holds tables only."
            " Use denoiser=none."
        )
    clean = {r.key: r for r in raw.cohort}
    given: list[Floats] = []
    guesses: list[Floats] = []
    wanted: list[Floats] = []
    for release in releases:
        for recording in release.cohort or ():
            if recording.key in clean:
                given.append(recording.vectors)
                guesses.append(filtered(recording, GUESS).vectors)
                wanted.append(_at_times_of(recording, clean[recording.key]))
    plan = StepPlan(steps, 0.01, seed)
    network, _ = train_unet(given, guesses, wanted, plan, batch, best_device())
    return LearnedDenoiser(network)


def _at_times_of(released: Recording, raw: Recording) -> Floats:
    """Raw vectors at the times of a release, NaN where it has none."""
    result = np.full((len(released), 3), np.nan)
    mine = np.flatnonzero(raw.valid)
    _, here, there = np.intersect1d(released.t_ns, raw.t_ns[mine], return_indices=True)
    result[here] = raw.vectors[mine[there]]
    return result
