"""Digests of what reading gives: names, times, places to a ten-millionth of a degree, validity."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from gazeveil.gaze.recording import Recording

#: Digits of a degree that all machines agree on.
_DIGITS = 7


def digest(recordings: Iterable[Recording]) -> str:
    """One digest of many recordings, in any order."""
    return hashlib.sha256("".join(sorted(map(_one, recordings))).encode()).hexdigest()[:16]


def _one(recording: Recording) -> str:
    found = hashlib.sha256("|".join(recording.key).encode())
    found.update(recording.t_ns.tobytes())
    found.update(recording.valid.tobytes())
    for angle in (recording.x_deg, recording.y_deg):
        seen = np.round(angle[recording.valid], _DIGITS) + 0.0  # no negative zero
        found.update(seen.tobytes())
    if recording.events is not None and not len(recording):
        found.update(recording.events.onset_ns.tobytes())
    return found.hexdigest()
