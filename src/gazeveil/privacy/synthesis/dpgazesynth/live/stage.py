"""The stage of `dpgazesynth-live`: what was asked of a window is shown during the next one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.privacy.stream.stage import Samples, Stage
from gazeveil.privacy.synthesis.dpgazesynth.live.device import LiveDevice


class LiveStage(Stage):
    """Windows of W samples, counted from the first sample of the stream.

    Parameters
    ----------
    devices : sequence of LiveDevice
        One per stream.
    samples : int
        W.
    """

    def __init__(self, devices: Sequence[LiveDevice], samples: int) -> None:
        self.devices, self.samples, self.filled = list(devices), samples, 0
        rows = len(self.devices)
        # The window under way: it is overwritten when it has been asked.
        self._x, self._y = np.full((rows, samples), np.nan), np.full((rows, samples), np.nan)
        self._valid = np.zeros((rows, samples), dtype=np.bool_)
        self._shown: list[tuple[Floats, Floats] | None] = [None] * rows

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """Synthetic gaze for the samples that come, none of which shows before its window ended."""
        done, n = 0, x_deg.shape[1]
        while done < n:
            take = min(self.samples - self.filled, n - done)
            now, kept = slice(done, done + take), slice(self.filled, self.filled + take)
            for row, shown in enumerate(self._shown):
                self._x[row, kept], self._y[row, kept] = x_deg[row, now], y_deg[row, now]
                self._valid[row, kept] = valid[row, now]
                valid[row, now] = shown is not None
                x_deg[row, now], y_deg[row, now] = (
                    (np.nan, np.nan) if shown is None else (shown[0][kept], shown[1][kept])
                )
            self.filled += take
            done += take
            if self.filled == self.samples:
                self._end_windows()
        return t_ns, x_deg, y_deg, valid

    def _end_windows(self) -> None:
        for row, device in enumerate(self.devices):
            self._shown[row] = device.end_window(self._x[row], self._y[row], self._valid[row])
        self._forget_gaze()

    def _forget_gaze(self) -> None:
        # Raw gaze does not stay in memory longer than it is needed.
        self._x[...], self._y[...], self._valid[...], self.filled = np.nan, np.nan, False, 0

    def reset(self) -> None:
        """Begin a new window and a new stream; a window that was not full is not asked and costs
        nothing, and what was spent stays spent.
        """
        self._forget_gaze()
        self._shown = [None] * len(self.devices)
        for device in self.devices:
            device.forget()
