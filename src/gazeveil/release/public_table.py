"""The feature table that is published, at a length that tells nothing of gaze.

How many events a recording has follows from gaze. So the length of a released table follows from
the public durations alone: a stated most of events a second, or the windows that fit. Rows beyond
it are cut, and a recording without any row is padded like all others: it must not be missing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from gazeveil.features import event_features, window_features
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import KEY_NAMES
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.publication.alignment import Alignment

#: Fixations and saccades a second that a published table has room for: four of each. People make
#: about three.
MOST_EVENTS_HZ = 8

_WINDOW_S, _STEP_S = Fraction(30), Fraction(1, 2)


def at_public_length(
    mechanism: Mechanism[Any], alignment: Alignment, table: str
) -> tuple[Mechanism[Any], str]:
    """The mechanism with a length from the longest public duration, and the words that name it,
    where it needs one and nobody named it; else as it is, and no words.
    """
    name = next((n for n in ("length", "seconds") if getattr(mechanism, n, 0) is None), None)
    if name is None or mechanism.claim.status != "proved" or not alignment.lengths_s:
        return mechanism, ""
    seconds = max(alignment.lengths_s.values())
    public: Fraction | int = seconds
    if mechanism.kind == "table":
        windows = max(0, math.floor((seconds - _WINDOW_S) / _STEP_S)) + 1
        public = math.ceil(seconds * MOST_EVENTS_HZ) if table == "events" else windows
    named: dict[str, Any] = {name: public}
    return replace(mechanism, **named), f"{name}={public}"


def feature_table(cohort: Cohort, table: str, padded: bool) -> FeatureTable:
    """The table of events or windows of a cohort; where it is padded, recordings without a row have
    one in which nothing is measured.
    """
    made = event_features(cohort) if table == "events" else window_features(cohort)
    present = set(zip(*(made.keys[n].tolist() for n in KEY_NAMES), strict=True))
    missing = [key for key in cohort.keys if key not in present]
    if not padded or not missing or not len(made):
        return made
    person, stimulus, session, task = (
        np.append(made.keys[name], [key[place] for key in missing])
        for place, name in enumerate(KEY_NAMES)
    )
    index = np.append(made.keys.index, np.zeros(len(missing), dtype=np.int64))
    keys = Keys(person, stimulus, session, task, index)
    values = np.full((len(missing), len(made.columns)), np.nan)
    return replace(made, values=np.concatenate((made.values, values)), keys=keys)
