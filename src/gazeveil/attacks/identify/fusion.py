"""`fusion`: the sum of what all vector attackers say, each with a weight.

No single attacker is the strongest on all releases: convolutions know clean recordings, steps
noisy ones, events and trajectories something of both. Each judges the probe as it would alone;
their standardised scores are added with weights from held-out stimuli of the gallery
(:mod:`gazeveil.attacks.evidence`), so that an attacker without evidence about a release does not
count.

`rocket`: random convolutions of the released path, learnt by ridge regression.

The vectors (:mod:`gazeveil.attacks.vectors.convolutions`) are of two kinds, fine and coarse in
time. Each is judged by a ridge regression of its own on features weighed by how far people differ
in them, and the two are added with weights from held-out stimuli of the gallery
(:mod:`gazeveil.attacks.evidence`). Fine convolutions know people by the shape of their
saccades, where there is little noise; coarse ones by where they go.

`steps`: how people move, at many scales, learnt by ridge regression.

The vectors are those of :mod:`gazeveil.attacks.vectors.steps`, without what their stimulus has in
common (:mod:`gazeveil.attacks.vectors.kinds`). Four regressions judge them: a plain one, one
that multiplies each feature by the root of its share of variance between people, one on a Gaussian
kernel of those, and one on the sum of such kernels, one for each kind of numbers; their
standardised scores are added. Where a release holds places, how long it does is judged by a kernel
of its own that weighs as much as all others: among hundreds of noisy numbers it would drown.
Penalties are chosen on the gallery alone (:mod:`gazeveil.attacks.kernel_ridge`). The
scores of a person's recordings are averaged.

`linkage`: whole recordings as vectors, matched person by person.

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
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, Denoised, Scores, before, standardised_scores
from gazeveil.attacks.evidence import Evidence, weighed_sum
from gazeveil.attacks.kernel_ridge import (
    TrainingLabels,
    fold_of,
    kernel_scores,
    ridge_scores,
    whitened,
)
from gazeveil.attacks.vectors.convolutions import KINDS, convolution_vectors
from gazeveil.attacks.vectors.kinds import (
    FEATURES,
    between_share,
    between_share_of_rows,
    person_means,
    places_of,
    recording_vectors,
    standardised_deviations,
    unit_rows,
)
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors

#: What each kind of vectors is made of.
NEEDS = {
    "summary": ("fixation", "saccade"),
    "extended": ("samples", "fixation", "saccade"),
    "trajectory": ("samples",),
    "steps": ("samples",),
}

#: Parts into which the stimuli of the gallery are dealt to weigh kinds of features.
FOLDS = 5

_TINY = 1e-9

# Gallery and probe.
_Pair = tuple[RecordingVectors, RecordingVectors]


@dataclass(frozen=True)
class Linkage(Attack):
    """Match people by whitened vectors of their recordings.

    Parameters
    ----------
    features : {"summary", "extended", "trajectory", "steps"}
        `summary`: means and standard deviations of event features and event rates, also from
        tables; `extended`: about 300 features of events, places and dynamics; `trajectory`: that of
        0.2 s averages against the crowd's; `steps`: those of the attacker `steps`. All but the
        first need samples.

    Examples
    --------
    >>> str(Linkage(features="extended", denoiser="lowpass"))
    'linkage:denoiser=lowpass,features=extended'
    """

    name: ClassVar[str] = "linkage"
    needs: ClassVar[tuple[str, ...]] = NEEDS["summary"]

    #: It weighs the filtered and the released signal itself
    #: (:func:`gazeveil.attacks.base.identify`).
    two_signals: ClassVar[bool] = True

    features: str = "summary"

    def check(self) -> None:
        """One of the kinds of vectors, and what those are made of."""
        checks.one_of(self.name, "features", self.features, FEATURES)
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
        if not (isinstance(gallery, Denoised) or isinstance(probe, Denoised)):
            return link_evidence(gallery, probe, self.features).scores()
        filtered, plain = (
            (recording_vectors(g, self.features), recording_vectors(p, self.features))
            for g, p in ((gallery, probe), (before(gallery), before(probe)))
        )
        return match(*filtered, plain)


def link_evidence(gallery: RecordingSet, probe: RecordingSet, features: str) -> Evidence:
    """Evidence by one kind of vectors, of one signal."""

    def vectors() -> tuple[RecordingVectors, RecordingVectors]:
        return recording_vectors(gallery, features), recording_vectors(probe, features)

    return Evidence(f"linked {features}", gallery, probe, vectors, match)


def match(gallery: RecordingVectors, probe: RecordingVectors, *others: _Pair) -> Scores:
    """Scores of the people of the probe against those of the gallery.

    Parameters
    ----------
    gallery, probe : RecordingVectors
        Both sides.
    *others : pair of RecordingVectors
        Both sides by other signals of the same recordings.

    Raises
    ------
    DataError
        If both sides know no feature in common.
    """
    known = tuple(sorted({key[0] for key in gallery.keys}))
    probes = tuple(sorted({key[0] for key in probe.keys}))
    blocks = [block for pair in ((gallery, probe), *others) for block in _blocks(*pair)]
    if not blocks:
        raise DataError(
            "Linkage needs recordings on both sides with at least one feature that both sides know."
        )
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


def _blocks(gallery: RecordingVectors, probe: RecordingVectors) -> list[_Pair]:
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
    g = standardised_deviations(gallery, gallery)
    p = standardised_deviations(probe, gallery)
    used = (np.abs(g).max(axis=0) > 0) & (np.abs(p).max(axis=0) > 0)
    if not used.any():
        return np.zeros((len(probes), len(known)))
    g, p = g[:, used], p[:, used]
    people = person_means(g, gallery.persons, known)
    rest = g - people[places_of(gallery.persons, known)[0]]
    weight = between_share(people, rest)
    # Differences within people; those from the mean where everybody has one recording.
    source = (rest if np.abs(rest * weight).max() > _TINY else g) * weight
    asked = person_means(p, probe.persons, probes)
    a, b = whitened(source, people * weight, asked * weight)
    return unit_rows(b) @ unit_rows(a).T


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


@dataclass(frozen=True)
class StepsAttack(Attack):
    """Recognise people by how they move, what is missing and where they look.

    Four regressions are added up: plain ridge regression, the same on features weighed by how far
    people differ in them, one on a Gaussian kernel of those, and one on the sum of a kernel for
    each kind of numbers.
    """

    name: ClassVar[str] = "steps"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Sums of standardised scores; nothing is random."""
        return step_evidence(gallery, probe).scores()


def step_evidence(gallery: RecordingSet, probe: RecordingSet) -> Evidence:
    """Evidence by steps."""

    def vectors() -> tuple[RecordingVectors, RecordingVectors]:
        return recording_vectors(gallery, "steps"), recording_vectors(probe, "steps")

    return Evidence("steps", gallery, probe, vectors, match_steps)


def match_steps(gallery: RecordingVectors, probe: RecordingVectors) -> Scores:
    """Scores of the people of the probe against those of the gallery.

    Raises
    ------
    DataError
        If a side is empty, or no feature is known on both.
    """
    gallery, probe = _known_on_both(gallery, probe)
    known = tuple(sorted(set(gallery.persons.tolist())))
    probes = tuple(sorted(set(probe.persons.tolist())))
    sides = (standardised_deviations(gallery, gallery), standardised_deviations(probe, gallery))
    rows = _learn(*sides, gallery, known)
    # People whose material is the same must tie, whatever the last digit of a product says.
    return Scores(known, probes, person_means(rows, probe.persons, probes).round(9))


def _known_on_both(
    gallery: RecordingVectors, probe: RecordingVectors
) -> tuple[RecordingVectors, RecordingVectors]:
    """Both sides with the columns that both know."""
    if not len(gallery) or not len(probe):
        raise DataError("Steps need recordings on both sides.")
    both = np.isfinite(gallery.values).any(axis=0) & np.isfinite(probe.values).any(axis=0)
    if not both.any():
        raise DataError(
            "Steps need at least one feature that both sides know: recordings of a second or more"
            " with some gaze in them."
        )
    columns = [gallery.columns[i] for i in np.flatnonzero(both).tolist()]
    return gallery.select(columns), probe.select(columns)


def _learn(g: Floats, p: Floats, gallery: RecordingVectors, known: tuple[str, ...]) -> Floats:
    """Scores of probe rows against the known people."""
    of = places_of(gallery.persons, known)[0]
    stimuli = np.unique(gallery.stimuli, return_inverse=True)[1]
    labels = TrainingLabels(of, len(known), fold_of(stimuli))
    people = person_means(g, gallery.persons, known)
    share = np.sqrt(between_share_of_rows(g, people, of))
    kinds = np.array(gallery.blocks, dtype=np.str_)
    held = kinds == "held"
    if not held.any() or held.all():
        return np.sum(_judged(g, p, share, labels, kinds), axis=0)
    rest = _judged(g[:, ~held], p[:, ~held], share[~held], labels, kinds[~held])
    timing = kernel_scores((g * share)[:, held], (p * share)[:, held], labels)
    return np.sum(rest, axis=0) + len(rest) * standardised_scores(timing)


def _judged(
    g: Floats, p: Floats, share: Floats, labels: TrainingLabels, kinds: NDArray[np.str_]
) -> list[Floats]:
    """Standardised scores of probe rows, of each of the four regressions.

    Parameters
    ----------
    g, p : array of float64, shape (rows, features)
        Gallery and probe, standardised.
    share : array of float64, shape (features,)
        Root of the share of variance between people.
    labels : TrainingLabels
        Of the gallery.
    kinds : array of str, shape (features,)
        The kind of each feature.
    """
    # By the size of its kind, so that the many steps do not drown the few lost samples: between
    # equal features and equal kinds.
    _, inverse, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    even = np.asarray(counts, dtype=np.float64)[inverse] ** -0.25
    weight = even * share
    # One kernel for each kind of numbers: a recording that is odd in one of them, by its noise say,
    # stays like others in the rest.
    own = [kinds == name for name in dict.fromkeys(kinds.tolist())]
    parts = (
        ridge_scores(g * even, p * even, labels),
        ridge_scores(g * weight, p * weight, labels),
        kernel_scores(g * weight, p * weight, labels),
        kernel_scores(g * share, p * share, labels, own),
    )
    return [standardised_scores(part) for part in parts]


@dataclass(frozen=True)
class Rocket(Attack):
    """Recognise people by random convolutions of their path."""

    name: ClassVar[str] = "rocket"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Weighed sums of standardised scores; nothing is random."""
        if gallery.cohort is None or probe.cohort is None:
            raise DataError("Rocket needs samples on both sides, and one side holds tables only.")
        return weighed_sum(
            convolution_evidence(gallery, probe),
            "Rocket needs recordings on both sides that are long enough for its filters: two"
            " seconds or more with some gaze in them.",
        )


def convolution_evidence(gallery: RecordingSet, probe: RecordingSet) -> list[Evidence]:
    """Evidence by fine and by coarse convolutions."""
    return [
        Evidence(
            f"{kind} convolutions",
            gallery,
            probe,
            partial(convolution_vectors, gallery, probe, kind),
            match_kind,
        )
        for kind in KINDS
    ]


def match_kind(gallery: RecordingVectors, probe: RecordingVectors) -> Scores:
    """Scores by the convolutions of one kind.

    Raises
    ------
    DataError
        If no recording of a side is long enough.
    """
    if not (np.isfinite(gallery.values).any() and np.isfinite(probe.values).any()):
        raise DataError("No recording is long enough for these convolutions.")
    known = tuple(sorted(set(gallery.persons.tolist())))
    probes = tuple(sorted(set(probe.persons.tolist())))
    g = standardised_deviations(gallery, gallery)
    p = standardised_deviations(probe, gallery)
    of = places_of(gallery.persons, known)[0]
    people = person_means(g, gallery.persons, known)
    weight: Floats = np.sqrt(between_share_of_rows(g, people, of))
    stimuli = np.unique(gallery.stimuli, return_inverse=True)[1]
    g *= weight
    p *= weight
    rows = ridge_scores(g, p, TrainingLabels(of, len(known), fold_of(stimuli)))
    return Scores(known, probes, person_means(rows, probe.persons, probes))


#: Vectors of which linkage makes one piece of evidence each.
_LINKED = ("summary", "extended", "trajectory")


@dataclass(frozen=True)
class Fusion(Attack):
    """Recognise people by the weighed sum of steps, convolutions and linkages."""

    name: ClassVar[str] = "fusion"
    needs: ClassVar[tuple[str, ...]] = ("samples", "fixation", "saccade")

    def can(self, recording_set: RecordingSet) -> bool:
        """Samples are all it needs: events are found in them."""
        return recording_set.cohort is not None

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Weighed sums of standardised scores; nothing is random."""
        if gallery.cohort is None or probe.cohort is None:
            raise DataError("Fusion needs samples on both sides, and one side holds tables only.")
        return weighed_sum(
            [
                step_evidence(gallery, probe),
                *convolution_evidence(gallery, probe),
                *(link_evidence(gallery, probe, features) for features in _LINKED),
            ],
            "Fusion has nothing to go by: no attacker finds a feature that both sides know.",
        )
