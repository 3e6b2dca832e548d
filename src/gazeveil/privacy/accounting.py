"""An account: a budget that releases may use up but never exceed.

Releases add up by the rules of :mod:`gazeveil.privacy.composition`. Sums of pure epsilon and of rho
stay valid when the next mechanism is chosen after seeing the last answer (Rogers et al. 2016 for
pure sums; Feldman and Zrnic 2021 and Whitehouse et al. 2023 for rho): that makes :class:`Filter` a
promise, not bookkeeping.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from gazeveil import checks
from gazeveil.errors import GazeveilError
from gazeveil.privacy.composition import BudgetError, loss_of, usable
from gazeveil.privacy.guarantee import UNITS, Guarantee
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.rational import Number, exact, format_exact


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

    Each release is checked by :meth:`ask`, which changes nothing, and taken by :meth:`commit`.
    Mechanisms may be chosen after seeing earlier answers: whatever they are, everything released
    together satisfies the limit.

    Parameters
    ----------
    limit : number
        In the account's currency.
    currency : str
        `epsilon` (pure DP) or `rho` (zCDP; pure releases are charged epsilon**2 / 2).
    unit : str or Change
        What the limit is for: a change, or `user` for everything of one person. With the name of a
        smaller unit it is the change that the first release speaks of; later ones are charged what
        they lose for the same change.
    delta_num : number
        How much numerical error may add up.

    Examples
    --------
    >>> account = Filter(1, unit="user")
    >>> from gazeveil.privacy.promise.loss import Loss
    >>> from gazeveil.privacy.promise.privacy_map import UnitMap
    >>> loss = UnitMap.of("user", Loss.pure("2/3"))
    >>> g = Guarantee("epsilon-dp", loss, Change.person(), mechanism="lpa")
    >>> account.commit(account.ask(g))
    >>> account.ask(g).allowed
    False
    >>> account.remaining
    Fraction(1, 3)
    """

    def __init__(
        self,
        limit: Number,
        currency: str = "epsilon",
        unit: str | Change = "user",
        delta_num: Number = Fraction(1, 10**9),
    ) -> None:
        self.limit = exact("Filter", "limit", limit, above=0)
        self.currency = checks.one_of("Filter", "currency", currency, ("epsilon", "rho"))
        name = (
            unit.unit if isinstance(unit, Change) else checks.one_of("Filter", "unit", unit, UNITS)
        )
        self.unit = name
        # The one change it is about; a smaller unit's is that of the first release.
        self._change = (
            unit if isinstance(unit, Change) else Change.person() if name == "user" else None
        )
        self.delta_num_limit = exact("Filter", "delta_num", delta_num, least=0)
        self.spent = Fraction(0)
        self.delta_num = Fraction(0)
        self._version = 0

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
            reason = (
                f"{format_exact(self.spent)} of {format_exact(self.limit)} is spent and"
                f" this release costs {format_exact(cost)}"
            )
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
        if not isinstance(decision, Decision):
            checks.refuse("Filter.commit", "decision", "what Filter.ask gave", decision)
        if not decision.allowed:
            raise BudgetError(f"Refused: {decision.reason}. Nothing was spent.", decision.guarantee)
        if decision.version != self._version:
            raise BudgetError(
                "The account changed since this release was checked. Ask again; nothing was spent.",
                decision.guarantee,
            )
        # Worked out anew: a decision may come from another account, or have been made up.
        now = self.ask(decision.guarantee)
        if now != decision:
            raise BudgetError(
                "This decision was not made by this account. Ask it; nothing was spent.",
                decision.guarantee,
            )
        self.spent = now.spent_after
        self.delta_num += self._cost(decision.guarantee)[1]
        self._version += 1
        self._change = self._change_of(decision.guarantee)

    def spend(self, guarantees: Iterable[Guarantee]) -> None:
        """Take several releases or none: the whole is checked before any of it is spent."""
        if isinstance(guarantees, Guarantee) or not isinstance(guarantees, Iterable):
            checks.refuse(
                "Filter.spend",
                "guarantees",
                "several guarantees",
                guarantees,
                "Put them into a list.",
            )
        wanted = list(guarantees)
        before = (self.spent, self.delta_num, self._version, self._change)
        try:
            for guarantee in wanted:
                self.commit(self.ask(guarantee))
        except GazeveilError:
            self.spent, self.delta_num, self._version, self._change = before
            raise

    def _change_of(self, guarantee: Guarantee) -> Change:
        """The change to ask a release about."""
        if self._change is not None:
            return self._change
        if guarantee.change is None or guarantee.unit != self.unit:
            name = guarantee.mechanism or "the release"
            raise BudgetError(
                f"This account is about a {self.unit}; {name} promises something about a"
                f" {guarantee.unit}.",
                guarantee,
            )
        return guarantee.change

    def _cost(self, guarantee: Guarantee) -> tuple[Fraction, Fraction]:
        g = usable(guarantee)
        loss = loss_of(g, self._change_of(g))
        if self.currency == "epsilon":
            if loss.measure != "pure":
                raise BudgetError(
                    f"This account adds up pure epsilon; {g.mechanism or 'the release'} promises"
                    f" {g.definition}. Use an account in rho.",
                    g,
                )
            return loss.amount, loss.delta_num
        if loss.measure == "approximate":
            raise BudgetError(f"{g.definition} cannot be charged in rho.", g)
        return loss.as_concentrated().amount, loss.delta_num
