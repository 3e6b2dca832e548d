"""Devices and curator of DPGazeSynth in one process, for a release."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.noise.frequency_oracle import Tally
from gazeveil.privacy.noise.local import OUE
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.synthesis.dpgazesynth.curation.curator import Curator
from gazeveil.privacy.synthesis.dpgazesynth.curation.synthesis import samples_of
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.device import head_of
from gazeveil.privacy.synthesis.dpgazesynth.reports.messages import Report, ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Model, Scheme, Streams
from gazeveil.privacy.synthesis.dpgazesynth.reports.sums import added_up
from gazeveil.privacy.synthesis.dpgazesynth.windows import Windows, samples_of_window, windows_of

# Unary answers about more categories than this are drawn as their sum.
_FEW = 1024


def private_windows(
    scheme: Scheme, cohort: Cohort
) -> Iterator[tuple[WindowLayout, ReportHeader, Windows]]:
    """What the devices know; of a recording itself only what is public stays in memory."""
    kind: type[Space] | None = None
    for recording in cohort:
        samples = samples_of_window(recording, float(scheme.window_s), "dpgazesynth")
        if kind is not None and not isinstance(recording.space, kind):
            raise DataError(
                "Screens and spheres have different grids and cannot be learned about together."
                " Release them one after the other."
            )
        kind = type(recording.space)
        plan = scheme.plan(recording.space, recording.rate_hz)
        yield plan, head_of(recording), windows_of(recording, plan.grid, samples)


def collect(
    scheme: Scheme,
    parameters: str,
    private: Iterable[tuple[WindowLayout, ReportHeader, Windows]],
    streams: Streams,
) -> Curator:
    """Devices and curator in one process: the noisy starts and times of every recording, and the
    sums of all answers.

    Sums of unary answers about many categories are drawn as sums; see
    :mod:`gazeveil.privacy.synthesis.dpgazesynth.reports.sums`.
    """
    curator = Curator(scheme, parameters)
    counted: dict[str, tuple[OUE, Ints]] = {}
    for plan, head, windows in private:
        own = streams.of(*head.key)
        report, truth = scheme.ask(plan, head, windows, own)
        added: dict[str, Tally] = {}
        for name, oracle in scheme.questions(plan).items():
            if isinstance(oracle, OUE) and oracle.categories > _FEW:
                before = counted[name][1] if name in counted else 0
                counted[name] = (
                    oracle,
                    before + np.bincount(truth[name], minlength=oracle.categories),
                )
            else:
                added[name] = oracle.tally(
                    oracle.report(truth[name], Words(own.source("answers", name)))
                )
        curator.keep(plan, report, added)
    for name, (unary, counts) in counted.items():
        curator.sums[name] = added_up(unary, counts, Words(streams.source("sums", name)))
    return curator


def synthetic(
    scheme: Scheme, model: Model | None, report: Report, motion: str, key: bytes
) -> Recording:
    """A synthetic recording; the same each time for the same key."""
    head = report.head
    named = hashlib.blake2b("\x1f".join(head.key).encode(), key=key, digest_size=16).digest()
    rng = np.random.Generator(np.random.Philox(key=np.frombuffer(named, dtype=np.uint64)))
    x, y = np.empty(0), np.empty(0)
    if model is not None and len(report):
        plan = scheme.plan(head.space, head.rate_hz)
        cells, lengths = scheme.walk(plan, model, report, rng)
        x, y = samples_of(plan.grid, cells, lengths, head.samples, head.rate_hz, motion, rng)
    t = head.begin_ns + np.rint(np.arange(head.samples) * (1e9 / head.rate_hz)).astype(np.int64)
    return Recording(
        head.person,
        head.stimulus,
        t,
        x,
        y,
        np.ones(len(t), dtype=np.bool_),
        space=head.space,
        rate_hz=head.rate_hz,
        session=head.session,
        task=head.task,
    )
