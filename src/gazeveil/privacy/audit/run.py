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

Broken mechanisms that the auditor must catch. An auditor that misses one of these proves nothing
about the others.

Each is a mistake that was made in a paper or in published code: half the noise, values that are not
clipped, noise on the real parts of a spectrum alone, noise on more bins than the half spectrum has,
groups redrawn per task, test noise without the radius, Laplace noise in floating point, one seed
used twice, and a promise about chunks sold as one about people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import GazeveilError
from gazeveil.privacy.audit import identity, people
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.audit.releases import at_a_named_length, cohort_games, tables
from gazeveil.privacy.guarantee import UNITS
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.noise.exact import discrete_laplace
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.registry import mechanism as by_name
from gazeveil.privacy.tables.audit import worst_corner

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
    "stream": (cohort_games, identity.releases, identity.sessions),
    "table": (tables,),
    "cohort": (identity.releases, people.windows, people.crowds),
    "map": (people.maps,),
}


def black_box_games(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """The black-box games against a mechanism."""
    if mechanism.kind == "table":
        mechanism = at_a_named_length(mechanism)
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


_GRID = 1000


@dataclass(frozen=True)
class Planted:
    """One broken mechanism: what is wrong with it, and what makes the game it must lose."""

    name: str
    game: Callable[[], Game]


def _laplace(scale: Fraction, trials: int, seed: int | None) -> Floats:
    """Discrete Laplace noise in units of the range, on a grid of a thousandth."""
    return discrete_laplace(scale * _GRID, trials, Words(source(seed, "planted"))) / _GRID


def _half_noise() -> Game:
    def play(side: int, trials: int, seed: int | None) -> Floats:
        return side + _laplace(Fraction(1, 2), trials, seed)[:, None]

    return Game(
        "recording-feature",
        1.0,
        "One value 0 against 1, epsilon 1, noise of scale 1/2 instead of 1.",
        play,
    )


def _no_clipping() -> Game:
    def play(side: int, trials: int, seed: int | None) -> Floats:
        # The public bounds say [0, 1]; the value is 10 and is not clipped.
        return 10.0 * side + _laplace(Fraction(1), trials, seed)[:, None]

    return Game(
        "recording-feature",
        1.0,
        "Bounds [0, 1], epsilon 1, a value of 10 that is not clipped against 0.",
        play,
    )


def _real_only() -> Game:
    return mechanism("fpa", epsilon=1, k=5, reading="published-real").audit_game(None)


def _beyond_half() -> Game:
    """Independent noise on all n bins with the scale of the formula: conjugate pairs are counted
    twice.
    """
    n = 64
    turns = 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    rows = np.concatenate((np.cos(turns), np.sin(turns)))
    corner = 2.0 * worst_corner(rows) - 1.0
    scale = math.sqrt(n * n) * math.sqrt(
        n
    )  # sqrt(n k) Delta_2 with k = n and Delta_2 = sqrt(n), epsilon 1
    return Game(
        "recording-feature",
        1.0,
        f"{n} rows, noise on all {n} bins of the spectrum: mirrored bins tell everything twice.",
        None,
        float(np.abs(rows @ corner).sum()) / scale,
    )


def _missing_r() -> Game:
    radius, threshold, epsilon_test = 50, 30, Fraction(3, 100)

    def play(side: int, trials: int, seed: int | None) -> Floats:
        distance = threshold + radius * side
        noise = (
            discrete_laplace(1 / epsilon_test * _GRID, trials, Words(source(seed, "planted")))
            / _GRID
        )
        return (distance <= threshold + noise).astype(np.float64)[:, None]

    description = (
        f"Kaleido's test bit with noise Lap(1/epsilon_test): a distance of {threshold} against"
        f" {threshold + radius} pixels, r = {radius}."
    )
    return Game("sample", float(epsilon_test), description, play)


def _float_laplace() -> Game:
    """Mironov 2012: the doubles that textbook Laplace noise can reach from 0 are mostly not those
    it can reach from 1.
    """

    def play(side: int, trials: int, seed: int | None) -> Floats:
        rng = np.random.default_rng(seed)
        uniform = rng.integers(1, 2**53, trials)
        sign = np.where(rng.integers(0, 2, trials) == 1, 1.0, -1.0)
        return _reachable(side + sign * np.log(uniform * 2.0**-53), 1.0)[:, None]

    return Game(
        "recording-feature",
        1.0,
        "x + Lap(1) in doubles, 0 against 1: is the output one that centre 1 can give at all?",
        play,
    )


def _reachable(output: Floats, centre: float, around: int = 40) -> Floats:
    """1 where some 53-bit uniform number gives exactly this double from that centre."""
    reached = np.zeros(len(output), dtype=bool)
    for sign in (1.0, -1.0):
        guess = np.rint(np.exp(sign * (output - centre)) * 2.0**53)
        for step in range(-around, around + 1):
            uniform = guess + step
            inside = (uniform >= 1) & (uniform < 2.0**53)
            again = centre + sign * np.log(np.where(inside, uniform, 1.0) * 2.0**-53)
            reached |= inside & (again == output)
    return reached.astype(np.float64)


def _seed_reuse() -> Game:
    def play(side: int, trials: int, seed: int | None) -> Floats:
        noise = _laplace(Fraction(1), trials, seed)
        # Two answers about one person, each with epsilon 1, drawn from the same seed: their
        # difference has no noise.
        return ((side + noise) - (0.0 + noise))[:, None]

    return Game(
        "user",
        2.0,
        "Two answers with epsilon 1 each whose noise comes from one seed: their difference is"
        " exact.",
        play,
    )


def _chunk_as_user() -> Game:
    honest = mechanism("cfpa", epsilon=Fraction(1, 2), chunk=32, k=1, per="chunk").audit_game(
        "user"
    )
    return Game(
        "user",
        0.5,
        f"{honest.description} Epsilon 0.5 of one chunk is sold as the person's.",
        honest.play,
        honest.exact,
    )


PLANTED = (
    Planted("half noise", _half_noise),
    Planted("no clipping", _no_clipping),
    Planted("real-only Fourier noise", _real_only),
    Planted("noise beyond half the spectrum", _beyond_half),
    Planted(
        "k-same regrouped per task",
        lambda: mechanism("k-same-select", k=4, reading="published").audit_game(None),
    ),
    Planted("Kaleido test noise without r", _missing_r),
    Planted("Laplace noise in floating point", _float_laplace),
    Planted("one seed used twice", _seed_reuse),
    Planted("chunk claim sold as user claim", _chunk_as_user),
)
