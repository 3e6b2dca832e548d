"""The base map of DPGazeSynth: windows on a public grid, each with noise of its own for where it
begins and for all else.

A window that is replaced by any other loses epsilon2 + epsilon3, and epsilon1 for every r by which
its beginning moves. Replacing a person moves beginnings anywhere, so a person with T windows loses
T (epsilon2 + epsilon3 + epsilon1 ceil(diameter / r)), not T epsilon. Samples in a row that are not
a window of the grid touch more windows than they fill.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss, PromiseError, raised
from gazeveil.privacy.promise.privacy_map import HALF_TURN_DEG, StreamMap
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout


@dataclass(frozen=True)
class WindowsMap(StreamMap):
    """The loss of windows on a public grid.

    Parameters
    ----------
    window_s : Fraction
        Seconds of a window.
    window : int
        W, its samples.
    r_deg : Fraction
        How far the beginning of a window moves for epsilon1.
    start, rest : Fraction
        Epsilon1, and epsilon2 + epsilon3.
    farthest_deg : Fraction
        The largest distance between two beginnings.
    delta_num : Fraction
        Numerical error of a window.
    most : int, optional
        So many windows of a stream are looked at and no more, however long it is.
    """

    window_s: Fraction
    window: int
    r_deg: Fraction
    start: Fraction
    rest: Fraction
    farthest_deg: Fraction
    delta_num: Fraction
    most: int | None = None

    @classmethod
    def of(
        cls, plan: WindowLayout, window_s: Fraction, delta_num: Fraction, most: int | None = None
    ) -> WindowsMap:
        """From the public numbers of recordings of one rate in one space."""
        farthest = HALF_TURN_DEG if plan.sphere else raised(plan.grid.diagonal_deg)
        return cls(
            plan.rate_hz,
            plan.grid.space,
            window_s,
            plan.samples,
            plan.r_deg,
            plan.starts,
            plan.times + plan.moves,
            farthest,
            delta_num,
            most,
        )

    def samples_of(self, change: Change) -> int | None:
        """Samples of a window; one of the grid's length has as many as those."""
        return self.window if change.seconds == self.window_s else super().samples_of(change)

    def replaced(self, windows: int, start_deg: Fraction | None) -> Loss:
        """The loss if so many windows of the grid are replaced and their beginnings move by at most
        so much; None is anywhere.
        """
        far = self.farthest_deg if start_deg is None else min(start_deg, self.farthest_deg)
        return Loss.pure(
            self.rest + self.start * math.ceil(far / self.r_deg), self.delta_num
        ).repeated(windows if self.most is None else min(windows, self.most))

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """Samples in a row touch windows that they do not fill."""
        # Places are never farther apart than their coordinates, so one number serves both metrics.
        return self.replaced(1 if samples == 1 else (samples - 2) // self.window + 2, move_deg)

    def within(self, change: Change) -> Loss:
        """Of a window of the grid where its beginning is named, else of samples in a row."""
        if change.start_deg is None:
            return super().within(change)
        samples = self.samples_of(change)
        if samples is None or samples % self.window:
            raise PromiseError(
                f"Windows have {self.window} samples here, and one of {samples} is none of the"
                " grid's. Ask about samples that move instead."
            )
        # Of a longer window only the first place is bound: the other windows of the grid in it
        # begin anywhere.
        return (
            self.replaced(1, change.start_deg) + self.replaced(samples // self.window - 1, None)
        ).grouped(change.count)

    def whole(self, change: Change, samples: int) -> Loss:
        """All windows of a recording."""
        return self.replaced(-(-samples // self.window), change.move_deg)

    def loss(self, change: Change) -> Loss:
        """Of a sample or a window; and of a whole stream where so many windows of it are looked at
        at most.
        """
        if change.unit == "recording" and self.most is not None:
            return self.replaced(self.most, change.move_deg).grouped(change.count)
        return super().loss(change)
