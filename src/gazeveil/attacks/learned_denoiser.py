"""`denoiser=unet`: a denoiser that is learnt, by an attacker who knows the mechanism and has raw
recordings of the gallery: it makes releases of them and learns to undo the change, beginning with
what a Kalman smoother makes of them.

Both signals are kept, as with every denoiser (:mod:`gazeveil.attacks.denoiser`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.denoiser import Denoised, each_recording
from gazeveil.attacks.filters import filtered
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import Recording
from gazeveil.models.resumable import StepPlan
from gazeveil.models.train import best_device
from gazeveil.models.unet import UNet, train_unet

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
