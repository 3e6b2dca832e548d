"""What an attack achieved, as figures with intervals, chance and a test beside them.

The unit is the person: repetitions (other splits, other noise) of one attack ask about the same
people again, so they sharpen the value but do not make people more. There is one interval for what
is about people (:func:`people_interval`, :func:`mean_interval`) and one test against guessing
(:class:`DealtNames`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores
from gazeveil.errors import DataError
from gazeveil.features.recordings import column_means
from gazeveil.privacy.audit.run import clopper_pearson

#: Probability that an interval of this module misses what it is about.
ERROR = 0.05


@dataclass(frozen=True)
class AttackResult:
    """One figure of an attack.

    Parameters
    ----------
    metric : str
        What it is: `identification_rate`, `eer`, `auc`, `accuracy`...; rates are fractions of 1.
    value : float
        The figure; NaN where it could not be measured, and then `protocol` says why.
    low, high : float
        95 % interval; NaN where there is none.
    n : int
        Number of people (or of repetitions where the interval is over those, as `protocol` says).
    chance : float
        What guessing gives; NaN where there is no such thing.
    p_value : float
        Exact probability of doing at least as well by guessing; NaN where it was not tested.
    protocol : str
        How it was measured, in a few words.
    """

    metric: str
    value: float
    low: float
    high: float
    n: int
    chance: float = math.nan
    p_value: float = math.nan
    protocol: str = ""

    def __str__(self) -> str:
        """The figure as one would say it."""
        text = f"{self.metric} {self.value:.3f}"
        if not math.isnan(self.low):
            text += f" [{self.low:.3f}, {self.high:.3f}]"
        if not math.isnan(self.chance):
            text += f", chance {self.chance:.3f}"
        if not math.isnan(self.p_value):
            text += f", p {self.p_value:.2g}"
        return f"{text}, n {self.n}"


@dataclass(frozen=True)
class InferenceResult:
    """What an inference attack of a kind in :data:`gazeveil.attacks.infer.KINDS` found:
    results by metric, the headline first, and further facts as JSON has them.
    """

    kind: str
    results: tuple[AttackResult, ...]
    details: Mapping[str, Any] = field(default_factory=dict)

    def result(self, metric: str) -> AttackResult:
        """One of the results, by metric."""
        by_name = {r.metric: r for r in self.results}
        return by_name[checks.one_of("InferenceResult.result", "metric", metric, by_name)]

    def to_dict(self) -> dict[str, object]:
        """The result as JSON has it; None where there is no number."""
        rows = [
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in asdict(result).items()
            }
            for result in self.results
        ]
        return {"kind": self.kind, "results": rows, "details": dict(self.details)}


def rate_result(
    metric: str, value: float, n: int, chance: float = math.nan, protocol: str = ""
) -> AttackResult:
    """A rate of single decisions about `n` people: Clopper-Pearson 95 % at the rounded count, and
    the exact one-sided binomial test against chance.
    """
    if n == 0:
        return AttackResult(metric, math.nan, math.nan, math.nan, 0, chance, math.nan, protocol)
    hits = math.floor(value * n + 0.5)
    low, high = (float(edge) for edge in clopper_pearson(hits, n, ERROR / 2))
    p_value = at_least(hits, n, chance)
    return AttackResult(metric, float(value), low, high, n, chance, p_value, protocol)


def share_result(
    metric: str,
    credit: ArrayLike,
    chance: float = math.nan,
    protocol: str = "",
    p_value: float = math.nan,
) -> AttackResult:
    """A rate over people who were asked about several times.

    Parameters
    ----------
    metric : str
        What it is.
    credit : array of float64, shape (people, repetitions)
        Credit of each person; NaN where not asked.
    chance, p_value : float
        What guessing gives, and how often names dealt anew do as well.
    protocol : str
        How it was measured.

    Returns
    -------
    AttackResult
        Mean over people of their means over repetitions, with :func:`people_interval`.
    """
    own = _mean_of_person(np.atleast_2d(np.asarray(credit, dtype=np.float64)))
    own = own[np.isfinite(own)]
    value = float(own.mean()) if len(own) else math.nan
    return AttackResult(metric, value, *people_interval(own), len(own), chance, p_value, protocol)


def people_interval(shares: ArrayLike) -> tuple[float, float]:
    """95 % interval of the mean of shares between 0 and 1, one of each person.

    Clopper and Pearson's at the effective number of people (Korn and Graubard 1998): as many people
    who are found or not found would vary as much as these shares do, at Student's quantile. For
    shares of 0 and 1 it is about Clopper and Pearson's own, for others about Student's, without
    his failure where most shares are 0 or all are equal. Where a few people carry all recognition
    and happen not to be in the sample no interval can know of them.

    Examples
    --------
    >>> [round(edge, 2) for edge in people_interval([0.0] * 18 + [1.0] * 6)]
    [0.09, 0.49]
    """
    from scipy.special import betaincinv, ndtri, stdtrit

    own = np.asarray(shares, dtype=np.float64)
    if len(own) == 0:
        return math.nan, math.nan
    mean = float(np.clip(own.mean(), 0.0, 1.0))
    people = float(len(own))
    if len(own) > 1:
        variance = float(own.var(ddof=1))
        if variance > 1e-12:
            people = mean * (1 - mean) * len(own) / variance
        people *= float(ndtri(1 - ERROR / 2) / stdtrit(len(own) - 1, 1 - ERROR / 2)) ** 2
    found = mean * people
    low = 0.0 if found <= 0 else float(betaincinv(found, people - found + 1, ERROR / 2))
    high = 1.0 if found >= people else float(betaincinv(found + 1, people - found, 1 - ERROR / 2))
    return low, high


def mean_interval(values: ArrayLike) -> tuple[float, float]:
    """Student's 95 % interval of the mean of figures of any size, one of each person or stimulus;
    NaN for fewer than two.
    """
    from scipy.special import stdtrit

    own = np.asarray(values, dtype=np.float64)
    if len(own) < 2:
        return math.nan, math.nan
    half = float(stdtrit(len(own) - 1, 1 - ERROR / 2) * own.std(ddof=1)) / math.sqrt(len(own))
    return float(own.mean()) - half, float(own.mean()) + half


#: Deals of names; no p-value is smaller than one over one more than these.
DEALS = 3999


#: Answers that are compared at a time.
_CHUNK = 1 << 20


@lru_cache(maxsize=4)
def _deals(people: int) -> Ints:
    """Names dealt anew, the first deal being the true one."""
    names = np.tile(np.arange(people), (DEALS + 1, 1))
    names[1:] = np.random.default_rng(people).permuted(names[1:], axis=1)
    return names


class DealtNames:
    """How often attackers do as well where the names of the people they were asked about are dealt
    anew: the same deal for all attackers and repetitions, so that what their answers have in common
    stays.

    Parameters
    ----------
    attacker : sequence of int
        Who answered, 0 to the number of attackers less one.
    repetition : sequence of int
        In which repetition; repetitions weigh the same.
    person : sequence of str
        About whom.
    answers : sequence of sequence of str
        Whom it named; several where they score the same, of whom each gets its share.
    credit : sequence of float
        What an answer without a name counts, under every deal.
    """

    def __init__(
        self,
        attacker: Sequence[int],
        repetition: Sequence[int],
        person: Sequence[str],
        answers: Sequence[Sequence[str]],
        credit: Sequence[float],
    ) -> None:
        who, when = np.asarray(attacker, dtype=np.int64), np.asarray(repetition, dtype=np.int64)
        place = {name: i for i, name in enumerate(sorted(set(person)))}
        several = np.array([len(names) for names in answers], dtype=np.int64)
        count = int(who.max()) + 1
        cell = when * count + who
        size = np.bincount(cell)
        rounds = np.bincount(np.flatnonzero(size) % count, minlength=count)
        weight = 1.0 / (size[cell] * rounds[who])
        own = np.asarray(credit, dtype=np.float64) * (several == 0)
        fixed = np.bincount(who, weights=weight * own, minlength=count)
        # One entry for each name, those of an attacker together.
        order = np.repeat(np.arange(len(who)), several)
        named = np.array([place.get(n, -1) for names in answers for n in names], dtype=np.int64)
        sort = np.argsort(who[order], kind="stable")
        order, named = order[sort], named[sort]
        asked = np.array([place[person[i]] for i in order.tolist()], dtype=np.int64)
        who, weight = who[order], (weight / np.maximum(several, 1))[order]
        present, first = np.unique(who, return_index=True)
        self.rates = np.tile(fixed, (DEALS + 1, 1))
        given, step = _deals(len(place)), max(1, _CHUNK // max(1, len(who)))
        for start in range(0, DEALS + 1 if len(who) else 0, step):
            right = (given[start : start + step, asked] == named) * weight
            self.rates[start : start + step, present] += np.add.reduceat(right, first, axis=1)

    def p_value(self) -> float:
        """For all attackers together: how often the best of them does as well as the best did."""
        best = self.rates.max(axis=1)
        return float(1 + np.count_nonzero(best[1:] >= best[0] - 1e-12)) / (1 + DEALS)

    def guessed(self) -> float:
        """The largest rate of the best that such answers could not tell from guessing."""
        best = np.sort(self.rates[1:].max(axis=1))
        return float(best[-math.floor(ERROR * (1 + DEALS))])


def best_above(shares: Sequence[Floats], chance: float) -> float:
    """p-value of the best of several attackers of pieces: the shares of each person's pieces that
    it names rightly against guessing (Student over people, one-sided), times the attackers.

    Examples
    --------
    >>> round(best_above([np.array([0.2, 0.3, 0.25, 0.3])], 0.1), 4)
    0.0033
    """
    from scipy.stats import ttest_1samp

    own = [
        float(ttest_1samp(s, chance, alternative="greater").pvalue)
        for s in shares
        if len(s) > 1 and np.ptp(s) > 0
    ]
    return min(1.0, len(own) * min(own)) if own else 1.0


def at_least(hits: int, n: int, chance: float) -> float:
    """Probability of at least `hits` of `n` by guessing: the exact one-sided binomial test. NaN
    without a chance.
    """
    from scipy.special import betainc

    if math.isnan(chance):
        return math.nan
    return 1.0 if hits <= 0 else float(betainc(hits, n - hits + 1, chance))


def identification(scores_per_repetition: Sequence[Scores]) -> AttackResult:
    """How many people were named rightly; one `Scores` per repetition, of (more or less) the same
    people.

    Returns
    -------
    AttackResult
        The mean credit (a tie of m people counts 1/m) with its interval over people; chance is
        1 / people known; the test deals names anew.
    """
    repetitions = _some(scores_per_repetition)
    people = sorted({p for s in repetitions for p in s.probes})
    place = {p: i for i, p in enumerate(people)}
    credit = np.full((len(people), len(repetitions)), np.nan)
    asked: list[tuple[int, str, tuple[str, ...], float]] = []
    for column, s in enumerate(repetitions):
        own = s.credit()
        credit[[place[p] for p in s.probes], column] = own
        asked += zip([column] * len(own), s.probes, s.answers(), own.tolist(), strict=True)
    when, person, answers, credited = zip(*asked, strict=True)
    dealt = DealtNames([0] * len(asked), when, person, answers, credited)
    chance = float(np.mean([1 / len(s.known) for s in repetitions]))
    protocol = f"mean of {len(repetitions)} repetitions, interval over people"
    return share_result("identification_rate", credit, chance, protocol, dealt.p_value())


def eer(scores: Scores) -> float:
    """Compute the equal error rate, where false rejections and false acceptances are equally
    frequent.

    Between the two thresholds around the crossing both rates are drawn as straight lines. NaN
    scores count as the smallest; NaN without genuine or without impostor pairs.
    """
    genuine, impostor = (
        np.sort(np.where(np.isnan(v), -np.inf, v)) for v in scores.genuine_and_impostor()
    )
    if len(genuine) == 0 or len(impostor) == 0:
        return math.nan
    cuts = np.unique(np.concatenate((genuine, impostor)))
    # At each cut scores of at least the cut are accepted; a last cut above all accepts none.
    refused = np.append(np.searchsorted(genuine, cuts, side="left") / len(genuine), 1.0)
    accepted = np.append(1 - np.searchsorted(impostor, cuts, side="left") / len(impostor), 0.0)
    gap = refused - accepted  # rises from -1 to 1
    after = int(np.argmax(gap >= 0))
    if gap[after] == 0 or after == 0:
        return float(refused[after])
    share = -gap[after - 1] / (gap[after] - gap[after - 1])
    return float(refused[after - 1] + share * (refused[after] - refused[after - 1]))


def d_prime(scores: Scores) -> float:
    """Distance of genuine from impostor scores in units of their root mean variance: (m_g - m_i) /
    sqrt((v_g + v_i) / 2).

    0 where both are the same constant, infinite where they are two constants, NaN where one kind
    has no finite score.
    """
    genuine, impostor = (v[np.isfinite(v)] for v in scores.genuine_and_impostor())
    if len(genuine) == 0 or len(impostor) == 0:
        return math.nan
    apart = float(genuine.mean() - impostor.mean())
    spread = math.sqrt((float(genuine.var()) + float(impostor.var())) / 2)
    if spread == 0:
        return 0.0 if apart == 0 else math.copysign(math.inf, apart)
    return apart / spread


def f1_macro(scores: Scores) -> float:
    """Mean over the known people of F1 of one decision per probe; a tie of m names counts as 1/m of
    a decision for each.
    """
    values = np.where(np.isnan(scores.values), -np.inf, scores.values)
    best = (values == values.max(axis=1, keepdims=True)).astype(np.float64)
    best /= best.sum(axis=1, keepdims=True)
    true = np.array(scores.probes)[:, None] == np.array(scores.known)[None, :]
    right, named, there = (best * true).sum(axis=0), best.sum(axis=0), true.sum(axis=0)
    both = named + there
    return float(np.mean(np.where(both > 0, 2 * right / np.where(both > 0, both, 1), 0.0)))


def beaten_by(scores: Scores) -> Ints:
    """How many others score above the true person, one number per probe; the number of people known
    for a person who is not in the gallery.
    """
    return _rivals(scores)[0]


def tied_with(scores: Scores) -> Ints:
    """How many others score exactly as the true person, one number per probe; 0 for a person who is
    not in the gallery.
    """
    return _rivals(scores)[1]


def _rivals(scores: Scores) -> tuple[Ints, Ints]:
    values = np.where(np.isnan(scores.values), -np.inf, scores.values)
    at = {p: i for i, p in enumerate(scores.known)}
    above = np.full(len(scores.probes), len(scores.known), dtype=np.int64)
    level = np.zeros(len(scores.probes), dtype=np.int64)
    for row, person in enumerate(scores.probes):
        if person in at:
            own = values[row, at[person]]
            above[row] = np.count_nonzero(values[row] > own)
            level[row] = np.count_nonzero(values[row] == own) - 1
    return above, level


def paired_interval(first: ArrayLike, second: ArrayLike) -> tuple[float, float, float]:
    """By how much the first attacker is better than the second on the same people, with a 95 %
    interval over people.

    Student's t on the people's differences (averaged over repetitions first): it needs no seed, and
    with the 10 to 50 people of eye-tracking sets its tails are wider, and so more honest, than
    those of a bootstrap over people. Where all differences are equal the interval has no width;
    where there is one person it is the whole range.

    Parameters
    ----------
    first, second : array of float64, shape (people,) or (people, repetitions)
        Credit of each person (:meth:`Scores.credit`), the same people in the same order; NaN where
        not asked.

    Returns
    -------
    (difference, low, high)
        Mean of first - second over people.
    """
    a, b = (np.asarray(x, dtype=np.float64) for x in (first, second))
    if a.shape[:1] != b.shape[:1] or a.ndim not in (1, 2) or b.ndim not in (1, 2):
        raise DataError(
            f"A paired interval needs the same people twice. Got arrays of shape {a.shape} and"
            f" {b.shape}."
        )
    apart = _mean_of_person(a) - _mean_of_person(b)
    apart = apart[np.isfinite(apart)]
    if len(apart) == 0:
        raise DataError(
            "A paired interval needs at least one person whom both attackers were asked about."
            " There is none."
        )
    edges = mean_interval(apart) if len(apart) > 1 else (-1.0, 1.0)
    return float(apart.mean()), *edges


def chosen_on_others(credit: Floats) -> Floats:
    """Credit of the attacker that is the strongest on all other repetitions, repetition by
    repetition.

    The largest of several rates on the same people and splits is an upper envelope: chance adds to
    it. Here the attacker of each repetition is chosen on the others alone. The luck of its split
    and of its noise has no part in the choice. The people are the same in all repetitions, so their
    particularities remain.

    Parameters
    ----------
    credit : array of float64, shape (attackers, repetitions, people)
        Credit of each person (:meth:`gazeveil.attacks.base.Scores.credit`); NaN where the attacker
        was not asked.

    Returns
    -------
    array of float64, shape (repetitions, people)
        Of attackers that tie the first. NaN in a repetition without an attacker that was asked both
        there and elsewhere; so all of it where there is one repetition.

    Examples
    --------
    The second attacker finds all people in the last repetition alone, and is not chosen for it.

    >>> chosen_on_others(np.array([[[1.0, 0], [1, 0], [1, 0]], [[0.0, 0], [0, 0], [1, 1]]]))[2]
    array([1., 0.])
    """
    own = np.asarray(credit, dtype=np.float64)
    best = strongest_elsewhere(own)
    chosen = own[np.maximum(best, 0), np.arange(len(best))]
    chosen[best < 0] = np.nan
    return chosen


def strongest_elsewhere(credit: Floats) -> Ints:
    """Place of the attacker that :func:`chosen_on_others` takes for each repetition; -1 where no
    attacker was asked both there and elsewhere.
    """
    if credit.ndim != 3:
        raise DataError(
            f"Credit needs attackers, repetitions and people. Got shape {credit.shape}."
        )
    rates = column_means(np.moveaxis(credit, 2, 0))
    best = np.full(credit.shape[1], -1)
    for here in range(len(best)):
        others = column_means(np.delete(rates, here, axis=1).T)
        able = np.isfinite(others) & np.isfinite(rates[:, here])
        if able.any():
            best[here] = np.argmax(np.where(able, others, -np.inf))
    return best


def _mean_of_person(credit: Floats) -> Floats:
    return credit if credit.ndim == 1 else column_means(credit.T)


def _some(scores: Sequence[Scores]) -> list[Scores]:
    repetitions = list(scores)
    if not repetitions or any(len(s.probes) == 0 or len(s.known) == 0 for s in repetitions):
        raise DataError(
            "There is nothing to judge: an attack needs at least one repetition with people known"
            " and people asked about."
        )
    return repetitions
