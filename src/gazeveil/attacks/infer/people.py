"""What an attacker learns of a person: attributes, names by joining, membership.

Attribute inference: predict gender, age or another attribute of a person from gaze.

Leave-one-person-out: the attribute of each person is predicted by an attacker trained on all
others. With recordings of one person in training and test, recognition of the person would give the
attribute.

The attacker is a ridge regression on person vectors (:mod:`gazeveil.attacks.vectors.kinds`) with a
fixed shrinkage; classes are regressed on as 0 or 1. Choosing the shrinkage inside each fold by the
attributes of the others would push guesses away from the truth where nothing shows (areas around
0.42 instead of 0.5). Permuted attributes are guessed beside the true one, as further outputs of the
same regressions, so a permutation test costs little.

Joining what belongs together: a release with raw data or with another release of the same
people, and demographics with gaze.

David-John et al. 2023: k-anonymous age and gender leave at least k people, and gaze features name
one of them. The attacker filters first and recognises gaze inside the group.

Membership inference: decide from a release whether a person took part.

The attacker holds raw recordings of a target (other ones than those released, unless said
otherwise) and the release. The score is the similarity of the nearest published pseudonym: the
largest cosine between the target's vector and a published one. Vectors are whitened by the
within-person covariance. The unit is the cosines between the target and the other targets, since
some people resemble many.

Evaluated on participants and on people of the same kind who did not take part. A release without
membership information gives an area under the curve of 0.5. The rate at few false alarms is
reported too: certainty about a few people is worse than slight evidence about all.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Texts
from gazeveil.attacks.base import Attack, InferenceAttack, Scores
from gazeveil.attacks.curves import auc, roc_area, roc_area_interval, tpr_at_fpr
from gazeveil.attacks.evidence import matching_credit
from gazeveil.attacks.kernel_ridge import whitened
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.attacks.result import (
    AttackResult,
    InferenceResult,
    identification,
    mean_interval,
    rate_result,
)
from gazeveil.attacks.vectors.kinds import (
    centred,
    person_means,
    person_vectors,
    places_of,
    unit_rows,
)
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_deviations, column_means
from gazeveil.privacy.demographics import Demographics, People

#: Fewest people an attribute is guessed for.
FEWEST = 6


@dataclass(frozen=True)
class AttributeInference(InferenceAttack):
    """Guess an attribute of everybody; the attacker learns from raw recordings of the others.

    People with recordings of whom the attribute is not known, or whose class has no other member,
    are left out and counted.

    Parameters
    ----------
    attribute : str
        `gender`, `age`... as in the people's table of the raw recordings.
    features : {"summary", "extended", "trajectory"}
        As in :func:`gazeveil.attacks.vectors.kinds.recording_vectors`.
    draws : int
        Permutations of the test.
    """

    name: ClassVar[str] = "attributes"
    summary: ClassVar[str] = "guesses gender, age or another attribute of everybody in the release"

    attribute: str = "gender"
    features: str = "summary"
    draws: int = 999

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Learn the attribute from raw recordings and guess it from the release.

        Returns
        -------
        InferenceResult
            Classes: `accuracy` (chance is the largest class), and `auc` where there are two.
            Numbers: `correlation`, `mae` in the attribute's unit (chance is the error of the mean
            of the others), and `auc` of the upper against the lower half. Details: `guesses` by
            person, and the number `left_out`.

        Raises
        ------
        DataError
            If fewer than six people with recordings on both sides have the attribute, or all have
            the same.
        """
        checks.count(self.name, "draws", self.draws)
        learned, seen = (person_vectors(centred(s, self.features)) for s in (raw, release))
        shared = tuple(c for c in learned.columns if c in set(seen.columns))
        learned, seen = learned.select(shared), seen.select(shared)
        both = [p for p in seen.people if p in set(learned.people)]
        known = {p: self._known(p, raw.people.get(p, {}).get(self.attribute)) for p in both}
        truth = {p: v for p, v in known.items() if v is not None}
        numeric = all(isinstance(v, float) for v in truth.values())
        if not numeric:
            sizes = Counter(map(str, truth.values()))
            truth = {p: str(v) for p, v in truth.items() if sizes[str(v)] > 1}
        people = sorted(truth)
        if len(people) < FEWEST or len(set(truth.values())) < 2:
            raise DataError(
                f"Guessing '{self.attribute}' needs at least {FEWEST} people with recordings on"
                " both sides who have it, and two different values. Got"
                f" {len(people)} people with {len(set(truth.values()))}."
            )
        x, y = (v.values[[v.people.index(p) for p in people]] for v in (learned, seen))
        protocol = (
            f"{self.attribute} of {len(people)} people, one person left out,"
            f" {len(both) - len(people)} without it"
        )
        judge = self._numbers if numeric else self._classes
        values = np.array([truth[p] for p in people])
        results, guesses = judge(x, y, values, protocol, np.random.default_rng(seed))
        told = dict(zip(people, guesses.tolist(), strict=True))
        details = {
            "attribute": self.attribute,
            "guesses": told,
            "left_out": len(both) - len(people),
        }
        return InferenceResult(self.name, results, details)

    def _known(self, person: str, value: object) -> float | str | None:
        if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, bool | str):
            return str(value)
        if isinstance(value, numbers.Real) and math.isfinite(value):
            return float(value)
        raise DataError(
            f"The {self.attribute} of person '{person}' must be text or a finite number. Got"
            f" {value!r}."
        )

    def _classes(
        self, x: Floats, y: Floats, labels: Texts, protocol: str, rng: np.random.Generator
    ) -> tuple[tuple[AttackResult, ...], Texts]:
        kinds = np.unique(labels)
        truth = (labels[:, None] == kinds).astype(np.float64)
        # How common each class is counts as known: the mean of the others alone would tell, by what
        # is missing from it, who was left out.
        prior = truth.mean(axis=0)
        scores = prior + left_out_guesses(x, y, truth)
        best = scores >= scores.max(axis=1, keepdims=True) - 1e-12
        accuracy = float(((best * truth).sum(axis=1) / best.sum(axis=1)).mean())
        results = [rate_result("accuracy", accuracy, len(truth), float(prior.max()), protocol)]
        if len(kinds) == 2:
            outputs = self._permuted(truth[:, 1], rng)
            words = f"{protocol}, '{kinds[1]}' against '{kinds[0]}'"
            results.append(self._area(left_out_guesses(x, y, outputs), outputs > 0.5, words))
        return tuple(results), kinds[np.argmax(scores, axis=1)]

    def _numbers(
        self, x: Floats, y: Floats, values: Floats, protocol: str, rng: np.random.Generator
    ) -> tuple[tuple[AttackResult, ...], Floats]:
        outputs = self._permuted(values, rng)
        guesses = left_out_guesses(x, y, outputs)
        n, median = len(values), float(np.median(values))
        others = (values.sum() - values) / (n - 1)
        errors = np.abs(values - others - guesses[:, 0])
        mean_error = float(np.abs(values - others).mean())
        correlations = _correlations(guesses, outputs)
        # Fisher's interval.
        centre, half = math.atanh(np.clip(correlations[0], -0.999, 0.999)), 1.96 / math.sqrt(n - 3)
        results = [
            AttackResult(
                "correlation",
                float(correlations[0]),
                math.tanh(centre - half),
                math.tanh(centre + half),
                n,
                0.0,
                _p_value(correlations),
                f"{protocol}, {self.draws} permutations",
            ),
            AttackResult(
                "mae",
                float(errors.mean()),
                *mean_interval(errors),
                n,
                mean_error,
                protocol=f"{protocol}, interval over people",
            ),
        ]
        if (values > median).any():  # the median may be the largest value
            words = f"{protocol}, above {median:g} or not"
            results.append(self._area(guesses, outputs > median, words))
        return tuple(results), others + guesses[:, 0]

    def _permuted(self, values: Floats, rng: np.random.Generator) -> Floats:
        """Values of the people in the first column, and permuted among them in the others."""
        orders = rng.permuted(np.tile(np.arange(len(values)), (self.draws, 1)), axis=1)
        return np.concatenate((values[:, None], values[orders].T), axis=1)

    def _area(self, guesses: Floats, upper: Bools, protocol: str) -> AttackResult:
        """The area under the curve of the first column, tested by the others."""
        areas = [roc_area(g[u], g[~u]) for g, u in zip(guesses.T, upper.T, strict=True)]
        n, many = len(guesses), int(upper[:, 0].sum())
        edges = roc_area_interval(areas[0], many, n - many)
        words = f"{protocol}, {self.draws} permutations"
        return AttackResult("auc", areas[0], *edges, n, 0.5, _p_value(areas), words)


def left_out_guesses(learned: Floats, seen: Floats, targets: Floats) -> Floats:
    """Guesses about each person by ridge regression on all others, as deviations from the others'
    mean.

    Parameters
    ----------
    learned, seen : array of float64, shape (people, features)
        Person vectors that are learned from and asked about; NaN where not measured.
    targets : array of float64, shape (people, outputs)

    Returns
    -------
    array of float64, shape (people, outputs)
    """
    guesses = np.empty(targets.shape)
    for i in range(len(targets)):
        others = np.delete(np.arange(len(targets)), i)
        mean, spread = column_means(learned[others]), column_deviations(learned[others])
        # A column that does not vary among the others says nothing of anybody: infinite scale makes
        # it zero.
        scale = np.where(spread > 1e-12 * np.maximum(np.abs(mean), 1.0), spread, np.inf)
        z = np.nan_to_num((learned[others] - mean) / scale)
        # Person vectors are centred among all people of their material. Taking the others' mean
        # away here would bring the left-out person's own training vector in, because the others'
        # mean is its opposite.
        query = np.nan_to_num(seen[i] / scale)
        gram = z @ z.T
        # This shrinkage fits an attribute half of which shows in gaze.
        gram[np.diag_indices_from(gram)] += max(float(np.trace(gram)) / len(z), 1e-12)
        away = targets[others] - targets[others].mean(axis=0)
        guesses[i] = (z @ query) @ np.linalg.solve(gram, away)
    return guesses


def _correlations(a: Floats, b: Floats) -> Floats:
    """Pearson's, column by column; 0 where one of them does not vary."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    size = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    return (a * b).sum(axis=0) / np.where(size > 0, size, np.inf)


def _p_value(values: ArrayLike) -> float:
    """Share of values that are as large as the first one, which is among them."""
    own = np.asarray(values)
    return float(np.mean(own >= own[0] - 1e-12))


@dataclass(frozen=True)
class RecordLinkage(InferenceAttack):
    """Find each person's pseudonym, alone and by the best one-to-one matching of all. `attack` is
    the text of an identifying attacker.
    """

    name: ClassVar[str] = "record-linkage"
    summary: ClassVar[str] = "finds the pseudonym of each person with raw recordings"

    attack: str = "linkage"

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Identify the people of the raw recordings, or of another release, in the release. Names
        serve to check the answer alone; the seed also breaks ties.
        """
        scores = attack_by_name(self.attack).identify(release, raw, seed)
        alone, right = identification([scores]), matching_credit(scores, seed)
        together = rate_result(
            "identification_rate",
            float(right.mean()),
            len(right),
            alone.chance,
            "best one-to-one matching of all names, interval over people",
        )
        return InferenceResult(self.name, (alone, together), {"attack": self.attack})


@dataclass(frozen=True)
class DemographicLinkage(InferenceAttack):
    """Filter by generalised age and gender, then compare gaze (David-John et al. 2023).

    Parameters
    ----------
    attack : str
        Text of the identifying attacker that looks at the gaze.
    k, attributes : int, tuple of str
        As in :class:`gazeveil.privacy.demographics.Demographics`, which generalises the attributes.
    """

    name: ClassVar[str] = "demographics"
    summary: ClassVar[str] = "filters by generalised age and gender, then compares gaze"

    attack: str = "linkage"
    k: int = 4
    attributes: tuple[str, ...] = ("age", "gender")

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Generalise the attributes of the raw recordings' people and identify within groups."""
        people = {p: raw.people.get(p, {}) for p in raw.persons}
        released = Demographics(self.k, attributes=self.attributes).release(people, seed=seed).data
        result, _ = demographic_attack(attack_by_name(self.attack), release, raw, released, seed)
        return InferenceResult(self.name, (result,), {"attack": self.attack, "k": self.k})


def groups_of(released: People) -> dict[str, tuple[Hashable, ...]]:
    """Who shares the released attributes: person -> the released values, in the order of their
    names.
    """
    return {p: tuple(str(a[n]) for n in sorted(a)) for p, a in released.items()}


def demographic_attack(
    attack: Attack, gallery: RecordingSet, probe: RecordingSet, released: People, seed: int
) -> tuple[AttackResult, Scores]:
    """Filter by released demographics, then identify inside the group.

    Parameters
    ----------
    attack : Attack
        Who looks at the gaze.
    gallery, probe : RecordingSet
        The published set under names, and the gaze of the targets; the attacker finds the published
        pseudonym of each target.
    released : mapping of person to attributes
        Generalised attributes, as :class:`gazeveil.privacy.demographics.Demographics`
        releases them. A target's exact age and gender lead to the same entry.
    seed : int
        Of the attacker.

    Returns
    -------
    (result, scores)
        Chance is that of the demographics alone: the mean of 1 / people left by the filter. Scores
        of people outside the group are minus infinity.

    Raises
    ------
    DataError
        If a person has no released demographics.
    """
    known, probes, groups = gallery.persons, probe.persons, groups_of(released)
    missing = [p for p in (*probes, *known) if p not in groups]
    if missing:
        raise DataError(
            f"Person '{missing[0]}' has no released demographics to filter by. Leave them out, or"
            " release their attributes too."
        )
    values = np.full((len(probes), len(known)), -np.inf)
    for group in dict.fromkeys(groups[p] for p in probes):
        members = [p for p in known if groups[p] == group]
        targets = [p for p in probes if groups[p] == group]
        part = Scores(tuple(members), tuple(targets), np.zeros((len(targets), len(members))))
        if len(members) > 1:  # else the filter alone has named the person
            part = attack.identify(
                gallery.select(people=members), probe.select(people=targets), seed
            )
        rows, columns = [probes.index(t) for t in part.probes], [known.index(m) for m in part.known]
        # A person without a score stays the last candidate; only the filter removes people.
        least = np.nanmin(part.values, initial=0.0) - 1
        values[np.ix_(rows, columns)] = np.nan_to_num(part.values, nan=least, neginf=least)
    scores, left = Scores(known, probes, values), np.isfinite(values).sum(axis=1)
    protocol = (
        f"filtered to {min(left, default=0)} to {max(left, default=0)} people by demographics,"
        " interval over people"
    )
    chance, rate = np.nan, np.nan
    if len(left):
        chance = float(np.mean(np.where(left > 0, 1 / np.maximum(left, 1), 0.0)))
        rate = float(scores.credit().mean())
    return rate_result("identification_rate", rate, len(left), chance, protocol), scores


#: Shares of false alarms at which hits are counted.
FALSE_ALARMS = (0.001, 0.01, 0.1)


@dataclass(frozen=True)
class MembershipInference(InferenceAttack):
    """Tell who is in the release. The raw recordings must hold people who are not in it, too.

    Parameters
    ----------
    features : {"summary", "extended", "trajectory"}
        As in :func:`gazeveil.attacks.vectors.kinds.recording_vectors`.
    """

    name: ClassVar[str] = "membership"
    summary: ClassVar[str] = "tells who of the people with raw recordings is in the release"

    features: str = "summary"

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Score everybody with raw recordings; people named in the release are the members."""
        scores = nearness(release, raw, self.features)
        return judged(
            scores, release.persons, "raw recordings of targets against the nearest pseudonym"
        )


def judged(scores: Mapping[str, float], members: Collection[str], protocol: str) -> InferenceResult:
    """Scores of members against those of the others: AUC and hits at few false alarms.

    Raises
    ------
    DataError
        If no candidate took part, or all did.
    """
    inside = [s for p, s in scores.items() if p in set(members)]
    outside = [s for p, s in scores.items() if p not in set(members)]
    if not inside or not outside:
        raise DataError(
            f"Membership needs targets who took part and targets who did not. Got {len(inside)} and"
            f" {len(outside)}."
        )
    hits = (tpr_at_fpr(inside, outside, f, protocol) for f in FALSE_ALARMS)
    results = (auc(inside, outside, protocol), *hits)
    return InferenceResult(MembershipInference.name, results, {"scores": dict(scores)})


def nearness(
    release: RecordingSet, targets: RecordingSet, features: str = "summary"
) -> dict[str, float]:
    """The attacker's score of every target, without knowing who took part; names of the release are
    not looked at.

    Raises
    ------
    DataError
        If release and targets have no feature in common.
    """
    if features == "summary" and not (release.has("fixation") or release.has("saccade")):
        # Both sides are seen through the same tables, so a release of windows is compared with
        # windows.
        targets = RecordingSet(tables={"window": targets.windows}, people=targets.people)
    mine, theirs = centred(targets, features), centred(release, features)
    columns = tuple(c for c in mine.columns if c in set(theirs.columns))
    if not columns:
        raise DataError(
            "The release and the targets' recordings have no features in common, so they cannot be"
            " compared."
        )
    mine, theirs = mine.select(columns), theirs.select(columns)
    spread = column_deviations(mine.values)
    scale = np.where(spread > 1e-12, spread, np.inf)
    people, published = person_vectors(mine), person_vectors(theirs)
    rows, asked, shown = (np.nan_to_num(v.values / scale) for v in (mine, people, published))
    of = places_of(mine.persons, people.people)[0]
    rest = (rows - person_means(rows, mine.persons, people.people)[of])[np.bincount(of)[of] > 1]
    if len(rest):
        asked, shown = whitened(rest, asked, shown)
    asked, shown = unit_rows(asked), unit_rows(shown)
    near: Floats = (asked @ shown.T).max(axis=1)
    # A release that holds nothing says the same of everybody.
    if len(asked) > 2 and shown.any():
        usual = asked @ asked.T
        others = usual[~np.eye(len(usual), dtype=np.bool_)].reshape(len(usual), -1)
        deviation = others.std(axis=1)
        near = (near - others.mean(axis=1)) / np.where(deviation > 0, deviation, 1.0)
    return dict(zip(people.people, near.tolist(), strict=True))
