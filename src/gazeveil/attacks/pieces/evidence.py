"""How much each piece looks like each person, and the same of pieces that were held out.

All kinds of evidence of `fusion` judge each piece. Stimuli of the gallery are held out in turn, so
that every piece of it is judged by who never saw its stimulus: with one decision per piece, as it
will be in the probe. By these the kinds are weighed and the scale of the sum is set, so that a row
of it is the logarithm of probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores, standardised_scores
from gazeveil.attacks.evidence import Matcher, fusion_weights, remembered
from gazeveil.attacks.identify.fusion import match_kind
from gazeveil.attacks.identify.linkage import match
from gazeveil.attacks.identify.steps import match_steps
from gazeveil.attacks.vectors.convolutions import KINDS as CONVOLUTIONS
from gazeveil.attacks.vectors.convolutions import convolution_vectors
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.recording import RecordingKey

#: Parts into which stimuli of the gallery are dealt, and most people on whom anything is weighed.
PARTS, MOST_PEOPLE = 4, 60

# A candidate that is not eligible scores far below all others.
_NOBODY = -10.0

#: Factors of the scale that are tried.
_SCALES = np.geomspace(0.02, 5.0, 60)

_Vectors = tuple[RecordingVectors, RecordingVectors]
_Kind = tuple[Callable[[], _Vectors], Matcher]


@dataclass(frozen=True, eq=False)
class PieceScores:
    """Scores of pieces, as logarithms of probabilities up to a constant of each row.

    Parameters
    ----------
    known : tuple of str
        The people of the gallery, sorted.
    probe : mapping of key to array of float64, shape (people,)
        Of every piece of the probe.
    held_out : mapping of key to array of float64, shape (people,)
        Of pieces of the gallery, each judged without its stimulus; empty where the gallery has one
        stimulus or fewer than three people.
    """

    known: tuple[str, ...]
    probe: dict[RecordingKey, Floats]
    held_out: dict[RecordingKey, Floats]


def piece_scores(gallery: RecordingSet, probe: RecordingSet) -> PieceScores:
    """Judge the pieces of a probe, under names of pieces, and those of its gallery, under names of
    people.

    Raises
    ------
    DataError
        If no kind of evidence can judge.
    """
    return remembered(gallery, probe, "pieces", lambda: _piece_scores(gallery, probe))


def _piece_scores(gallery: RecordingSet, probe: RecordingSet) -> PieceScores:
    known = gallery.persons
    asked: list[Floats] = []
    tried: list[Floats] = []
    some, own = _weighed_on(gallery, known)
    for vectors, matcher in _kinds(gallery, probe):
        try:
            learnt, unknown = vectors()
            asked.append(_rows(matcher(learnt, unknown), known, probe.keys))
        except DataError:
            # A release may leave no events, or pieces that are too short: then the others judge.
            continue
        tried.append(_held_out(learnt.where(some), gallery, matcher, known))
    if not asked:
        raise DataError("Nothing in the pieces can be judged: no feature is known on both sides.")
    keys = [gallery.keys[i] for i in some.tolist()]
    if not len(keys):
        total = np.mean(asked, axis=0)
        return PieceScores(known, dict(zip(probe.keys, total, strict=True)), {})
    weights = fusion_weights(tried, own)
    total, held = (np.tensordot(weights, np.stack(part), axes=1) for part in (asked, tried))
    scale = _scale(held, own)
    return PieceScores(
        known,
        dict(zip(probe.keys, scale * total, strict=True)),
        dict(zip(keys, scale * held, strict=True)),
    )


def _kinds(gallery: RecordingSet, probe: RecordingSet) -> list[_Kind]:
    """Vectors of both sides, made on first use, with what judges them."""

    def vectors(features: str) -> Callable[[], _Vectors]:
        return lambda: (recording_vectors(gallery, features), recording_vectors(probe, features))

    def convolved(kind: str) -> Callable[[], _Vectors]:
        return lambda: convolution_vectors(gallery, probe, kind)

    return [
        (vectors("steps"), match_steps),
        *((convolved(kind), match_kind) for kind in CONVOLUTIONS),
        *((vectors(f), match) for f in ("summary", "extended", "trajectory")),
    ]


def _weighed_on(gallery: RecordingSet, known: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Places of the pieces of the gallery on which evidence is weighed, and whose they are."""
    at = {person: i for i, person in enumerate(known)}
    stimuli = {w.stimulus for w in (gallery.piece_windows or {}).values()}
    if len(stimuli) < 2 or len(known) < 3:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    whose = np.array([at[key[0]] for key in gallery.keys], dtype=np.int64)
    some = np.flatnonzero(whose < MOST_PEOPLE)
    return some, whose[some]


def _held_out(
    vectors: RecordingVectors, gallery: RecordingSet, matcher: Matcher, known: tuple[str, ...]
) -> Floats:
    """Standardised scores of pieces, each judged without its stimulus; zeros where nothing can."""
    windows = gallery.piece_windows or {}
    stimuli = np.array([windows[key].stimulus for key in vectors.keys], dtype=np.str_)
    part = np.unique(stimuli, return_inverse=True)[1] % PARTS
    out = np.zeros((len(vectors.keys), len(known)))
    for k in np.unique(part):
        rows = np.flatnonzero(part == k)
        unknown = vectors.where(rows)
        # One name for each piece, as in the probe.
        names = tuple((f"{i:09}", *key[1:]) for i, key in zip(rows, unknown.keys, strict=True))
        unknown = RecordingVectors(names, unknown.values, unknown.columns, unknown.blocks)
        try:
            found = matcher(vectors.where(np.flatnonzero(part != k)), unknown)
        except DataError:
            continue
        out[rows] = _rows(found, known, names)
    return out


def _rows(scores: Scores, known: tuple[str, ...], keys: tuple[RecordingKey, ...]) -> Floats:
    """Standardised scores of pieces against all known people, in the order of the keys."""
    place = {name: i for i, name in enumerate(scores.probes)}
    at = {person: i for i, person in enumerate(known)}
    rows = np.full((len(keys), len(known)), _NOBODY)
    values = standardised_scores(scores.values)
    rows[:, [at[p] for p in scores.known]] = values[[place[key[0]] for key in keys]]
    return rows


def _scale(rows: Floats, own: Ints) -> float:
    """The factor under which the rows are the logarithms of probabilities that fit best."""
    right = rows[np.arange(len(own)), own]
    top = rows.max(axis=1)

    def fit(factor: float) -> float:
        whole = np.log(np.exp(factor * (rows - top[:, None])).sum(axis=1)) + factor * top
        return float((factor * right - whole).sum())

    return float(max(_SCALES, key=fit))
