"""The promise of a release, as a value with a stated unit that prints as one true text.

A guarantee says *what* is promised (the definition and its exact numbers), *about what* (the unit of privacy and which data count as
neighbours), *under which assumptions*, *what it does not cover*, and *how it is known* (the status). Where the status is not `proved`
the numbers are what somebody claims, and `epsilon`, `delta`, `rho` and `k` of the guarantee are None: nobody can read an unproved number
off it by accident.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from gazeveil import checks
from gazeveil.privacy.exactly import round_up, shown

#: Definitions and the numbers each one needs.
DEFINITIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "k-anonymity": ("k",),
        "plausible-deniability": ("k", "gamma"),
        "epsilon-dp": ("epsilon",),
        "epsilon-delta-dp": ("epsilon", "delta"),
        "rho-zcdp": ("rho",),
        "epsilon-ldp": ("epsilon",),
        "geo-indistinguishability": ("epsilon", "r_deg"),
        "epsilon-w-r-dp": ("epsilon", "w_samples", "r_deg"),
        "epsilon-w-r-t-dp": ("epsilon", "w_samples", "r_deg", "t_samples"),
        "none": (),
    }
)

#: Units of privacy from the smallest to the largest.
UNITS = ("sample", "window", "chunk", "recording-feature", "recording", "user")

#: How a claim is known.
STATUSES = ("proved", "claimed", "empirical", "refuted")

#: Numbers of which more is promised the larger they are; printed decimals of them are rounded down.
_MORE_IS_BETTER = frozenset({"k", "r_deg", "w_samples", "t_samples"})

#: Numerical errors below this are kept in `delta_num` and not printed: nobody reads them as anything but nothing.
LEAST_PRINTED = Fraction(1, 10**100)

#: The delta at which a rho is put into words.
WORDED_DELTA = Fraction(1, 10**6)

#: Definitions whose numbers may be added up.
COMPOSABLE = frozenset({"epsilon-dp", "epsilon-delta-dp", "rho-zcdp", "epsilon-ldp"})

_UNIT_WORDS = {
    "sample": "one gaze sample",
    "window": "one window of a stream",
    "chunk": "one chunk of one feature of one recording",
    "recording-feature": "one feature of one recording",
    "recording": "one recording with all its features",
    "user": "everything of one person",
}


@dataclass(frozen=True)
class Guarantee:
    """What a release promises.

    Parameters
    ----------
    definition : str
        A key of :data:`DEFINITIONS`.
    unit : str
        One of :data:`UNITS`: what an attacker is kept from learning about.
    neighbours : str
        Which two datasets must look alike, as a clause.
    numbers : mapping of str to Fraction
        Exact numbers of the definition.
    user : mapping of str to Fraction
        The same promise for everything of one person (a sum over features, chunks, recordings), where it is known and the unit is
        smaller.
    mechanism : str
        Name and reading.
    assumptions : tuple of str
        What must be true for the promise to hold, as clauses: the public bounds, the public length.
    not_covered : tuple of str
        What the release tells that the promise does not speak of.
    status : str
        One of :data:`STATUSES`.
    reason : str
        Why it has that status: the proof page, or how the claim fails.
    delta_num : Fraction
        Probability that finite arithmetic breaks the promise; added to delta.

    Examples
    --------
    >>> g = Guarantee("epsilon-dp", "user", "all values of one person are replaced", {"epsilon": Fraction(1, 2)}, mechanism="example")
    >>> g.epsilon
    Fraction(1, 2)
    >>> print(g.with_status("refuted", "the range came from the data").epsilon)
    None
    """

    definition: str
    unit: str
    neighbours: str
    numbers: Mapping[str, Fraction] = field(default_factory=dict)
    user: Mapping[str, Fraction] = field(default_factory=dict)
    mechanism: str = ""
    assumptions: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    status: str = "proved"
    reason: str = ""
    delta_num: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        checks.one_of("Guarantee", "definition", self.definition, DEFINITIONS)
        checks.one_of("Guarantee", "unit", self.unit, UNITS)
        checks.one_of("Guarantee", "status", self.status, STATUSES)
        for name in DEFINITIONS[self.definition]:
            if name not in self.numbers:
                checks.refuse("Guarantee", "numbers", f"a mapping with '{name}' for {self.definition}", dict(self.numbers))
        for mapping in (self.numbers, self.user):
            for name, value in mapping.items():
                _check_number(name, value)
        _check_number("delta_num", self.delta_num)
        if self.status != "proved" and not self.reason:
            checks.refuse("Guarantee", "reason", "given where the status is not proved", self.reason)
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "not_covered", tuple(self.not_covered))
        object.__setattr__(self, "numbers", MappingProxyType(dict(self.numbers)))
        object.__setattr__(self, "user", MappingProxyType(dict(self.user)))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Mapping proxies cannot be pickled.
        values = (self.definition, self.unit, self.neighbours, dict(self.numbers), dict(self.user), self.mechanism)
        return Guarantee, (*values, self.assumptions, self.not_covered, self.status, self.reason, self.delta_num)

    def _proved(self, name: str) -> Fraction | None:
        return self.numbers.get(name) if self.status == "proved" else None

    @property
    def epsilon(self) -> Fraction | None:
        """Epsilon at the unit, or None where it is not proved."""
        return self._proved("epsilon")

    @property
    def delta(self) -> Fraction | None:
        """Delta with the numerical error added, or None where it is not proved or not part of the definition."""
        delta = self._proved("delta")
        return None if delta is None else delta + self.delta_num

    @property
    def rho(self) -> Fraction | None:
        """Rho at the unit, or None where it is not proved."""
        return self._proved("rho")

    @property
    def k(self) -> int | None:
        """Size of the smallest group, or None where it is not proved."""
        k = self._proved("k")
        return None if k is None else int(k)

    @property
    def epsilon_claimed(self) -> Fraction | None:
        """Epsilon as the paper or the mechanism claims it, proved or not."""
        return self.numbers.get("epsilon")

    def with_status(self, status: str, reason: str) -> Guarantee:
        """The same claim, known otherwise."""
        return replace(self, status=status, reason=reason)

    def with_not_covered(self, *clauses: str) -> Guarantee:
        """The same promise with more said about what it leaves out."""
        return replace(self, not_covered=(*self.not_covered, *(c for c in clauses if c not in self.not_covered)))

    def tested(self) -> Guarantee:
        """The guarantee of a release made with a seed: whoever knows the seed can undo the noise, so it is only claimed."""
        if self.status != "proved" or self.definition == "none":
            return self
        return self.with_status("claimed", "its random numbers came from a test stream with a known seed, not from the operating system")

    def figures(self) -> dict[str, object]:
        """The guarantee as JSON has it; fractions as text."""
        return {
            "definition": self.definition,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "numbers": {k: str(v) for k, v in self.numbers.items()},
            "user": {k: str(v) for k, v in self.user.items()},
            "mechanism": self.mechanism,
            "assumptions": list(self.assumptions),
            "not_covered": list(self.not_covered),
            "status": self.status,
            "reason": self.reason,
            "delta_num": str(self.delta_num),
        }

    def __str__(self) -> str:
        who = self.mechanism or "This release"
        if self.definition == "none":
            text = f"{who} makes no privacy promise" + (f": {self.reason}." if self.reason else ".")
            return text + _clause("What it does not protect", self.not_covered)
        if self.status == "refuted":
            return f"{who} makes no privacy promise. Its paper claims {self._claim()}, and that claim is refuted: {self.reason}." + _clause(
                "Besides, it does not cover", self.not_covered
            )
        if self.status != "proved":
            known = {"claimed": "is claimed but not proved", "empirical": "rests on experiments alone"}[self.status]
            return f"{who}: {self._claim()} {known}: {self.reason}." + self._tail()
        return f"{who} promises {self._claim()}.{self._meaning()}" + self._tail()

    def _claim(self) -> str:
        n = {k: shown(v, down=k in _MORE_IS_BETTER) for k, v in self.numbers.items()}
        about = _UNIT_WORDS[self.unit]
        words = {
            "k-anonymity": lambda: f"{n['k']}-anonymity of the released record of one person",
            "plausible-deniability": lambda: f"plausible deniability with k = {n['k']} and gamma = {n['gamma']} for {about}",
            "epsilon-dp": lambda: f"differential privacy with epsilon = {n['epsilon']} for {about}",
            "epsilon-delta-dp": lambda: f"differential privacy with epsilon = {n['epsilon']} and delta = {n['delta']} for {about}",
            "rho-zcdp": lambda: f"zero-concentrated differential privacy with rho = {n['rho']} for {about}",
            "epsilon-ldp": lambda: f"local differential privacy with epsilon = {n['epsilon']} for {about}",
            "geo-indistinguishability": lambda: f"geo-indistinguishability with epsilon = {n['epsilon']} per {n['r_deg']} degrees for {about}",
            "epsilon-w-r-dp": lambda: (
                f"(epsilon, w, r)-differential privacy with epsilon = {n['epsilon']}, w = {n['w_samples']} samples and r = {n['r_deg']} degrees"
            ),
            "epsilon-w-r-t-dp": lambda: (
                f"(epsilon, w, r, t)-differential privacy with epsilon = {n['epsilon']}, w = {n['w_samples']} samples, r = {n['r_deg']} degrees and"
                f" t = {n['t_samples']} samples"
            ),
        }
        return words[self.definition]() + f" (neighbours: {self.neighbours})"

    def _meaning(self) -> str:
        epsilon, k = self.numbers.get("epsilon"), self.numbers.get("k")
        if self.definition == "k-anonymity" and k is not None:
            alone = f" At least {shown(k)} people share every released record or the law it was drawn from, so the record alone singles nobody out"
            return alone + "; it does not limit what somebody learns who knows more than the record."
        if self.definition == "rho-zcdp":
            from gazeveil.privacy.accounting import epsilon_of_rho

            epsilon = epsilon_of_rho(self.numbers["rho"], WORDED_DELTA)
            return f" That implies, for instance, differential privacy with epsilon = {shown(epsilon)} and delta = {float(WORDED_DELTA):g}."
        if epsilon is None or self.definition == "geo-indistinguishability":
            return ""
        factor = f"at most {_factor(epsilon)}" if epsilon <= 20 else "e to the power of epsilon, which is so large that it limits next to nothing"
        # A mechanism that averages over groups keeps k-anonymity besides; it says so by giving k as well.
        besides = f" Besides, at least {shown(k)} people share every released record." if k is not None else ""
        # With a delta the factor alone would be a false sentence.
        more = f", and by at most {shown(self.numbers['delta'])} more" if "delta" in self.numbers else ""
        return f" Changing that much of the data changes the probability of any outcome by a factor of {factor}{more}." + besides

    def _tail(self) -> str:
        text = ""
        if self.user and self.unit != "user":
            text += " For everything of one person it adds up to " + ", ".join(f"{k} = {shown(v)}" for k, v in self.user.items()) + "."
        if self.delta_num >= LEAST_PRINTED:
            text += f" Finite arithmetic adds at most {round_up(self.delta_num, 2):.2g} to delta, the probability with which the promise may fail."
        text += _clause("It assumes", self.assumptions) + _clause("It does not cover", self.not_covered)
        return text + (f" Status: proved ({self.reason})." if self.status == "proved" and self.reason else "")


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, Fraction):
        checks.refuse("Guarantee", name, "a Fraction: budgets are exact", value)
    if value < 0:
        # A negative budget would be a refund: an account that took it would allow more than its limit.
        checks.refuse("Guarantee", name, "at least 0", value)


def _factor(epsilon: Fraction) -> str:
    value = math.exp(float(epsilon))
    scale = 10 ** (3 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:g}"


def _clause(begin: str, parts: tuple[str, ...]) -> str:
    return f" {begin}: " + "; ".join(parts) + "." if parts else ""


def no_promise(mechanism: str, reason: str, not_covered: tuple[str, ...] = ()) -> Guarantee:
    """The guarantee of what guarantees nothing: obfuscation, or data passed through."""
    return Guarantee("none", "user", "not defined", mechanism=mechanism, reason=reason, not_covered=not_covered)
