"""Kaleido where losses are filled: at a slot whose sample is lost, gaze is what the public model
expects, given what was published before.

Slots then follow one another every t_skip, whatever is lost. A publication is an observation whose
noise has the variance 3 b**2 along each axis, b its scale, which follows from the units it was
given; a repetition is one of what is shown, as vague as the test. Proof: proofs/losses.md.

What a release of Kaleido shows of its own noise.

A value that changes was published, one that stays was repeated, and what a publication may spend
follows from the publications of the window before it. So the scale of every publication's noise is
public, and an average over a release can weigh its values by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.stage import KaleidoPlan, LatticeStage
from gazeveil.privacy.stream.kaleido.step import KaleidoSettings, share
from gazeveil.privacy.stream.losses.expected_gaze import Memory, expected_gaze, note, turn
from gazeveil.privacy.stream.session import Samples, Stage


class FilledKaleido(Stage):
    """Kaleido on the lattice without lost samples: one source for each stream, or one secure one
    for all, and a memory of slots.
    """

    def __init__(
        self, plan: KaleidoPlan, streams: int, sources: Sequence[Source], memory: Memory
    ) -> None:
        self.inner, self.memory = LatticeStage(plan, streams, sources), memory
        s = plan.settings
        # Scales are in radians on a sphere, in steps on a screen.
        unit_deg = math.degrees(1.0) if s.sphere else s.step_deg
        self.published = 3.0 * (s.scale_times_units * unit_deg) ** 2
        self.repeated = (s.threshold**2 + 2.0 * s.test_scale**2) * unit_deg**2

    def reset(self) -> None:
        """Forget what was published; see :meth:`LatticeStage.reset`."""
        self.memory.forget()
        self.inner.reset()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """Publish or repeat, at every slot."""
        for s in range(len(x_deg)):
            self._run_stream(s, x_deg[s : s + 1], y_deg[s : s + 1], valid[s : s + 1])
        return t_ns, x_deg, y_deg, valid

    def _run_stream(self, s: int, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
        """From one slot whose sample is lost to the next: all between them runs at once."""
        state, skip = self.inner.states[s], self.inner.plan.skip
        m, n = self.memory, x_deg.shape[1]
        due = int(state[step.LAST_TEST] - state[step.COUNT]) + skip
        slots = np.arange(max(due, 0), n, skip)
        lost = slots[~valid[0, slots]]
        valid[...] = True
        begin = 0
        for end in (*lost.tolist(), n):
            if end > begin:
                part = slice(begin, end)
                trace = self.inner.run_stream(s, x_deg[:, part], y_deg[:, part], valid[:, part])
                told = slots[(slots >= begin) & (slots < end)]
                _note_slots(
                    m, s, x_deg[0, told], y_deg[0, told], self._variances(trace[0, told - begin])
                )
            if end < n:
                x_deg[0, end], y_deg[0, end] = _expected(m, s)
            begin = end

    def _variances(self, outcomes: Ints) -> Floats:
        """How vague what is shown at slots is, in degrees squared along an axis."""
        units = np.maximum(outcomes, 1).astype(np.float64)
        kept = np.where(outcomes == step.REPEATED, self.repeated, np.inf)
        return np.where(outcomes > 0, self.published / units**2, kept)


@compiled
def _note_slots(memory: Memory, s: int, x: Floats, y: Floats, variances: Floats) -> None:
    for i in range(len(x)):
        note(memory, s, turn(memory, s), x[i], y[i], variances[i])


@compiled
def _expected(memory: Memory, s: int) -> tuple[float, float]:
    return expected_gaze(memory, s, turn(memory, s))


def noise_scales_deg(
    settings: KaleidoSettings, x_deg: Floats, y_deg: Floats, valid: Bools
) -> Floats:
    """Scale b of the noise of what each sample shows, in degrees, from a released recording alone.

    Parameters
    ----------
    settings : KaleidoSettings
        The public numbers of the mechanism.
    x_deg, y_deg, valid : arrays, shape (samples,)
        As released.

    Returns
    -------
    array of float64, shape (samples,)
        Infinite before the first publication and where nothing is left to publish with.
    """
    unit_deg = math.degrees(1.0) if settings.sphere else settings.step_deg
    units = _units(
        settings.rule, settings.units, settings.slots, settings.window, x_deg, y_deg, valid
    )
    scale = settings.scale_times_units * unit_deg / np.maximum(units, 1e-300)
    return np.where(units > 0, scale, np.inf)


@compiled
def _units(
    rule: int, units: int, slots: int, window: int, x: Floats, y: Floats, valid: Bools
) -> Floats:
    """Units of the publication that each sample shows."""
    n = len(x)
    out = np.zeros(n)
    times, spent_at = np.empty(n, np.int64), np.empty(n, np.int64)
    first, after, spent, shown = 0, 0, 0, 0
    last_x, last_y = math.nan, math.nan
    for i in range(n):
        if valid[i] and not (x[i] == last_x and y[i] == last_y):
            while first < after and i - times[first] >= window:
                spent -= spent_at[first]
                first += 1
            shown, counted = share(rule, units, units // slots, spent)
            times[after], spent_at[after] = i, counted
            spent += counted
            after += 1
            last_x, last_y = x[i], y[i]
        out[i] = shown
    return out
