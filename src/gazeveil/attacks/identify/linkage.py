"""`linkage`: whole recordings as vectors, matched person by person.

From the vector of each recording the mean of its stimulus over the people of the same side is
taken, so that what is left is what differs between people. A person is the mean of their
recordings. Differences are whitened by the covariance within people, as the gallery shows it
(shrunk after Ledoit and Wolf 2004, "A well-conditioned estimator for large-dimensional covariance
matrices"), and people are compared by the cosine of the angle between them. Simple, and on real
recordings stronger than the network of the papers.

Before whitening each feature is multiplied by the share of its variance that lies between people
(the intraclass correlation, of the gallery), so that features which tell nothing do not drown the
others. Where there are several kinds of features (`extended`, or a denoiser, which gives two
signals) each kind is matched on its own, and the scores are added with weights: how far people
stand out from the others where the gallery is matched with itself, some stimuli against the rest.
Nothing of the probe's truth enters anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Bools, Floats, Texts
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.denoiser import Denoised, before, standardised_scores
from gazeveil.attacks.identify.vectors import check_features, recording_vectors
from gazeveil.errors import DataError
from gazeveil.features.columns import column_deviations, column_means
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors

#: What each kind of vectors is made of.
NEEDS = {
    "summary": ("fixation", "saccade"),
    "extended": ("samples", "fixation", "saccade"),
    "trajectory": ("samples",),
}

#: Standardised features are cut here: one odd event must not decide.
CLIP = 4.0

#: Parts into which the stimuli of the gallery are dealt to weigh kinds of features.
FOLDS = 5

#: From this many people on, a side shows by itself how far people differ.
LEAST_PEOPLE = 3

_TINY = 1e-9


@dataclass(frozen=True)
class Linkage(Attack):
    """Match people by whitened vectors of their recordings.

    Parameters
    ----------
    features : {"summary", "extended", "trajectory"}
        `summary`: means and standard deviations of event features and event rates, also from
        tables; `extended`: about 300 features of events, places and dynamics; `trajectory`: that of
        0.2 s averages against the crowd's. The last two need samples.

    Examples
    --------
    >>> str(Linkage(features="extended", denoiser="lowpass"))
    'linkage:denoiser=lowpass,features=extended'
    """

    name: ClassVar[str] = "linkage"
    needs: ClassVar[tuple[str, ...]] = NEEDS["summary"]

    #: It weighs the filtered and the released signal itself
    #: (:func:`gazeveil.attacks.denoiser.identify`).
    two_signals: ClassVar[bool] = True

    features: str = "summary"

    def check(self) -> None:
        """One of the kinds of vectors, and what those are made of."""
        check_features(self.name, self.features)
        self.store("needs", NEEDS[self.features])

    def can(self, recording_set: RecordingSet) -> bool:
        """Summary vectors need a table of events, the others samples."""
        if self.features == "summary":
            return recording_set.has("fixation") or recording_set.has("saccade")
        return recording_set.cohort is not None

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Cosines, or weighted sums of standardised cosines where there are several kinds of
        features; nothing is random.
        """
        pairs = [(gallery, probe)]
        if isinstance(gallery, Denoised) or isinstance(probe, Denoised):
            pairs.append((before(gallery), before(probe)))
        return match(
            [
                (recording_vectors(g, self.features), recording_vectors(p, self.features))
                for g, p in pairs
            ]
        )


def match(signals: list[tuple[RecordingVectors, RecordingVectors]]) -> Scores:
    """Scores of the people of the probe against those of the gallery.

    Parameters
    ----------
    signals : list of (gallery vectors, probe vectors)
        One pair for each signal of the same recordings.

    Raises
    ------
    DataError
        Without recordings on either side, or if no feature is known on both.
    """
    blocks = [block for gallery, probe in signals for block in _blocks(gallery, probe)]
    if not blocks:
        raise DataError(
            "Linkage needs recordings on both sides with at least one feature that both sides know."
        )
    known = tuple(sorted({key[0] for key in signals[0][0].keys}))
    probes = tuple(sorted({key[0] for key in signals[0][1].keys}))
    values = [_cosines(gallery, probe, known, probes) for gallery, probe in blocks]
    if len(blocks) == 1:
        return Scores(known, probes, values[0].round(9))
    weights = np.array([_worth(gallery) for gallery, _ in blocks])
    weights = (
        weights / weights.sum() if weights.sum() > 0 else np.full(len(blocks), 1 / len(blocks))
    )
    total = sum(
        (w * standardised_scores(v) for w, v in zip(weights, values, strict=True)),
        np.zeros((len(probes), len(known))),
    )
    # People whose material is the same must tie, whatever the last digit of a product says.
    return Scores(known, probes, total.round(9))


def _blocks(
    gallery: RecordingVectors, probe: RecordingVectors
) -> list[tuple[RecordingVectors, RecordingVectors]]:
    """Kinds of features that both sides know, each with the columns that both know."""
    if not len(gallery) or not len(probe):
        return []
    shared = _known_columns(gallery) & _known_columns(probe)
    both = [c for c in gallery.columns if c in shared]
    g, p = gallery.select(both), probe.select(both)
    return [(g.of_block(name), p.of_block(name)) for name in dict.fromkeys(g.blocks)]


def _known_columns(vectors: RecordingVectors) -> set[str]:
    """Columns in which at least one recording has a value."""
    return {
        vectors.columns[i] for i in np.flatnonzero(np.isfinite(vectors.values).any(axis=0)).tolist()
    }


def _cosines(
    gallery: RecordingVectors,
    probe: RecordingVectors,
    known: tuple[str, ...],
    probes: tuple[str, ...],
) -> Floats:
    """Cosines between people, shape (probes, known); 0 for people with nothing to go by."""
    g, p = _standard(gallery, gallery), _standard(probe, gallery)
    used = (np.abs(g).max(axis=0) > 0) & (np.abs(p).max(axis=0) > 0)
    if not used.any():
        return np.zeros((len(probes), len(known)))
    g, p = g[:, used], p[:, used]
    people = _means(g, gallery.persons, known)
    rest = g - people[np.searchsorted(np.array(known), gallery.persons)]
    weight = _between(people, rest, gallery.persons)
    white = _whitening(rest * weight, g * weight)
    a, b = people * weight @ white, _means(p, probe.persons, probes) * weight @ white
    return _unit(b) @ _unit(a).T


def _standard(vectors: RecordingVectors, reference: RecordingVectors) -> Floats:
    """Differences from the mean of the stimulus over people, in units of their source, cut at
    +-CLIP; 0 where nothing is known, as everybody else.

    Sources (see :func:`_sources`) are treated apart: a mechanism that moves or stretches a feature
    does so for everybody. A source with fewer than LEAST_PEOPLE people shows no unit of its own;
    its unit is the reference's.
    """
    sources = _sources(vectors)
    result = np.zeros_like(vectors.values)
    for source in np.unique(sources):
        rows = sources == source
        centred = _centred(vectors, rows, reference)
        many = vectors is reference or len(np.unique(vectors.persons[rows])) >= LEAST_PEOPLE
        unit = (
            _unit_of(centred)
            if many
            else _unit_of(_centred(reference, np.ones(len(reference), dtype=np.bool_), reference))
        )
        result[rows] = np.clip(np.nan_to_num(centred / unit), -CLIP, CLIP)
    return result


def _centred(vectors: RecordingVectors, rows: Bools, reference: RecordingVectors) -> Floats:
    """The rows of one source less the mean of their stimulus over the people of the source.

    Where another source shows a stimulus by more than twice as many people (a raw gallery with some
    protected examples), its mean there, moved and stretched to fit this source, is the better one.
    Where nobody else saw it the mean of the source stands, and that of the reference where the side
    has one person.
    """
    values, persons, stimuli = vectors.values, vectors.persons, vectors.stimuli
    result = values[rows] - column_means(
        values[rows] if len(np.unique(persons)) > 1 else reference.values
    )
    borrowed = np.full_like(result, np.nan)
    for stimulus in np.unique(stimuli[rows]):
        here, there = rows & (stimuli == stimulus), ~rows & (stimuli == stimulus)
        place, people = stimuli[rows] == stimulus, len(np.unique(persons[here]))
        if len(np.unique(persons[there])) > 2 * people:
            borrowed[place] = column_means(values[there])
        elif people > 1:
            result[place] = values[here] - column_means(values[here])
    lent = np.isfinite(borrowed).any(axis=1)
    if lent.any():
        x, d = values[rows][lent], borrowed[lent]
        x, d = x - column_means(x), np.nan_to_num(d - column_means(d))
        square = (d**2).sum(axis=0)
        slope = np.where(
            square > _TINY, (np.nan_to_num(x) * d).sum(axis=0) / np.maximum(square, _TINY), 0.0
        )
        result[lent] = x - slope * d
    return result


def _unit_of(values: Floats) -> Floats:
    """Standard deviation of the known values of each column; infinite where they do not vary, so
    that a constant becomes 0.
    """
    spread = column_deviations(values)
    return np.where(spread > _TINY, spread, np.inf)


def _sources(vectors: RecordingVectors) -> Texts:
    """Which release each recording comes from: :meth:`RecordingSet.together` writes it behind a `~`
    into the session.
    """
    return np.array(
        [key[2].rpartition("~")[2] if "~" in key[2] else "" for key in vectors.keys], dtype=np.str_
    )


def _means(values: Floats, persons: Texts, names: tuple[str, ...]) -> Floats:
    """Mean row of each person; zeros for somebody without rows."""
    result = np.zeros((len(names), values.shape[1]))
    for i, name in enumerate(names):
        mine = persons == name
        if mine.any():
            result[i] = values[mine].mean(axis=0)
    return result


def _between(people: Floats, rest: Floats, persons: Texts) -> Floats:
    """Share of each column's variance of person means that is not chance: 1 - within / between mean
    squares, at least 0; ones where that is not known.
    """
    freedom = len(rest) - len(set(persons.tolist()))
    if freedom < 1 or len(people) < 2:
        return np.ones(people.shape[1])
    within = (rest**2).sum(axis=0) / freedom
    between = len(rest) / len(people) * (people**2).sum(axis=0) / (len(people) - 1)
    share = np.maximum(0.0, 1.0 - within / np.maximum(between, _TINY))
    return share if (share > 0).any() else np.ones(people.shape[1])


def _whitening(rest: Floats, rows: Floats) -> Floats:
    """The matrix that makes differences within people round; differences from the mean stand in
    where everybody has one recording.
    """
    from sklearn.covariance import ledoit_wolf

    source = rest if np.abs(rest).max() > _TINY else rows
    covariance, _ = ledoit_wolf(source, assume_centered=True)
    values, axes = np.linalg.eigh(covariance)
    white: Floats = axes / np.sqrt(np.maximum(values, values.max() * 1e-8))
    return white


def _unit(rows: Floats) -> Floats:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > _TINY, rows / np.maximum(length, _TINY), 0.0)


def _worth(gallery: RecordingVectors) -> float:
    """How far people stand out where some stimuli of the gallery are matched with the rest.

    The mean, over people, of their own score less the mean of the others', in standard deviations
    of the others'. At least 0; 1 where the gallery has one stimulus, or fewer than 3 people to
    compare.
    """
    stimuli = np.unique(gallery.stimuli)
    fold = np.searchsorted(stimuli, gallery.stimuli) % FOLDS
    gains: list[float] = []
    for k in range(min(FOLDS, len(stimuli))):
        probe, rest = gallery.where(fold == k), gallery.where(fold != k)
        people = tuple(sorted(set(probe.persons.tolist()) & set(rest.persons.tolist())))
        if len(people) < 3:
            continue
        values = _cosines(
            rest.where(np.isin(rest.persons, people)),
            probe.where(np.isin(probe.persons, people)),
            people,
            people,
        )
        own = np.diag(values)
        others = values[~np.eye(len(people), dtype=np.bool_)].reshape(len(people), -1)
        gains += ((own - others.mean(axis=1)) / np.maximum(others.std(axis=1), _TINY)).tolist()
    return max(0.0, float(np.mean(gains))) if gains else 1.0
