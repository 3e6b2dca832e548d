"""A device that is its own curator: it asks each window of a stream, adds up its own noisy answers,
and draws gaze from them.

Everything private is in :meth:`LiveDevice.end_window`, behind
:meth:`~gazeveil.privacy.synthesis.dpgazesynth.reports.one_report.OneReport.ask_from` and the
oracles' reports. What is shown is drawn from noisy answers and public randomness alone.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.noise.frequency_oracle import Tally
from gazeveil.privacy.randomness.identity import ProcessIdentity
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.randomness.uniform import generator
from gazeveil.privacy.synthesis.dpgazesynth.curation.synthesis import move
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.messages import Report, ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.reports.one_report import OneReport
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Model, Streams
from gazeveil.privacy.synthesis.dpgazesynth.windows import windows_in

#: A model is learned anew after every window at first, and later where the number of windows has
#: grown by a quarter: what one more of a hundred tells is not worth the time.
_GROWN = 1.25


class StreamBits(Streams):
    """Random bits of one stream: children of one source.

    Parameters
    ----------
    source : Source
        The operating system, a test stream, or the key of a release.
    *names : str
        What a child is for.
    """

    def __init__(self, source: Source, *names: str) -> None:
        self._source, self.names = source, names

    def of(self, *names: str) -> StreamBits:
        """The bits of a part of the work."""
        return StreamBits(self._source, *self.names, *names)

    def source(self, *names: str) -> Source:
        """The bits for one purpose."""
        return self._source.child(*self.names, *names)


class LiveDevice:
    """One stream of a device.

    Parameters
    ----------
    scheme : OneReport
        How it asks and learns.
    plan : WindowLayout
        The public numbers.
    motion : str
        One of :data:`~gazeveil.privacy.synthesis.dpgazesynth.curation.synthesis.MOTIONS`.
    bits : StreamBits
        Each window has its own, for its noise and for what is drawn in public from it.
    most : int or None
        Windows that may be asked; None for any number. With a number, a copy asks none.
    """

    def __init__(
        self, scheme: OneReport, plan: WindowLayout, motion: str, bits: StreamBits, most: int | None
    ) -> None:
        self.scheme, self.plan, self.motion, self.most = scheme, plan, motion, most
        self.bits, self.asked = bits, 0
        self._identity = ProcessIdentity()
        self._oracles = scheme.questions(plan)
        self._sums = {
            name: Tally(np.zeros(oracle.categories, dtype=np.int64), 0)
            for name, oracle in self._oracles.items()
        }
        self._head = ReportHeader("", "", "", "", plan.rate_hz, plan.samples, 0, plan.grid.space)
        # Learning from nothing gives the public model, and loads what learning needs before the
        # first window ends.
        self._model, self._learned = self._learn(), 0
        self._last: Floats | None = None
        self._drift = np.zeros(2)

    @property
    def spent(self) -> bool:
        """Whether no window may be asked any more. A budget is the original's alone: a copy, a
        forked child and a session that is resumed from a file would each spend what is left of it.
        """
        if self.most is None:
            return False
        return self.asked >= self.most or not self._identity.original

    def forget(self) -> None:
        """Begin a new stream: what was learned and spent stays, where gaze was does not."""
        self._last, self._drift = None, np.zeros(2)

    def end_window(
        self, x_deg: Floats, y_deg: Floats, valid: Bools
    ) -> tuple[Floats, Floats] | None:
        """Ask the samples of a window, and give as many to show instead; None where the budget is
        spent, and then nothing is looked at.
        """
        if self.spent:
            return None
        windows = windows_in(x_deg, y_deg, valid, self.plan.grid, self.plan.samples)
        own = self.bits.of("window", str(self.asked))
        report, truth = self.scheme.ask_from(self.asked, self.plan, self._head, windows, own)
        for name, oracle in self._oracles.items():
            if len(truth[name]):
                answers = oracle.report(truth[name], Words(own.source("answers", name)))
                self._sums[name] = self._sums[name] + oracle.tally(answers)
        self.asked += 1
        if self.asked >= self._learned * _GROWN:
            self._model, self._learned = self._learn(), self.asked
        return self._drawn(report, own.source("synthesis"))

    def _learn(self) -> Model:
        return self.scheme.learn({self.plan.grid.space: self.plan}, self._sums, [])

    def _drawn(self, report: Report, source: Source) -> tuple[Floats, Floats]:
        """Samples of a window, from where the last one ended."""
        rng = generator(source)
        cells, lengths = self.scheme.walk(self.plan, self._model, report, rng)
        there = lengths > 0
        count, cell = lengths[there], cells[there]
        n, grid = self.plan.samples, self.plan.grid
        x, y = grid.points(cell, rng.random(len(cell)), rng.random(len(cell)))
        if self.motion == "still":
            return np.repeat(x, count)[:n], np.repeat(y, count)[:n]
        places = grid.space.vectors(x, y)
        if self._last is not None:
            places, count = np.vstack((self._last, places)), np.append(0, count)
        self._last = places[-1:].copy()
        return move(
            places,
            count,
            n,
            self.plan.rate_hz,
            isinstance(grid.space, Sphere),
            rng.standard_normal((n, 2)),
            self._drift,
        )
