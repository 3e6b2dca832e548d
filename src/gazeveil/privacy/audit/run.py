"""`gazeveil.audit`: try to prove a mechanism's promise false.

A mechanism's own game looks at its noise from the inside, with one recording and one stream. What
is put together above the noise, cohorts of unequal rates, spaces and lengths, people with several
recordings, promises that are merged and lifted, keys and copies, can be false while every draw is
right. So black-box games take nothing but the mechanism's `release` (or `open`), data of their own,
and `release.guarantee.map(change)`: they change the data by the change, release both, and see
whether more is lost than the map says. Makers of such games stand by the kind of mechanism, and may
give none where there is nothing to attack.

Lower bounds on epsilon from samples: what a mechanism certainly leaks, at a stated confidence.

Two neighbouring inputs are released many times each. An event (a statistic beyond a threshold) is
chosen on one half of the outputs and judged on the other, so that choosing costs nothing. The
choice asks for bounds that hold for all events tried at once and more: otherwise a rare event that
happened to fall on one side beats a frequent one now and then, and fails on the other half. If the
event has probability at least p under one input and at most q under the other, no epsilon below
ln((p - delta)/q) can be true. p and q are Clopper-Pearson bounds; together they hold with the
stated confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import GazeveilError
from gazeveil.privacy.audit import identity, people, streams, tables
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import UNITS
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.registry import mechanism as by_name

#: How much surer the choice of an event is than the verdict. Noise that is planted at half its
#: scale is found by 1,000 audits of 1,000 with 1e-5, and missed by 8 of them with 1.
_CHOICE = 1e-5


def clopper_pearson(successes: ArrayLike, trials: int, error: float) -> tuple[Floats, Floats]:
    """Lower and upper confidence bounds for a probability, each wrong with probability at most
    `error`.
    """
    from scipy.special import betaincinv

    hits = np.asarray(successes, dtype=np.float64)
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, error), 0.0)
    high = np.where(
        hits < trials, betaincinv(hits + 1, np.maximum(trials - hits, 1), 1 - error), 1.0
    )
    return low, high


@dataclass(frozen=True)
class Bound:
    """A lower bound on epsilon and the event that gave it."""

    epsilon: float
    event: str


def epsilon_lower(
    first: ArrayLike,
    second: ArrayLike,
    confidence: float,
    delta: float = 0.0,
    thresholds: int = 200,
) -> Bound:
    """The largest epsilon that the samples rule everything below of.

    Parameters
    ----------
    first, second : array of float64, shape (trials, statistics) or (trials,)
        Statistics of the outputs for two neighbouring inputs.
    confidence : float
        Probability that the bound is right, e.g. 0.999.
    delta : float
        Delta of the claim.
    thresholds : int
        Thresholds tried per statistic, at quantiles of the first halves.

    Returns
    -------
    Bound
        At least 0.
    """
    a, b = (np.atleast_2d(np.asarray(s, dtype=np.float64).T).T for s in (first, second))
    half_a, half_b = len(a) // 2, len(b) // 2
    error = (1 - confidence) / 2
    best = Bound(0.0, "no event tells the two apart")
    choice: tuple[float, int, float, bool, bool] | None = None
    for j in range(a.shape[1]):
        for strict in (True, False):
            event = _choose(
                a[:half_a, j], b[:half_b, j], _CHOICE * error, delta, thresholds, strict
            )
            if event is not None and (choice is None or event[0] > choice[0]):
                choice = (event[0], j, event[1], event[2], strict)
    if choice is None:
        return best
    _, j, cut, swapped, above = choice
    rest = [s[h:, j] for s, h in ((a, half_a), (b, half_b))]
    if swapped:
        rest.reverse()
    hits = [int(np.count_nonzero(r > cut if above else r < cut)) for r in rest]
    low, _ = clopper_pearson(hits[0], len(rest[0]), error)
    _, high = clopper_pearson(hits[1], len(rest[1]), error)
    value = math.log(max(float(low) - delta, 1e-300) / float(high))
    side = "second" if swapped else "first"
    return Bound(
        max(0.0, value),
        f"statistic {j} {'above' if above else 'below'} {cut:.6g}, likelier for the {side} input",
    )


def _choose(
    a: Floats, b: Floats, error: float, delta: float, thresholds: int, above: bool
) -> tuple[float, float, bool] | None:
    """The threshold and direction with the best bound on the first halves."""
    pooled = np.concatenate((a, b))
    cuts = np.unique(
        np.concatenate(
            (
                np.quantile(pooled, np.linspace(0, 1, thresholds)),
                np.quantile(pooled, [1e-4, 1e-3, 0.999, 0.9999]),
            )
        )
    )
    sorted_a, sorted_b = np.sort(a), np.sort(b)
    if above:
        hits_a, hits_b = (
            len(s) - np.searchsorted(s, cuts, side="right") for s in (sorted_a, sorted_b)
        )
    else:
        hits_a, hits_b = (np.searchsorted(s, cuts, side="left") for s in (sorted_a, sorted_b))
    best = None
    for swapped, (likelier, n_likelier, other, n_other) in enumerate(
        ((hits_a, len(a), hits_b, len(b)), (hits_b, len(b), hits_a, len(a)))
    ):
        low, _ = clopper_pearson(likelier, n_likelier, error)
        _, high = clopper_pearson(other, n_other, error)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)
        place = int(np.argmax(values))
        if np.isfinite(values[place]) and (best is None or values[place] > best[0]):
            best = (float(values[place]), float(cuts[place]), bool(swapped))
    return best


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Parameters
    ----------
    mechanism : str
        As on the command line.
    unit : str
        The unit of privacy the neighbouring inputs differ in.
    epsilon_claimed : float or None
        What the paper or the guarantee claims at that unit, also when it is refuted; None without
        an epsilon.
    epsilon_lower : float or None
        What is certainly lost: the larger of the statistical and the exact bound. Infinity where an
        output is possible for one input alone.
    refuted : bool
        Whether the lower bound exceeds the claim, or another claim (k, for one) was seen broken.
    method : str
        `statistical`, `exact` or `count`: where the bound comes from.
    trials : int
        Releases per input.
    confidence : float
        Of the statistical bound.
    statistical : float or None
        The statistical bound alone.
    detail : str
        The neighbouring inputs and the event, in words.
    black_box : tuple of Audit
        What the games against `release(...)` and the printed sentence found, one each.
    """

    mechanism: str
    unit: str
    epsilon_claimed: float | None
    epsilon_lower: float | None
    refuted: bool
    method: str
    trials: int
    confidence: float
    statistical: float | None = None
    detail: str = ""
    black_box: tuple[Audit, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """The verdict as JSON has it; infinity as text."""

        def plain(value: float | None) -> float | str | None:
            return "infinity" if value is not None and math.isinf(value) else value

        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "epsilon_claimed": plain(self.epsilon_claimed),
            "epsilon_lower": plain(self.epsilon_lower),
            "statistical": plain(self.statistical),
            "refuted": self.refuted,
            "method": self.method,
            "trials": self.trials,
            "confidence": self.confidence,
            "detail": self.detail,
            "black_box": [attack.to_dict() for attack in self.black_box],
        }

    def __str__(self) -> str:
        lost = [attack for attack in self.black_box if attack.refuted]
        tried = len(self.black_box)
        text = self._own() + (
            f" Of {tried} attacks on releases and their printed promise {len(lost)} succeeded."
            if tried
            else ""
        )
        return " ".join([text, *(attack._own() for attack in lost)])

    def _own(self) -> str:
        verdict = "REFUTED" if self.refuted else "not refuted"
        if self.epsilon_claimed is None or self.epsilon_lower is None:
            return f"{self.mechanism}: {verdict} ({self.unit}). {self.detail}"
        lower = "infinity" if math.isinf(self.epsilon_lower) else f"{self.epsilon_lower:.4g}"
        return (
            f"{self.mechanism}: {verdict}. It claims epsilon = {self.epsilon_claimed:.4g} for a"
            f" {self.unit} and certainly loses {lower} ({self.method}, {self.trials:,} releases per"
            f" input, confidence {self.confidence:g}). {self.detail}"
        )


#: `make(mechanism)` gives the games that a mechanism of its kind must not lose.
MakeGames: TypeAlias = Callable[[Mechanism[Any]], Iterator[Game]]

_MAKERS: dict[str, tuple[MakeGames, ...]] = {
    "stream": (streams.cohort_games, identity.releases, identity.sessions),
    "table": (tables.tables,),
    "cohort": (identity.releases, people.windows, people.crowds),
    "map": (people.maps,),
}


def black_box_games(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """The black-box games against a mechanism."""
    if mechanism.kind == "table":
        mechanism = tables.at_a_named_length(mechanism)
    for make in _MAKERS.get(mechanism.kind, ()):
        try:
            yield from make(mechanism)
        except (
            GazeveilError
        ) as refusal:  # of the games' own data, by parameters that do not fit them
            yield Game("user", None, f"Not played: {refusal}")


#: Most releases per input of a black-box game: each is a whole release.
BLACK_BOX_TRIALS = 2000
_BLACK_BOX_SHARE = 50

# Exact losses are computed in floating point: a claim met to within this is met.
_ROUNDING = 1e-9


def audit(
    mechanism: Mechanism[Any] | str,
    trials: int = 100_000,
    confidence: float = 0.999,
    unit: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    black_box: bool = True,
) -> Audit:
    """Try to prove a mechanism's promise false, on neighbouring inputs the audit brings itself.

    An audit can refute; it never proves. The proof is the page in `proofs/`.

    Parameters
    ----------
    mechanism : Mechanism or str
        An object, or the command line's text.
    trials : int
        Releases per input.
    confidence : float
        Probability with which the statistical bound is right.
    unit : str, optional
        Another unit than the claim's: `unit="user"` shows what a claim about chunks is worth for a
        person.
    progress : callable
        Told what is being done.
    black_box : bool
        Whether `release(...)` and the sentence it prints are attacked too, each with a fiftieth of
        the trials and at most :data:`BLACK_BOX_TRIALS`; only what is said to be proved is.
    """
    count = checks.count("audit", "trials", trials, least=100)
    sure = checks.number("audit", "confidence", confidence)
    if not 0 < sure < 1:
        checks.refuse("audit", "confidence", "between 0 and 1", confidence)
    if unit is not None:
        checks.one_of("audit", "unit", unit, UNITS)
    chosen = by_name(mechanism) if isinstance(mechanism, str) else mechanism
    if not isinstance(chosen, Mechanism):
        checks.refuse("audit", "mechanism", "a mechanism or its text", mechanism)
    verdict = judge(str(chosen), chosen.audit_game(unit), count, sure, progress)
    if not black_box or chosen.claim.status != "proved":
        return verdict
    games = list(black_box_games(chosen))
    releases = min(max(count // _BLACK_BOX_SHARE, 100), BLACK_BOX_TRIALS)
    attacks = []
    for game in games:
        progress(game.description)
        # Together the games are wrong no more often than one may be.
        each = 1 - (1 - sure) / len(games)
        attacks.append(_played(str(chosen), game, releases, each))
    return replace(
        verdict,
        refuted=verdict.refuted or any(a.refuted for a in attacks),
        black_box=tuple(attacks),
    )


def _played(name: str, game: Game, trials: int, confidence: float) -> Audit:
    """A black-box game; one whose data the mechanism refuses shows nothing, and says so."""
    try:
        return judge(name, game, trials, confidence)
    except GazeveilError as refusal:
        return Audit(
            name,
            game.unit,
            None,
            None,
            False,
            "count",
            trials,
            confidence,
            detail=f"{game.description} Not played: {refusal}",
        )


def judge(
    name: str,
    game: Game,
    trials: int,
    confidence: float,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Play one game and say what it shows."""
    if game.claimed is None:
        detail = f"{game.description} {game.broken}".strip()
        return Audit(
            name,
            game.unit,
            None,
            None,
            bool(game.broken),
            "count",
            trials,
            confidence,
            detail=detail,
        )
    statistical, detail = None, game.description
    if game.play is not None:
        progress(f"releasing {trials:,} times each of two neighbours")
        first, second = (game.play(side, trials, None) for side in (0, 1))
        bound = epsilon_lower(first, second, confidence, game.delta)
        statistical, detail = bound.epsilon, f"{game.description} Event: {bound.event}."
    exact = game.exact
    lower = max(v for v in (statistical, exact, 0.0) if v is not None)
    method = (
        "exact"
        if exact is not None and (statistical is None or exact >= statistical)
        else "statistical"
    )
    refuted = math.isinf(lower) or lower > game.claimed * (1 + _ROUNDING) + _ROUNDING
    return Audit(
        name,
        game.unit,
        game.claimed,
        lower,
        refuted,
        method,
        trials,
        confidence,
        statistical,
        detail,
    )
