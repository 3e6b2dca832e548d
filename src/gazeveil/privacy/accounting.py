"""The account: what several releases about the same people promise together.

Rules (no others exist):

1. Releases about the same person add up: over features, chunks, tasks, windows, apps and sessions.
2. Releases about disjoint people count as the largest of them, if who is in which part was fixed without looking at the data.
3. Post-processing costs nothing and never appears here.
4. k-anonymity and plausible deniability do not compose: a second release about the same people is refused.
5. What is not proved, or is of an unknown kind, is refused.

Budgets are fractions. Conversions that need logarithms are rounded up, on a grid of one billionth, so a printed number is never
better than the truth. Sums of pure epsilon and of rho stay valid when the next mechanism is chosen after seeing the last answer
(Rogers et al. 2016 for pure sums; Feldman and Zrnic 2021 and Whitehouse et al. 2023 for rho): that makes :class:`Filter` a promise, not
bookkeeping.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gazeveil import checks
from gazeveil.errors import GazeveilError
from gazeveil.privacy.exactly import Number, exact, shown
from gazeveil.privacy.guarantee import COMPOSABLE, DEFINITIONS, UNITS, Guarantee

_GRID = 10**9

#: What differs between neighbours where promises about smaller units, or in different words, are put together.
_WHOLE_PERSON = "all data of one person are replaced, within what is assumed to be public"


class BudgetError(GazeveilError):
    """A release was refused by the account; nothing was spent.

    Parameters
    ----------
    message : str
        The whole sentence.
    guarantee : Guarantee, optional
        What was refused.
    """

    def __init__(self, message: str, guarantee: Guarantee | None = None) -> None:
        super().__init__(message)
        self.guarantee = guarantee


# --- conversions ----------------------------------------------------------------------------------------------------------------


def rho_of_epsilon(epsilon: Fraction) -> Fraction:
    """Pure epsilon-DP is epsilon**2 / 2 zCDP (Bun and Steinke 2016), exactly."""
    return epsilon * epsilon / 2


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon at which rho-zCDP gives (epsilon, delta)-DP, rounded up.

    Proposition 12 of Canonne, Kamath and Steinke 2020 holds for every order alpha > 1, so an inexact search for the best one costs
    tightness, never truth; the result is raised by one part in 10**12 for the rounding of the logarithms and then to the grid.
    """
    if rho == 0:
        return Fraction(0)
    r, d = float(rho) * (1 + 1e-15), float(delta) * (1 - 1e-15)

    def at(log_step: float) -> float:
        step = math.exp(log_step)  # alpha - 1
        alpha = 1 + step
        return alpha * r + math.log1p(-1 / alpha) - (math.log(d) + math.log(alpha)) / step

    return raised(max(0.0, _smallest(at, -30.0, 30.0)))


def epsilon_of_gaussian(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon at which Gaussian noise with that rho gives (epsilon, delta)-DP, rounded up: exact for Gaussian releases alone.

    Balle and Wang 2018: delta(epsilon) = Phi(s/2 - epsilon/s) - exp(epsilon) Phi(-s/2 - epsilon/s) with s = sqrt(2 rho).
    """
    if rho == 0:
        return Fraction(0)
    from scipy.special import log_ndtr

    s, d = math.sqrt(2 * float(rho)) * (1 + 1e-15), float(delta)

    def delta_at(epsilon: float) -> float:
        high, low = float(log_ndtr(s / 2 - epsilon / s)), epsilon + float(log_ndtr(-s / 2 - epsilon / s))
        return -math.exp(high) * math.expm1(low - high) if low < high else 0.0

    low, high = 0.0, 1.0
    while delta_at(high) > d:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > d else (low, middle)
    return raised(high)


def rdp_of_laplace(epsilon: float, alpha: float) -> float:
    """Renyi divergence of order alpha between neighbours under Laplace noise with loss epsilon (Mironov 2017, Table II)."""
    a = alpha
    high, low = (a - 1) * epsilon, -a * epsilon
    mean = math.log(a / (2 * a - 1)) + high + math.log1p((a - 1) / a * math.exp(low - high))
    return mean / (a - 1)


def epsilon_of_rdp(divergence: Callable[[float], float], delta: Fraction) -> Fraction:
    """The epsilon at which a mechanism with the given Renyi divergences gives (epsilon, delta)-DP, rounded up."""
    d = float(delta) * (1 - 1e-15)

    def at(log_step: float) -> float:
        step = math.exp(log_step)
        alpha = 1 + step
        return divergence(alpha) + math.log1p(-1 / alpha) - (math.log(d) + math.log(alpha)) / step

    return raised(max(0.0, _smallest(at, -12.0, 12.0)))


def raised(value: float) -> Fraction:
    """A float as a fraction that is certainly not below the number it stands for."""
    return Fraction(math.ceil(value * (1 + 1e-12) * _GRID + 1e-6), _GRID)


def _smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """The smallest value found by a grid and two refinements of it; every value is a valid bound."""
    for _ in range(3):
        points = [low + (high - low) * i / 400 for i in range(401)]
        values = [function(p) for p in points]
        best = min(range(401), key=lambda i: values[i])
        low, high = points[max(best - 1, 0)], points[min(best + 1, 400)]
    return values[best]


# --- composition of guarantees ----------------------------------------------------------------------------------------------------


def _usable(guarantee: object) -> Guarantee:
    if not isinstance(guarantee, Guarantee):
        raise BudgetError(f"The account takes guarantees. Got {type(guarantee).__name__}: what is not known cannot be added up.")
    if guarantee.definition in {"k-anonymity", "plausible-deniability"}:
        raise BudgetError(
            f"{guarantee.mechanism or guarantee.definition} does not compose: two such releases about the same people can single them out together."
            " Reuse the partition in one release, or use a differentially private mechanism.",
            guarantee,
        )
    if guarantee.status != "proved" or guarantee.definition not in COMPOSABLE:
        word = guarantee.status if guarantee.status != "proved" else guarantee.definition
        raise BudgetError(f"{guarantee.mechanism or 'This release'} cannot be added up: its promise is '{word}'. Only proved budgets can.", guarantee)
    return guarantee


def at_user(guarantee: Guarantee) -> Guarantee:
    """The same promise for everything of one person, where it is known.

    Raises
    ------
    BudgetError
        Where the mechanism did not say what its unit adds up to.
    """
    if guarantee.unit == "user":
        return guarantee
    if not all(name in guarantee.user for name in DEFINITIONS[guarantee.definition]):
        raise BudgetError(f"{guarantee.mechanism} promises something about {guarantee.unit} and does not say what that adds up to for a person.", guarantee)
    return replace(guarantee, unit="user", neighbours=_WHOLE_PERSON, numbers={**guarantee.numbers, **guarantee.user}, user={})


def compose(guarantees: Iterable[Guarantee], people: str = "same", partition: str = "unknown") -> Guarantee:
    """What several releases promise together.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        All proved; of one unit, or all liftable to the person.
    people : str
        `same`: about the same people, numbers add up. `disjoint`: no person is in two of them, the largest counts.
    partition : str
        For `disjoint`: `data-independent` if who is in which part was fixed without looking at the data. Anything else is refused.

    Raises
    ------
    BudgetError
        Where no rule applies.
    """
    parts = [_usable(g) for g in guarantees]
    checks.one_of("compose", "people", people, ("same", "disjoint"))
    if not parts:
        raise BudgetError("There is nothing to compose. Give at least one guarantee.")
    if people == "disjoint" and partition != "data-independent":
        raise BudgetError("The largest of several budgets counts only if people were split without looking at the data. Say partition='data-independent'.")
    if len({g.unit for g in parts}) > 1 or (people == "disjoint" and parts[0].unit != "user"):
        parts = [at_user(g) for g in parts]
    if len({g.neighbours for g in parts}) > 1 and parts[0].unit != "user":
        parts = [at_user(g) for g in parts]
    kinds = {g.definition for g in parts}
    together: Callable[[Iterable[Fraction]], Fraction] = _total if people == "same" else max
    numbers, definition = _combined(parts, kinds, together)
    users = [g.user for g in parts]
    user = {n: together(u[n] for u in users) for n in users[0]} if len(kinds) == 1 and all(u.keys() == users[0].keys() for u in users) else {}
    return Guarantee(
        definition,
        parts[0].unit,
        parts[0].neighbours if len({g.neighbours for g in parts}) == 1 else _WHOLE_PERSON,
        numbers,
        user,
        mechanism=" and ".join(dict.fromkeys(g.mechanism for g in parts if g.mechanism)),
        assumptions=tuple(dict.fromkeys(a for g in parts for a in g.assumptions)),
        not_covered=tuple(dict.fromkeys(c for g in parts for c in g.not_covered)),
        reason="sum over releases about the same people" if people == "same" else "largest over disjoint people",
        delta_num=together(g.delta_num for g in parts),
    )


def _same_neighbours(guarantee: Guarantee, before: str) -> None:
    """Refuse to add up promises about different small things: a chunk of 32 rows lies across chunks of 48, a move by 1 degree is not one by 5."""
    if guarantee.unit != "user" and before and guarantee.neighbours != before:
        raise BudgetError(
            f"The releases so far speak of another {guarantee.unit} ({before}) than {guarantee.mechanism or 'this one'} does ({guarantee.neighbours})."
            " Keep an account about the user instead.",
            guarantee,
        )


def _total(values: Iterable[Fraction]) -> Fraction:
    return sum(values, start=Fraction(0))


def _combined(parts: list[Guarantee], kinds: set[str], together: Callable[[Iterable[Fraction]], Fraction]) -> tuple[dict[str, Fraction], str]:
    pure = {"epsilon-dp", "epsilon-ldp"}
    if kinds <= pure:
        definition = "epsilon-ldp" if kinds == {"epsilon-ldp"} else "epsilon-dp"
        return {"epsilon": together(g.numbers["epsilon"] for g in parts)}, definition
    if kinds <= pure | {"rho-zcdp"}:
        return {"rho": together(g.numbers["rho"] if "rho" in g.numbers else rho_of_epsilon(g.numbers["epsilon"]) for g in parts)}, "rho-zcdp"
    if kinds <= pure | {"epsilon-delta-dp"}:
        epsilon = together(g.numbers["epsilon"] for g in parts)
        return {"epsilon": epsilon, "delta": together(g.numbers.get("delta", Fraction(0)) for g in parts)}, "epsilon-delta-dp"
    raise BudgetError("rho-zCDP and (epsilon, delta)-DP cannot be added directly. Convert the first with epsilon_of_rho at a delta of your choice.")


# --- accounts that stay valid when the next question depends on the last answer ---------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """What an account would say to a release, before anything is spent."""

    allowed: bool
    guarantee: Guarantee
    cost: Fraction
    spent_after: Fraction
    reason: str
    version: int


class Filter:
    """A budget for one unit that releases may use up but never exceed.

    Each release is checked by :meth:`ask`, which changes nothing, and taken by :meth:`commit`. Mechanisms may be chosen after seeing
    earlier answers: whatever they are, everything released together satisfies the limit.

    Parameters
    ----------
    limit : number
        In the account's currency.
    currency : str
        `epsilon` (pure DP) or `rho` (zCDP; pure releases are charged epsilon**2 / 2).
    unit : str
        The unit the limit is for; releases of another unit are lifted to `user` if that is the unit, else refused. Below `user` all
        releases must have the same neighbours in words.
    delta_num : number
        How much numerical error may add up.

    Examples
    --------
    >>> account = Filter(1, unit="user")
    >>> g = Guarantee("epsilon-dp", "user", "one person's data is replaced", {"epsilon": Fraction(2, 3)}, mechanism="lpa")
    >>> account.commit(account.ask(g))
    >>> account.ask(g).allowed
    False
    >>> account.remaining
    Fraction(1, 3)
    """

    def __init__(self, limit: Number, currency: str = "epsilon", unit: str = "user", delta_num: Number = Fraction(1, 10**9)) -> None:
        self.limit = exact("Filter", "limit", limit, above=0)
        self.currency = checks.one_of("Filter", "currency", currency, ("epsilon", "rho"))
        self.unit = checks.one_of("Filter", "unit", unit, UNITS)
        self.delta_num_limit = exact("Filter", "delta_num", delta_num, least=0)
        self.spent = Fraction(0)
        self.delta_num = Fraction(0)
        self._version = 0
        self._neighbours = ""

    @property
    def remaining(self) -> Fraction:
        """What is left, in the account's currency."""
        return self.limit - self.spent

    def ask(self, guarantee: Guarantee) -> Decision:
        """Whether a release with this guarantee would fit; nothing is spent.

        Raises
        ------
        BudgetError
            For a guarantee that cannot be added up at all.
        """
        cost, error = self._cost(guarantee)
        after = self.spent + cost
        fits = after <= self.limit and self.delta_num + error <= self.delta_num_limit
        if after > self.limit:
            reason = f"{shown(self.spent)} of {shown(self.limit)} is spent and this release costs {shown(cost)}"
        else:
            reason = "fits" if fits else "the numerical error would exceed its limit"
        return Decision(fits, guarantee, cost, after, reason, self._version)

    def commit(self, decision: Decision) -> None:
        """Spend what was asked for.

        Raises
        ------
        BudgetError
            If the decision was a refusal, or if something else was spent since it was made.
        """
        if not decision.allowed:
            raise BudgetError(f"Refused: {decision.reason}. Nothing was spent.", decision.guarantee)
        if decision.version != self._version:
            raise BudgetError("The account changed since this release was checked. Ask again; nothing was spent.", decision.guarantee)
        # Worked out anew: a decision may come from another account, or have been made up.
        now = self.ask(decision.guarantee)
        if now != decision:
            raise BudgetError("This decision was not made by this account. Ask it; nothing was spent.", decision.guarantee)
        self.spent = now.spent_after
        self.delta_num += self._cost(decision.guarantee)[1]
        self._version += 1
        self._neighbours = self._neighbours or decision.guarantee.neighbours

    def spend(self, guarantees: Iterable[Guarantee]) -> None:
        """Take several releases or none: the whole is checked before any of it is spent."""
        wanted = list(guarantees)
        before = (self.spent, self.delta_num, self._version, self._neighbours)
        try:
            for guarantee in wanted:
                self.commit(self.ask(guarantee))
        except GazeveilError:
            self.spent, self.delta_num, self._version, self._neighbours = before
            raise

    def _cost(self, guarantee: Guarantee) -> tuple[Fraction, Fraction]:
        g = _usable(guarantee)
        if g.unit != self.unit:
            if self.unit != "user":
                raise BudgetError(f"This account is about {self.unit}; {g.mechanism or 'the release'} promises something about {g.unit}.", g)
            g = at_user(g)
        _same_neighbours(g, self._neighbours)
        if self.currency == "epsilon":
            if g.definition not in {"epsilon-dp", "epsilon-ldp"}:
                raise BudgetError(f"This account adds up pure epsilon; {g.mechanism or 'the release'} promises {g.definition}. Use an account in rho.", g)
            return g.numbers["epsilon"], g.delta_num
        if g.definition == "rho-zcdp":
            return g.numbers["rho"], g.delta_num
        if g.definition in {"epsilon-dp", "epsilon-ldp"}:
            return rho_of_epsilon(g.numbers["epsilon"]), g.delta_num
        raise BudgetError(f"{g.definition} cannot be charged in rho.", g)


@dataclass
class Odometer:
    """How much has been spent so far, readable at any time, with no limit set beforehand.

    Pure sums may be read at any moment. A running rho may not be turned into one (epsilon, delta) at a moment chosen by the answers;
    :meth:`reading` therefore pays for a ladder of limits start, 2 start, 4 start, ... with shares 6/(pi**2 i**2) of delta, and reads
    off the first rung above what was spent (Lecuyer 2021).

    Parameters
    ----------
    unit : str
        The unit of the releases.
    start : Fraction
        First rung of the ladder, in rho.
    """

    unit: str = "user"
    start: Fraction = Fraction(1, 100)
    _pure: list[Fraction] = field(default_factory=list)
    _rho: Fraction = Fraction(0)
    _is_pure: bool = True
    _delta_num: Fraction = Fraction(0)
    _neighbours: str = ""

    def add(self, guarantee: Guarantee) -> None:
        """Record a release that was made."""
        g = _usable(guarantee)
        if g.unit != self.unit:
            if self.unit != "user":
                raise BudgetError(f"This odometer is about {self.unit}; {g.mechanism or 'the release'} promises something about {g.unit}.", g)
            g = at_user(g)
        _same_neighbours(g, self._neighbours)
        if g.definition == "epsilon-delta-dp":
            raise BudgetError("An odometer adds up pure epsilon and rho. Record the mechanism's rho instead of its (epsilon, delta).", g)
        if g.definition == "rho-zcdp":
            self._is_pure = False
            self._rho += g.numbers["rho"]
        else:
            self._pure.append(g.numbers["epsilon"])
            self._rho += rho_of_epsilon(g.numbers["epsilon"])
        self._delta_num += g.delta_num
        self._neighbours = self._neighbours or g.neighbours

    def reading(self, delta: Number = Fraction(0)) -> tuple[Fraction, Fraction]:
        """Valid (epsilon, delta) now; delta 0 works while every release was pure.

        Returns
        -------
        epsilon, delta
            Delta includes the numerical error.
        """
        d = exact("Odometer.reading", "delta", delta, least=0)
        pure = _total(self._pure) if self._is_pure else None
        if d == 0:
            if pure is None:
                raise BudgetError("Releases with rho were recorded: a reading needs a delta above 0.")
            return pure, self._delta_num
        rung, level = 1, self.start
        while level < self._rho:
            rung, level = rung + 1, level * 2
        share = Fraction(math.floor(6 / math.pi**2 / rung**2 * 10**12), 10**12)
        ladder = epsilon_of_rho(level, d * share)
        return (ladder if pure is None else min(pure, ladder)), d + self._delta_num
