"""k-same-synth as printed: two calls of k-same-select on event parameters, and each person's own
frame of events around the averages.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.synthesis.ksame.pairs import degrees, places
from gazeveil.privacy.synthesis.motion import Motion
from gazeveil.privacy.tables.ksame import blocks
from gazeveil.privacy.tables.recordings import task_of


def published_motions(
    motions: Mapping[RecordingKey, Motion], k: int, words: Words
) -> tuple[dict[RecordingKey, Motion], list[int]]:
    """The parameters of each recording, replaced by averages over groups that are drawn for each
    task, once for fixations and once for saccades, and how many people share each cell.

    A recording whose fixations or saccades are alone in their cell is left out.
    """
    # Rows hold places as they are averaged, and seconds instead of samples.
    fixations = {key: _fixation_rows(m) for key, m in motions.items()}
    saccades = {
        key: m.saccades / np.array([1.0, 1.0, 1.0, m.rate_hz]) for key, m in motions.items()
    }
    sharing: list[int] = []
    averaged = [_k_same(rows, k, words, sharing) for rows in (fixations, saccades)]
    laws = {
        key: _framed(m, averaged[0][key], averaged[1][key])
        for key, m in motions.items()
        if key in averaged[0] and key in averaged[1]
    }
    return laws, sharing


def _fixation_rows(m: Motion) -> Floats:
    return np.column_stack(
        (
            places(m.space, m.fixations[:, 0], m.fixations[:, 1]),
            m.fixations[:, 2:4],
            m.fixations[:, 4] / m.rate_hz,
        )
    )


def _k_same(
    rows: Mapping[RecordingKey, Floats], k: int, words: Words, sharing: list[int]
) -> dict[RecordingKey, Floats]:
    """k-same-select sequence: blocks per task, padded by the last row, averaged row by row, cut
    back to each person's own number of rows. `sharing` gets the number of people in each cell, and
    a recording alone in its cell is left out.
    """
    out = dict(rows)
    for task in sorted({task_of(key) for key in rows}):
        mine = [key for key in rows if task_of(key) == task]
        people = sorted({key[0] for key in mine})
        for block in blocks(len(people), k, words):
            for cell in sorted({key[1:] for key in mine}):
                # Who made no such event has no row to repeat, and shares nothing.
                having = [
                    (people[i], *cell) for i in block if len(rows.get((people[i], *cell), ())) > 0
                ]
                sharing.append(len(having))
                if len(having) < 2:
                    for key in having:
                        del out[key]
                    continue
                longest = max(len(rows[key]) for key in having)
                total: Floats = np.sum(
                    [
                        rows[key][np.minimum(np.arange(longest), len(rows[key]) - 1)]
                        for key in having
                    ],
                    axis=0,
                )
                for key in having:
                    out[key] = total[: len(rows[key])] / len(having)
    return out


def _framed(own: Motion, fixations: Floats, saccades: Floats) -> Motion:
    """Averages in a person's own order of events, with their own gaps and length."""
    if len(own) == 0:
        return own
    samples = [
        np.maximum(np.rint(rows[:, -1] * own.rate_hz), 1.0) for rows in (fixations, saccades)
    ]
    counts = np.empty(len(own))
    counts[own.is_fixation], counts[~own.is_fixation] = samples
    before = np.diff(own.onset, prepend=0) - np.concatenate(([0], own.counts[:-1]))
    onset = (np.cumsum(before) + np.concatenate(([0.0], np.cumsum(counts)[:-1]))).astype(np.int64)
    x, y = degrees(own.space, fixations[:, :3])
    return Motion(
        own.space,
        own.rate_hz,
        own.samples,
        np.column_stack((x, y, fixations[:, 3:5], samples[0])),
        np.column_stack((saccades[:, :3], samples[1])),
        own.is_fixation,
        onset,
    )
