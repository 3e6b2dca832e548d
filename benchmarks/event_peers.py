"""Detectors of other packages, run on our recordings to compare ours with them.

Each is a function from a recording to one word per sample. Its package is imported when it is
called: none of them is needed to use Gazeveil.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from gazeveil.arrays import Texts
from gazeveil.errors import DataError, MissingExtraError
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording

#: Our words of REMoDNaV's labels.
REMODNAV_KINDS = {
    "FIXA": "fixation",
    "PURS": "pursuit",
    "SACC": "saccade",
    "ISAC": "saccade",
    "HPSO": "pso",
    "IHPS": "pso",
    "LPSO": "pso",
    "ILPS": "pso",
}


def remodnav(recording: Recording) -> Texts:
    """REMoDNaV (Dar, Wagner and Hanke 2021) with its defaults, on gaze on a Screen with a known
    rate.

    The filter is made as long as its own check asks for: an odd number of samples above its order.

    Returns
    -------
    array of str, shape (n,)
        One word per sample; samples in no event are `undefined`.

    Raises
    ------
    MissingExtraError
        If the package `remodnav` is not installed.
    DataError
        If REMoDNaV cannot work on the recording.
    """
    try:
        classifier_type = import_module("remodnav.clf").EyegazeClassifier
    except ImportError as error:
        raise MissingExtraError("remodnav", "dev") from error
    if isinstance(recording.space, Sphere):
        raise DataError(
            f"REMoDNaV works on a flat screen, and {recording.title} is on a Sphere. Take a"
            " detector of detect for it."
        )
    rate = recording.rate_hz
    seen = np.flatnonzero(recording.valid)
    if np.isnan(rate) or len(seen) == 0:
        raise DataError(
            f"REMoDNaV needs gaze at a known rate, and {recording.title} has {len(seen)} valid"
            f" samples at {rate:g} Hz. Leave it out."
        )
    samples = max(5, int(0.019 * rate) | 1)
    try:
        events = _remodnav_events(classifier_type, recording, samples, samples + 3)
    except DataError:
        # It widens losses by 10 ms, and one near an end then reached into the filter after all.
        wider = samples + 3 + int(0.01 * rate)
        events = _remodnav_events(classifier_type, recording, samples, wider)
    words = np.full(len(recording), "undefined", dtype=WORD)
    for event in events:
        first, last = round(event["start_time"] * rate), round(event["end_time"] * rate)
        words[first:last] = REMODNAV_KINDS[event["label"]]
    return words


def _remodnav_events(
    classifier_type: Any, recording: Recording, samples: int, held: int
) -> list[dict[str, Any]]:
    """Its events with a filter of so many samples.

    It stops where a loss touches either end of a recording: the nearest gaze is held there for
    `held` samples.
    """
    rate = recording.rate_hz
    seen = np.flatnonzero(recording.valid)
    gaze = np.empty(len(recording), dtype=[("x", float), ("y", float)])
    for name, values in (("x", recording.x_deg), ("y", recording.y_deg)):
        gaze[name] = np.where(recording.valid, values, np.nan)
        for end in (slice(0, held), slice(len(gaze) - held, None)):
            gaze[name][end] = np.interp(np.arange(len(gaze))[end], seen, values[seen])
    try:
        with _quiet():
            classifier = classifier_type(px2deg=1.0, sampling_rate=rate)
            return list(classifier(classifier.preproc(gaze, savgol_length=(samples + 0.5) / rate)))
    except (ValueError, IndexError, TypeError, ZeroDivisionError) as error:
        # It has no errors of its own for a recording that is too short or mostly lost.
        said = str(error).strip().partition("\n")[0].rstrip(".")
        raise DataError(f"REMoDNaV stopped on {recording.title}: {said}. Leave it out.") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Mute what REMoDNaV tells about its filters for each recording."""
    log = logging.getLogger("remodnav")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
